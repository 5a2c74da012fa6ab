"""Conditions of HAVING that a group does not leave: what holds of it now holds of it after any further rows.

Who leaves is deleted from the table by a record without a value, and whether it was there before Spark's aggregation does
not say. A count of a stream only grows, as MAX does, and MIN only falls; what the group is called does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from pykafkad.pipelines.expressions.compiling import Compiled
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.spark_sql.sql import NotCompiled
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import ColumnReference, Expression, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Course(Enum):
    """Which way a value goes while rows are added to its group. What is null goes the way of the first that is not."""

    STAYS = 0
    RISES = 1
    FALLS = -1


COURSES = {"COUNT": Course.RISES, "MAX": Course.RISES, "MIN": Course.FALLS}

RISES_WITH = {
    ">": (Course.RISES, Course.FALLS),
    ">=": (Course.RISES, Course.FALLS),
    "<": (Course.FALLS, Course.RISES),
    "<=": (Course.FALLS, Course.RISES),
}
"""The ways of both sides in which a comparison that holds goes on to hold."""


def check_that_groups_stay(condition: Any, keys: int, functions: Sequence[Any]) -> None:
    """NotCompiled where a group may leave. A group's row has its keys, then what the functions give."""
    assert isinstance(condition, Compiled)
    if not _Having(condition, keys, functions).lasts(condition.expression):
        raise NotCompiled("HAVING that a group may leave: whether it was there Spark does not know")


class _Having:
    def __init__(self, condition: Compiled, keys: int, functions: Sequence[Any]) -> None:
        self.schema, self.keys, self.functions = condition.parts[0], keys, functions

    def lasts(self, node: Expression) -> bool:
        if isinstance(node, ast.Logical):
            return self.lasts(node.left) and self.lasts(node.right)
        if isinstance(node, ast.Comparison) and node.operator in RISES_WITH:
            wanted = zip((node.left, node.right), RISES_WITH[node.operator], strict=True)
            return all(self.course(side) in (Course.STAYS, way) for side, way in wanted)
        return self.course(node) is Course.STAYS

    def course(self, node: Expression) -> Course | None:
        """None if it may go either way."""
        totals = [found for part in walk(node) if (found := self.total(part)) is not None]
        if not totals:
            return Course.STAYS
        return COURSES.get(totals[0]) if isinstance(node, ColumnReference) else None

    def total(self, part: Any) -> str | None:
        """The function whose result a column is, if it is one's."""
        if not isinstance(part, ColumnReference):
            return None
        found = self.schema.find(part.name, part.source)
        place = found[0] - self.keys
        if not 0 <= place < len(self.functions):
            return None
        return FUNCTIONS.find(self.functions[place].call.name).name
