"""A relation: what a query has at a point of its way from its sources to its result.

Expressions of a query are resolved first: each column says its source then, so that two that mean the same are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from pykafkad.pipelines.analysis.sources import (
    RESERVED,
    SYSTEM_COLUMNS,
    WINDOW_BOUNDS,
    DataSource,
    FormatInfo,
    Windowing,
)
from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.compiling import Compiled, compile_expression
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.plan.ends import ReadTopic
from pykafkad.pipelines.plan.tables import Changes
from pykafkad.pipelines.plan.topology import Flow, Plan, start
from pykafkad.pipelines.syntax.ast import (
    ColumnReference,
    Expression,
    FunctionCall,
    Kind,
    Node,
    Role,
    StringLiteral,
    When,
    walk,
)
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import STRING, SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the key: its name if the query gives none, and the expressions that all stand for it."""

    name: str
    type: SqlType
    stands_for: tuple[Expression, ...]
    equal_to: tuple[Expression, ...] = ()
    """What is equal to it besides, but does not name it: in a further join it needs no new key."""

    def known_as(self, expression: Expression) -> bool:
        return expression in self.stands_for or expression in self.equal_to


@dataclass(frozen=True, slots=True)
class Relation:
    flow: Flow
    kind: Kind
    schema: Schema
    key: tuple[KeyPart, ...]
    sources: Mapping[str, DataSource]
    """By the names that the query knows them by."""
    key_format: FormatInfo
    value_format: FormatInfo
    window: Windowing | None = None
    synthetic: Column | None = None
    """The key column that a join made."""
    partitions: int | None = None
    """Of the topic, where a statement says it; what is repartitioned fits any."""


@dataclass(slots=True)
class Context:
    """What analysing a query needs besides the query."""

    plan: Plan
    configs: Mapping[str, Any]
    names: set[str] = field(default_factory=set)
    """All columns' names of all sources: generated names keep clear of them."""

    def compiled(self, expression: Expression, schema: Schema) -> Compiled:
        return compile_expression(expression, schema, FUNCTIONS, self.configs)

    def generated(self, stem: str) -> Iterator[str]:
        """KSQL_COL_0, KSQL_COL_1, ..., without those that a source has."""
        number = 0
        while True:
            name = f"{stem}_{number}"
            if name not in self.names:
                yield name
            number += 1


def read(source: DataSource, alias: str, context: Context) -> Relation:
    """A source as a relation: its columns, then the system's."""
    columns = [Column(c.name, c.type, alias) for c in source.columns]
    context.names.update(column.name for column in source.columns)
    system = {**SYSTEM_COLUMNS, **(WINDOW_BOUNDS if source.window else {})}
    schema = Schema((*columns, *(Column(name, of, alias) for name, of in system.items())))
    flow = start(context.plan, read_topic(source, Schema(tuple(columns)), context))
    if source.kind is Kind.TABLE:
        flow = flow.then(Changes())
    key = tuple(KeyPart(c.name, c.type, (ColumnReference(c.name, alias),)) for c in source.key)
    return Relation(
        flow,
        source.kind,
        schema,
        key,
        {alias: source},
        source.key_format,
        source.value_format,
        source.window,
        partitions=source.partitions,
    )


def read_topic(source: DataSource, declared: Schema, context: Context) -> ReadTopic:
    places: list[int | str] = []
    for column in source.columns[len(source.key) :]:
        if column.role is Role.VALUE:
            places.append(sum(isinstance(place, int) for place in places))
        else:
            places.append(column.header or "")
    return ReadTopic(
        source.topic,
        source.make_key(),
        source.make_value(),
        tuple(places),
        source.window.on_keys if source.window else None,
        timestamp_of(source, declared, context),
    )


def timestamp_of(source: DataSource, declared: Schema, context: Context) -> Compiled | None:
    """How a row's time is told by its columns, where it is not its record's."""
    if source.timestamp is None:
        return None
    expression: Expression = ColumnReference(source.timestamp.name)
    found = declared.find(source.timestamp.name)
    if found is not None and found[1].type == STRING and source.timestamp.format is not None:
        expression = FunctionCall("STRINGTOTIMESTAMP", (expression, StringLiteral(source.timestamp.format)))
    return context.compiled(expression, declared)


# --- names


def resolved(expression: Expression, schema: Schema, clause: str) -> Expression:
    """The expression with a source for each column. `clause` is how messages call where it stands."""

    def resolve(part: Expression) -> Expression | None:
        if isinstance(part, FunctionCall) and FUNCTIONS.kind_of(part.name) is None:
            FUNCTIONS.find(part.name)
        return resolved_column(part, schema, clause) if isinstance(part, ColumnReference) else None

    return substituted(expression, resolve)


def resolved_column(column: ColumnReference, schema: Schema, clause: str) -> ColumnReference:
    if column.source is not None:
        aliases = {known.source for known in schema.columns if known.source is not None}
        if column.source not in aliases:
            raise StatementError(
                f"'{column.source}' is not a valid stream/table name or alias."
                f"{did_you_mean(column.source, aliases)}",
                column.at,
            )
    found = [
        known
        for known in schema.columns
        if known.name == column.name and column.source in (None, known.source)
    ]
    if not found:
        names = {known.name for known in schema.columns if known.name not in RESERVED}
        raise StatementError(
            f"{clause} column '{text(column)}' cannot be resolved.{did_you_mean(column.name, names)}",
            column.at,
        )
    if len(found) > 1:
        could = " or ".join(sorted(text(ColumnReference(known.name, known.source)) for known in found))
        raise StatementError(f"Column '{column.name}' is ambiguous. Could be {could}.", column.at)
    return replace(column, source=found[0].source)


def substituted(expression: Expression, substitute: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with parts replaced, the outermost first; `substitute` says None where it is to look further in."""
    instead = substitute(expression)
    if instead is not None:
        return instead
    changes = {}
    for attribute in fields(expression):
        old = getattr(expression, attribute.name)
        new = _substituted(old, substitute)
        if new is not old:
            changes[attribute.name] = new
    return replace(expression, **changes) if changes else expression


def _substituted(value: Any, substitute: Callable[[Expression], Expression | None]) -> Any:
    if isinstance(value, Expression):
        return substituted(value, substitute)
    if isinstance(value, When):
        return replace(
            value, test=substituted(value.test, substitute), result=substituted(value.result, substitute)
        )
    if type(value) is tuple:
        new = tuple(_substituted(item, substitute) for item in value)
        return new if any(one is not other for one, other in zip(new, value, strict=True)) else value
    return value


def columns_in(expression: Expression) -> Iterator[ColumnReference]:
    for node in walk(expression):
        if isinstance(node, ColumnReference):
            yield node


def calls_in(node: Node, kind: str) -> Iterator[FunctionCall]:
    """The calls of functions of one kind (functions/registry.py)."""
    for part in walk(node):
        if isinstance(part, FunctionCall) and FUNCTIONS.kind_of(part.name) == kind:
            yield part
