"""A slow, obvious codec of Kafka messages: the oracle for pykafkad's own.

It works straight from the JSON of protocol/messages, one field after the other, with messages as plain dicts
keyed by the schema's names; unknown tagged fields are under "" as {tag: bytes}. It shares no code with
the one it judges.
"""

from __future__ import annotations

import functools
import json
import re
import struct
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[2] / "protocol" / "messages"
INTEGERS = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
}
ZEROS: dict[str, Any] = {
    **dict.fromkeys(INTEGERS, 0),
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": bytes(16),
    "records": None,
}


class BadMessage(Exception):
    """A message that a codec has to refuse."""


@functools.cache
def schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def covers(versions: str, version: int) -> bool:
    if versions == "none":
        return False
    first, dash, last = versions.partition("-")
    if dash:
        return int(first) <= version <= int(last)
    return int(first[:-1]) <= version if first.endswith("+") else int(first) == version


class Codec:
    """One message in one version."""

    def __init__(self, name: str, version: int) -> None:
        self.schema = schema(name)
        self.version = version
        self.flexible = version >= self.schema.get("flexible", 32767)
        self.common = {entry["name"]: entry["fields"] for entry in self.schema.get("structs", ())}

    # what fields there are

    def has(self, field: dict[str, Any]) -> bool:
        return covers(field.get("versions", "0+"), self.version)

    def nullable(self, field: dict[str, Any]) -> bool:
        nullable = field.get("nullable", "none")
        return self.has(field) if nullable is True else covers(nullable, self.version)

    def fields_of(self, field: dict[str, Any]) -> list[dict[str, Any]]:
        name = field["type"].removeprefix("[]")
        return field["fields"] if "fields" in field else self.common[name]

    def default(self, field: dict[str, Any]) -> Any:
        if "default" in field:
            return field["default"]
        if field["type"].startswith("[]"):
            return []
        if field["type"] in ZEROS:
            return ZEROS[field["type"]]
        return self.empty(self.fields_of(field))

    def empty(self, fields: list[dict[str, Any]]) -> dict[str, Any]:
        return {field["name"]: self.default(field) for field in fields}

    # writing

    def encode(self, message: dict[str, Any]) -> bytes:
        return self.encode_struct(self.schema["fields"], message)

    def encode_struct(self, fields: list[dict[str, Any]], value: dict[str, Any]) -> bytes:
        out = b""
        tags: dict[int, bytes] = dict(value.get("", {}))
        for field in fields:
            item = value[field["name"]]
            if not self.has(field):
                if item != self.default(field) and not field.get("ignorable"):
                    raise BadMessage(f"{field['name']} is not in version {self.version}")
            elif "tag" not in field:
                out += self.encode_field(field, item)
            elif item != self.default(field):
                if field["tag"] in tags:
                    raise BadMessage(f"tag {field['tag']} twice")
                tags[field["tag"]] = self.encode_field(field, item)
        if not self.flexible:
            if tags:
                raise BadMessage("tags in a version without tags")
            return out
        out += uvarint(len(tags))
        for tag in sorted(tags):
            out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]
        return out

    def encode_field(self, field: dict[str, Any], value: Any) -> bytes:
        if value is None and not self.nullable(field):
            raise BadMessage(f"{field['name']} is null")
        if not field["type"].startswith("[]"):
            return self.encode_one(field, field["type"], value)
        if value is None:
            return self.length(field, None)
        items = [self.encode_one({**field, "nullable": "none"}, field["type"][2:], item) for item in value]
        return self.length(field, len(value)) + b"".join(items)

    def encode_one(self, field: dict[str, Any], kind: str, value: Any) -> bytes:
        if kind in INTEGERS:
            try:
                return struct.pack(INTEGERS[kind], value)
            except struct.error:
                raise BadMessage(f"{value} is no {kind}") from None
        if kind == "bool":
            return b"\1" if value else b"\0"
        if kind == "float64":
            return struct.pack(">d", value)
        if kind == "uuid":
            return value
        if kind == "string":
            return self.encode_string(field, value)
        if kind in ("bytes", "records"):
            return (
                self.length(field, None) if value is None else self.length(field, len(value)) + bytes(value)
            )
        if self.nullable(field):
            null = b"\0" if "tag" in field else b"\xff"
            return null if value is None else b"\1" + self.encode_struct(self.fields_of(field), value)
        return self.encode_struct(self.fields_of(field), value)

    def encode_string(self, field: dict[str, Any], value: str | None) -> bytes:
        text = b"" if value is None else value.encode()
        if len(text) > 32767:
            raise BadMessage("too long")
        length = -1 if value is None else len(text)
        return (uvarint(length + 1) if self.compact(field) else struct.pack(">h", length)) + text

    def compact(self, field: dict[str, Any]) -> bool:
        return self.flexible and field.get("flexible", True)

    def length(self, field: dict[str, Any], length: int | None) -> bytes:
        number = -1 if length is None else length
        return uvarint(number + 1) if self.compact(field) else struct.pack(">i", number)

    # reading

    def decode(self, data: bytes) -> tuple[dict[str, Any], bytes]:
        """The message, and the bytes after it."""
        reader = Reader(data)
        return self.decode_struct(self.schema["fields"], reader), reader.data

    def decode_struct(self, fields: list[dict[str, Any]], reader: Reader) -> dict[str, Any]:
        value = self.empty(fields)
        for field in fields:
            if self.has(field) and "tag" not in field:
                value[field["name"]] = self.decode_field(field, reader)
        if not self.flexible:
            return value
        tagged = {field["tag"]: field for field in fields if "tag" in field and self.has(field)}
        misplaced = {field["tag"] for field in fields if "tag" in field and not self.has(field)}
        for _ in range(signed(reader.uvarint())):
            tag, size = reader.uvarint(), reader.uvarint()
            if tag in misplaced:
                raise BadMessage(f"tag {tag} in version {self.version}")
            if tag in tagged:
                value[tagged[tag]["name"]] = self.decode_field(tagged[tag], reader)
            else:
                value.setdefault("", {})[tag] = reader.take(size)
        return value

    def decode_field(self, field: dict[str, Any], reader: Reader) -> Any:
        if not field["type"].startswith("[]"):
            value = self.decode_one(field, field["type"], reader)
        else:
            value = self.decode_array(field, reader)
        if value is None and not self.nullable(field):
            raise BadMessage(f"{field['name']} is null")
        return value

    def decode_array(self, field: dict[str, Any], reader: Reader) -> list[Any] | None:
        count = self.read_length(field, reader)
        if count < 0:
            return None
        if count > len(reader.data):
            raise BadMessage(f"{count} elements")
        element = {**field, "nullable": "none"}
        items = [self.decode_one(element, field["type"][2:], reader) for _ in range(count)]
        if any(item is None for item in items):
            raise BadMessage("a null element")
        return items

    def decode_one(self, field: dict[str, Any], kind: str, reader: Reader) -> Any:
        if kind in INTEGERS:
            return struct.unpack(INTEGERS[kind], reader.take(struct.calcsize(INTEGERS[kind])))[0]
        if kind == "bool":
            return reader.take(1) != b"\0"
        if kind == "float64":
            return struct.unpack(">d", reader.take(8))[0]
        if kind == "uuid":
            return reader.take(16)
        if kind in ("string", "bytes", "records"):
            return self.decode_text(field, kind, reader)
        if self.nullable(field) and self.read_mark(field, reader):
            return None
        return self.decode_struct(self.fields_of(field), reader)

    def read_mark(self, field: dict[str, Any], reader: Reader) -> bool:
        """Whether the byte before a struct that may be null means that it is."""
        if "tag" in field:
            return signed(reader.uvarint()) <= 0
        return reader.take(1)[0] >= 128

    def decode_text(self, field: dict[str, Any], kind: str, reader: Reader) -> Any:
        if kind == "string" and not self.compact(field):
            length = struct.unpack(">h", reader.take(2))[0]
        else:
            length = self.read_length(field, reader)
        if length < 0:
            return None
        if kind != "string":
            return reader.take(length)
        if length > 32767:
            raise BadMessage("too long")
        return java_text(reader.take(length))

    def read_length(self, field: dict[str, Any], reader: Reader) -> int:
        if self.compact(field):
            return signed(reader.uvarint() - 1)
        return struct.unpack(">i", reader.take(4))[0]


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if count > len(self.data):
            raise BadMessage(f"{count} bytes wanted, {len(self.data)} left")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def uvarint(self) -> int:
        value = 0
        for position in range(5):
            byte = self.take(1)[0]
            value += (byte & 127) << (7 * position)
            if byte < 128:
                return value & 0xFFFFFFFF
        raise BadMessage("a varint of more than five bytes")


def uvarint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def java_text(raw: bytes) -> str:
    """UTF-8 as Java reads it: as Python replaces, but one U+FFFD for a surrogate's bytes."""
    parts = re.split(rb"\xed[\xa0-\xbf][\x80-\xbf]?", raw)
    return "\ufffd".join(part.decode("utf-8", "replace") for part in parts)
