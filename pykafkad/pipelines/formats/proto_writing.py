"""Rows of SQL's types written as protocol buffers' messages: what proto_codec reads.

A null is not written. So it is read as null where the field's absence can be told (messages, optional fields, wrappers),
and as the type's default where it cannot, which is what proto3 says of it. A null in an array or map cannot be written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from pykafkad.pipelines.expressions.numbers import EXACT
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.formats.proto_codec import BITS32, BITS64, BYTES, EPOCH_DAY, VARINT
from pykafkad.pipelines.formats.proto_known import DATE_NAME, TIME_NAME, TIMESTAMP_NAME, WRAPPERS
from pykafkad.pipelines.formats.proto_nodes import ProtoField, ProtoMessage
from pykafkad.pipelines.types import Array, Map, SqlType, Struct
from pykafkad.pipelines.types import Decimal as DecimalType

Write = Callable[[Any], bytes]


def varint_bytes(value: int) -> bytes:
    """Seven bits a byte; a negative number as the 64 bits that it is."""
    rest = value & 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _sized(data: bytes) -> bytes:
    return varint_bytes(len(data)) + data


_SCALARS: dict[str, tuple[int, Write]] = {
    "int32": (VARINT, varint_bytes),
    "int64": (VARINT, varint_bytes),
    "uint32": (VARINT, varint_bytes),
    "bool": (VARINT, lambda value: b"\1" if value else b"\0"),
    "float": (BITS32, struct.Struct("<f").pack),
    "double": (BITS64, struct.Struct("<d").pack),
    "string": (BYTES, lambda value: _sized(utf8(value))),
    "bytes": (BYTES, _sized),
}
_ZEROS = {"double": b"\0" * 8, "float": b"\0" * 4}


def row_writer(message: ProtoMessage, types: Sequence[SqlType]) -> Callable[[Sequence[Any]], bytes]:
    """What writes the values of a row as the message that proto_schema makes of their columns."""
    writers = [_field_writer(one, of) for one, of in zip(message.fields, types, strict=True)]
    return lambda row: b"".join(write(value) for write, value in zip(writers, row, strict=True))


def _tag(one: ProtoField, wire: int) -> bytes:
    return varint_bytes(one.number << 3 | wire)


def _field_writer(one: ProtoField, of: SqlType) -> Write:
    match of:
        case Array(element):
            return _array_writer(one, element)
        case Map(key, value):
            assert one.message is not None
            parts, tag = row_writer(one.message, [key, value]), _tag(one, BYTES)
            return lambda found: b"".join(
                tag + _sized(parts(_without_null(pair))) for pair in (found or {}).items()
            )
    if one.message is None:
        return _value_writer(one)
    body, tag = _message_writer(one.message, of), _tag(one, BYTES)
    return lambda value: b"" if value is None else tag + _sized(body(value))


def _value_writer(one: ProtoField) -> Write:
    wire, write = _SCALARS[one.kind]
    tag, zero = _tag(one, wire), b"" if one.presence else _ZEROS.get(one.kind, b"\0")

    def written(value: Any) -> bytes:
        data = b"" if value is None else write(value)
        return b"" if data == zero or not data else tag + data

    return written


def _array_writer(one: ProtoField, element: SqlType) -> Write:
    if one.message is not None:
        body, tag = _message_writer(one.message, element), _tag(one, BYTES)
        return lambda values: b"".join(tag + _sized(body(value)) for value in _without_null(values or ()))
    wire, write = _SCALARS[one.kind]
    if not one.packed:
        tag = _tag(one, wire)
        return lambda values: b"".join(tag + write(value) for value in _without_null(values or ()))
    packed = _tag(one, BYTES)
    return lambda values: packed + _sized(b"".join(map(write, _without_null(values)))) if values else b""


def _without_null(values: Sequence[Any]) -> Sequence[Any]:
    if None in values:
        raise ValueError("a null in an array or map cannot be written")
    return values


def _message_writer(message: ProtoMessage, of: SqlType) -> Write:
    name = message.full_name
    if name in WRAPPERS:
        return _value_writer(message.fields[0])
    split = _PARTS.get(name)
    if isinstance(of, DecimalType):
        split = _decimal_parts(of)
    if split is not None:
        fields = [_value_writer(one) for one in message.fields]
        return lambda value: b"".join(write(v) for write, v in zip(fields, split(value), strict=True))
    assert isinstance(of, Struct)
    row = row_writer(message, [part.type for part in of.fields])
    names = [part.name for part in of.fields]
    return lambda value: row([value.get(name) for name in names])


# --- messages that stand for values: their fields' values


def _timestamp_parts(value: int) -> tuple[int, int]:
    return value // 1000, value % 1000 * 1_000_000


def _date_parts(value: int) -> tuple[int, int, int]:
    day = date.fromordinal(value + EPOCH_DAY)
    return day.year, day.month, day.day


def _time_parts(value: int) -> tuple[int, int, int, int]:
    seconds, millis = divmod(value, 1000)
    return seconds // 3600, seconds // 60 % 60, seconds % 60, millis * 1_000_000


_PARTS: dict[str, Callable[[Any], Sequence[Any]]] = {
    TIMESTAMP_NAME: _timestamp_parts,
    DATE_NAME: _date_parts,
    TIME_NAME: _time_parts,
}


def _decimal_parts(of: DecimalType) -> Callable[[Decimal], Sequence[Any]]:
    def parts(value: Decimal) -> Sequence[Any]:
        unscaled = int(value.scaleb(of.scale, EXACT))
        return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), of.precision, of.scale

    return parts
