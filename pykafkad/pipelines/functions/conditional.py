"""Functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.expressions.casts import widened
from pykafkad.pipelines.expressions.numbers import fit
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.registry import Call, scalar
from pykafkad.pipelines.types import Decimal, SqlType


@scalar("COALESCE", "CONDITIONAL", "(T...) T", nulls=True)
def coalesce(*values: Value) -> Value:
    """The first argument that is not null."""
    return next((value for value in values if value is not None), None)


@scalar("IFNULL", "CONDITIONAL", "(T, T) T", nulls=True)
def ifnull(value: Value, otherwise: Value) -> Value:
    """The first argument, or the second where that is null."""
    return otherwise if value is None else value


@scalar("NULLIF", "CONDITIONAL", "(T, T) T", nulls=True)
def nullif(value: Value, unwanted: Value) -> Value:
    """The first argument, or null where it equals the second."""
    return None if value is not None and value == unwanted else value


@scalar("AS_VALUE", "OTHER", "(T) T", nulls=True)
def as_value(value: Value) -> Value:
    """The argument; a key column becomes a value column so."""
    return value


def _widest(types: Sequence[SqlType | None]) -> SqlType:
    found: SqlType | None = None
    for of in types:
        found = widened(found, of)
    assert found is not None
    return found


_ORDERED = tuple(
    f"({of}...) {of}"
    for of in ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
)


def _extreme(call: Call, choose: Callable[..., Value]) -> Callable[..., Value]:
    """The chosen value that is not null, in the type of all."""
    of = _widest(call.types)

    def extreme(*values: Value) -> Value:
        found = choose((value for value in values if value is not None), default=None)
        return fit(found, of) if isinstance(of, Decimal) and found is not None else found

    return extreme


@scalar("GREATEST", "COMPARISON", *_ORDERED, nulls=True, types=True, result=_widest)
def greatest(call: Call) -> Callable[..., Value]:
    """The largest argument; nulls do not count."""
    return _extreme(call, max)


@scalar("LEAST", "COMPARISON", *_ORDERED, nulls=True, types=True, result=_widest)
def least(call: Call) -> Callable[..., Value]:
    """The smallest argument; nulls do not count."""
    return _extreme(call, min)


@scalar("ELT", "STRING", "(INTEGER, STRING...) STRING", nulls=True)
def elt(place: int | None, *texts: str | None) -> str | None:
    """The text at a place among the arguments after it; the first is at 1."""
    return texts[place - 1] if place is not None and 1 <= place <= len(texts) else None


@scalar("FIELD", "STRING", "(STRING, STRING...) INTEGER", nulls=True)
def field(wanted: str | None, *texts: str | None) -> int:
    """The place of a text among the arguments after it, 0 where it is not there."""
    return 0 if wanted is None or wanted not in texts else texts.index(wanted) + 1
