"""Functions of numbers. What Java's Math answers with NaN or an infinity is that here, too."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal

from pykafkad.pipelines.expressions.numbers import EvaluationError, exact, fit, wrap32, wrap64
from pykafkad.pipelines.functions.registry import Call, scalar
from pykafkad.pipelines.types import Decimal as DecimalType
from pykafkad.pipelines.types import SqlType

CATEGORY = "MATHEMATICAL"


def java(function: Callable[..., float]) -> Callable[..., float]:
    """The function with Java's answers where Python's raises."""

    def call(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _first(types: Sequence[SqlType | None]) -> SqlType:
    of = types[0]
    assert of is not None
    return of


def _whole_decimal(types: Sequence[SqlType | None]) -> SqlType:
    of = _first(types)
    assert isinstance(of, DecimalType)
    return DecimalType(max(of.precision - of.scale, 1), 0)


def _ln(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def _log(base: float, value: float) -> float:
    if base <= 0 or base == 1 or value < 0:
        return math.nan
    return -math.inf if value == 0 else math.log(value) / math.log(base)


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    found = base**exponent
    return math.nan if isinstance(found, complex) else found


DOUBLES: tuple[tuple[str, Callable[..., float], str], ...] = (
    ("ACOS", math.acos, "The arc cosine of a value, in radians."),
    ("ASIN", math.asin, "The arc sine of a value, in radians."),
    ("ATAN", math.atan, "The arc tangent of a value, in radians."),
    ("CBRT", lambda value: math.copysign(abs(value) ** (1 / 3), value), "The cube root of a value."),
    ("COS", math.cos, "The cosine of an angle in radians."),
    ("COSH", math.cosh, "The hyperbolic cosine of a value."),
    (
        "COT",
        lambda value: math.inf if value == 0 else 1 / math.tan(value),
        "The cotangent of an angle in radians.",
    ),
    ("DEGREES", math.degrees, "An angle in radians as degrees."),
    ("EXP", math.exp, "e to the power of a value."),
    ("LN", _ln, "The natural logarithm of a value."),
    ("LOG", _ln, "The natural logarithm of a value, or that to a base."),
    ("RADIANS", math.radians, "An angle in degrees as radians."),
    ("SIN", math.sin, "The sine of an angle in radians."),
    ("SINH", math.sinh, "The hyperbolic sine of a value."),
    ("SQRT", math.sqrt, "The square root of a value."),
    ("TAN", math.tan, "The tangent of an angle in radians."),
    ("TANH", math.tanh, "The hyperbolic tangent of a value."),
)

PAIRS: tuple[tuple[str, Callable[..., float], str], ...] = (
    ("ATAN2", math.atan2, "The arc tangent of y / x, in radians."),
    ("LOG", _log, ""),
    ("POWER", _power, "A base to the power of an exponent."),
)


def _add_doubles() -> None:
    for table, signature in ((DOUBLES, "(DOUBLE) DOUBLE"), (PAIRS, "(DOUBLE, DOUBLE) DOUBLE")):
        for name, function, description in table:
            implementation = java(function)
            implementation.__doc__ = description
            scalar(name, CATEGORY, signature)(implementation)


_add_doubles()


@scalar("PI", CATEGORY, "() DOUBLE")
def pi() -> float:
    """The ratio of a circle's circumference to its diameter."""
    return math.pi


@scalar("RANDOM", CATEGORY, "() DOUBLE")
def random_number() -> float:
    """A random number from 0 up to but not including 1."""
    return random.random()


@scalar("ABS", CATEGORY, "(DOUBLE) DOUBLE")
def absolute(value: float) -> float:
    """The absolute value of a number."""
    return abs(value)


@scalar("ABS", CATEGORY, "(DECIMAL) DECIMAL", result=_first)
def absolute_decimal(value: Decimal) -> Decimal:
    return abs(value)


@scalar("ABS", CATEGORY, "(INTEGER) INTEGER")
def absolute_integer(value: int) -> int:
    return wrap32(abs(value))


@scalar("ABS", CATEGORY, "(BIGINT) BIGINT")
def absolute_bigint(value: int) -> int:
    return wrap64(abs(value))


@scalar("SIGN", CATEGORY, "(INTEGER) INTEGER", "(BIGINT) INTEGER", "(DOUBLE) INTEGER")
def sign(value: float) -> int:
    """-1, 0 or 1 as the number is negative, zero or positive."""
    return (value > 0) - (value < 0)


@scalar("CEIL", CATEGORY, "(INTEGER) INTEGER", "(BIGINT) BIGINT")
@scalar("FLOOR", CATEGORY, "(INTEGER) INTEGER", "(BIGINT) BIGINT")
def whole_already(value: int) -> int:
    """The nearest whole number: for CEIL the one above, for FLOOR the one below."""
    return value


@scalar("CEIL", CATEGORY, "(DOUBLE) DOUBLE")
def ceiling(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


@scalar("FLOOR", CATEGORY, "(DOUBLE) DOUBLE")
def floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


@scalar("CEIL", CATEGORY, "(DECIMAL) DECIMAL", result=_first)
def ceiling_decimal(value: Decimal) -> Decimal:
    return value.to_integral_value(decimal.ROUND_CEILING).quantize(value)


@scalar("FLOOR", CATEGORY, "(DECIMAL) DECIMAL", result=_first)
def floor_decimal(value: Decimal) -> Decimal:
    return value.to_integral_value(decimal.ROUND_FLOOR).quantize(value)


@scalar("ROUND", CATEGORY, "(INTEGER) INTEGER", "(BIGINT) BIGINT")
@scalar("TRUNC", CATEGORY, "(INTEGER) INTEGER", "(BIGINT) BIGINT")
def rounded_already(value: int) -> int:
    """A number rounded (ROUND: a half upwards) or cut off (TRUNC) to a whole one, or to so many digits after the
    point."""
    return value


def _half_up(value: Decimal) -> str:
    """Java's Math.round takes a half towards the larger number."""
    return decimal.ROUND_HALF_UP if value >= 0 else decimal.ROUND_HALF_DOWN


def _towards_zero(value: Decimal) -> str:
    return decimal.ROUND_DOWN


def _at(value: Decimal, places: int, rounding: Callable[[Decimal], str]) -> Decimal:
    context = decimal.Context(prec=1000)
    return value.quantize(Decimal(1).scaleb(-places), rounding(value), context)


def _add_rounding(name: str, rounding: Callable[[Decimal], str]) -> None:
    def of_double(value: float) -> int:
        if not math.isfinite(value):
            return 0 if value != value else -(2**63) if value < 0 else 2**63 - 1
        return max(-(2**63), min(2**63 - 1, int(_at(Decimal(value), 0, rounding))))

    def of_double_at(value: float, places: int) -> float:
        return float(_at(exact(value), places, rounding)) if math.isfinite(value) else value

    def of_decimal(value: Decimal) -> Decimal:
        return _at(value, 0, rounding)

    def of_decimal_at(call: Call) -> Callable[[Decimal, int], Decimal]:
        of = _first(call.types)
        assert isinstance(of, DecimalType)
        return lambda value, places: fit(_at(value, min(places, of.scale), rounding), of)

    scalar(name, CATEGORY, "(DOUBLE) BIGINT")(of_double)
    scalar(name, CATEGORY, "(DOUBLE, INTEGER) DOUBLE")(of_double_at)
    scalar(name, CATEGORY, "(DECIMAL) DECIMAL", result=_whole_decimal)(of_decimal)
    scalar(name, CATEGORY, "(DECIMAL, INTEGER) DECIMAL", types=True, result=_first)(of_decimal_at)


_add_rounding("ROUND", _half_up)
_add_rounding("TRUNC", _towards_zero)

EARTH_RADIUS = {"KM": 6371.0, "MI": 3959.0}


@scalar("GEO_DISTANCE", CATEGORY, "(DOUBLE, DOUBLE, DOUBLE, DOUBLE) DOUBLE")
def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """The great-circle distance of two points (latitude, longitude, in degrees), in kilometres (KM) or miles (MI)."""
    return _great_circle(lat1, lon1, lat2, lon2, EARTH_RADIUS["KM"])


@scalar("GEO_DISTANCE", CATEGORY, "(DOUBLE, DOUBLE, DOUBLE, DOUBLE, STRING) DOUBLE")
def geo_distance_in(lat1: float, lon1: float, lat2: float, lon2: float, unit: str) -> float:
    radius = EARTH_RADIUS["MI" if unit.upper().startswith("MI") else "KM"]
    return _great_circle(lat1, lon1, lat2, lon2, radius)


def _great_circle(lat1: float, lon1: float, lat2: float, lon2: float, radius: float) -> float:
    if not all(-90 <= latitude <= 90 for latitude in (lat1, lat2)):
        raise EvaluationError("a latitude is from -90 to 90")
    if not all(-180 <= longitude <= 180 for longitude in (lon1, lon2)):
        raise EvaluationError("a longitude is from -180 to 180")
    d_lat, d_lon = math.radians(lat2 - lat1), math.radians(lon2 - lon1)
    cosines = math.cos(math.radians(lat1)) * math.cos(math.radians(lat2))
    a = math.sin(d_lat / 2) ** 2 + math.sin(d_lon / 2) ** 2 * cosines
    return radius * 2 * math.asin(math.sqrt(a))


def _series(start: int, end: int, step: int) -> list[int]:
    if not step:
        raise EvaluationError("GENERATE_SERIES step cannot be zero")
    if (end - start) * step < 0:
        raise EvaluationError("GENERATE_SERIES step has wrong sign")
    if abs(end - start) // abs(step) >= MAX_SERIES:
        raise EvaluationError(f"GENERATE_SERIES gives at most {MAX_SERIES} numbers")
    return list(range(start, end + (1 if step > 0 else -1), step))


MAX_SERIES = 1_000_000


@scalar("GENERATE_SERIES", "ARRAY", "(INTEGER, INTEGER) ARRAY<INTEGER>", "(BIGINT, BIGINT) ARRAY<BIGINT>")
def series(start: int, end: int) -> list[int]:
    """The numbers from the first to the second, one by one or by a step."""
    return _series(start, end, 1 if end >= start else -1)


@scalar(
    "GENERATE_SERIES",
    "ARRAY",
    "(INTEGER, INTEGER, INTEGER) ARRAY<INTEGER>",
    "(BIGINT, BIGINT, INTEGER) ARRAY<BIGINT>",
)
def series_by(start: int, end: int, step: int) -> list[int]:
    return _series(start, end, step)
