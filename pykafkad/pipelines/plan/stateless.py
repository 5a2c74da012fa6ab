"""Operators that remember nothing: filter, project, flat map, a new key, a windowed key made plain.

Each treats a table's row as a change: the old columns take the same way as the new ones, so that what a filter or a
projection made of them can be undone further on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from pykafkad.pipelines.plan.rows import Columns, Evaluate, Row, State, row_of


@dataclass(frozen=True, slots=True)
class FilterStream:
    """A row without a value passes no filter."""

    condition: Evaluate

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        return (row,) if row.columns is not None and self.condition(row.columns) is True else ()


@dataclass(frozen=True, slots=True)
class FilterTable:
    """A row that no longer passes is a deletion of what passed before; where nothing did, nothing is said."""

    condition: Evaluate

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        new, old = self.passing(row.columns), self.passing(row.old)
        return () if new is None and old is None else (row._replace(columns=new, old=old),)

    def passing(self, columns: Columns | None) -> Columns | None:
        return columns if columns is not None and self.condition(columns) is True else None


@dataclass(frozen=True, slots=True)
class Project:
    columns: tuple[Evaluate, ...]

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        new, old = self.projected(row.columns), self.projected(row.old)
        return (row_of((row.key, new, row.time, old, row.window, row.headers)),)

    def projected(self, columns: Columns | None) -> Columns | None:
        return None if columns is None else tuple([column(columns) for column in self.columns])


@dataclass(frozen=True, slots=True)
class FlatMap:
    """A row for each element of the longest of the lists that the table functions give; they stand behind its columns."""

    functions: tuple[Evaluate, ...]

    def on_row(self, port: int, row: Row, state: State) -> Iterator[Row]:
        if row.columns is None:
            return
        lists = [function(row.columns) or () for function in self.functions]
        for values in zip_longest(*lists):
            yield row._replace(columns=(*row.columns, *values))


@dataclass(frozen=True, slots=True)
class Rekey:
    """A stream by another key. Of a row without a value the columns of its old key are known: they are the first."""

    key: tuple[Evaluate, ...]
    width: int
    """How many columns a row has."""

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        columns = row.columns
        if columns is None:
            columns = (row.key or ()) + (None,) * (self.width - len(row.key or ()))
        return (row._replace(key=tuple([part(columns) for part in self.key]), window=None),)


@dataclass(frozen=True, slots=True)
class Group:
    """A stream's row by what it is grouped by; one that has null among that belongs to no group. Of its columns those go
    on that are aggregated, at their places: rows move here."""

    key: tuple[Evaluate, ...]
    kept: tuple[int | None, ...]
    """The place of each column that goes on; None for one that is not looked at."""

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        columns = row.columns
        key = grouped(self.key, columns)
        if key is None or columns is None:
            return ()
        kept = tuple([None if place is None else columns[place] for place in self.kept])
        return (row_of((key, kept, row.time, None, None, row.headers)),)


def grouped(key: tuple[Evaluate, ...], columns: Columns | None) -> Columns | None:
    if columns is None:
        return None
    parts = tuple([part(columns) for part in key])
    return None if None in parts else parts


@dataclass(frozen=True, slots=True)
class AppendKey:
    """Puts the only column of the key behind the columns at `places`: a key that a join made has no other column."""

    places: tuple[int, ...]

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        return (row._replace(columns=self.appended(row, row.columns), old=self.appended(row, row.old)),)

    def appended(self, row: Row, columns: Columns | None) -> Columns | None:
        if columns is None:
            return None
        return (*(columns[place] for place in self.places), *(row.key or (None,)))
