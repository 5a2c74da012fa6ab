"""Protocol buffers' wire format: messages read as dicts of their fields' values, rows of SQL's types written as messages.

A message is fields in any order, each a tag (number << 3 | type) and its data:

    0 varint   seven bits a byte, the least first         2 bytes    a varint with their number, then they
    1 64 bits  the least byte first                       5 32 bits  the least byte first      3, 4 a group, passed over

Fields that the schema does not have, or has with another type, are passed over. Of a field that is there twice the
last counts, except that messages are merged, which their bytes one after another are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from pykafkad.pipelines.expressions.numbers import EXACT, MAX_DIGITS, wrap32, wrap64
from pykafkad.pipelines.formats.avro_schema import MAX_DEPTH
from pykafkad.pipelines.formats.proto_known import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    WRAPPERS,
)
from pykafkad.pipelines.formats.proto_nodes import ProtoEnum, ProtoField, ProtoMessage

VARINT, BITS64, BYTES, GROUP, GROUP_END, BITS32 = range(6)
EPOCH_DAY = date(1970, 1, 1).toordinal()
TOO_SHORT = "the data ends too early"


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The number, and the place after it."""
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError(TOO_SHORT)
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def fields_of(data: bytes) -> list[tuple[int, int, Any]]:
    """Number, wire type and raw value of each field, without groups."""
    found: list[tuple[int, int, Any]] = []
    place, open_groups = 0, list[int]()
    while place < len(data):
        tag, place = varint(data, place)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise ValueError(f"a field with the number {number}")
        if wire == GROUP:
            open_groups.append(number)
        elif wire == GROUP_END:
            if not open_groups or open_groups.pop() != number:
                raise ValueError("the end of a group that has not begun")
        else:
            raw, place = _raw(wire, data, place)
            if not open_groups:
                found.append((number, wire, raw))
    if open_groups:
        raise ValueError(TOO_SHORT)
    return found


def _raw(wire: int, data: bytes, place: int) -> tuple[Any, int]:
    if wire == VARINT:
        return varint(data, place)
    if wire == BYTES:
        size, place = varint(data, place)
    elif wire in (BITS32, BITS64):
        size = 4 if wire == BITS32 else 8
    else:
        raise ValueError(f"{wire} is no wire type")
    if size > len(data) - place:
        raise ValueError(TOO_SHORT)
    return data[place : place + size], place + size


# --- scalars: their wire type, how they are read, and what stands for them where they are not there


def _unpacked(code: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(code).unpack
    return lambda raw: unpack(raw)[0]


Convert = Callable[[Any], Any]

_SCALARS: dict[str, tuple[int, Convert, Any]] = {
    "int32": (VARINT, wrap32, 0),
    "int64": (VARINT, wrap64, 0),
    "uint32": (VARINT, lambda raw: raw & 0xFFFFFFFF, 0),
    "uint64": (VARINT, wrap64, 0),
    "sint32": (VARINT, lambda raw: unzigzag(raw & 0xFFFFFFFF), 0),
    "sint64": (VARINT, unzigzag, 0),
    "bool": (VARINT, bool, False),
    "fixed32": (BITS32, _unpacked("<I"), 0),
    "sfixed32": (BITS32, _unpacked("<i"), 0),
    "float": (BITS32, _unpacked("<f"), 0.0),
    "fixed64": (BITS64, _unpacked("<q"), 0),
    "sfixed64": (BITS64, _unpacked("<q"), 0),
    "double": (BITS64, _unpacked("<d"), 0.0),
    "string": (BYTES, bytes.decode, ""),
    "bytes": (BYTES, bytes, b""),
}
_FIXED_SIZES = {BITS32: 4, BITS64: 8}


def _scalar(one: ProtoField) -> tuple[int, Convert, Any]:
    return (VARINT, _enum(one.enum), _first(one.enum)) if one.enum is not None else _SCALARS[one.kind]


def _enum(of: ProtoEnum) -> Convert:
    def read(raw: int) -> str:
        number = wrap32(raw)
        return of.names.get(number) or f"UNKNOWN_ENUM_VALUE_{of.name}_{number}"

    return read


def _first(of: ProtoEnum) -> str:
    return next(iter(of.names.values()))


def _unpack_all(wire: int, raw: bytes) -> list[Any]:
    if wire == VARINT:
        found, place = [], 0
        while place < len(raw):
            value, place = varint(raw, place)
            found.append(value)
        return found
    size = _FIXED_SIZES[wire]
    if len(raw) % size:
        raise ValueError(TOO_SHORT)
    return [raw[at : at + size] for at in range(0, len(raw), size)]


# --- reading

Raws = list[tuple[int, Any]]
"""Wire types and raw values of a field."""
Read = Callable[[bytes, int], Any]
"""Of a message's bytes, how deep it is in others."""


def reader(message: ProtoMessage) -> Read:
    """What reads a message: a dict with every field, that of a oneof in a dict by the oneof's name as Connect has it.

    The messages that stand for SQL's decimals, dates and times are read as those, wrappers as what is in them.
    """
    return _reader(message, {})


def union_name(message: ProtoMessage, oneof: str) -> str:
    return f"{oneof}_{message.oneofs.index(oneof)}"


def _reader(message: ProtoMessage, made: dict[str, Read]) -> Read:
    """`made` has the readers of messages by their names: a message may contain itself."""
    known = made.get(message.full_name)
    if known is not None:
        return known
    parts: list[tuple[ProtoField, Callable[[Raws, int], Any]]] = []
    unions = {one.number: one.oneof for one in message.fields if one.oneof is not None}
    special = SPECIAL.get(message.full_name)

    def read(data: bytes, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError("messages in messages in messages")
        raws = _by_number(data, unions)
        found: dict[str, Any] = {union_name(message, oneof): None for oneof in message.oneofs}
        for one, convert in parts:
            if one.oneof is None:
                found[one.name] = convert(raws.get(one.number, []), depth + 1)
            elif one.number in raws:
                found[union_name(message, one.oneof)] = {one.name: convert(raws[one.number], depth + 1)}
        return found if special is None else special(found)

    made[message.full_name] = read
    parts += [(one, _field_reader(one, made)) for one in message.fields]
    return read


def _by_number(data: bytes, unions: dict[int, str]) -> dict[int, Raws]:
    """What is there of each field; of a oneof's fields the last alone."""
    raws: dict[int, Raws] = {}
    for number, wire, raw in fields_of(data):
        union = unions.get(number)
        if union is not None and number not in raws:
            for other in [n for n in raws if unions.get(n) == union]:
                del raws[other]
        raws.setdefault(number, []).append((wire, raw))
    return raws


def _field_reader(one: ProtoField, made: dict[str, Read]) -> Callable[[Raws, int], Any]:
    if one.message is None:
        return _values_reader(one) if one.repeated else _value_reader(one)
    read = _reader(one.message, made)
    if one.message.map_entry and one.repeated:
        return lambda raws, depth: {
            _key(entry["key"]): entry["value"]
            for entry in (read(raw, depth) for wire, raw in raws if wire == BYTES)
        }
    if one.repeated:
        return lambda raws, depth: [read(raw, depth) for wire, raw in raws if wire == BYTES]

    def merged(raws: Raws, depth: int) -> Any:
        found = [raw for wire, raw in raws if wire == BYTES]
        return read(b"".join(found), depth) if found else None

    return merged


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _value_reader(one: ProtoField) -> Callable[[Raws, int], Any]:
    wire, convert, empty = _scalar(one)
    default = _default(one, empty)

    def read(raws: Raws, depth: int) -> Any:
        for found, raw in reversed(raws):
            if found == wire:
                return convert(raw)
        return default

    return read


def _default(one: ProtoField, empty: Any) -> Any:
    """What a field is that is not there: null where that can be told, unless the schema says something else."""
    said = one.options.get("default")
    if said is None:
        return None if one.presence else empty
    if one.kind in ("string", "enum"):
        return said
    if one.kind == "bool":
        return said == "true"
    if one.kind == "bytes":
        return said.encode()
    return float(said) if one.kind in ("float", "double") else int(said, 0)


def _values_reader(one: ProtoField) -> Callable[[Raws, int], Any]:
    wire, convert, _ = _scalar(one)

    def read(raws: Raws, depth: int) -> list[Any]:
        found: list[Any] = []
        for given, raw in raws:
            if given == wire:
                found.append(convert(raw))
            elif given == BYTES:
                found += map(convert, _unpack_all(wire, raw))
        return found

    return read


# --- messages that stand for values


def _date(found: dict[str, Any]) -> int:
    return date(found["year"], found["month"], found["day"]).toordinal() - EPOCH_DAY


def _time(found: dict[str, Any]) -> int:
    seconds = (found["hours"] * 60 + found["minutes"]) * 60 + found["seconds"]
    millis: int = seconds * 1000 + found["nanos"] // 1_000_000
    if not 0 <= millis < 86_400_000:
        raise ValueError("no time of a day")
    return millis


def _decimal(found: dict[str, Any]) -> Decimal:
    digits, scale = found["value"], found["scale"]
    if not -MAX_DIGITS <= scale <= MAX_DIGITS or len(digits) > MAX_DECIMAL_BYTES:
        raise ValueError(f"a decimal of {len(digits)} bytes with scale {scale}")
    return Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-scale, EXACT)


MAX_DECIMAL_BYTES = 400

SPECIAL: dict[str, Convert] = {
    TIMESTAMP_NAME: lambda found: wrap64(found["seconds"] * 1000 + found["nanos"] // 1_000_000),
    DATE_NAME: _date,
    TIME_NAME: _time,
    DECIMAL_NAME: _decimal,
    **dict.fromkeys(WRAPPERS, lambda found: found["value"]),
}
