"""INSERT INTO ... VALUES: the record that the values make."""

from __future__ import annotations

from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.casts import Convert, cast, implicit, rank
from pykafkad.pipelines.expressions.compiling import compile_expression
from pykafkad.pipelines.expressions.numbers import EvaluationError, is_numeric
from pykafkad.pipelines.expressions.schema import Column, Schema, Value
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.syntax.ast import Expression, InsertValues, Kind, Role
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import BIGINT, STRING, TIMESTAMP, SqlType

NOTHING = Schema(())


def inserted(target: DataSource, statement: InsertValues, now_ms: int) -> Record:
    """The record for the target's topic. Columns that are not named are null."""
    if target.window is not None:
        raise StatementError(f"Cannot insert into {target.name}: its key has a window", statement.at)
    values = _values(target, statement)
    time = values.pop("ROWTIME", None)
    row = {column.name: values.get(column.name) for column in target.columns}
    key = [row[column.name] for column in target.key]
    if target.kind is Kind.TABLE and None in key:
        missing = ", ".join(column.name for column in target.key)
        raise StatementError(
            f"Failed to insert values into '{target.name}': value for primary key column {missing} is required",
            statement.at,
        )
    key_bytes = None if not key or key == [None] else target.make_key().serialise(key)
    value_bytes = target.make_value().serialise([row[column.name] for column in target.value])
    return Record(target.topic, key_bytes, value_bytes, now_ms if time is None else time)


def _values(target: DataSource, statement: InsertValues) -> dict[str, Value]:
    types = {column.name: column.type for column in target.columns}
    names = statement.columns or tuple(column.name for column in target.columns)
    if len(names) != len(statement.values):
        raise StatementError(
            f"Expected a value for each column of {target.name} ({', '.join(names)}), "
            f"not {len(statement.values)} values",
            statement.at,
        )
    headers = {column.name for column in target.columns if column.role in (Role.HEADERS, Role.HEADER)}
    found: dict[str, Value] = {}
    for name, value in zip(names, statement.values, strict=True):
        if name in headers:
            raise StatementError(f"Cannot insert into the HEADER column {name}", value.at)
        if name not in types and name != "ROWTIME":
            hint = did_you_mean(name, types)
            raise StatementError(f"Column name {name} does not exist in {target.name}.{hint}", statement.at)
        if name in found:
            raise StatementError(f"Column {name} is given twice", statement.at)
        found[name] = _value(value, Column(name, types.get(name, BIGINT)))
    return found


def _value(expression: Expression, column: Column) -> Value:
    compiled = compile_expression(expression, NOTHING)
    if compiled.type is None:
        return None
    try:
        value = compiled.call(())
    except Exception as error:
        raise StatementError(f"{text(expression)} has no value: {error}", expression.at) from None
    if value is None:
        return None
    convert = _conversion(compiled.type, column)
    if convert is None:
        raise StatementError(
            f"Expected type {column.type} for field {column.name} but got {compiled.type}({text(expression)})",
            expression.at,
        )
    try:
        return convert(value)
    except EvaluationError as error:
        raise StatementError(
            f"{text(expression)} is no value for {column.name}: {error}", expression.at
        ) from None


def _conversion(of: SqlType, column: Column) -> Convert | None:
    """What makes the column's value unasked: numbers of a type that holds fewer fit, and text that is a moment."""
    if column.name == "ROWTIME" and of == STRING:
        return cast(of, TIMESTAMP)
    if is_numeric(of) and is_numeric(column.type):
        return cast(of, column.type) if rank(of) <= rank(column.type) else None
    return implicit(of, column.type)
