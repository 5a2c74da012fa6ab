"""+ - * / %: for two types the type of the result, and what makes a closure of two closures.

Nulls are not looked for: Python's operators raise on None, as Java's unboxing does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from pykafkad.pipelines.expressions import numbers
from pykafkad.pipelines.expressions.casts import cast, rank
from pykafkad.pipelines.expressions.schema import Row, Value
from pykafkad.pipelines.types import DOUBLE, INTEGER, STRING, SqlType
from pykafkad.pipelines.types import Decimal as DecimalType

Evaluate = Callable[[Row], Value]
Make = Callable[[Evaluate, Evaluate], Evaluate]
Binary = Callable[[Value, Value], Value]

_WHOLE: dict[str, Binary] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": numbers.divide_whole,
    "%": numbers.remainder_whole,
}
_DOUBLE: dict[str, Binary] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": numbers.divide_double,
    "%": numbers.remainder_double,
}
_DECIMAL: dict[str, Binary] = {
    "+": numbers.add_decimal,
    "-": numbers.subtract_decimal,
    "*": numbers.multiply_decimal,
}


def operation(sign: str, left: SqlType | None, right: SqlType | None) -> tuple[SqlType, Make] | None:
    """The result's type and what makes its closure; None where the types have no such operation."""
    if left == STRING and right == STRING and sign == "+":
        return STRING, _plain(operator.add)
    if left is None or right is None or not (numbers.is_numeric(left) and numbers.is_numeric(right)):
        return None
    if DOUBLE in (left, right):
        return DOUBLE, _converted(left, right, DOUBLE, _plain(_DOUBLE[sign]))
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return _decimal(sign, left, right)
    of = left if rank(left) > rank(right) else right
    return of, _wrapping(_WHOLE[sign], 31 if of == INTEGER else 63)


def _plain(apply: Binary) -> Make:
    return lambda left, right: lambda row: apply(left(row), right(row))


def _wrapping(apply: Binary, bits: int) -> Make:
    low, high, wrap = -(1 << bits), 1 << bits, numbers.wrap32 if bits == 31 else numbers.wrap64

    def make(left: Evaluate, right: Evaluate) -> Evaluate:
        def evaluate(row: Row) -> Value:
            value = apply(left(row), right(row))
            return value if low <= value < high else wrap(value)

        return evaluate

    return make


def _converted(left: SqlType, right: SqlType, to: SqlType, make: Make) -> Make:
    """`make` of closures whose values have been converted; None stays for the operation to raise on."""
    return lambda one, other: make(_convert(one, left, to), _convert(other, right, to))


def _convert(call: Evaluate, of: SqlType, to: SqlType) -> Evaluate:
    convert = cast(of, to)
    assert convert is not None
    return call if of == to else lambda row: convert(call(row))


def _decimal(sign: str, left: SqlType, right: SqlType) -> tuple[SqlType, Make]:
    one, other = numbers.as_decimal_type(left), numbers.as_decimal_type(right)
    of = numbers.decimal_result(sign, one, other)
    if sign in _DECIMAL:
        apply = _DECIMAL[sign]
        make = _plain(lambda a, b: numbers.fit(apply(a, b), of))
    elif sign == "/":
        make = _plain(lambda a, b: numbers.divide_decimal(a, b, of))
    else:
        make = _plain(lambda a, b: numbers.remainder_decimal(a, b, of))

    def converted(a: Evaluate, b: Evaluate) -> Evaluate:
        return make(_convert(a, left, one), _convert(b, right, other))

    return of, converted
