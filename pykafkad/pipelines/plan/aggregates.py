"""Aggregation of streams and tables by key.

An aggregated row is: the parts of its key, the aggregates' results, and where it is windowed the window's bounds. States
are plain data that no one changes (functions/).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pykafkad.pipelines.plan.rows import Columns, Row, State, Window, hashable


class Aggregate(Protocol):
    def initial(self) -> Any: ...

    def add(self, state: Any, row: Columns) -> Any: ...

    def undo(self, state: Any, row: Columns) -> Any: ...

    def merge(self, state: Any, other: Any) -> Any: ...

    def result(self, state: Any) -> Any: ...


class Total(NamedTuple):
    """What is known of a group."""

    states: Columns
    time: int


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The aggregates of a query, added and undone together."""

    functions: tuple[Aggregate, ...]

    def add(self, total: Total | None, row: Columns, time: int) -> Total:
        states = self.initial() if total is None else total.states
        pairs = zip(self.functions, states, strict=True)
        return Total(
            tuple([function.add(state, row) for function, state in pairs]),
            time if total is None else max(time, total.time),
        )

    def undo(self, total: Total, row: Columns, time: int) -> Total:
        pairs = zip(self.functions, total.states, strict=True)
        states = tuple([function.undo(state, row) for function, state in pairs])
        return Total(states, max(time, total.time))

    def merge(self, one: Total | None, other: Total) -> Total:
        if one is None:
            return other
        triples = zip(self.functions, one.states, other.states, strict=True)
        states = tuple([function.merge(mine, its) for function, mine, its in triples])
        return Total(states, max(one.time, other.time))

    def initial(self) -> Columns:
        return tuple([function.initial() for function in self.functions])

    def row(self, key: Columns, total: Total | None, window: Window | None = None) -> Columns | None:
        if total is None:
            return None
        pairs = zip(self.functions, total.states, strict=True)
        results = tuple([function.result(state) for function, state in pairs])
        return key + results + (window or ())


@dataclass(frozen=True, slots=True)
class AggregateStream:
    aggregates: Aggregates

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        if row.columns is None or row.key is None:
            return ()
        at = hashable(row.key)
        before = state.get(at)
        after = state[at] = self.aggregates.add(before, row.columns, row.time)
        return (changed(self.aggregates, row, before, after, after.time),)


@dataclass(frozen=True, slots=True)
class AggregateTable:
    """Of a table's change, what was is undone before what is is added."""

    aggregates: Aggregates

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        if row.key is None:
            return ()
        at = hashable(row.key)
        before: Total | None = state.get(at)
        after = before
        if row.old is not None and after is not None:
            after = self.aggregates.undo(after, row.old, row.time)
        if row.columns is not None:
            after = self.aggregates.add(after, row.columns, row.time)
        if after is None:
            return ()
        state[at] = after
        return (changed(self.aggregates, row, before, after, after.time),)


def changed(
    aggregates: Aggregates,
    row: Row,
    before: Total | None,
    after: Total | None,
    time: int,
    window: Window | None = None,
) -> Row:
    """The row that says what a group's total was and is."""
    key = row.key or ()
    new, old = aggregates.row(key, after, window), aggregates.row(key, before, window)
    return Row(key, new, time, old, window, row.headers)
