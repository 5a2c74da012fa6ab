"""What statements are made of: frozen values that compare by what they say, wherever in a text they stood.

Names are as they are meant: an unquoted one in upper case, a quoted one as written. Names of WITH's properties are in
upper case. Every node knows its place (`at`), which equality leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pykafkad.pipelines.syntax.nodes import *  # noqa: F403, who reads a statement takes all of it from here
from pykafkad.pipelines.syntax.nodes import Expression, Literal, Node
from pykafkad.pipelines.types import SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal as OneOf
    from typing import TypeAlias

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
