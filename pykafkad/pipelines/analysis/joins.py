"""Joins: which side is which, what the result is keyed by, and what cannot be joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from pykafkad.pipelines.analysis.relations import Context, KeyPart, Relation, columns_in, resolved
from pykafkad.pipelines.analysis.sources import RESERVED
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.plan.stateless import AppendKey, Rekey
from pykafkad.pipelines.plan.stream_joins import JoinStreams
from pykafkad.pipelines.plan.table_joins import JoinForeignKey, JoinStreamTable, JoinTables
from pykafkad.pipelines.plan.topology import merge
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import ColumnReference, Expression, Kind
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import SqlType

WORDS = {"INNER": "[INNER]", "LEFT": "LEFT [OUTER]", "RIGHT": "RIGHT [OUTER]", "FULL": "FULL [OUTER]"}


def joined(join: ast.Join, read: Callable[[ast.Source], Relation], context: Context) -> Relation:
    """The relation that a join is; joins of many nest to the left."""
    left = joined(join.left, read, context) if isinstance(join.left, ast.Join) else read(join.left)
    taken = {source.name for source in left.sources.values()}
    if join.right.name in taken:
        name = join.right.name
        raise StatementError(
            f"N-way joins do not support multiple occurrences of the same source. Source: '{name}'"
            if isinstance(join.left, ast.Join)
            else f"Can not join '{name}' to '{name}': self joins are not yet supported.",
            join.right.at,
        )
    right = read(join.right)
    _refuse_unwrapped_formats(left, right)
    on_left, on_right = _sides(join, left, right)
    if left.kind is Kind.STREAM and right.kind is Kind.STREAM:
        return _streams(join, left, right, on_left, on_right, context)
    if left.kind is Kind.STREAM:
        return _stream_table(join, left, right, on_left, on_right, context)
    return _tables(join, left, right, on_left, on_right, context)


def _refuse_unwrapped_formats(left: Relation, right: Relation) -> None:
    bare = [
        source.name
        for relation in (left, right)
        for source in relation.sources.values()
        if source.value_format.name == "KAFKA"
    ]
    if bare:
        raise StatementError(
            f"Source(s) {', '.join(bare)} are using the 'KAFKA' value format. This format does not yet support JOIN."
        )


def _both(left: Relation, right: Relation) -> Schema:
    return Schema(left.schema.columns + right.schema.columns)


def _sides(join: ast.Join, left: Relation, right: Relation) -> tuple[Expression, Expression]:
    """What the join compares: of the left relation, and of the right one."""
    condition = join.condition
    if isinstance(condition, ast.Logical):
        raise StatementError(
            "Invalid join condition: joins on multiple conditions are not yet supported. Got "
            f"({text(condition)}).",
            condition.at,
        )
    if not isinstance(condition, ast.Comparison) or condition.operator != "=":
        raise StatementError(
            f"Invalid join condition: only equality comparisons are supported. Got {text(condition)}.",
            condition.at,
        )
    schema = _both(left, right)
    one, other = (resolved(side, schema, "JOIN ON") for side in (condition.left, condition.right))
    for given, side in ((condition.left, one), (condition.right, other)):
        if len({column.source for column in columns_in(side)}) != 1:
            raise StatementError(
                f"Invalid comparison expression '{text(given)}' in join '({text(condition)})'. Each side of the join "
                "comparision must contain references from exactly one source.",
                condition.at,
            )
    alias = join.right.called
    of_right = [next(columns_in(side)).source == alias for side in (one, other)]
    if of_right == [True, False]:
        return other, one
    if of_right != [False, True]:
        raise StatementError(
            f"Each side of the join must reference exactly one source and not the same source. Left side references "
            f"`{next(columns_in(one)).source}` and right references `{next(columns_in(other)).source}`",
            condition.at,
        )
    return one, other


def _check_types(
    left: Relation, right: Relation, on_left: Expression, on_right: Expression, context: Context
) -> SqlType:
    of_left: SqlType | None = context.compiled(on_left, left.schema).type
    of_right = context.compiled(on_right, right.schema).type
    if of_left is None or of_left != of_right:
        raise StatementError(
            f"Invalid join condition: types don't match. Got {text(on_left)}{{{of_left}}} = {text(on_right)}"
            f"{{{of_right}}}."
        )
    return of_left


def _keyed_by(relation: Relation, expression: Expression) -> bool:
    return len(relation.key) == 1 and relation.key[0].known_as(expression)


def _repartitioned(relation: Relation, on: Expression, context: Context) -> Relation:
    """A stream by what it is joined on."""
    if _keyed_by(relation, on):
        return relation
    if relation.window is not None:
        raise StatementError(
            "Implicit repartitioning of windowed sources is not supported. See "
            "https://github.com/confluentinc/ksql/issues/4385."
        )
    rekey = Rekey((context.compiled(on, relation.schema),), len(relation.schema.columns))
    return replace(relation, flow=relation.flow.then(rekey), partitions=None)


def _check_windows(left: Relation, right: Relation) -> None:
    def said(relation: Relation) -> str:
        name = next(iter(relation.sources))
        how = "not" if relation.window is None else relation.window.type
        return f"`{name}` is {how} windowed"

    if (left.window is None) != (right.window is None):
        raise StatementError(
            f"Can not join windowed source to non-windowed source.\n{said(left)}\n{said(right)}"
        )
    if left.window != right.window:
        raise StatementError(
            "Implicit repartitioning of windowed sources is not supported. See "
            "https://github.com/confluentinc/ksql/issues/4385."
        )


def _check_partitions(left: Relation, right: Relation) -> None:
    if None in (left.partitions, right.partitions) or left.partitions == right.partitions:
        return
    one, other = next(iter(left.sources)), next(iter(right.sources))
    raise StatementError(
        f"Can't join `{one}` with `{other}` since the number of partitions don't match. `{one}` partitions = "
        f"{left.partitions}; `{other}` partitions = {right.partitions}. Please repartition either one so that the number "
        "of partitions match."
    )


def _result(
    join: ast.Join,
    left: Relation,
    right: Relation,
    sides: tuple[Expression, Expression],
    of: SqlType,
    kind: Kind,
    context: Context,
) -> Relation:
    """The joined relation without its flow: its schema and what its key may be called by."""
    _check_partitions(left, right)
    old = left.key[0] if _keyed_by(left, sides[0]) else None
    names: tuple[Expression, ...] = (*(old.stands_for if old else (sides[0],)), sides[1])
    equal = names + (old.equal_to if old else ())
    viable = tuple(name for name in names if isinstance(name, ColumnReference) and name.source is not None)
    schema = _both(left, right)
    synthetic = None
    if join.kind == "FULL" or not viable:
        synthetic = Column(_free_name(schema, context), of)
        schema = Schema((*(c for c in schema.columns if c != left.synthetic), synthetic))
        viable = (ColumnReference(synthetic.name),)
    return Relation(
        left.flow,
        kind,
        schema,
        (KeyPart(_key_name(viable[0]), of, viable, equal),),
        {**left.sources, **right.sources},
        left.key_format,
        left.value_format,
        left.window,
        synthetic or left.synthetic,
        left.partitions,
    )


def _free_name(schema: Schema, context: Context) -> str:
    names = {column.name for column in schema.columns}
    return next(
        name for number in count() if (name := f"ROWKEY_{number}" if number else "ROWKEY") not in names
    )


def _key_name(of: Expression) -> str:
    assert isinstance(of, ColumnReference)
    return of.name if of.source is None else f"{of.source}_{of.name}"


def _streams(
    join: ast.Join,
    left: Relation,
    right: Relation,
    on_left: Expression,
    on_right: Expression,
    context: Context,
) -> Relation:
    within = join.within
    if within is None:
        raise StatementError(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided. To learn about how to specify a "
            "WITHIN clause with a stream-stream join, please visit: https://docs.confluent.io/current/ksql/docs/"
            "syntax-reference.html#create-stream-as-select",
            join.at,
        )
    of = _check_types(left, right, on_left, on_right, context)
    _check_windows(left, right)
    left = _repartitioned(left, on_left, context)
    right = _repartitioned(right, on_right, context)
    operator = JoinStreams(
        within.before.milliseconds,
        within.after.milliseconds,
        None if within.grace is None else within.grace.milliseconds,
        (join.kind in ("LEFT", "FULL"), join.kind in ("RIGHT", "FULL")),
        (len(left.schema.columns), len(right.schema.columns)),
    )
    return _finished(
        _result(join, left, right, (on_left, on_right), of, Kind.STREAM, context), left, right, operator
    )


def _finished(result: Relation, left: Relation, right: Relation, operator: object) -> Relation:
    flow = merge(left.flow.plan, [left.flow, right.flow], operator)  # type: ignore[arg-type]
    if result.synthetic is not None and result.synthetic != left.synthetic:
        places = tuple(
            place for place, column in enumerate(_both(left, right).columns) if column != left.synthetic
        )
        flow = flow.then(AppendKey(places))
    return replace(result, flow=flow)


def _stream_table(
    join: ast.Join,
    left: Relation,
    right: Relation,
    on_left: Expression,
    on_right: Expression,
    context: Context,
) -> Relation:
    if join.within is not None:
        raise StatementError(
            "A window definition was provided for a Stream-Table join. These joins are not windowed. Please drop the "
            "window definition (i.e. the WITHIN clause) and try to execute your join again.",
            join.within.at,
        )
    if join.kind not in ("INNER", "LEFT"):
        raise StatementError(
            f"Invalid join type: {'full-outer' if join.kind == 'FULL' else 'right-outer'} join not supported for "
            f"stream-table join. Got {_said(join)}.",
            join.at,
        )
    if not _keyed_by(right, on_right):
        raise StatementError(
            "Invalid join condition: stream-table joins require to join on the table's primary key. Got "
            f"{text(on_left)} = {text(on_right)}.",
            join.condition.at,
        )
    of = _check_types(left, right, on_left, on_right, context)
    _check_windows(left, right)
    left = _repartitioned(left, on_left, context)
    operator = JoinStreamTable(join.kind == "LEFT", len(right.schema.columns))
    return _finished(
        _result(join, left, right, (on_left, on_right), of, Kind.STREAM, context), left, right, operator
    )


def _said(join: ast.Join) -> str:
    left = join.left.called if isinstance(join.left, ast.Source) else text(join.left)
    return f"{left} {WORDS[join.kind]} JOIN {join.right.called}"


def _tables(
    join: ast.Join,
    left: Relation,
    right: Relation,
    on_left: Expression,
    on_right: Expression,
    context: Context,
) -> Relation:
    if right.kind is Kind.STREAM:
        raise StatementError(
            "Invalid join order: table-stream joins are not supported; only stream-table joins. Got "
            f"{_said(join)}.",
            join.at,
        )
    if join.within is not None:
        raise StatementError(
            "A window definition was provided for a Table-Table join. These joins are not windowed. Please drop the "
            "window definition (i.e. the WITHIN clause) and try to execute your Table-Table join again.",
            join.within.at,
        )
    if not _keyed_by(right, on_right):
        raise StatementError(
            "Invalid join condition: table-table joins require to join on the primary key of the right input table. Got "
            f"{text(join.condition)}.",
            join.condition.at,
        )
    of = _check_types(left, right, on_left, on_right, context)
    _check_windows(left, right)
    if not _keyed_by(left, on_left):
        return _by_foreign_key(join, left, right, on_left, context)
    widths = len(left.schema.columns), len(right.schema.columns)
    result = _result(join, left, right, (on_left, on_right), of, Kind.TABLE, context)
    return _finished(result, left, right, JoinTables(join.kind, widths))


def _by_foreign_key(
    join: ast.Join, left: Relation, right: Relation, on_left: Expression, context: Context
) -> Relation:
    if join.kind not in ("INNER", "LEFT"):
        raise StatementError(
            f"Invalid join type: {'full-outer' if join.kind == 'FULL' else 'right-outer'} join not supported for "
            f"foreign-key table-table join. Got {_said(join)}.",
            join.at,
        )
    if isinstance(join.left, ast.Join):
        raise StatementError(
            f"Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. Got "
            f"{text(join.condition)}.",
            join.condition.at,
        )
    operator = JoinForeignKey(
        context.compiled(on_left, left.schema), join.kind == "LEFT", len(right.schema.columns)
    )
    flow = merge(context.plan, [left.flow, right.flow], operator)
    key = tuple(replace(part, name=_key_name(part.stands_for[0])) for part in left.key)
    return replace(
        left, flow=flow, schema=_both(left, right), sources={**left.sources, **right.sources}, key=key
    )


def is_system(column: Column) -> bool:
    return column.name in RESERVED
