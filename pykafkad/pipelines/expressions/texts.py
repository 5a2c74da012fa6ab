"""Values as text: what CAST(... AS STRING), string functions and DELIMITED make of them, which is what Java prints."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from pykafkad.pipelines.expressions.numbers import EvaluationError, java_double, plain
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    Primitive,
    SqlType,
    Struct,
)

EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY = EPOCH.toordinal()


def utf8(text: str) -> bytes:
    """As Java writes it, which has a question mark for half of a surrogate pair."""
    return text.encode("utf-8", "replace")


def date_text(days: int) -> str:
    try:
        return datetime.date.fromordinal(days + _FIRST_DAY).isoformat()
    except (ValueError, OverflowError):
        raise EvaluationError(f"no date is {days} days from 1970-01-01") from None


def time_text(milliseconds: int) -> str:
    """HH:mm:ss, with seconds' parts where there are any, as LocalTime prints it."""
    seconds, rest = divmod(milliseconds, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if rest:
        return f"{text}:{seconds % 60:02}.{rest:03}"
    return f"{text}:{seconds % 60:02}" if seconds % 60 else text


def timestamp_text(milliseconds: int) -> str:
    try:
        return (EPOCH + datetime.timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
    except OverflowError:
        raise EvaluationError(f"no timestamp is {milliseconds} ms from 1970") from None


def _bytes_text(value: bytes) -> str:
    from base64 import b64encode

    return b64encode(value).decode()


_PRIMITIVES: dict[Primitive, Callable[[Value], str]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    DOUBLE: java_double,
    BYTES: _bytes_text,
    DATE: date_text,
    TIME: time_text,
    TIMESTAMP: timestamp_text,
}


def texts_of(of: SqlType | None) -> Callable[[Value], str]:
    """What writes values of the type, null as null."""
    write = _writer(of)
    return lambda value: "null" if value is None else write(value)


def _writer(of: SqlType | None) -> Callable[[Value], str]:
    match of:
        case Primitive():
            return _PRIMITIVES.get(of, str)
        case Decimal():
            return plain
        case Array(element):
            item = texts_of(element)
            return lambda value: "[" + ", ".join(map(item, value)) + "]"
        case Map(key, mapped):
            name, entry = texts_of(key), texts_of(mapped)
            return lambda value: "{" + ", ".join(f"{name(k)}={entry(v)}" for k, v in value.items()) + "}"
        case Struct(fields):
            return _struct_writer([(field.name, _writer(field.type)) for field in fields])
    return str


def _struct_writer(fields: list[tuple[str, Callable[[Value], str]]]) -> Callable[[Value], str]:
    """Struct{A=1}: fields that are null are not named."""

    def write(value: Value) -> str:
        present = [(name, text, value.get(name)) for name, text in fields]
        return "Struct{" + ",".join(f"{name}={text(v)}" for name, text, v in present if v is not None) + "}"

    return write
