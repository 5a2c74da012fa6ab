"""Prints pykafkad/messages.pyi, the typed face of all messages.

`python protocol/stubs.py > pykafkad/messages.pyi`; a unit test compares the two.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from check import snake

PYTHON = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "bytes",
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), "int"),
}
LINE = 110
HEAD = '''\
"""The fields of all messages. Printed by protocol/stubs.py out of protocol/messages; do not edit."""

from typing_extensions import Buffer

from pykafkad.hot.wire import Message, Range, Struct

def __getattr__(name: str) -> type[Message]: ...
def names() -> list[str]: ...
'''


class Stub:
    """The class of one message."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.common = {entry["name"]: entry["fields"] for entry in schema.get("structs", ())}
        self.structs: dict[str, list[dict[str, Any]]] = {}
        self.collect(schema["fields"])

    def collect(self, fields: list[dict[str, Any]]) -> None:
        for field in fields:
            kind = field["type"].removeprefix("[]")
            inner = field.get("fields", self.common.get(kind))
            if inner is not None and kind not in self.structs:
                self.structs[kind] = inner
                self.collect(inner)

    def lines(self) -> Iterator[str]:
        name = self.schema["name"]
        yield f"class {name}(Message):"
        for struct, fields in self.structs.items():
            yield f"    class {struct}(Struct):"
            yield from ("        " + line for line in self.body(fields, 8))
            yield ""
        yield from ("    " + line for line in self.body(self.schema["fields"], 4))

    def body(self, fields: list[dict[str, Any]], indent: int) -> Iterator[str]:
        for field in fields:
            yield f"{snake(field['name'])}: {self.type(field, given=False)}"
        yield "def __init__("
        yield "    self,"
        yield "    *,"
        for field in fields:
            yield from self.parameter(field, indent)
        yield "    unknown_tags: dict[int, bytes] | None = ...,"
        yield ") -> None: ..."

    def parameter(self, field: dict[str, Any], indent: int) -> Iterator[str]:
        name, kind = snake(field["name"]), self.type(field, given=True)
        if indent + len(f"    {name}: {kind} = ...,") <= LINE or not kind.startswith("list["):
            yield f"    {name}: {kind} = ...,"
            return
        inner, bracket, rest = kind.removeprefix("list[").partition("]")
        yield from (f"    {name}: list[", f"        {inner}", f"    {bracket}{rest} = ...,")

    def type(self, field: dict[str, Any], given: bool) -> str:
        kind = field["type"].removeprefix("[]")
        if kind == "records":
            if given or self.schema["type"] == "response":
                return "Buffer | Range | None"
            return "memoryview | None"
        found = PYTHON.get(kind) or f"{self.schema['name']}.{kind}"
        if field["type"].startswith("[]"):
            found = f"list[{found}]"
        return found + " | None" if "nullable" in field else found


def main() -> int:
    out = [HEAD]
    for path in sorted((Path(__file__).parent / "messages").glob("*.json")):
        out += [*Stub(json.loads(path.read_text())).lines(), ""]
    print("\n".join(out).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
