"""= <> < <= > >=, IS DISTINCT FROM and LIKE. A comparison with null is false, whichever it is."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache

from pykafkad.pipelines.expressions.casts import cast, widened
from pykafkad.pipelines.expressions.numbers import is_numeric
from pykafkad.pipelines.expressions.schema import Row, Value
from pykafkad.pipelines.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Map,
    SqlType,
    Struct,
)

Evaluate = Callable[[Row], Value]
Make = Callable[[Evaluate, Evaluate], Evaluate]

NAMES = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}

_OPERATORS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOMENTS = (DATE, TIME, TIMESTAMP)
_ONLY_EQUAL = (BOOLEAN,)


def comparison(sign: str, left: SqlType | None, right: SqlType | None) -> Make | None:
    """What makes the closure; None where the types are not compared so."""
    common = _common(left, right)
    if common is None and left is not None and right is not None:
        return None
    equality = sign in ("=", "<>") or sign.startswith("IS")
    if not equality and (common in _ONLY_EQUAL or isinstance(common, (Array, Map, Struct))):
        return None
    compare = _distinct(sign) if sign.startswith("IS") else _nullable(_OPERATORS[sign])
    return lambda one, other: compare(_as(one, left, common), _as(other, right, common))


def _common(left: SqlType | None, right: SqlType | None) -> SqlType | None:
    """The type that both are compared in. Whole numbers and decimals are compared as they are: Python does so exactly."""
    if left == right or left is None or right is None:
        return left or right
    if is_numeric(left) and is_numeric(right):
        return DOUBLE if DOUBLE in (left, right) else left
    if left == STRING and right in _MOMENTS:
        return right
    if right == STRING and left in _MOMENTS:
        return left
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if isinstance(left, (Array, Map, Struct)):
        try:
            return widened(left, right)
        except TypeError:
            return None
    return None


def _as(call: Evaluate, of: SqlType | None, common: SqlType | None) -> Evaluate:
    if of is None or common is None or of == common or (is_numeric(of) and common != DOUBLE):
        return call
    convert = cast(of, common)
    assert convert is not None

    def evaluate(row: Row) -> Value:
        value = call(row)
        return None if value is None else convert(value)

    return evaluate


def _nullable(compare: Callable[[Value, Value], bool]) -> Make:
    def make(left: Evaluate, right: Evaluate) -> Evaluate:
        def evaluate(row: Row) -> bool:
            one, other = left(row), right(row)
            return False if one is None or other is None else compare(one, other)

        return evaluate

    return make


def _distinct(sign: str) -> Make:
    if sign == "IS DISTINCT FROM":
        return lambda left, right: lambda row: left(row) != right(row)
    return lambda left, right: lambda row: left(row) == right(row)


@lru_cache(maxsize=256)
def _pattern(text: str, escape: str | None) -> re.Pattern[str]:
    """The regular expression of a LIKE: % is any text, _ one character."""
    parts, characters = [], iter(text)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters, character)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def like(operand: Evaluate, pattern: Evaluate, escape: str | None, negated: bool) -> Evaluate:
    def evaluate(row: Row) -> bool:
        value, text = operand(row), pattern(row)
        found = value is not None and text is not None and _pattern(text, escape).fullmatch(value) is not None
        return found != negated

    return evaluate
