"""Columns as the bytes of a key or a value: what Spark writes as our formats do, and a condition for all else.

A DOUBLE in JSON is written as Java writes it, 1.0E7 for 10000000.0: the same number.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad.pipelines.formats import Format
from pykafkad.pipelines.formats.delimited import DelimitedFormat
from pykafkad.pipelines.formats.json_format import JsonFormat
from pykafkad.pipelines.formats.kafka import KafkaFormat, NoneFormat
from pykafkad.pipelines.spark_sql.sql import NotCompiled, quoted
from pykafkad.pipelines.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP

NUMBERS = (INTEGER, BIGINT, DATE, TIME, TIMESTAMP)
NOTHING = "CAST(NULL AS BINARY)"


class Writing(NamedTuple):
    text: str
    """Gives a BINARY."""
    odd: list[str]


def writing(format: Format, columns: list[str]) -> Writing:
    if type(format) is NoneFormat or not format.columns:
        return Writing(NOTHING, [])
    if type(format) is JsonFormat:
        return _json(format, columns) if format.wraps else _bare(format, columns[0])
    if type(format) is DelimitedFormat:
        return _delimited(format, columns)
    if type(format) is KafkaFormat:
        return _kafka(format, columns[0])
    raise NotCompiled(f"format {format.name}")


def _json(format: JsonFormat, columns: list[str]) -> Writing:
    for column in format.columns:
        if column.type not in (BOOLEAN, DOUBLE, STRING, *NUMBERS):
            raise NotCompiled(f"a JSON field {column.name} of type {column.type}")
    fields = ", ".join(
        f"{quoted(column.name)}, {value}" for column, value in zip(format.columns, columns, strict=True)
    )
    return Writing(f"CAST(to_json(named_struct({fields}), map('ignoreNullFields', 'false')) AS BINARY)", [])


PLAIN = quoted(r'^[^"\\\x00-\x1f]*$')


def _bare(format: JsonFormat, value: str) -> Writing:
    of = format.columns[0].type
    if of in (BOOLEAN, *NUMBERS):
        return Writing(f"CAST(CAST({value} AS STRING) AS BINARY)", [])
    if of == STRING:
        return Writing(
            f"""CAST(concat('"', {value}, '"') AS BINARY)""",
            [f"NOT coalesce(rlike({value}, {PLAIN}), true)"],
        )
    raise NotCompiled(f"a bare JSON value of type {of}")


def _kafka(format: KafkaFormat, value: str) -> Writing:
    of = format.columns[0].type
    if of == STRING:
        return Writing(f"CAST({value} AS BINARY)", [])
    digits = f"lpad(hex(CAST({value} AS BIGINT)), 16, '0')"
    if of == INTEGER:
        return Writing(f"unhex(right({digits}, 8))", [])
    if of == BIGINT:
        return Writing(f"unhex({digits})", [])
    raise NotCompiled(f"format KAFKA of {of}")


def _delimited(format: DelimitedFormat, columns: list[str]) -> Writing:
    fields, odd = [], []
    delimiter = format.delimiter
    mark = (
        "\\" + delimiter
        if not delimiter.isalnum() and delimiter.isascii() and delimiter.isprintable()
        else delimiter
    )
    safe = quoted(rf'^[A-Za-z0-9](?:[^"\n\r{mark}]*[^"\x00-\x20{mark}])?$')
    for place, (column, value) in enumerate(zip(format.columns, columns, strict=True)):
        text = f"CAST({value} AS STRING)"
        if column.type == STRING:
            odd.append(f"NOT coalesce(rlike({value}, {safe}), true)")
        elif column.type in NUMBERS and place == 0:
            text = f"""CASE WHEN {value} < 0 THEN concat('"', {text}, '"') ELSE {text} END"""
        elif column.type not in (BOOLEAN, *NUMBERS):
            raise NotCompiled(f"a DELIMITED field of type {column.type}")
        if column.type in NUMBERS and delimiter in "-0123456789":
            raise NotCompiled(f"DELIMITED by {delimiter}")
        fields.append(f"coalesce({text}, '')")
    return Writing(f"CAST(concat_ws({quoted(delimiter)}, {', '.join(fields)}) AS BINARY)", odd)
