"""STDDEV_SAMP, STDDEV_SAMPLE and CORRELATION. Their states are sums, so that rows can be taken back."""

from __future__ import annotations

import math

from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.aggregating import Aggregator, State
from pykafkad.pipelines.functions.registry import aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

_NUMBERS = ("(INTEGER) DOUBLE", "(BIGINT) DOUBLE", "(DOUBLE) DOUBLE")


class Moments(Aggregator):
    """The number of the values, their sum, and the sum of their squared differences from the mean."""

    undoes: ClassVar[bool] = True

    def initial(self) -> State:
        return [0, 0.0, 0.0]

    def add(self, state: State, *values: Value) -> State:
        value = values[0]
        if value is None:
            return state
        count, total, squares = state
        if count:
            squares += (count * value - total) ** 2 / (count * (count + 1))
        return [count + 1, total + value, squares]

    def undo(self, state: State, *values: Value) -> State:
        value = values[0]
        if value is None:
            return state
        count, total, squares = state
        if count < 2:
            return self.initial()
        count, total = count - 1, total - value
        return [count, total, max(0.0, squares - (count * value - total) ** 2 / (count * (count + 1)))]

    def merge(self, state: State, other: State) -> State:
        (n, a, x), (m, b, y) = state, other
        if not n or not m:
            return other if not n else state
        return [n + m, a + b, x + y + (a / n - b / m) ** 2 * n * m / (n + m)]

    def variance(self, state: State) -> float:
        return float(state[2] / (state[0] - 1)) if state[0] > 1 else 0.0


@aggregate("STDDEV_SAMP", *_NUMBERS)
class Variance(Moments):
    """The variance of a sample, which ksqlDB has called so from the beginning. STDDEV_SAMPLE is its square root."""

    def result(self, state: State) -> float:
        return self.variance(state)


@aggregate("STDDEV_SAMPLE", *_NUMBERS)
class Deviation(Moments):
    """The standard deviation of a sample."""

    def result(self, state: State) -> float:
        return math.sqrt(self.variance(state))


@aggregate("CORRELATION", "(INTEGER, INTEGER) DOUBLE", "(BIGINT, BIGINT) DOUBLE", "(DOUBLE, DOUBLE) DOUBLE")
class Correlation(Aggregator):
    """Pearson's correlation of two columns; rows in which one of them is null do not count."""

    undoes: ClassVar[bool] = True

    def initial(self) -> State:
        return [0, 0.0, 0.0, 0.0, 0.0, 0.0]

    def _after(self, state: State, values: tuple[Value, ...], sign: int) -> State:
        x, y = values
        if x is None or y is None:
            return state
        changes = (1, x, y, x * x, y * y, x * y)
        return [total + sign * change for total, change in zip(state, changes, strict=True)]

    def add(self, state: State, *values: Value) -> State:
        return self._after(state, values, 1)

    def undo(self, state: State, *values: Value) -> State:
        return self._after(state, values, -1)

    def merge(self, state: State, other: State) -> State:
        return [one + another for one, another in zip(state, other, strict=True)]

    def result(self, state: State) -> float:
        count, x, y, xx, yy, xy = state
        spread = (count * xx - x * x) * (count * yy - y * y)
        return float((count * xy - x * y) / math.sqrt(spread)) if spread > 0 else math.nan
