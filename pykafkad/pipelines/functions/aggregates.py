"""COUNT, SUM, AVG, MIN, MAX."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal

from pykafkad.pipelines.expressions.numbers import fit, wrap32, wrap64
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.aggregating import Aggregator, State
from pykafkad.pipelines.functions.registry import Call, aggregate
from pykafkad.pipelines.types import DOUBLE, INTEGER, Array, SqlType
from pykafkad.pipelines.types import Decimal as DecimalType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

Convert = Callable[[Value], Value]


@aggregate("COUNT", "() BIGINT")
class CountRows(Aggregator):
    """The number of rows, or of those in which the argument is not null."""

    undoes: ClassVar[bool] = True
    structured: ClassVar[bool] = False

    def initial(self) -> int:
        return 0

    def add(self, state: State, *values: Value) -> int:
        return state + 1  # type: ignore[no-any-return]

    def undo(self, state: State, *values: Value) -> int:
        return int(state) - 1

    def merge(self, state: State, other: State) -> int:
        return int(state + other)

    def result(self, state: State) -> int:
        return int(state)


@aggregate("COUNT", "(T) BIGINT")
class CountValues(CountRows):
    def add(self, state: State, *values: Value) -> int:
        return int(state) + (values[0] is not None)

    def undo(self, state: State, *values: Value) -> int:
        return int(state) - (values[0] is not None)


def number_of(of: SqlType | None) -> tuple[Value, Convert]:
    """Zero in the type, and what brings a sum back into it."""
    if isinstance(of, DecimalType):
        return Decimal(0).scaleb(-of.scale), lambda value: fit(value, of)
    if of == DOUBLE:
        return 0.0, float
    return 0, wrap32 if of == INTEGER else wrap64


@aggregate("SUM", "(INTEGER) INTEGER", "(BIGINT) BIGINT", "(DOUBLE) DOUBLE")
class Sum(Aggregator):
    """The sum of the values; nulls do not count."""

    undoes: ClassVar[bool] = True
    structured: ClassVar[bool] = False

    def __init__(self, call: Call) -> None:
        self._zero, self._fitting = number_of(call.types[0])

    def initial(self) -> State:
        return self._zero

    def add(self, state: State, *values: Value) -> State:
        return state if values[0] is None else self._fitting(state + values[0])

    def undo(self, state: State, *values: Value) -> State:
        return state if values[0] is None else self._fitting(state - values[0])

    def merge(self, state: State, other: State) -> State:
        return self._fitting(state + other)

    def result(self, state: State) -> Value:
        return state


def _same(types: Sequence[SqlType | None]) -> SqlType:
    of = types[0]
    assert of is not None
    return of


aggregate("SUM", "(DECIMAL) DECIMAL", result=_same)(Sum)


@aggregate("SUM_LIST", "(ARRAY<INTEGER>) INTEGER", "(ARRAY<BIGINT>) BIGINT", "(ARRAY<DOUBLE>) DOUBLE")
class SumList(Sum):
    """The sum of the items of all arrays; nulls do not count."""

    def __init__(self, call: Call) -> None:
        of = call.types[0]
        self._zero, self._fitting = number_of(of.element if isinstance(of, Array) else None)

    def _sum(self, items: Value) -> Value:
        return sum((item for item in items or () if item is not None), self._zero)

    def add(self, state: State, *values: Value) -> State:
        return self._fitting(state + self._sum(values[0]))

    def undo(self, state: State, *values: Value) -> State:
        return self._fitting(state - self._sum(values[0]))


@aggregate("AVG", "(INTEGER) DOUBLE", "(BIGINT) DOUBLE", "(DOUBLE) DOUBLE")
class Average(Aggregator):
    """The mean of the values; nulls do not count."""

    undoes: ClassVar[bool] = True

    def initial(self) -> list[Value]:
        return [0, 0]

    def _after(self, state: State, value: Value, sign: int) -> list[Value]:
        return state if value is None else [state[0] + sign * value, state[1] + sign]

    def add(self, state: State, *values: Value) -> State:
        return self._after(state, values[0], 1)

    def undo(self, state: State, *values: Value) -> State:
        return self._after(state, values[0], -1)

    def merge(self, state: State, other: State) -> State:
        return [state[0] + other[0], state[1] + other[1]]

    def result(self, state: State) -> float:
        return float(state[0]) / state[1] if state[1] else 0.0


class Extreme(Aggregator):
    structured: ClassVar[bool] = False
    better: ClassVar[Callable[[Value, Value], bool]]

    def initial(self) -> None:
        return None

    def add(self, state: State, *values: Value) -> State:
        return self.merge(state, values[0])

    def merge(self, state: State, other: State) -> State:
        if state is None or other is None:
            return other if state is None else state
        return other if type(self).better(other, state) else state

    def result(self, state: State) -> Value:
        return state


_ORDERED = tuple(
    f"({of}) {of}" for of in ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
)


@aggregate("MAX", *_ORDERED)
class Max(Extreme):
    """The largest value; nulls do not count."""

    better = operator.gt


@aggregate("MIN", *_ORDERED)
class Min(Extreme):
    """The smallest value; nulls do not count."""

    better = operator.lt


aggregate("MAX", "(DECIMAL) DECIMAL", result=_same)(Max)
aggregate("MIN", "(DECIMAL) DECIMAL", result=_same)(Min)
