"""Where a query's result goes: the stream or table that CREATE ... AS SELECT makes, or the one that INSERT INTO fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pykafkad.pipelines.analysis.properties import OF_SINKS, Properties
from pykafkad.pipelines.analysis.query import Meaning
from pykafkad.pipelines.analysis.relations import Context, timestamp_of
from pykafkad.pipelines.analysis.sources import DataSource, FormatInfo, timestamp_column
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.formats import NO_SHAPE, MessageShape
from pykafkad.pipelines.formats.registry import REGISTRY_URL
from pykafkad.pipelines.plan.ends import WriteTopic
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.syntax.ast import ColumnDefinition, CreateAsSelect, Kind, Role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def made(statement: CreateAsSelect, meaning: Meaning, configs: Mapping[str, Any]) -> DataSource:
    """The stream or table that a CREATE ... AS SELECT makes; the meaning's plan is led into its topic."""
    if meaning.kind is not statement.kind:
        raise StatementError(
            f"Invalid result type. Your SELECT query produces a {meaning.kind.value}. Please use CREATE "
            f"{meaning.kind.value} AS SELECT statement instead.",
            statement.at,
        )
    properties = Properties(statement.properties, OF_SINKS)
    prefix = configs.get("ksql.output.topic.name.prefix", "")
    role = Role.PRIMARY_KEY if statement.kind is Kind.TABLE else Role.KEY
    columns = [ColumnDefinition(column.name, column.type, role) for column in meaning.key]
    columns += [ColumnDefinition(column.name, column.type) for column in meaning.value]
    source = DataSource(
        statement.name,
        statement.kind,
        properties.get("KAFKA_TOPIC") or f"{prefix}{statement.name}",
        tuple(columns),
        _key_format(properties, meaning, configs),
        _format(properties, "VALUE", meaning.value_format, configs),
        properties.get("WRAP_SINGLE_VALUE"),
        timestamp_column(properties),
        meaning.window,
        partitions=properties.get("PARTITIONS"),
        replicas=properties.get("REPLICAS"),
        made_by_query=True,
    ).check()
    write(meaning.plan, source, meaning.value, configs)
    return source


def _format(
    properties: Properties, which: str, inherited: FormatInfo, configs: Mapping[str, Any]
) -> FormatInfo:
    """A format that is not said is the first source's, with its delimiter and its messages' shape."""
    inherited = replace(inherited, registry=configs.get(REGISTRY_URL) or inherited.registry)
    name, delimiter = properties.format(which), properties.get(f"{which}_DELIMITER")
    shape = properties.message_shape(which)
    if name is not None and name != inherited.name:
        return replace(inherited, name=name, delimiter=delimiter, shape=shape)
    shape = MessageShape(shape.nulls or inherited.shape.nulls, shape.name or inherited.shape.name)
    return replace(inherited, delimiter=delimiter or inherited.delimiter, shape=shape)


def _key_format(properties: Properties, meaning: Meaning, configs: Mapping[str, Any]) -> FormatInfo:
    """NONE is not inherited by what has a key."""
    chosen = _format(properties, "KEY", meaning.key_format, configs)
    if chosen.name == "NONE" and meaning.key and properties.format("KEY") is None:
        default = str(configs.get("ksql.persistence.default.format.key", "KAFKA")).upper()
        return replace(chosen, name=default, delimiter=None, shape=NO_SHAPE)
    return chosen


def write(plan: Plan, target: DataSource, columns: tuple[Column, ...], configs: Mapping[str, Any]) -> None:
    """Leads the plan, whose rows have these columns, into the target's topic."""
    plan.sink = WriteTopic(
        target.topic,
        target.make_key(),
        target.make_value(),
        target.window.on_keys if target.window else None,
        timestamp_of(target, Schema(columns), Context(plan, configs)),
    )


def inserted(target: DataSource, meaning: Meaning, configs: Mapping[str, Any]) -> None:
    """Leads the meaning's plan into a stream that exists; refuses what does not fit it."""
    if target.kind is not Kind.STREAM:
        raise StatementError(
            f"INSERT INTO can only be used to insert into a stream. {target.name} is a table."
        )
    if target.read_only:
        raise StatementError(f"Cannot insert into read-only stream: {target.name}")
    if meaning.kind is not Kind.STREAM:
        raise StatementError(
            "Incompatible data sink and query result. Data sink "
            f"({target.name}) type is STREAM but select query result is {meaning.kind.value}."
        )
    same_key = [column.type for column in target.key] == [column.type for column in meaning.key]
    if not same_key or target.value != meaning.value:
        raise StatementError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {_described(meaning.key, meaning.value)}\n"
            f"Sink schema is {_described(target.key, target.value)}"
        )
    if (target.window is None) != (meaning.window is None):
        raise StatementError("Incompatible windows between results and sink.")
    write(meaning.plan, replace(target, window=meaning.window or target.window), meaning.value, configs)


def _described(key: tuple[Column, ...], value: tuple[Column, ...]) -> str:
    parts = [f"`{column.name}` {column.type} KEY" for column in key]
    return ", ".join(parts + [f"`{column.name}` {column.type}" for column in value])
