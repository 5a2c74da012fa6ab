"""Operators of tables: a topic read as a changelog, and the grouping of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pykafkad.pipelines.plan.rows import Evaluate, Row, State, hashable, state_key
from pykafkad.pipelines.plan.stateless import grouped


@dataclass(frozen=True, slots=True)
class Changes:
    """Makes changes of a topic's records: it remembers what each key held. A record without a key says nothing."""

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        if row.key is None:
            return ()
        key = state_key(row)
        old = state.pop(key, None)
        if row.columns is not None:
            state[key] = row.columns
        return (Row(row.key, row.columns, row.time, old, row.window, row.headers),)


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A table's change as changes of its groups: taken out of the old one first, then put into the new one."""

    key: tuple[Evaluate, ...]

    def on_row(self, port: int, row: Row, state: State) -> Iterator[Row]:
        old, new = grouped(self.key, row.old), grouped(self.key, row.columns)
        if old is not None and new is not None and hashable(old) == hashable(new):
            yield row._replace(key=new)
            return
        if old is not None:
            yield row._replace(key=old, columns=None)
        if new is not None:
            yield row._replace(key=new, old=None)
