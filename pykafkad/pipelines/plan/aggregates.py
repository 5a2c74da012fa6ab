"""Aggregation of streams and tables by key.

An aggregated row is: the parts of its key, the aggregates' results, and where it is windowed the window's bounds. States
are plain data that no one changes (functions/).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pykafkad.pipelines.plan.rows import Columns, Row, State, Window, hashable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


class Aggregate(Protocol):
    def initial(self) -> Any: ...

    def add(self, state: Any, row: Columns) -> Any: ...

    def undo(self, state: Any, row: Columns) -> Any: ...

    def merge(self, state: Any, other: Any) -> Any: ...

    def result(self, state: Any) -> Any: ...


Total: TypeAlias = tuple[Columns, int]
"""What is known of a group: the aggregates' states, and its time. No class: there are many, and hosts pickle them."""


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The aggregates of a query, added and undone together."""

    functions: tuple[Aggregate, ...]

    def add(self, total: Total | None, row: Columns, time: int) -> Total:
        if total is None:
            states = self.initial()
        else:
            states, latest = total
            if latest > time:
                time = latest
        pairs = zip(self.functions, states)  # noqa: B905 strict costs as much as the rest
        return tuple([function.add(state, row) for function, state in pairs]), time

    def undo(self, total: Total, row: Columns, time: int) -> Total:
        pairs = zip(self.functions, total[0], strict=True)
        return tuple([function.undo(state, row) for function, state in pairs]), max(time, total[1])

    def merge(self, one: Total | None, other: Total) -> Total:
        if one is None:
            return other
        triples = zip(self.functions, one[0], other[0], strict=True)
        states = tuple([function.merge(mine, its) for function, mine, its in triples])
        return states, max(one[1], other[1])

    def initial(self) -> Columns:
        return tuple([function.initial() for function in self.functions])

    def row(self, key: Columns, total: Total | None, window: Window | None = None) -> Columns | None:
        if total is None:
            return None
        pairs = zip(self.functions, total[0])  # noqa: B905
        results = [function.result(state) for function, state in pairs]
        return (*key, *results, *(window or ()))


@dataclass(frozen=True, slots=True)
class AggregateStream:
    aggregates: Aggregates

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        if row.columns is None or row.key is None:
            return ()
        at = hashable(row.key)
        before = state.get(at)
        after = state[at] = self.aggregates.add(before, row.columns, row.time)
        return (changed(self.aggregates, row, before, after, after[1]),)


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
        return (changed(self.aggregates, row, before, after, after[1]),)


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
