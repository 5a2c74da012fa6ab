"""Aggregates that keep values: lists, sets, the largest ones, how often each is there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.aggregating import Aggregator, State
from pykafkad.pipelines.functions.collections import hashable
from pykafkad.pipelines.functions.registry import Call, aggregate
from pykafkad.pipelines.types import Array, Field, SqlType, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

DEFAULT_LIMIT = 1000


def _limit(call: Call, name: str) -> int:
    """How many values are kept: by the property, else a thousand; none is no limit."""
    said = call.properties.get(f"ksql.functions.{name}.limit", DEFAULT_LIMIT)
    limit = int(said)
    return limit if limit >= 0 else DEFAULT_LIMIT


@aggregate("COLLECT_LIST", "(T) ARRAY<T>")
class CollectList(Aggregator):
    """An array of all values, up to a thousand or as many as ksql.functions.collect_list.limit says."""

    undoes: ClassVar[bool] = True
    limit_of: ClassVar[str] = "collect_list"

    def __init__(self, call: Call) -> None:
        self._limit = _limit(call, self.limit_of)

    def initial(self) -> State:
        return []

    def add(self, state: State, *values: Value) -> State:
        return state if len(state) >= self._limit else [*state, values[0]]

    def undo(self, state: State, *values: Value) -> State:
        for place in range(len(state) - 1, -1, -1):
            if state[place] == values[0]:
                return [*state[:place], *state[place + 1 :]]
        return state

    def merge(self, state: State, other: State) -> State:
        return [*state, *other][: self._limit]

    def result(self, state: State) -> Value:
        return state


@aggregate("COLLECT_SET", "(T) ARRAY<T>")
class CollectSet(CollectList):
    """An array of all values, each once, up to a thousand or as many as ksql.functions.collect_set.limit says."""

    undoes = False
    limit_of = "collect_set"

    def add(self, state: State, *values: Value) -> State:
        return state if values[0] in state else super().add(state, *values)

    def merge(self, state: State, other: State) -> State:
        return super().merge(state, [value for value in other if value not in state])


@aggregate("ATTR", "(T) T")
class Attribute(Aggregator):
    """The value that all rows have, null where they have several. The state is a list of values and how often they
    are there."""

    undoes: ClassVar[bool] = True

    def initial(self) -> State:
        return []

    def _counted(self, state: State, value: Value, by: int) -> State:
        counted = [[known, times + by if known == value else times] for known, times in state]
        if by > 0 and not any(known == value for known, _ in state):
            counted.append([value, by])
        return [entry for entry in counted if entry[1] > 0]

    def add(self, state: State, *values: Value) -> State:
        return self._counted(state, values[0], 1)

    def undo(self, state: State, *values: Value) -> State:
        return self._counted(state, values[0], -1)

    def merge(self, state: State, other: State) -> State:
        for value, times in other:
            state = self._counted(state, value, times)
        return state

    def result(self, state: State) -> Value:
        return state[0][0] if len(state) == 1 else None


@aggregate("HISTOGRAM", "(STRING) MAP<STRING, BIGINT>")
class Histogram(Aggregator):
    """A map from each value to how often it is there, up to a thousand values."""

    undoes: ClassVar[bool] = True

    def initial(self) -> State:
        return {}

    def _counted(self, state: State, value: Value, by: int) -> State:
        if value not in state and len(state) >= DEFAULT_LIMIT:
            return state
        return {**state, value: state.get(value, 0) + by}

    def add(self, state: State, *values: Value) -> State:
        return self._counted(state, values[0], 1)

    def undo(self, state: State, *values: Value) -> State:
        undone = self._counted(state, values[0], -1)
        return {value: times for value, times in undone.items() if times > 0}

    def merge(self, state: State, other: State) -> State:
        for value, times in other.items():
            state = self._counted(state, value, times)
        return state

    def result(self, state: State) -> Value:
        return state


_TOP_TYPES = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP", "DECIMAL")


def _rows_type(types: Sequence[SqlType | None]) -> SqlType:
    first, *others = (of for of in types if of is not None)
    columns = (Field(f"col{place}", of) for place, of in enumerate(others))
    return Array(Struct((Field("sort_col", first), *columns)))


def _array_type(types: Sequence[SqlType | None]) -> SqlType:
    of = types[0]
    assert of is not None
    return Array(of)


@aggregate("TOPK", *(f"({of}, INTEGER!) ARRAY<{of}>" for of in _TOP_TYPES), result=_array_type)
class TopK(Aggregator):
    """The k largest values in descending order, alone or with what is in other columns beside them; nulls do not
    count."""

    def __init__(self, call: Call) -> None:
        self._size = max(1, int(call.constants[0]))

    def initial(self) -> State:
        return []

    def _top(self, entries: list[Value]) -> State:
        return sorted(entries, reverse=True)[: self._size]

    def add(self, state: State, *values: Value) -> State:
        return state if values[0] is None else self._top([*state, values[0]])

    def merge(self, state: State, other: State) -> State:
        return self._top([*state, *other])

    def result(self, state: State) -> Value:
        return state


@aggregate("TOPK", *(f"({of}, ANY..., INTEGER!) ARRAY<{of}>" for of in _TOP_TYPES), result=_rows_type)
class TopRows(TopK):
    def add(self, state: State, *values: Value) -> State:
        if values[0] is None:
            return state
        columns = {f"col{place}": value for place, value in enumerate(values[1:])}
        return self._top([*state, {"sort_col": values[0], **columns}])

    def _top(self, entries: list[Value]) -> State:
        return sorted(entries, key=lambda entry: entry["sort_col"], reverse=True)[: self._size]


@aggregate("TOPKDISTINCT", *(f"({of}, INTEGER!) ARRAY<{of}>" for of in _TOP_TYPES), result=_array_type)
class TopKDistinct(TopK):
    """The k largest values in descending order, each once; nulls do not count."""

    def _top(self, entries: list[Value]) -> State:
        return sorted(set(entries), reverse=True)[: self._size]


EXACT = 2048
"""Up to so many distinct values COUNT_DISTINCT is exact; beyond, it is an estimate by HyperLogLog in as many
registers."""

_BITS = 11


def _hash(value: Value) -> int:
    return int.from_bytes(hashlib.blake2b(repr(hashable(value)).encode(), digest_size=8).digest(), "big")


@aggregate("COUNT_DISTINCT", "(T) BIGINT")
class CountDistinct(Aggregator):
    """The number of distinct values, an estimate where it is large; nulls do not count.

    The state is a list of the values' hashes, and when that is full the bytes of HyperLogLog's registers.
    """

    def initial(self) -> State:
        return []

    def add(self, state: State, *values: Value) -> State:
        return state if values[0] is None else self._with(state, [_hash(values[0])])

    def _with(self, state: State, hashes: Sequence[int]) -> State:
        if isinstance(state, list):
            known = dict.fromkeys([*state, *hashes])
            if len(known) <= EXACT:
                return state if len(known) == len(state) else list(known)
            state, hashes = bytes(1 << _BITS), list(known)
        registers = bytearray(state)
        for value in hashes:
            place, rest = value >> 64 - _BITS, value & (1 << 64 - _BITS) - 1
            registers[place] = max(registers[place], 64 - _BITS - rest.bit_length() + 1)
        return bytes(registers)

    def merge(self, state: State, other: State) -> State:
        if isinstance(other, list):
            return self._with(state, other)
        if isinstance(state, list):
            return self._with(other, state)
        return bytes(map(max, state, other))

    def result(self, state: State) -> int:
        return len(state) if isinstance(state, list) else _estimate(state)


def _estimate(registers: bytes) -> int:
    size = len(registers)
    raw = 0.7213 / (1 + 1.079 / size) * size * size / sum(2.0**-rank for rank in registers)
    empty = registers.count(0)
    return round(size * math.log(size / empty)) if raw <= 2.5 * size and empty else round(raw)
