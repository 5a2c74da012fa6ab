"""Streams and tables: what is known of one, and what CREATE STREAM | TABLE with columns declares.

A DataSource is a value. Its columns are its key's first, then the others, each in the order of their declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pykafkad.pipelines.analysis.properties import OF_SOURCES, Properties
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats import (
    NO_SHAPE,
    UNWRAPPED_KEYS,
    WITH_REGISTRY,
    Format,
    MessageShape,
    make_format,
)
from pykafkad.pipelines.formats.registry import REGISTRY_URL, Subject
from pykafkad.pipelines.plan.ends import WindowedKey
from pykafkad.pipelines.syntax.ast import ColumnDefinition, CreateSource, Kind, Role
from pykafkad.pipelines.types import (
    BIGINT,
    BYTES,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    Field,
    Map,
    SqlType,
    Struct,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SYSTEM_COLUMNS = {"ROWTIME": BIGINT, "ROWPARTITION": INTEGER, "ROWOFFSET": BIGINT}
WINDOW_BOUNDS = {"WINDOWSTART": BIGINT, "WINDOWEND": BIGINT}
RESERVED = {*SYSTEM_COLUMNS, *WINDOW_BOUNDS}
HEADERS_TYPE = Array(Struct((Field("KEY", STRING), Field("VALUE", BYTES))))
KEY_ROLES = (Role.KEY, Role.PRIMARY_KEY)


@dataclass(frozen=True, slots=True)
class FormatInfo:
    name: str
    delimiter: str | None = None
    registry: str | None = None
    """The URL of the schema registry, where there is one."""
    shape: MessageShape = NO_SHAPE

    def make(self, columns: tuple[Column, ...], wrap: bool | None, topic: str, of: str) -> Format:
        """`of` is "key" or "value"."""
        return make_format(self.name, columns, wrap, self.delimiter, self.subject(topic, of), self.shape)

    def subject(self, topic: str, of: str) -> Subject | None:
        """Where the registry has the schemas of a topic's keys (`of` is "key") or values."""
        return None if self.registry is None else Subject(self.registry, f"{topic}-{of}")


@dataclass(frozen=True, slots=True)
class Windowing:
    """That keys are windowed, and how."""

    type: str
    size: int | None

    @property
    def on_keys(self) -> WindowedKey:
        return WindowedKey(self.size)


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    name: str
    format: str | None = None


@dataclass(frozen=True, slots=True)
class DataSource:
    name: str
    kind: Kind
    topic: str
    columns: tuple[ColumnDefinition, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    wrap: bool | None = None
    timestamp: TimestampColumn | None = None
    window: Windowing | None = None
    read_only: bool = False
    partitions: int | None = None
    replicas: int | None = None
    made_by_query: bool = False

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(Column(c.name, c.type) for c in self.columns if c.role in KEY_ROLES)

    @property
    def value(self) -> tuple[Column, ...]:
        """What is in the topic's values: headers are not."""
        return tuple(Column(c.name, c.type) for c in self.columns if c.role is Role.VALUE)

    def make_key(self) -> Format:
        return key_of(self.key_format, self.key, self.topic)

    def make_value(self) -> Format:
        return self.value_format.make(self.value, self.wrap, self.topic, "value")

    def check(self) -> DataSource:
        """Refuses what formats and keys cannot say."""
        refuse_maps(self.key)
        self.make_key()
        if self.wrap is not None and len(self.value) != 1:
            raise StatementError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
        self.make_value()
        check_timestamp(self.timestamp, {column.name: column.type for column in self.columns})
        return self


def key_of(info: FormatInfo, columns: tuple[Column, ...], topic: str) -> Format:
    wrap = False if info.name in UNWRAPPED_KEYS else None
    try:
        return info.make(columns, wrap, topic, "key")
    except StatementError as error:
        if not error.reason.startswith("The '") or info.name == "NONE":
            raise
        listed = ", ".join(f"`{column.name}` {column.type} KEY" for column in columns)
        raise StatementError(
            f"Key format does not support schema.\nformat: {info.name}\nschema: Persistence{{columns=[{listed}], "
            f"features=[]}}\nreason: {error.reason}"
        ) from None


def has_map(of: SqlType) -> bool:
    match of:
        case Map():
            return True
        case Array(element):
            return has_map(element)
        case Struct(fields):
            return any(has_map(field.type) for field in fields)
    return False


def refuse_maps(key: tuple[Column, ...]) -> None:
    for column in key:
        if has_map(column.type):
            raise StatementError(
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected behavior "
                f"due to inconsistent serialization. Key column name: `{column.name}`. Column type: {column.type}. "
                "See https://github.com/confluentinc/ksql/issues/6621 for more."
            )


def check_timestamp(timestamp: TimestampColumn | None, types: Mapping[str, SqlType]) -> None:
    if timestamp is None:
        return
    of = types.get(timestamp.name)
    if of is None:
        raise StatementError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{timestamp.name}'"
        )
    if of == STRING and timestamp.format is None:
        raise StatementError(
            f"A String timestamp field has been specified without also specifying the TIMESTAMP_FORMAT: {timestamp.name}"
        )
    if of in (BIGINT, TIMESTAMP) and timestamp.format is not None:
        raise StatementError(
            "'TIMESTAMP_FORMAT' set, but column: `" + timestamp.name + "` is not of type STRING"
        )
    if of not in (STRING, BIGINT, TIMESTAMP):
        raise StatementError(
            f"Timestamp column, `{timestamp.name}`, should be LONG(INT64), TIMESTAMP, or a String."
        )


def timestamp_column(properties: Properties) -> TimestampColumn | None:
    name = properties.get("TIMESTAMP")
    if name is None:
        return None
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
    return TimestampColumn(name[1:-1] if quoted else name.upper(), properties.get("TIMESTAMP_FORMAT"))


def declared_source(statement: CreateSource, configs: Mapping[str, Any]) -> DataSource:
    """The stream or table that a statement declares. Its types are resolved."""
    properties = Properties(statement.properties, OF_SOURCES)
    topic = properties.get("KAFKA_TOPIC")
    if topic is None:
        raise StatementError(
            'Missing required property "KAFKA_TOPIC" which has no default value.', statement.at
        )
    key_format = properties.format("KEY") or _default(configs, "key") or "KAFKA"
    value_format = properties.format("VALUE") or _default(configs, "value")
    if value_format is None:
        raise StatementError(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or set a default "
            "via the 'ksql.persistence.default.format.value' config.",
            statement.at,
        )
    registry = configs.get(REGISTRY_URL) or None
    key, value = (
        FormatInfo(name, properties.get(f"{of}_DELIMITER"), registry, properties.message_shape(of))
        for of, name in (("KEY", key_format), ("VALUE", value_format))
    )
    for info in (key, value):
        info.make((), None, topic, "value")
    statement = with_registered(statement, topic, key, value)
    _check_columns(statement)
    keys = tuple(column for column in statement.columns if column.role in KEY_ROLES)
    return DataSource(
        statement.name,
        statement.kind,
        topic,
        keys + tuple(column for column in statement.columns if column.role not in KEY_ROLES),
        key,
        value,
        properties.get("WRAP_SINGLE_VALUE"),
        timestamp_column(properties),
        _windowing(properties, bool(keys)),
        statement.read_only,
        properties.get("PARTITIONS"),
        properties.get("REPLICAS"),
    ).check()


def with_registered(statement: CreateSource, topic: str, key: FormatInfo, value: FormatInfo) -> CreateSource:
    """The statement with the columns that it does not say and that the schema registry knows."""
    keys = tuple(column for column in statement.columns if column.role in KEY_ROLES)
    others = tuple(column for column in statement.columns if column.role not in KEY_ROLES)
    if not keys and key.name in WITH_REGISTRY:
        role = Role.PRIMARY_KEY if statement.kind is Kind.TABLE else Role.KEY
        keys = _registered(statement, key, key.subject(topic, "key"), role, "ROWKEY")
    if all(column.role is not Role.VALUE for column in others) and value.name in WITH_REGISTRY:
        others += _registered(statement, value, value.subject(topic, "value"), Role.VALUE, "ROWVAL")
    return replace(statement, columns=keys + others)


def _registered(
    statement: CreateSource, info: FormatInfo, subject: Subject | None, role: Role, bare: str
) -> tuple[ColumnDefinition, ...]:
    from pykafkad.pipelines.formats.registered import inferred

    assert subject is not None  # the format has been made, which asks for one
    found = inferred(info.name, subject, info.shape)
    fields = found if isinstance(found, list) else [Field(bare, found)]
    return tuple(ColumnDefinition(field.name, field.type, role, at=statement.at) for field in fields)


def _default(configs: Mapping[str, Any], which: str) -> str | None:
    name = configs.get(f"ksql.persistence.default.format.{which}")
    return None if name is None else str(name).upper()


def _windowing(properties: Properties, keyed: bool) -> Windowing | None:
    of, size = properties.get("WINDOW_TYPE"), properties.get("WINDOW_SIZE")
    if of is None:
        if size is not None:
            raise StatementError("'WINDOW_SIZE' is only valid with a 'WINDOW_TYPE'.")
        return None
    if not keyed:
        raise StatementError("Windowed sources require a key column.")
    if of == "SESSION" and size is not None:
        raise StatementError("'WINDOW_SIZE' should not be set for SESSION windows.")
    if of != "SESSION" and size is None:
        raise StatementError(
            f"{of} windows require 'WINDOW_SIZE' to be provided in the WITH clause. For example: "
            "'WINDOW_SIZE'='10 SECONDS'"
        )
    return Windowing(of, size)


def _check_columns(statement: CreateSource) -> None:
    table = statement.kind is Kind.TABLE
    if not statement.columns:
        raise StatementError(
            "The statement does not define any columns, and no schema registry is configured to ask for them.",
            statement.at,
        )
    seen: set[str] = set()
    for column in statement.columns:
        _check_column(column, table)
        if column.name in seen:
            raise StatementError(f"Duplicate column names: `{column.name}`", column.at)
        seen.add(column.name)
    if table and not any(column.role is Role.PRIMARY_KEY for column in statement.columns):
        raise StatementError(
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.\nUse a partial schema to load the rest of the "
            "columns from a schema registry.",
            statement.at,
        )


def _check_column(column: ColumnDefinition, table: bool) -> None:
    if column.name in RESERVED:
        raise StatementError(
            f"`{column.name}` is a reserved column name. You cannot use it as a name for a column.", column.at
        )
    if column.role is Role.PRIMARY_KEY and not table:
        raise StatementError(
            f"Column `{column.name}` is a 'PRIMARY KEY' column: please use 'KEY' for streams.\nTables have PRIMARY KEYs, "
            "which are unique and NON NULL.\nStreams have KEYs, which have no uniqueness or NON NULL constraints.",
            column.at,
        )
    if column.role is Role.KEY and table:
        raise StatementError(
            f"Column `{column.name}` is a 'KEY' column: please use 'PRIMARY KEY' for tables.\nTables have PRIMARY KEYs, "
            "which are unique and NON NULL.\nStreams have KEYs, which have no uniqueness or NON NULL constraints.",
            column.at,
        )
    if column.role is Role.HEADERS and column.type != HEADERS_TYPE:
        raise StatementError(
            f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {column.type}", column.at
        )
    if column.role is Role.HEADER and column.type != BYTES:
        raise StatementError(
            f"Invalid type for HEADER('{column.header}') column: expected BYTES, got {column.type}", column.at
        )
