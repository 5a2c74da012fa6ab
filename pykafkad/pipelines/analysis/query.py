"""A SELECT: what it means as a plan, and what its result is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pykafkad.pipelines.analysis import grouping, projection
from pykafkad.pipelines.analysis.joins import joined
from pykafkad.pipelines.analysis.projection import Item, Missing, Names, Split
from pykafkad.pipelines.analysis.relations import (
    Context,
    KeyPart,
    Relation,
    calls_in,
    read,
    resolved,
    substituted,
)
from pykafkad.pipelines.analysis.sources import DataSource, FormatInfo, Windowing
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.functions.registry import AGGREGATE, FUNCTIONS, TABLE
from pykafkad.pipelines.functions.table_functions import compile_table_function
from pykafkad.pipelines.plan.stateless import FilterStream, FilterTable, FlatMap, Project, Rekey
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import ColumnReference, Expression, FunctionCall, Kind, NullLiteral
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import BOOLEAN, SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means: its plan without a sink, whose rows have the result's key and value."""

    plan: Plan
    kind: Kind
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    window: Windowing | None
    sources: tuple[str, ...]


def analysed(
    query: ast.Query,
    find: Callable[[ast.Source], DataSource],
    configs: Mapping[str, Any],
    sink: str | None = None,
) -> Meaning:
    """The meaning of a query. Without a sink it is one whose rows a person sees: it need not show its key."""
    context = Context(Plan(), configs)
    relation = _sources(query, find, context, sink is not None)
    _check_clauses(query, sink is not None)
    relation = _filtered(query.where, relation, "WHERE", context)
    names = Names(context)
    rekeyed = _partitioning(query, relation)
    items = projection.items(query, grouping.with_bounds(query, relation), names, rekeyed)
    if sink is not None:
        projection.check_names(query, items)
    relation, items = _flat(relation, items, query, context)
    missing = Missing(sink or "", "key column")
    if query.group_by:
        relation, items, missing = _grouped(query, relation, items, context, missing)
    else:
        _check_no_aggregates(query, items)
        if len(relation.sources) > 1:
            missing = _join_key(query, relation, missing)
        if rekeyed or _by_null(query):
            relation, missing = _rekeyed(query, rekeyed, relation, context, missing)
    return _projected(relation, items, context, missing, sink is not None)


def _sources(
    query: ast.Query, find: Callable[[ast.Source], DataSource], context: Context, persistent: bool
) -> Relation:
    def one(source: ast.Source) -> Relation:
        known = find(source)
        if known.kind is Kind.TABLE and known.window is not None and persistent:
            raise StatementError("KSQL does not support persistent queries on windowed tables.", source.at)
        return read(known, source.called, context)

    return one(query.source) if isinstance(query.source, ast.Source) else joined(query.source, one, context)


def _check_clauses(query: ast.Query, persistent: bool) -> None:
    if query.window is not None and not query.group_by:
        raise StatementError("WINDOW clause requires a GROUP BY clause.", query.window.at)
    if query.having is not None and not query.group_by:
        raise StatementError("HAVING clause requires a GROUP BY clause.", query.having.at)
    if query.group_by and query.partition_by:
        raise StatementError(
            "Queries containing both 'PARTITION BY' and 'GROUP BY' clauses are not supported.", query.at
        )
    if query.emit is ast.Emit.FINAL and not query.group_by:
        raise StatementError("EMIT FINAL is only supported for windowed aggregations.", query.at)
    if persistent and query.limit is not None:
        raise StatementError("LIMIT is not supported in a query that has a sink.", query.at)


def _filtered(condition: Expression | None, relation: Relation, clause: str, context: Context) -> Relation:
    if condition is None:
        return relation
    whole = resolved(condition, relation.schema, clause) if clause == "WHERE" else condition
    if clause == "WHERE":
        for call in (*calls_in(whole, AGGREGATE), *calls_in(whole, TABLE)):
            raise StatementError(
                f"{clause} does not support {'aggregate' if FUNCTIONS.kind_of(call.name) == AGGREGATE else 'table'} "
                f"functions: {call.name}",
                call.at,
            )
    compiled = context.compiled(whole, relation.schema)
    if compiled.type != BOOLEAN:
        raise StatementError(
            f"Type error in {clause} expression: Should evaluate to boolean but is {text(condition)} "
            f"({compiled.type}) instead.",
            condition.at,
        )
    operator = FilterTable(compiled) if relation.kind is Kind.TABLE else FilterStream(compiled)
    return replace(relation, flow=relation.flow.then(operator))


# --- what it is keyed by


def _by_null(query: ast.Query) -> bool:
    return len(query.partition_by) == 1 and isinstance(query.partition_by[0], NullLiteral)


def _partitioning(query: ast.Query, relation: Relation) -> tuple[Expression, ...]:
    """What a stream is partitioned by, where that is not its key already."""
    if not query.partition_by or _by_null(query):
        return ()
    if any(isinstance(part, NullLiteral) for part in query.partition_by):
        raise StatementError("Cannot PARTITION BY multiple columns including NULL", query.partition_by[0].at)
    found = tuple(resolved(part, relation.schema, "PARTITION BY") for part in query.partition_by)
    for part in found:
        for call in (*calls_in(part, AGGREGATE), *calls_in(part, TABLE)):
            raise StatementError(f"PARTITION BY does not support the function {call.name}.", call.at)
    if len(set(found)) < len(found):
        raise StatementError("Duplicate PARTITION BY expression.", query.partition_by[0].at)
    return found


def _rekeyed(
    query: ast.Query, by: tuple[Expression, ...], relation: Relation, context: Context, missing: Missing
) -> tuple[Relation, Missing]:
    if relation.kind is Kind.TABLE:
        raise StatementError(
            "PARTITION BY clause is only supported for STREAM results.", query.partition_by[0].at
        )
    missing = replace(missing, what="partitioning expression", original=by, foreign=None)
    if len(by) == len(relation.key) and all(
        part.known_as(expression) for part, expression in zip(relation.key, by, strict=True)
    ):
        return relation, missing
    if relation.window is not None:
        raise StatementError(
            "Implicit repartitioning of windowed sources is not supported. See "
            "https://github.com/confluentinc/ksql/issues/4385."
        )
    compiled = tuple(context.compiled(part, relation.schema) for part in by)
    key = tuple(
        KeyPart(f"KEY {i}", one.type, (part,))
        for i, (part, one) in enumerate(zip(by, compiled, strict=True))
        if one.type is not None
    )
    flow = relation.flow.then(Rekey(compiled, len(relation.schema.columns)))
    return replace(relation, flow=flow, key=key), missing


def _join_key(query: ast.Query, relation: Relation, missing: Missing) -> Missing:
    join = query.source
    assert isinstance(join, ast.Join)
    left = join.left.called if isinstance(join.left, ast.Source) else ""
    source = relation.sources.get(left)
    keyed_by_left = source is not None and all(
        part.stands_for == (ColumnReference(column.name, left),)
        for part, column in zip(relation.key, source.key, strict=False)
    )
    return replace(missing, what="join expression", foreign=left if keyed_by_left else None)


# --- what it shows


def _flat(
    relation: Relation, items: list[Item], query: ast.Query, context: Context
) -> tuple[Relation, list[Item]]:
    """The relation with the rows that table functions make of its, and the items said by their columns."""
    calls: list[FunctionCall] = []

    def instead(part: Expression) -> Expression | None:
        if isinstance(part, FunctionCall) and FUNCTIONS.kind_of(part.name) == TABLE:
            calls.append(part)
            return ColumnReference(f"ROWS {len(calls) - 1}", "ROWS ", at=part.at)
        return None

    said = [item._replace(expression=substituted(item.expression, instead)) for item in items]
    if not calls:
        return relation, items
    if relation.kind is Kind.TABLE:
        raise StatementError("Table source is not supported with table functions", calls[0].at)
    if query.group_by:
        raise StatementError("Table functions cannot be used with aggregations.", calls[0].at)
    for call in calls:
        if next(calls_in(call, AGGREGATE), None) or any(other is not call for other in calls_in(call, TABLE)):
            raise StatementError(
                f"Table function {call.name} takes no aggregate and no table function.", call.at
            )
    compiled = tuple(
        compile_table_function(call, relation.schema, FUNCTIONS, context.configs) for call in calls
    )
    columns = tuple(Column(f"ROWS {i}", one.type, "ROWS ") for i, one in enumerate(compiled) if one.type)
    schema = Schema(relation.schema.columns + columns)
    return replace(relation, flow=relation.flow.then(FlatMap(compiled)), schema=schema), said


def _check_no_aggregates(query: ast.Query, items: list[Item]) -> None:
    for item in items:
        for call in calls_in(item.expression, AGGREGATE):
            shown = (
                "ROWTIME"
                if call.name == "COUNT" and not call.arguments
                else ", ".join(map(text, call.arguments))
            )
            raise StatementError(
                f"A SELECT does not support aggregate function [{call.name}({shown})] without a GROUP BY clause.",
                call.at,
            )


def _grouped(
    query: ast.Query, relation: Relation, items: list[Item], context: Context, missing: Missing
) -> tuple[Relation, list[Item], Missing]:
    group = grouping.begin(query, relation)
    said = [item._replace(expression=group.rewritten(item.expression)) for item in items]
    grouping.check_parts(
        [(item.expression, new.expression) for item, new in zip(items, said, strict=True)], "SELECT"
    )
    having = None
    if query.having is not None:
        given = resolved(query.having, grouping.with_bounds(query, relation).schema, "HAVING")
        having = group.rewritten(given)
        grouping.check_parts([(given, having)], "HAVING")
    grouped = grouping.grouped(query, relation, group, context)
    grouped = _filtered(having, grouped, "HAVING", context)
    return grouped, said, replace(missing, what="grouping expression", original=group.keys)


def _projected(
    relation: Relation, items: list[Item], context: Context, missing: Missing, persistent: bool
) -> Meaning:
    columns = {id(item): context.compiled(item.expression, relation.schema) for item in items}
    if persistent:
        result = projection.split(items, relation.key, missing)
    else:
        result = Split(tuple(Column(part.name, part.type) for part in relation.key), tuple(items))
    compiled = [columns[id(item)] for item in result.value]
    value = tuple(_column(item, one.type) for item, one in zip(result.value, compiled, strict=True))
    relation.flow.then(Project(tuple(compiled)))
    return Meaning(
        context.plan,
        relation.kind,
        result.key,
        value,
        relation.key_format,
        relation.value_format,
        relation.window,
        tuple(source.name for source in relation.sources.values()),
    )


def _column(item: Item, of: SqlType | None) -> Column:
    if of is None:
        raise StatementError(
            "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR): "
            f"`{item.name}`",
            item.expression.at,
        )
    return Column(item.name, of)
