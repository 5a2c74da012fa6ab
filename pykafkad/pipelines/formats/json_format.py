"""JSON: an object with a field a column, or the bare value of the only column where it is not wrapped.

Fields are found whatever their case. What a type reads is what ksqlDB's does: numbers also from text, text from
anything. Decimals are written as numbers with their scale, bytes in base64, dates and times as numbers, NaN and the
infinities as text.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.numbers import (
    MAX_DIGITS,
    EvaluationError,
    fit,
    java_double,
    plain,
    whole_of_decimal,
    wrap32,
    wrap64,
)
from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.formats.base import BadRecord
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

Convert = Callable[[Any], Any]

HALVES = "backslashreplace"  # half of a surrogate pair is no UTF-8: it becomes its escape, which JSON reads


class Mismatch(ValueError):
    """A JSON value that the type does not read."""


def _mismatch(value: Any, of: object) -> Mismatch:
    return Mismatch(f"can't convert {json.dumps(value, default=str)[:100]} to {of}")


# --- reading


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise _mismatch(value, BOOLEAN)


NUMBERS = frozenset((int, float, Decimal, str))


def _number(of: SqlType, convert: Callable[[Any], Any]) -> Convert:
    def read(value: Any) -> Any:
        if type(value) not in NUMBERS:
            raise _mismatch(value, of)
        try:
            return convert(value)
        except (ValueError, OverflowError, InvalidOperation, EvaluationError):
            raise _mismatch(value, of) from None

    return read


def _whole(wrap: Callable[[int], int]) -> Callable[[Any], int]:
    return lambda value: value if type(value) is int and wrap(value) == value else _whole_of(value, wrap)


def _whole_of(value: Any, wrap: Callable[[int], int]) -> int:
    if isinstance(value, str):
        parsed = int(value)
        if wrap(parsed) != parsed:
            raise ValueError
        return parsed
    return wrap(whole_of_decimal(value) if isinstance(value, Decimal) else int(value))


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, Decimal):
        return plain(value) if abs(value.adjusted()) <= MAX_DIGITS else str(value)
    return write_plain(value) if isinstance(value, (dict, list)) else str(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise _mismatch(value, BYTES) from None


def _array(element: SqlType) -> Convert:
    item = reader(element)

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _mismatch(value, "ARRAY")
        return [item(each) for each in value]

    return read


def _map(of: Map) -> Convert:
    entry = reader(of.value)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _mismatch(value, "MAP")
        return {key: entry(each) for key, each in value.items()}

    return read


def _struct(of: Struct) -> Convert:
    names = [field.name for field in of.fields]
    fill = filler([(field.name, field.type) for field in of.fields])
    return lambda value: dict(zip(names, fill(value), strict=True))


SPELLINGS = 100
"""So many orders and spellings of an object's names are known at a time: most topics have one."""


def filler(fields: Sequence[tuple[str, SqlType]]) -> Callable[[Any], list[Any]]:
    """From an object the values of the fields in their order, found by their names, else by those in upper case."""
    readers = [(name, _reader(of)) for name, of in fields]
    known: dict[tuple[str, ...], list[tuple[str | None, Convert]]] = {}

    def spelt(names: tuple[str, ...]) -> list[tuple[str | None, Convert]]:
        if len(known) == SPELLINGS:
            known.clear()
        upper = {name.upper(): name for name in names}
        found = known[names] = [(name if name in names else upper.get(name), read) for name, read in readers]
        return found

    def fill(value: Any) -> list[Any]:
        if not isinstance(value, dict):
            raise _mismatch(value, "STRUCT")
        names = tuple(value)
        return [
            None if (one := value.get(name)) is None else read(one)
            for name, read in known.get(names) or spelt(names)
        ]

    return fill


def reader(of: SqlType) -> Convert:
    """What reads the type from a parsed JSON value; null is null in every type."""
    read = _reader(of)
    return lambda value: None if value is None else read(value)


def _reader(of: SqlType) -> Convert:
    match of:
        case DecimalType():
            return _number(
                of, lambda value: fit(value if isinstance(value, Decimal) else Decimal(str(value)), of)
            )
        case Array(element):
            return _array(element)
        case Map():
            return _map(of)
        case Struct():
            return _struct(of)
    return _PRIMITIVES[of]


_PRIMITIVES: dict[SqlType, Convert] = {
    BOOLEAN: _boolean,
    INTEGER: _number(INTEGER, _whole(wrap32)),
    BIGINT: _number(BIGINT, _whole(wrap64)),
    DOUBLE: _number(DOUBLE, float),
    STRING: _string,
    BYTES: _bytes,
    DATE: _number(DATE, _whole(wrap32)),
    TIME: _number(TIME, _whole(wrap32)),
    TIMESTAMP: _number(TIMESTAMP, _whole(wrap64)),
}


# --- writing

_quote = json.encoder.encode_basestring


def _double_text(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{java_double(value)}"'


def _key(value: Any) -> str:
    return "null" if value is None else str(value)


def writer(of: SqlType) -> Callable[[Any], str]:
    """What writes values of the type as JSON text."""
    write = _writer(of)
    return lambda value: "null" if value is None else write(value)


def _writer(of: SqlType) -> Callable[[Any], str]:
    match of:
        case DecimalType():
            return plain
        case Array(element):
            item = writer(element)
            return lambda value: "[" + ",".join(map(item, value)) + "]"
        case Map(_, mapped):
            entry = writer(mapped)
            return lambda value: (
                "{" + ",".join(f"{_quote(_key(k))}:{entry(v)}" for k, v in value.items()) + "}"
            )
        case Struct(fields):
            return _object_writer([(field.name, writer(field.type)) for field in fields])
    return _TEXTS[of]


_TEXTS: dict[SqlType, Callable[[Any], str]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    STRING: _quote,
    DOUBLE: _double_text,
    BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    **dict.fromkeys((INTEGER, BIGINT, DATE, TIME, TIMESTAMP), str),
}


def _object_writer(fields: list[tuple[str, Callable[[Any], str]]]) -> Callable[[Any], str]:
    prefixed = [(name, f"{_quote(name)}:", write) for name, write in fields]
    return lambda value: (
        "{" + ",".join(prefix + write(value.get(name)) for name, prefix, write in prefixed) + "}"
    )


def write_plain(value: Any) -> str:
    """A JSON value as text without spaces, numbers as they were written."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(write_plain, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{write_plain(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


# --- the format


def _inexact(of: SqlType) -> bool:
    """Whether numbers must be read as they are written, not as doubles."""
    match of:
        case DecimalType():
            return True
        case Array(element):
            return _inexact(element)
        case Map(_, value):
            return _inexact(value)
        case Struct(fields):
            return any(_inexact(field.type) for field in fields)
    return of == STRING


def _refuse(of: SqlType) -> None:
    match of:
        case Map(key, value):
            if key != STRING:
                raise StatementError("JSON only supports MAP types with STRING keys")
            _refuse(value)
        case Array(element):
            _refuse(element)
        case Struct(fields):
            for field in fields:
                _refuse(field.type)


class JsonFormat:
    name = "JSON"

    def __init__(self, columns: Sequence[Column], wrap: bool = True) -> None:
        for column in columns:
            _refuse(column.type)
        self.columns, self.wraps = tuple(columns), wrap or len(columns) != 1
        self._decoder = json.JSONDecoder(
            parse_float=Decimal if any(_inexact(column.type) for column in columns) else None,
            parse_constant=_no_constant,
        )
        self._fill = filler([(column.name, column.type) for column in columns])
        self._read = None if self.wraps else reader(columns[0].type)
        self._writers = [(f"{_quote(column.name)}:", writer(column.type)) for column in columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonFormat, (self.columns, self.wraps)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if not self.columns:
            return []
        if data is None:
            return None
        try:
            value = self._decoded(_text(data))
            if value is None:
                return None
            return self._fill(value) if self._read is None else [self._read(value)]
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"no value of format JSON: {error}") from None

    def _decoded(self, text: str) -> Any:
        """Most texts have no spaces around them, for which decode() looks."""
        try:
            value, end = self._decoder.scan_once(text, 0)  # type: ignore[attr-defined]
        except (ValueError, StopIteration):
            end = -1
        return value if end == len(text) else self._decoder.decode(text)

    def serialise(self, row: Row | None) -> bytes | None:
        if row is None or not self.columns:
            return None
        if not self.wraps:
            return None if row[0] is None else self._writers[0][1](row[0]).encode("utf-8", HALVES)
        written = [prefix + write(value) for (prefix, write), value in zip(self._writers, row, strict=True)]
        return ("{" + ",".join(written) + "}").encode("utf-8", HALVES)

    def from_plain(self, value: Any) -> bytes | None:
        return None if value is None else write_plain(value).encode("utf-8", HALVES)

    def to_plain(self, data: bytes | None) -> Any:
        return None if data is None else json.loads(_text(data))


def _text(data: bytes) -> str:
    """The text; without the five bytes that a serializer of a schema registry puts in front of it."""
    return (data[5:] if data[:1] == b"\0" else data).decode()


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
