"""Joins with tables: a stream with a table, two tables by their keys, and two tables by a foreign key.

The left side is port 0. Each keeps what it needs of a table under its key, so it asks nobody else for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pykafkad.pipelines.plan.rows import Columns, Evaluate, Row, State, hashable, state_key

Kind = Literal["INNER", "LEFT", "RIGHT", "FULL"]
NO_TIME = -1


class Held(NamedTuple):
    """What a table holds under a key, and since when."""

    columns: Columns | None
    time: int


NOTHING = Held(None, NO_TIME)


def hold(row: Row, at: Hashable, state: State) -> None:
    if row.columns is None:
        state.pop(at, None)
    else:
        state[at] = Held(row.columns, row.time)


@dataclass(frozen=True, slots=True)
class JoinStreamTable:
    """A stream's row with what the table holds under its key at that moment; changes of the table emit nothing."""

    left_outer: bool
    right_width: int

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        if port == 1:
            hold(row, state_key(row), state)
            return ()
        if row.columns is None or row.key is None or None in row.key:
            return ()
        table = state.get(state_key(row), NOTHING).columns
        if table is None:
            if not self.left_outer:
                return ()
            table = (None,) * self.right_width
        return (row._replace(columns=row.columns + table),)


@dataclass(frozen=True, slots=True)
class JoinTables:
    """Two tables by their keys. A change of one joins what the other holds; which pairs count is the kind's affair."""

    kind: Kind
    widths: tuple[int, int]

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        key = state_key(row)
        hold(row, (port, key), state)
        other: Held = state.get((1 - port, key), NOTHING)
        if other.columns is None and (not self.alone(port) or (row.columns is None and row.old is None)):
            return ()
        return (
            row._replace(
                columns=self.pair(port, row.columns, other.columns),
                old=self.pair(port, row.old, other.columns),
                time=max(row.time, other.time),
            ),
        )

    def alone(self, port: int) -> bool:
        """Whether a row of this side counts without one of the other."""
        return self.kind == "FULL" or self.kind == ("LEFT", "RIGHT")[port]

    def pair(self, port: int, own: Columns | None, other: Columns | None) -> Columns | None:
        left, right = (own, other) if port == 0 else (other, own)
        if left is None and (right is None or not self.alone(1)):
            return None
        if right is None and not self.alone(0):
            return None
        return (left or (None,) * self.widths[0]) + (right or (None,) * self.widths[1])


@dataclass(frozen=True, slots=True)
class JoinForeignKey:
    """Left rows with the right row that their foreign key names; the result has the left table's key.

    The state holds the right table by its key, the left table by its key, and for each foreign key the left keys that
    have it, in their order.
    """

    foreign_key: Evaluate
    left_outer: bool
    right_width: int

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        return self.on_left(row, state) if port == 0 else self.on_right(row, state)

    def on_left(self, row: Row, state: State) -> Iterator[Row]:
        key = hashable(row.key)
        before, after = self.reference(row.old), self.reference(row.columns)
        hold(row, ("left", key), state)
        if before != after:
            self.unsubscribe(before, key, state)
        self.subscribe(after, row, state)
        right: Held = state.get(("right", after), NOTHING)
        new, old = self.pair(row.columns, right.columns), self.pair(row.old, self.held(before, state))
        if row.columns is None:
            says = row.old is not None and (self.left_outer or before is not None)
        else:
            says = new is not None or (before is not None and before != after)
        if says:
            yield row._replace(columns=new, old=old, time=max(row.time, right.time))

    def on_right(self, row: Row, state: State) -> Iterator[Row]:
        key = None if row.key is None else hashable(row.key[0])
        hold(row, ("right", key), state)
        for left_key in sorted(state.get(("of", key), ()), key=repr_order):
            subscriber: Row = state["of", key][left_key]
            left: Held = state.get(("left", left_key), NOTHING)
            yield Row(
                subscriber.key,
                self.pair(left.columns, row.columns),
                max(row.time, left.time),
                self.pair(left.columns, row.old),
                subscriber.window,
                row.headers,
            )

    def reference(self, columns: Columns | None) -> Hashable:
        return None if columns is None else hashable(self.foreign_key(columns))

    def held(self, reference: Hashable, state: State) -> Columns | None:
        right: Held = state.get(("right", reference), NOTHING)
        return right.columns

    def pair(self, left: Columns | None, right: Columns | None) -> Columns | None:
        if left is None or (right is None and not self.left_outer):
            return None
        return left + (right or (None,) * self.right_width)

    def subscribe(self, reference: Hashable, row: Row, state: State) -> None:
        if row.columns is not None and reference is not None:
            subscribers = state.get(("of", reference), {})
            subscribers[hashable(row.key)] = Row(row.key, None, row.time, window=row.window)
            state["of", reference] = subscribers

    def unsubscribe(self, reference: Hashable, key: Hashable, state: State) -> None:
        subscribers = state.get(("of", reference), {})
        if subscribers.pop(key, None) is not None:
            state["of", reference] = subscribers


def repr_order(key: Hashable) -> tuple[int, str]:
    """Keys of any type in an order: numbers by their size, texts by themselves."""
    text = repr(key)
    return len(text), text
