"""What statements are made of: frozen values that compare by what they say, wherever in a text they stood.

Names are as they are meant: an unquoted one in upper case, a quoted one as written. Names of WITH's properties are in
upper case. Every node knows its place (`at`), which equality leaves out.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, TypeAlias
from typing import Literal as OneOf

from pykafkad.pipelines.errors import NOWHERE, Position
from pykafkad.pipelines.types import SqlType


@dataclass(frozen=True, slots=True)
class Node:
    at: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions


@dataclass(frozen=True, slots=True)
class Expression(Node):
    pass


@dataclass(frozen=True, slots=True)
class NullLiteral(Expression):
    pass


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Expression):
    value: bool


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Expression):
    """An INTEGER where 32 bits hold it, else a BIGINT; more than 64 bits are refused by the parser."""

    value: int


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Expression):
    """1.50, with the scale that it is written with."""

    value: decimal.Decimal


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Expression):
    """1.5E0."""

    value: float


@dataclass(frozen=True, slots=True)
class StringLiteral(Expression):
    value: str


Literal: TypeAlias = (
    NullLiteral | BooleanLiteral | IntegerLiteral | DecimalLiteral | DoubleLiteral | StringLiteral
)


@dataclass(frozen=True, slots=True)
class ColumnReference(Expression):
    """A column, perhaps of a named source: S.NAME."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    """A parameter of the lambda that this stands in."""

    name: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Expression):
    """The first argument of DATEADD and its like, in the plural: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS."""

    unit: str


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """-x, where x is no number."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: OneOf["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    operator: OneOf["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    operator: OneOf["AND", "OR"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    operand: Expression
    pattern: Expression
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    """A branch of a CASE: `test` is a condition, or what the CASE's operand is compared with."""

    test: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE with an operand is ksqlDB's simple one, without its searched one."""

    operand: Expression | None
    whens: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    operand: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """The name is in upper case. COUNT(*) has no arguments; other functions of * have one AllColumns."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Expression):
    """ARRAY[1, 2]."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(Expression):
    """MAP('a' := 1)."""

    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class StructLiteral(Expression):
    """STRUCT(A := 1)."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class FieldAccess(Expression):
    """struct->FIELD."""

    operand: Expression
    field: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """array[1], map['k']."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class AllColumns(Expression):
    """* or S.*, of a SELECT list or a function."""

    source: str | None = None


# --- queries


@dataclass(frozen=True, slots=True)
class SelectColumn(Node):
    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SelectAll(Node):
    """* or S.*."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class SelectFields(Node):
    """struct->*: a column for each field."""

    operand: Expression


SelectItem: TypeAlias = SelectColumn | SelectAll | SelectFields

UNIT_MILLISECONDS = {
    "MILLISECONDS": 1,
    "SECONDS": 1000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """10 SECONDS; the unit is in the plural."""

    value: int
    unit: str

    @property
    def milliseconds(self) -> int:
        return self.value * UNIT_MILLISECONDS[self.unit]


@dataclass(frozen=True, slots=True)
class Tumbling(Node):
    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Hopping(Node):
    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Session(Node):
    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None


Window: TypeAlias = Tumbling | Hopping | Session


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A stream or table that is read, by the name it goes by in this query."""

    name: str
    alias: str | None = None

    @property
    def called(self) -> str:
        return self.alias or self.name


@dataclass(frozen=True, slots=True)
class Within(Node):
    """WITHIN 1 HOUR, or WITHIN (1 HOUR, 2 HOURS), of a join of streams."""

    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Joins of many nest to the left."""

    kind: OneOf["INNER", "LEFT", "RIGHT", "FULL"]
    left: Source | Join
    right: Source
    within: Within | None
    condition: Expression


class Emit(Enum):
    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A SELECT. Alone and without `emit` it is a pull query."""

    select: tuple[SelectItem, ...]
    source: Source | Join
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None


# --- statements


class Kind(Enum):
    STREAM = "STREAM"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Property(Node):
    """One of WITH (...); the name is in upper case."""

    name: str
    value: Literal


class Role(Enum):
    """What a declared column is: HEADERS is all headers, HEADER('k') one (ColumnDefinition.header)."""

    VALUE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    name: str
    type: SqlType
    role: Role = Role.VALUE
    header: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """CREATE [OR REPLACE] [SOURCE] STREAM | TABLE [IF NOT EXISTS] name (columns) WITH (properties)."""

    kind: Kind
    name: str
    columns: tuple[ColumnDefinition, ...]
    properties: tuple[Property, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class CreateAsSelect(Statement):
    kind: Kind
    name: str
    query: Query
    properties: tuple[Property, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertSelect(Statement):
    target: str
    query: Query
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    """Without columns the values are for all, in their order."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class SelectStatement(Statement):
    query: Query


@dataclass(frozen=True, slots=True)
class DropSource(Statement):
    kind: Kind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    """ALTER STREAM | TABLE name ADD [COLUMN] a INT, ..."""

    kind: Kind
    name: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ControlQuery(Statement):
    """TERMINATE, PAUSE or RESUME of one query, or of ALL (None)."""

    action: OneOf["TERMINATE", "PAUSE", "RESUME"]
    query_id: str | None


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """SHOW or LIST; `every` is SHOW ALL TOPICS."""

    what: OneOf["STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "PROPERTIES", "VARIABLES", "TYPES"]
    extended: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeAll(Statement):
    """DESCRIBE STREAMS, DESCRIBE TABLES."""

    kind: Kind
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeFunction(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """Of a running query by its id, or of a statement."""

    query_id: str | None
    statement: Statement | None


@dataclass(frozen=True, slots=True)
class PrintTopic(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class DefineVariable(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UndefineVariable(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class RunScript(Statement):
    path: str


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    """ASSERT [NOT EXISTS] TOPIC name [WITH (partitions=1, ...)] [TIMEOUT 10 SECONDS]."""

    topic: str
    properties: tuple[Property, ...] = ()
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    """ASSERT [NOT EXISTS] SCHEMA [SUBJECT s] [ID n] [TIMEOUT ...]."""

    subject: str | None
    schema_id: int | None
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertSource(Statement):
    """ASSERT STREAM | TABLE name (columns) [WITH (...)], of tests in SQL."""

    kind: Kind
    name: str
    columns: tuple[ColumnDefinition, ...]
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class AssertValues(Statement):
    """ASSERT [NULL] VALUES name (columns) VALUES (...) or KEY (...), of tests in SQL."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    tombstone: bool = False


# --- walking


def parts(node: Node) -> Iterator[Node]:
    """The nodes that this one is directly made of."""
    for attribute in fields(node):
        yield from _nodes(getattr(node, attribute.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """The node and all that is in it, outermost first."""
    yield node
    for part in parts(node):
        yield from walk(part)


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to its parts and then to itself; what stays the same stays the same object."""
    changed: dict[str, Any] = {
        attribute.name: new
        for attribute in fields(expression)
        if (new := _rewritten(old := getattr(expression, attribute.name), change)) is not old
    }
    return change(replace(expression, **changed) if changed else expression)


def _rewritten(value: object, change: Callable[[Expression], Expression]) -> object:
    if isinstance(value, Expression):
        return rewrite(value, change)
    if isinstance(value, When):
        new = When(rewrite(value.test, change), rewrite(value.result, change), at=value.at)
        return value if new.test is value.test and new.result is value.result else new
    if type(value) is tuple and not isinstance(value, Position):
        items = tuple(_rewritten(item, change) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
