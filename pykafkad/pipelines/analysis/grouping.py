"""GROUP BY: what a group's row is made of, and the expressions of SELECT and HAVING said by that row's columns.

A group's row has internal columns: KEY 0, KEY 1, ... for what it is grouped by, TOTAL 0, ... for the aggregates, and
where it is windowed the window's bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pykafkad.pipelines.analysis.relations import (
    Context,
    KeyPart,
    Relation,
    calls_in,
    columns_in,
    resolved,
    substituted,
)
from pykafkad.pipelines.analysis.sources import WINDOW_BOUNDS, Windowing
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.functions.aggregating import Aggregate, compile_aggregate
from pykafkad.pipelines.functions.registry import AGGREGATE, FUNCTIONS, TABLE
from pykafkad.pipelines.plan.aggregates import Aggregates, AggregateStream, AggregateTable
from pykafkad.pipelines.plan.rows import Operator
from pykafkad.pipelines.plan.stateless import Group
from pykafkad.pipelines.plan.tables import GroupTable
from pykafkad.pipelines.plan.windows import DEFAULT_GRACE, AggregateSessions, AggregateWindows
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import ColumnReference, Expression, FunctionCall, Kind, walk
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import SqlType

GROUPED = "GROUPED "
"""The source of a group's columns: no alias has a space at its end."""


@dataclass(slots=True)
class Grouping:
    """GROUP BY while the expressions that use it are gathered."""

    keys: tuple[Expression, ...]
    windowed: bool
    calls: list[FunctionCall] = field(default_factory=list)

    def rewritten(self, expression: Expression) -> Expression:
        """A resolved expression, said by the columns of a group's row."""
        return substituted(expression, self._instead)

    def _instead(self, part: Expression) -> Expression | None:
        if part in self.keys:
            return ColumnReference(f"KEY {self.keys.index(part)}", GROUPED, at=part.at)
        if isinstance(part, FunctionCall) and FUNCTIONS.kind_of(part.name) == AGGREGATE:
            if part not in self.calls:
                self.calls.append(part)
            return ColumnReference(f"TOTAL {self.calls.index(part)}", GROUPED, at=part.at)
        if self.windowed and isinstance(part, ColumnReference) and part.name in WINDOW_BOUNDS:
            return ColumnReference(part.name, GROUPED, at=part.at)
        return None


def with_bounds(query: ast.Query, relation: Relation) -> Relation:
    """The relation as SELECT and HAVING see it: with the bounds of the windows that it is about to be grouped by."""
    if query.window is None or relation.window is not None:
        return relation
    alias = next(iter(relation.sources))
    bounds = tuple(Column(name, of, alias) for name, of in WINDOW_BOUNDS.items())
    return replace(relation, schema=Schema(relation.schema.columns + bounds))


def begin(query: ast.Query, relation: Relation) -> Grouping:
    bare = [name.name for name in relation.sources.values() if name.value_format.name == "KAFKA"]
    if bare:
        raise StatementError(
            f"Source(s) {', '.join(bare)} are using the 'KAFKA' value format. This format does not yet support GROUP BY."
        )
    keys: list[Expression] = []
    for given in query.group_by:
        _check_key(query, given)
        key = resolved(given, relation.schema, "GROUP BY")
        if key in keys:
            raise StatementError(f"Duplicate GROUP BY expression: {text(key)}", given.at)
        keys.append(key)
    return Grouping(tuple(keys), query.window is not None)


def _check_key(query: ast.Query, given: Expression) -> None:
    for kind, words in ((AGGREGATE, "an aggregate"), (TABLE, "a table")):
        for call in calls_in(given, kind):
            raise StatementError(
                f"GROUP BY does not support {words.split()[1]} functions: {call.name} is {words} function.",
                call.at,
            )
    if query.window is not None:
        for column in columns_in(given):
            if column.name in WINDOW_BOUNDS:
                raise StatementError(
                    f"Window bounds column {column.name} can only be used in the SELECT clause of windowed aggregations "
                    "and can not be passed to aggregate functions.",
                    column.at,
                )


def check_parts(expressions: list[tuple[Expression, Expression]], clause: str) -> None:
    """Refuses what a group's row cannot say: of each the given expression and the rewritten one."""
    strangers = [
        text(_without_sources(given))
        for given, rewritten in expressions
        if any(column.source != GROUPED for column in columns_in(rewritten))
    ]
    if strangers:
        what = "SELECT expression(s)" if clause == "SELECT" else f"{clause} expression"
        raise StatementError(
            f"Non-aggregate {what} not part of GROUP BY: {', '.join(strangers)}\nEither add the column(s) to the GROUP "
            f"BY or remove them from the {clause}.",
            expressions[0][0].at,
        )


def _without_sources(expression: Expression) -> Expression:
    def bare(part: Expression) -> Expression | None:
        return replace(part, source=None) if isinstance(part, ColumnReference) else None

    return substituted(expression, bare)


def grouped(query: ast.Query, relation: Relation, grouping: Grouping, context: Context) -> Relation:
    """The relation of groups."""
    key = tuple(context.compiled(part, relation.schema) for part in grouping.keys)
    for part, compiled in zip(grouping.keys, key, strict=True):
        if compiled.type is None:
            raise StatementError(f"GROUP BY {text(part)}: NULL has no type", part.at)
    table = relation.kind is Kind.TABLE
    kept = _looked_at(grouping.calls, relation.schema)
    flow = relation.flow.then(GroupTable(key) if table else Group(key, kept))
    functions = tuple(
        compile_aggregate(call, relation.schema, FUNCTIONS, context.configs) for call in grouping.calls
    )
    if table:
        _check_undo(grouping.calls, functions)
    _check_states(relation, functions)
    columns = [
        *(
            Column(f"KEY {i}", part.type, GROUPED, grouping.keys[i])
            for i, part in enumerate(key)
            if part.type
        ),
        *(Column(f"TOTAL {i}", _type(of), GROUPED, grouping.calls[i]) for i, of in enumerate(functions)),
        *(Column(name, of, GROUPED) for name, of in WINDOW_BOUNDS.items() if grouping.windowed),
    ]
    parts = tuple(
        KeyPart(f"KEY {i}", part.type, (ColumnReference(f"KEY {i}", GROUPED),))
        for i, part in enumerate(key)
        if part.type
    )
    operator, windowing = _aggregation(query, table, Aggregates(functions))
    return replace(
        relation,
        flow=flow.then(operator),
        kind=Kind.TABLE,
        schema=Schema(tuple(columns)),
        key=parts,
        window=windowing,
        synthetic=None,
    )


def _looked_at(calls: list[FunctionCall], schema: Schema) -> tuple[int | None, ...]:
    """The places of the columns that are aggregated, as far as the last of them; with lambdas, whose parameters stand
    behind a row's columns, as far as the row goes."""
    parts = [part for call in calls for part in walk(call)]
    found = [schema.find(part.name, part.source) for part in parts if isinstance(part, ColumnReference)]
    places = {one[0] for one in found if one is not None}
    whole = any(isinstance(part, ast.Lambda) for part in parts)
    width = len(schema.columns) if whole else max(places, default=-1) + 1
    return tuple(place if place in places else None for place in range(width))


def _type(function: Aggregate) -> SqlType:
    if function.type is None:
        raise StatementError(
            f"{function.call.name} of NULL has no type: cast its argument.", function.call.at
        )
    return function.type


def _check_states(relation: Relation, functions: tuple[Aggregate, ...]) -> None:
    """ksqlDB keeps its states in the source's format; what it refuses for that is refused."""
    if relation.value_format.name == "DELIMITED" and any(function.structured for function in functions):
        raise StatementError(
            "One of the functions used in the statement has an intermediate type that the value format can not handle. "
            "Please remove the function or change the format."
        )


def _check_undo(calls: list[FunctionCall], functions: tuple[Aggregate, ...]) -> None:
    cannot = [call.name for call, function in zip(calls, functions, strict=True) if not function.undoes]
    if cannot:
        raise StatementError(
            f"The aggregation function(s) ({', '.join(cannot)}) cannot be applied to a table source, only to a stream "
            "source.",
            calls[0].at,
        )


def _aggregation(query: ast.Query, table: bool, aggregates: Aggregates) -> tuple[Operator, Windowing | None]:
    window, final = query.window, query.emit is ast.Emit.FINAL
    if window is None:
        if final:
            raise StatementError("EMIT FINAL is only supported for windowed aggregations.", query.at)
        return (AggregateTable(aggregates) if table else AggregateStream(aggregates)), None
    if table:
        raise StatementError("WINDOW clause is only supported for stream sources.", window.at)
    grace = DEFAULT_GRACE if window.grace is None else window.grace.milliseconds
    if isinstance(window, ast.Session):
        gap = window.gap.milliseconds
        return AggregateSessions(aggregates, gap, grace, final), Windowing("SESSION", None)
    size = window.size.milliseconds
    advance = window.advance.milliseconds if isinstance(window, ast.Hopping) else size
    if not 0 < advance <= size:
        raise StatementError(
            "A window advances by more than nothing and by no more than its size.", window.at
        )
    retention = window.retention.milliseconds if window.retention else 0
    operator = AggregateWindows(aggregates, size, advance, grace, retention, final)
    return operator, Windowing("HOPPING" if isinstance(window, ast.Hopping) else "TUMBLING", size)
