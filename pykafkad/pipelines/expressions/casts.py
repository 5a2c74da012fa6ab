"""CAST, and what is cast unasked: the table of conversions between types.

`cast(from, to)` gives the conversion of values that are not null, or None where there is none; `widened` the type
that two types share without a cast being written, `implicit` the conversion to it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from pykafkad.pipelines.expressions.moments import DAY_MILLISECONDS, parse_date, parse_time, parse_timestamp
from pykafkad.pipelines.expressions.numbers import (
    MAX_DIGITS,
    EvaluationError,
    as_decimal_type,
    exact,
    fit,
    is_numeric,
    whole_of_double,
    widen_decimals,
    wrap32,
    wrap64,
)
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.expressions.texts import texts_of
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
    Field,
    Map,
    SqlType,
    Struct,
)
from pykafkad.pipelines.types import Decimal as DecimalType

Convert = Callable[[Value], Value]


def same(value: Value) -> Value:
    return value


def parse_boolean(text: str) -> bool:
    """Only true is true, whatever its case."""
    return text.lower() == "true"


def _parse_whole(wrap: Callable[[int], int]) -> Convert:
    def parse(text: str) -> int:
        stripped = text.strip()
        try:
            value = int(stripped) if "_" not in stripped else None
        except ValueError:
            value = None
        if value is None or wrap(value) != value:
            raise EvaluationError(f'For input string: "{text}"')
        return value

    return parse


def parse_double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EvaluationError(f'For input string: "{text}"') from None


def parse_decimal(text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value.adjusted() > MAX_DIGITS:
        raise EvaluationError(f'"{text}" is no number')
    return value


_PRIMITIVE_CASTS: dict[tuple[SqlType, SqlType], Convert] = {
    (INTEGER, BIGINT): same,
    (INTEGER, DOUBLE): float,
    (BIGINT, INTEGER): wrap32,
    (BIGINT, DOUBLE): float,
    (DOUBLE, INTEGER): lambda value: whole_of_double(value, 32),
    (DOUBLE, BIGINT): lambda value: whole_of_double(value, 64),
    (STRING, BOOLEAN): parse_boolean,
    (STRING, INTEGER): _parse_whole(wrap32),
    (STRING, BIGINT): _parse_whole(wrap64),
    (STRING, DOUBLE): parse_double,
    (STRING, DATE): parse_date,
    (STRING, TIME): parse_time,
    (STRING, TIMESTAMP): parse_timestamp,
    (DATE, TIMESTAMP): lambda days: days * DAY_MILLISECONDS,
    (TIMESTAMP, DATE): lambda milliseconds: milliseconds // DAY_MILLISECONDS,
    (TIMESTAMP, TIME): lambda milliseconds: milliseconds % DAY_MILLISECONDS,
}


def _to_decimal(of: SqlType, to: DecimalType) -> Convert | None:
    if isinstance(of, DecimalType) or of in (INTEGER, BIGINT):
        return lambda value: fit(Decimal(value), to)
    if of == DOUBLE:
        return lambda value: fit(exact(value), to)
    if of == STRING:
        return lambda value: fit(parse_decimal(value), to)
    return None


def _from_decimal(to: SqlType) -> Convert | None:
    if to == DOUBLE:
        return float
    if to == INTEGER:
        return lambda value: wrap32(int(value))
    return (lambda value: wrap64(int(value))) if to == BIGINT else None


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _array(of: Array, to: Array) -> Convert | None:
    item = cast(of.element, to.element)
    if item is None:
        return None
    nullable = _nullable(item)
    return lambda value: list(map(nullable, value))


def _map(of: Map, to: Map) -> Convert | None:
    key, entry = cast(of.key, to.key), cast(of.value, to.value)
    if key is None or entry is None:
        return None
    name, nullable = _nullable(key), _nullable(entry)
    return lambda value: {name(k): nullable(v) for k, v in value.items()}


def _struct(of: Struct, to: Struct) -> Convert | None:
    """By the names of fields: those that are new are null."""
    converts: list[tuple[str, Convert]] = []
    for field in to.fields:
        old = of.field(field.name)
        convert = same if old is None else cast(old.type, field.type)
        if convert is None:
            return None
        converts.append((field.name, _nullable(convert)))
    return lambda value: {name: convert(value.get(name)) for name, convert in converts}


def cast(of: SqlType, to: SqlType) -> Convert | None:
    """What converts values that are not null; None where the types have no cast."""
    if of == to:
        return same
    if to == STRING:
        return None if of == BYTES else texts_of(of)
    match of, to:
        case Array(), Array():
            return _array(of, to)
        case Map(), Map():
            return _map(of, to)
        case Struct(), Struct():
            return _struct(of, to)
        case _, DecimalType():
            return _to_decimal(of, to)
        case DecimalType(), _:
            return _from_decimal(to)
    return _PRIMITIVE_CASTS.get((of, to))


# --- what is cast unasked

_RANKS: dict[SqlType, int] = {INTEGER: 0, BIGINT: 1, DOUBLE: 3}


def rank(of: SqlType) -> int:
    """How wide a number is: INTEGER, BIGINT, DECIMAL, DOUBLE."""
    return _RANKS.get(of, 2)


def widened(left: SqlType | None, right: SqlType | None) -> SqlType | None:
    """The type that holds the values of both; raises TypeError where none does. None is the type of NULL."""
    if left == right or right is None:
        return left
    if left is None:
        return right
    match left, right:
        case Array(), Array():
            return Array(_widened(left.element, right.element))
        case Map(), Map():
            return Map(_widened(left.key, right.key), _widened(left.value, right.value))
        case Struct(), Struct():
            return _widened_struct(left, right)
    if not (is_numeric(left) and is_numeric(right)):
        raise TypeError(f"{left} and {right} have no type in common")
    if (rank(left) != 2 and rank(right) != 2) or DOUBLE in (left, right):
        return left if rank(left) > rank(right) else right
    return widen_decimals(as_decimal_type(left), as_decimal_type(right))


def _widened(left: SqlType, right: SqlType) -> SqlType:
    found = widened(left, right)
    assert found is not None
    return found


def _widened_struct(left: Struct, right: Struct) -> Struct:
    fields = []
    for field in left.fields:
        other = right.field(field.name)
        fields.append(field if other is None else Field(field.name, _widened(field.type, other.type)))
    return Struct((*fields, *(field for field in right.fields if left.field(field.name) is None)))


_FROM_TEXT = (DATE, TIME, TIMESTAMP)


def implicit(of: SqlType | None, to: SqlType) -> Convert | None:
    """The conversion that a function's parameter gets unasked, None where there is none: numbers widen, text
    becomes a moment."""
    if of is None or of == to:
        return same
    if of == STRING:
        return cast(of, to) if to in _FROM_TEXT else None
    try:
        fits = widened(of, to) == to
    except TypeError:
        return None
    return cast(of, to) if fits else None
