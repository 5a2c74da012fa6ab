"""Checks a set of message schemas: `python protocol/check.py [DIR]` (protocol/messages by default).

A schema file holds one JSON object: name, type, key (of an API, of an internal topic's record), versions,
flexible (first flexible version), listeners, fields, structs (those used in several places). A field: name,
type (a primitive, a struct's name, or [] and one of these), versions (absent: all of its parent's), nullable
(a range, or true for all its versions), default (absent: zero, empty), tag, ignorable, flexible (false: never
compact), entity (what the value names), fields. Ranges are "3", "3+", "3-7" or "none".
"""

from __future__ import annotations

import json
import keyword
import sys
from pathlib import Path
from typing import Any

PRIMITIVES = {
    "bool": (False, True),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float64": (0, 0),
    "string": (0, 0),
    "bytes": (0, 0),
    "uuid": (0, 0),
    "records": (0, 0),
}
TYPES = {"request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"}
TOP_KEYS = {"name", "type", "key", "versions", "flexible", "unstable", "listeners", "fields", "structs"}
FIELD_KEYS = {
    "name",
    "type",
    "versions",
    "nullable",
    "default",
    "tag",
    "ignorable",
    "flexible",
    "entity",
    "fields",
}
CLASS_ATTRIBUTES = {"encode", "decode", "decode_prefix", "unknown_tags"}
MESSAGE_ATTRIBUTES = {"api_key", "min_version", "max_version", "flexible_since"}
LAST = 32767


def snake(name: str) -> str:
    out = ""
    for index, letter in enumerate(name):
        if (
            index
            and letter.isupper()
            and (not name[index - 1].isupper() or name[index + 1 : index + 2].islower())
        ):
            out += "_"
        out += letter.lower()
    return out


def versions(text: str, last: int = LAST) -> range:
    """The versions in a range's text."""
    if text == "none":
        return range(0)
    first, dash, end = text.partition("-")
    if dash:
        return range(int(first), int(end) + 1)
    if text.endswith("+"):
        return range(int(text[:-1]), last + 1)
    return range(int(text), int(text) + 1)


def within(inner: range, outer: range) -> bool:
    return len(inner) == 0 or (inner.start >= outer.start and inner.stop <= outer.stop)


class Checker:
    """The complaints about one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.complaints: list[str] = []
        self.common = {entry["name"]: entry["fields"] for entry in schema.get("structs", ())}
        self.seen: set[str] = set()
        self.used: set[str] = set()

    def complain(self, where: str, what: str) -> None:
        self.complaints.append(f"{where}: {what}")

    def check(self) -> list[str]:
        schema, name = self.schema, self.schema["name"]
        if extra := set(schema) - TOP_KEYS:
            self.complain(name, f"unknown keys {sorted(extra)}")
        if schema["type"] not in TYPES:
            self.complain(name, f"type {schema['type']}")
        self.valid = versions(schema["versions"])
        self.flexible = schema.get("flexible", LAST)
        if "flexible" in schema and self.flexible not in self.valid:
            self.complain(name, "becomes flexible outside its versions")
        self.check_fields(name, schema["fields"], self.valid, [name])
        for attribute in {snake(field["name"]) for field in schema["fields"]} & MESSAGE_ATTRIBUTES:
            self.complain(name, f"a field hides the class attribute {attribute}")
        for unused in set(self.common) - self.used:
            self.complain(name, f"struct {unused} is not used")
        return self.complaints

    def check_fields(self, owner: str, fields: list[dict[str, Any]], valid: range, path: list[str]) -> None:
        names = [snake(field["name"]) for field in fields]
        for attribute in names:
            if names.count(attribute) > 1 or keyword.iskeyword(attribute) or attribute in CLASS_ATTRIBUTES:
                self.complain(owner, f"attribute {attribute} is taken")
        for number in valid if len(valid) < 100 else ():
            self.check_tags(owner, fields, number)
        for field in fields:
            self.check_field(f"{owner}.{field['name']}", field, valid, path)

    def check_tags(self, owner: str, fields: list[dict[str, Any]], number: int) -> None:
        tags = [f["tag"] for f in fields if "tag" in f and number in versions(f.get("versions", "0+"))]
        if len(set(tags)) != len(tags):
            self.complain(owner, f"tags {tags} in version {number}")
        if tags and number < self.flexible:
            self.complain(owner, f"tags in version {number}, which is not flexible")

    def check_field(self, where: str, field: dict[str, Any], valid: range, path: list[str]) -> None:
        if extra := set(field) - FIELD_KEYS:
            self.complain(where, f"unknown keys {sorted(extra)}")
        has = versions(field["versions"], valid.stop - 1) if "versions" in field else valid
        if not len(has) or not within(has, valid):
            self.complain(where, f"versions {field.get('versions')} are not within its parent's")
        nullable = field.get("nullable", "none")
        if nullable is not True and not within(versions(nullable, has.stop - 1), has):
            self.complain(where, f"nullable in {nullable}, which are not among its versions")
        kind = field["type"].removeprefix("[]")
        self.check_default(where, field, kind)
        if kind in PRIMITIVES:
            if "fields" in field:
                self.complain(where, f"a {kind} has no fields")
            return
        self.check_struct(where, field, kind, has, path)

    def check_struct(self, where: str, field: dict[str, Any], kind: str, has: range, path: list[str]) -> None:
        if kind in path:
            self.complain(where, f"{kind} holds itself: messages have a fixed depth")
        elif "fields" in field:
            if kind in self.seen or kind in self.common:
                self.complain(where, f"struct {kind} is defined twice")
            self.seen.add(kind)
            self.check_fields(kind, field["fields"], has, [*path, kind])
        elif kind in self.common:
            self.used.add(kind)
            self.check_fields(kind, self.common[kind], self.valid, [*path, kind])
        else:
            self.complain(where, f"no struct {kind}")

    def check_default(self, where: str, field: dict[str, Any], kind: str) -> None:
        if "default" not in field:
            return
        value = field["default"]
        if value is None:
            if "nullable" not in field:
                self.complain(where, "null by default, but never nullable")
            return
        least, most = PRIMITIVES.get(kind, (0, 0))
        if field["type"].startswith("[]") or (least, most) == (0, 0):
            self.complain(where, f"a default for {field['type']}")
        elif isinstance(value, bool) != (kind == "bool") or not least <= value <= most:
            self.complain(where, f"default {value!r} is no {kind}")


def main(arguments: list[str]) -> int:
    directory = Path(arguments[0]) if arguments else Path(__file__).parent / "messages"
    complaints = []
    keys: dict[tuple[str, int], str] = {}
    paths = sorted(directory.glob("*.json"))
    for path in paths:
        schema = json.loads(path.read_text())
        if schema["name"] != path.stem:
            complaints.append(f"{path.name} holds {schema['name']}")
        if "\\" in path.read_text():
            complaints.append(f"{path.name}: escapes are not read")
        complaints += Checker(schema).check()
        if schema["type"] in ("request", "response"):
            place = (schema["type"], schema["key"])
            if place in keys:
                complaints.append(f"{path.stem} and {keys[place]} have one key")
            keys[place] = path.stem
    requests = {key for kind, key in keys if kind == "request"}
    for kind, key in keys:
        if key not in requests or ("response", key) not in keys:
            complaints.append(f"{keys[kind, key]} has no counterpart")
    print(*complaints, f"{len(paths)} schemas, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
