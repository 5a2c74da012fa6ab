"""What an expression is evaluated against: named, typed columns, whose values are a row in the same order.

A row is any sequence with one value a column. The values of SQL's types are Python's:

    BOOLEAN bool            DECIMAL decimal.Decimal       DATE days since 1970, an int         ARRAY list
    INTEGER, BIGINT int     STRING str                    TIME milliseconds of the day         MAP dict
    DOUBLE float            BYTES bytes                   TIMESTAMP milliseconds since 1970    STRUCT dict, a key a field

and None is null in each. Values are shared between rows: whoever changes one makes a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pykafkad.pipelines.syntax.ast import Expression
from pykafkad.pipelines.types import SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Value: TypeAlias = Any
Row: TypeAlias = Sequence[Value]


class Column(NamedTuple):
    name: str
    type: SqlType
    source: str | None = None
    """The alias of the stream or table, where a query reads several."""
    stands_for: Expression | None = None
    """What messages show in its place, where a query has made it and its name is nobody's."""


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]

    def find(self, name: str, source: str | None = None) -> tuple[int, Column] | None:
        """The column and its place in the row. A name without a source finds the first column that is called so."""
        for place, column in enumerate(self.columns):
            if column.name == name and (source is None or column.source == source):
                return place, column
        return None

    def __str__(self) -> str:
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)
