"""Java's arithmetic: integers that wrap, doubles that know infinity, decimals of a precision and a scale.

What Java throws (an integer divided by zero, a decimal that does not fit) raises EvaluationError, which makes
the value null.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

from pykafkad.pipelines.types import BIGINT, DOUBLE, INTEGER, SqlType
from pykafkad.pipelines.types import Decimal as DecimalType


class EvaluationError(Exception):
    """An expression has no value for this row."""


INTEGER_DIGITS, BIGINT_DIGITS = 10, 19

EXACT = decimal.Context(prec=1000, rounding=decimal.ROUND_HALF_UP)


def wrap32(value: int) -> int:
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def wrap64(value: int) -> int:
    return (value + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def is_numeric(of: SqlType | None) -> bool:
    return of in (INTEGER, BIGINT, DOUBLE) or isinstance(of, DecimalType)


def as_decimal_type(of: SqlType) -> DecimalType:
    """The decimal type that holds every value of a whole number's type."""
    if isinstance(of, DecimalType):
        return of
    return DecimalType(INTEGER_DIGITS if of == INTEGER else BIGINT_DIGITS, 0)


def widen_decimals(left: DecimalType, right: DecimalType) -> DecimalType:
    """The type that holds the values of both."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return DecimalType(whole + scale, scale)


def decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """The type of a result of two decimals, as ksqlDB's reference gives it."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in "+-":
        return DecimalType(max(s1, s2) + max(p1 - s1, p2 - s2) + 1, max(s1, s2))
    if operator == "*":
        return DecimalType(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return DecimalType(p1 - s1 + s2 + scale, scale)
    return DecimalType(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def fit(value: Decimal, to: DecimalType, rounding: str = decimal.ROUND_HALF_UP) -> Decimal:
    """The value with the scale of its type; one of too many digits is an error."""
    rounded = value.quantize(Decimal(1).scaleb(-to.scale), rounding, EXACT)
    if rounded and rounded.adjusted() >= to.precision - to.scale:
        raise EvaluationError(
            f"Numeric field overflow: A field with precision {to.precision} and scale {to.scale} must round to "
            f"an absolute value less than 10^{to.precision - to.scale}. Got {plain(value)}"
        )
    return rounded


MAX_DIGITS = 1000
"""Of numbers that come in as text: with more, a few bytes like 1E999999999 would be a gigabyte."""


def whole_of_decimal(value: Decimal) -> int:
    if not value.is_finite() or value.adjusted() > MAX_DIGITS:
        raise EvaluationError(f"{value} has too many digits")
    return int(value)


def plain(value: Decimal) -> str:
    """As BigDecimal.toPlainString: never with an exponent."""
    return format(value, "f")


def exact(value: float) -> Decimal:
    """The decimal that a double is written as."""
    if not math.isfinite(value):
        raise EvaluationError(f"{java_double(value)} is no DECIMAL")
    return Decimal(repr(value))


def java_double(value: float) -> str:
    """As Double.toString writes it: 1.0, 1.0E10, NaN."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f") if "e" in repr(value) else repr(value)
    shortest = repr(value) if "." in repr(value) else f"{value:.1e}"  # Java gives two digits at least
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(digits) - 1}"


def whole_of_double(value: float, bits: int) -> int:
    """(int) or (long) of a double: NaN is 0, what does not fit is the nearest that does."""
    if value != value:
        return 0
    limit = 1 << bits - 1
    return max(
        -limit, min(limit - 1, int(value) if math.isfinite(value) else math.copysign(limit, value).__int__())
    )


def divide_whole(left: int, right: int) -> int:
    if not right:
        raise EvaluationError("/ by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder_whole(left: int, right: int) -> int:
    if not right:
        raise EvaluationError("/ by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def divide_double(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder_double(left: float, right: float) -> float:
    if not right or not math.isfinite(left) or right != right:
        return math.nan
    return math.fmod(left, right)


def divide_decimal(left: Decimal, right: Decimal, to: DecimalType) -> Decimal:
    if not right:
        raise EvaluationError("Division by zero")
    return fit(EXACT.divide(left, right), to)


def remainder_decimal(left: Decimal, right: Decimal, to: DecimalType) -> Decimal:
    if not right:
        raise EvaluationError("Division by zero")
    return fit(EXACT.remainder(left, right), to)


def add_decimal(left: Decimal, right: Decimal) -> Decimal:
    return EXACT.add(left, right)


def subtract_decimal(left: Decimal, right: Decimal) -> Decimal:
    return EXACT.subtract(left, right)


def multiply_decimal(left: Decimal, right: Decimal) -> Decimal:
    return EXACT.multiply(left, right)
