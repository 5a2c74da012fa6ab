"""What ARRAY[...], MAP(...), IN (...) and CASE need of items of several types: one type for all, and each item as that.

Numbers widen; a literal text among others is read as what they are, a literal among texts is written as text.
Structs get the fields of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.casts import cast, parse_decimal, widened
from pykafkad.pipelines.expressions.moments import parse_date, parse_time, parse_timestamp
from pykafkad.pipelines.expressions.numbers import EvaluationError, is_numeric
from pykafkad.pipelines.expressions.schema import Row, Value
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Expression
from pykafkad.pipelines.types import (
    BIGINT,
    BOOLEAN,
    DATE,
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

Evaluate = Callable[[Row], Value]


Compile = Callable[[Expression], tuple[SqlType | None, Evaluate]]

WORKAROUND = (
    " (see https://github.com/confluentinc/ksql/issues/4239). "
    "As a workaround, you may cast a NULL value to the desired type."
)
NULL_ARRAY = f"Cannot construct an array with all NULL elements{WORKAROUND}"
EMPTY_ARRAY = "Array constructor cannot be empty. Please supply at least one element"
EMPTY_MAP = (
    "Map constructor cannot be empty. Please supply at least one key value pair "
    "(see https://github.com/confluentinc/ksql/issues/4239)."
)

_LITERALS = (ast.BooleanLiteral, ast.IntegerLiteral, ast.DecimalLiteral, ast.DoubleLiteral)


def literal_type(node: ast.DecimalLiteral) -> DecimalType:
    """1.50 is a DECIMAL(3, 2), 0.05 a DECIMAL(3, 2)."""
    _, digits, exponent = node.value.as_tuple()
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    return DecimalType(max(len(digits), scale + 1), scale)


def common_type(compile_: Compile, nodes: Sequence[Expression]) -> SqlType | None:
    """The type of all: that of the first, made as wide as the others need. None where each is NULL."""
    common: SqlType | None = None
    for node in nodes:
        common = _merged(compile_, common, node)
    return common


def _merged(compile_: Compile, common: SqlType | None, node: Expression) -> SqlType | None:
    """The common type after one more item. Constructors are looked into, for the literals in them."""
    if common is None:
        return _own_type(compile_, node)
    if isinstance(node, ast.StringLiteral):
        return _with_text(common, node)
    if isinstance(node, _LITERALS) and common == STRING:
        return common
    match node, common:
        case ast.NullLiteral(), _:
            return common
        case ast.ArrayLiteral(items), Array(element):
            return Array(_all(compile_, element, items, common, node))
        case ast.MapLiteral(entries), Map(key, value):
            keys = _all(compile_, key, (name for name, _ in entries), common, node)
            return Map(keys, _all(compile_, value, (entry for _, entry in entries), common, node))
        case ast.StructLiteral(members), Struct(fields):
            return _merged_struct(compile_, fields, members, common, node)
    return _widen(common, _own_type(compile_, node), node)


def _own_type(compile_: Compile, node: Expression) -> SqlType | None:
    return compile_(node)[0]


def _all(
    compile_: Compile, element: SqlType, items: Iterable[Expression], common: SqlType, node: Expression
) -> SqlType:
    found: SqlType | None = element
    for item in items:
        try:
            found = _merged(compile_, found, item)
        except NoCommonType:
            raise NoCommonType(common, _own_type(compile_, node), node) from None
    assert found is not None
    return found


def _merged_struct(
    compile_: Compile,
    fields: tuple[Field, ...],
    members: tuple[tuple[str, Expression], ...],
    common: SqlType,
    node: Expression,
) -> SqlType:
    merged = {field.name: field.type for field in fields}
    for name, value in members:
        if name in merged:
            merged[name] = _all(compile_, merged[name], (value,), common, node)
        elif (of := _own_type(compile_, value)) is not None:
            merged[name] = of
    return Struct(tuple(Field(name, of) for name, of in merged.items()))


class NoCommonType(Exception):
    """An item that cannot be of the type of those before it."""

    def __init__(self, common: SqlType | None, of: SqlType | None, node: Expression) -> None:
        super().__init__(common, of, node)
        self.common, self.of, self.node = common, of, node


def _widen(common: SqlType, of: SqlType | None, node: Expression) -> SqlType | None:
    try:
        return widened(common, of)
    except TypeError:
        raise NoCommonType(common, of, node) from None


# --- literals that are text among others


def _with_text(common: SqlType | None, node: ast.StringLiteral) -> SqlType | None:
    """The type that also holds what the text says."""
    if common is None or common == STRING:
        return STRING
    value = _read(common, node)
    if isinstance(value, Decimal) and common in (INTEGER, BIGINT):
        return widened(common, _number_type(value))
    if isinstance(value, Decimal) and isinstance(common, DecimalType):
        return widened(common, _number_type(value))
    return common


def _number_type(value: Decimal) -> SqlType:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent >= 0:
        whole = int(value)
        if -(2**63) <= whole < 2**63:
            return INTEGER if -(2**31) <= whole < 2**31 else BIGINT
    scale = max(0, -exponent)
    return DecimalType(max(len(digits) + max(exponent, 0), scale), scale)


def _exact_boolean(value: str) -> bool:
    lower = value.lower()
    for answer, word in ((True, "true"), (True, "yes"), (False, "false"), (False, "no")):
        if lower and word.startswith(lower):
            return answer
    raise EvaluationError(f'"{value}" is no BOOLEAN')


_READERS: dict[SqlType, Callable[[str], Value]] = {
    BOOLEAN: _exact_boolean,
    DATE: parse_date,
    TIME: parse_time,
    TIMESTAMP: parse_timestamp,
}


def _read(common: SqlType, node: ast.StringLiteral) -> Value:
    read = parse_decimal if is_numeric(common) else _READERS.get(common)
    if read is None:
        raise NoCommonType(common, STRING, node)
    try:
        return read(node.value)
    except EvaluationError:
        kind = "DECIMAL" if isinstance(common, DecimalType) else common
        raise StatementError(f'invalid input syntax for type {kind}: "{node.value}".', node.at) from None


# --- each as the type of all


def coerced(compile_: Compile, node: Expression, to: SqlType) -> Evaluate:
    """The closure of an item whose values are of the type."""
    match node, to:
        case ast.NullLiteral(), _:
            return lambda row: None
        case ast.StringLiteral(), _ if to != STRING:
            return _read_as(node, to)
        case ast.ArrayLiteral(items), Array(element):
            calls = [coerced(compile_, item, element) for item in items]
            return lambda row: [call(row) for call in calls]
        case ast.StructLiteral(members), Struct(fields):
            return _coerced_struct(compile_, dict(members), fields)
        case ast.MapLiteral(entries), Map(key, value):
            pairs = [(coerced(compile_, k, key), coerced(compile_, v, value)) for k, v in entries]
            return lambda row: {name(row): entry(row) for name, entry in pairs}
    return _converted(compile_, node, to)


def _read_as(node: ast.StringLiteral, to: SqlType) -> Evaluate:
    value = _read(to, node)
    if is_numeric(to):
        convert = cast(STRING, to) if isinstance(to, DecimalType) else None
        value = convert(node.value) if convert is not None else _whole_or_double(value, to)
    return lambda row: value


def _whole_or_double(value: Decimal, to: SqlType) -> Value:
    return int(value) if to in (INTEGER, BIGINT) else float(value)


def _coerced_struct(compile_: Compile, members: dict[str, Expression], fields: tuple[Field, ...]) -> Evaluate:
    calls = [
        (field.name, coerced(compile_, members.get(field.name, ast.NullLiteral()), field.type))
        for field in fields
    ]
    return lambda row: {name: call(row) for name, call in calls}


def _converted(compile_: Compile, node: Expression, to: SqlType) -> Evaluate:
    of, call = compile_(node)
    if of is None or of == to:
        return call
    convert = cast(of, to)
    if convert is None:
        raise NoCommonType(to, of, node)

    def evaluate(row: Row) -> Value:
        value = call(row)
        return None if value is None else convert(value)

    return evaluate


# --- into structured values


def entry_of(container: Evaluate, key: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Value:
        value = container(row)
        return None if value is None else value.get(key(row))

    return evaluate


def item_of(container: Evaluate, index: Evaluate) -> Evaluate:
    """Items count from 1, from the end with negative numbers; what is not there is null."""

    def evaluate(row: Row) -> Value:
        value = container(row)
        if value is None:
            return None
        place = index(row)
        if place is None or not place or abs(place) > len(value):
            return None
        return value[place - 1 if place > 0 else place]

    return evaluate
