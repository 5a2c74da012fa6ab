"""Avro's binary encoding: values of a schema read out of bytes, values of SQL's types written as the schema that is
made for them.

    int, long     zigzag, seven bits a byte, the least first      union    the branch's number, then its value
    bytes, string the length, then the bytes                      array    blocks of a count and items, then 0
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pykafkad.pipelines.expressions.numbers import EXACT
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.formats.avro_schema import AvroNode
from pykafkad.pipelines.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Map,
    SqlType,
    Struct,
)
from pykafkad.pipelines.types import Decimal as DecimalType


class Input:
    """Bytes that are read from the front. What is not there raises ValueError."""

    __slots__ = ("data", "place")

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def take(self, size: int) -> bytes:
        end = self.place + size
        if size < 0 or end > len(self.data):
            raise ValueError("the data ends too early")
        found = self.data[self.place : end]
        self.place = end
        return found

    def long(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")


Read = Callable[[Input], Any]


def _boolean(data: Input) -> bool:
    return data.take(1) != b"\0"


def _float(code: str) -> Read:
    unpack = struct.Struct(code)
    return lambda data: unpack.unpack(data.take(unpack.size))[0]


_READERS: dict[str, Read] = {
    "null": lambda data: None,
    "boolean": _boolean,
    "int": Input.long,
    "long": Input.long,
    "float": _float("<f"),
    "double": _float("<d"),
    "bytes": lambda data: data.take(data.long()),
    "string": lambda data: data.take(data.long()).decode(),
}


def reader(node: AvroNode) -> Read:
    """What reads a value of the schema: records and maps as dicts, decimals exactly, moments in milliseconds."""
    return _reader(node, {})


def _reader(node: AvroNode, made: dict[int, Read]) -> Read:
    """`made` has the readers of records by their nodes: a record may contain itself."""
    if node.kind == "record":
        return _record_reader(node, made)
    if node.kind == "union":
        branches = [_reader(branch, made) for branch in node.parts]
        return lambda data: branches[_index(data.long(), branches)](data)
    if node.kind == "enum":
        symbols = node.names
        return lambda data: symbols[_index(data.long(), symbols)]
    if node.kind == "array":
        return _entries_reader(node, made) if node.entries else _items_reader(_reader(node.parts[0], made))
    if node.kind == "map":
        return _map_reader(_reader(node.parts[0], made))
    size = node.size
    bare: Read = (lambda data: data.take(size)) if node.kind == "fixed" else _READERS[node.kind]
    return _logical(node, bare)


def _index(value: int, of: list[Any]) -> int:
    if not 0 <= value < len(of):
        raise ValueError(f"{value} is none of {len(of)} branches or symbols")
    return value


def _logical(node: AvroNode, bare: Read) -> Read:
    if node.logical == "decimal":
        scale = -node.scale
        return lambda data: Decimal(int.from_bytes(bare(data), "big", signed=True)).scaleb(scale, EXACT)
    if node.logical in ("time-micros", "timestamp-micros"):
        return lambda data: bare(data) // 1000
    return bare


def _record_reader(node: AvroNode, made: dict[int, Read]) -> Read:
    known = made.get(id(node))
    if known is not None:
        return known
    fields: list[tuple[str, Read]] = []

    def read(data: Input) -> dict[str, Any]:
        return {name: part(data) for name, part in fields}

    made[id(node)] = read
    fields += [(name, _reader(part, made)) for name, part in zip(node.names, node.parts, strict=True)]
    return read


def _items_reader(item: Read) -> Read:
    def read(data: Input) -> list[Any]:
        found: list[Any] = []
        while count := data.long():
            if count < 0:
                count = -count
                data.long()
            if count > len(data.data):
                raise ValueError(f"{count} items in {len(data.data)} bytes")
            found += [item(data) for _ in range(count)]
        return found

    return read


def _map_reader(value: Read) -> Read:
    text = _READERS["string"]
    pairs = _items_reader(lambda data: (text(data), value(data)))
    return lambda data: dict(pairs(data))


def _entries_reader(node: AvroNode, made: dict[int, Read]) -> Read:
    items = _items_reader(_reader(node.parts[0], made))
    return lambda data: {entry["key"]: entry["value"] for entry in items(data)}


# --- writing


def long_bytes(value: int) -> bytes:
    """Zigzag in seven bits a byte."""
    rest = (value << 1) ^ (value >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _sized(data: bytes) -> bytes:
    return long_bytes(len(data)) + data


def _decimal_bytes(value: Decimal, scale: int) -> bytes:
    unscaled = int(value.scaleb(scale, EXACT))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


Write = Callable[[Any], bytes]

_WRITERS: dict[SqlType, Write] = {
    BOOLEAN: lambda value: b"\1" if value else b"\0",
    DOUBLE: struct.Struct("<d").pack,
    STRING: lambda value: _sized(utf8(value)),
    BYTES: _sized,
    **dict.fromkeys((INTEGER, BIGINT, DATE, TIME, TIMESTAMP), long_bytes),
}

NULL, PRESENT = long_bytes(0), long_bytes(1)


def writer(of: SqlType) -> Write:
    """What writes values of the type or null, as the union of the two."""
    write = _writer(of)
    return lambda value: NULL if value is None else PRESENT + write(value)


def _writer(of: SqlType) -> Write:
    match of:
        case DecimalType(_, scale):
            return lambda value: _sized(_decimal_bytes(value, scale))
        case Array(element):
            return _array_writer(writer(element))
        case Map(key, mapped):
            name, entry = writer(key), writer(mapped)
            entries = _array_writer(lambda pair: name(pair[0]) + entry(pair[1]))
            return lambda value: entries(list(value.items()))
        case Struct(fields):
            parts = [(part.name, writer(part.type)) for part in fields]
            return lambda value: b"".join(write(value.get(name)) for name, write in parts)
    return _WRITERS[of]


def _array_writer(item: Write) -> Write:
    def write(value: list[Any]) -> bytes:
        if not value:
            return long_bytes(0)
        return long_bytes(len(value)) + b"".join(map(item, value)) + long_bytes(0)

    return write
