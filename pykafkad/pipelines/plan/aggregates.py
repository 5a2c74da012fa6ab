"""Aggregation of streams and tables by key.

An aggregated row is: the parts of its key, the aggregates' results, and where it is windowed the window's bounds. States
are plain data that no one changes (functions/).

What a row does to groups are changes of their totals. A host that tells of each makes a row of it, as on_row does; one
that tells of the last of a key gathers changes, and makes rows of what is left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pykafkad.pipelines.plan.rows import Columns, Headers, Row, State, Window, hashable, made_of, row_of

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
        if len(states) == 1:  # as most are
            return (self.functions[0].add(states[0], row),), time
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


class Change(NamedTuple):
    """What the total of a group was and is."""

    at: Hashable
    """The key, as states have it."""
    key: Columns
    window: Window | None
    time: int
    headers: Headers
    before: Total | None
    after: Total | None


change_of = made_of(Change)


def told(aggregates: Aggregates, change: Change, before: Total | None) -> Row:
    """The row that says it, and what is to be undone."""
    _, key, window, time, headers, _, after = change
    new, old = aggregates.row(key, after, window), aggregates.row(key, before, window)
    return row_of((key, new, time, old, window, headers))


class Totalling:
    """An operator that groups."""

    __slots__ = ()
    aggregates: Aggregates

    @property
    def tells_changes(self) -> bool:
        """Whether it tells of a total each time that it changes, and not once."""
        return True

    def changes(self, row: Row, state: State) -> Iterable[Change]:
        """What a row does to totals."""
        raise NotImplementedError

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        return [told(self.aggregates, change, change.before) for change in self.changes(row, state)]


@dataclass(frozen=True, slots=True)
class AggregateStream(Totalling):
    aggregates: Aggregates

    def changes(self, row: Row, state: State) -> Iterable[Change]:
        if row.columns is None or row.key is None:
            return ()
        at = hashable(row.key)
        before = state.get(at)
        after = state[at] = self.aggregates.add(before, row.columns, row.time)
        return (change_of((at, row.key, None, after[1], row.headers, before, after)),)


@dataclass(frozen=True, slots=True)
class AggregateTable(Totalling):
    """Of a table's change, what was is undone before what is is added."""

    aggregates: Aggregates

    def changes(self, row: Row, state: State) -> Iterable[Change]:
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
        return (change_of((at, row.key, None, after[1], row.headers, before, after)),)
