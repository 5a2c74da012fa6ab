"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: the first and the last values that came.

Values carry a number that rises from one to the next, so that sessions which merge know what came first. It begins
with the clock: a process that goes on with another's states gives larger ones.
"""

from __future__ import annotations

import time
from itertools import count

from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.aggregating import Aggregator, State
from pykafkad.pipelines.functions.registry import Call, aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

_SIGNATURES = ("(T) T", "(T, BOOLEAN!) T")
_MANY = ("(T, INTEGER!) ARRAY<T>", "(T, INTEGER!, BOOLEAN!) ARRAY<T>")

_numbers = count(time.time_ns())


class ByOffset(Aggregator):
    """A list of numbers and values in their order."""

    earliest: ClassVar[bool]

    def __init__(self, call: Call) -> None:
        sizes = [constant for constant in call.constants if type(constant) is int]
        flags = [constant for constant in call.constants if type(constant) is bool]
        self._many, self._size = bool(sizes), max(1, sizes[0]) if sizes else 1
        self._ignore_nulls = flags[0] if flags else True

    def initial(self) -> State:
        return []

    def _kept(self, entries: State) -> State:
        return entries[: self._size] if self.earliest else entries[-self._size :]

    def add(self, state: State, *values: Value) -> State:
        if values[0] is None and self._ignore_nulls:
            return state
        if self.earliest and len(state) >= self._size:
            return state
        return self._kept([*state, [next(_numbers), values[0]]])

    def merge(self, state: State, other: State) -> State:
        return self._kept(sorted([*state, *other], key=lambda entry: entry[0]))

    def result(self, state: State) -> Value:
        values = [value for _, value in state]
        return values if self._many else values[0] if values else None


@aggregate("EARLIEST_BY_OFFSET", *_SIGNATURES, *_MANY)
class Earliest(ByOffset):
    """The first value, or as many first values; nulls do not count unless false is said."""

    earliest = True


@aggregate("LATEST_BY_OFFSET", *_SIGNATURES, *_MANY)
class Latest(ByOffset):
    """The last value, or as many last values; nulls do not count unless false is said."""

    earliest = False
