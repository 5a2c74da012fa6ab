"""SELECT and PRINT: rows for somebody who looks.

A push query (EMIT) goes on until whoever asked has enough. A pull query reads its topics to where they end now, and says
what a table holds then, or all rows of a stream. Each reads by itself, beside the queries that run. Generators give None
where nothing has come, so that whoever waits can do something else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pykafkad.pipelines.analysis.query import Meaning
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Value
from pykafkad.pipelines.expressions.texts import texts_of, timestamp_text
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Row, state_key
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.running.engine import SLICE, Task
from pykafkad.pipelines.running.reading import Reading
from pykafkad.pipelines.syntax.ast import Kind, PrintTopic, Query
from pykafkad.tools.admin import Partition

PAUSE_S = 0.005
TOMBSTONE = "<TOMBSTONE>"

Texts = tuple[str, ...]


class Selection(NamedTuple):
    """What a SELECT shows: columns, and the rows as text."""

    columns: tuple[Column, ...]
    rows: Iterator[Texts | None]


def selection(
    broker: Broker,
    query: Query,
    meaning: Meaning,
    starts: Mapping[Partition, int],
    told: Callable[[str], object],
) -> Selection:
    """`broker` is the selection's own, which is closed with it."""
    task = Task("The query", meaning.plan, Reading(broker, starts), told)
    rows = _pushed(task) if query.emit is not None else _pulled(task, broker, meaning)
    return shown(query, meaning, _closing(rows, task, broker))


def shown(query: Query, meaning: Meaning, rows: Iterator[Row | None]) -> Selection:
    """Of rows that come from elsewhere."""
    return Selection(meaning.value, _limited(rows, meaning, query.limit))


def _pushed(task: Task) -> Iterator[Row | None]:
    while True:
        arrived = task.reading.poll()
        some = False
        for row in task.rows(SLICE):
            some = True
            yield row
        if not arrived and not some:
            yield None
            time.sleep(PAUSE_S)


def _pulled(task: Task, broker: Broker, meaning: Meaning) -> Iterator[Row | None]:
    ends = broker.ends(task.reading.partitions)
    task.reading.merging.learn(ends)
    held: dict[object, Row] = {}
    while task.reading.merging.is_behind(ends):
        arrived = task.reading.poll()
        for row in task.rows(SLICE):
            if meaning.kind is Kind.STREAM:
                yield row
            elif row.columns is None:
                held.pop(state_key(row), None)
            else:
                held[state_key(row)] = row
        if not arrived:
            yield None
            time.sleep(PAUSE_S)
    yield from held.values()


def _closing(rows: Iterator[Row | None], task: Task, broker: Broker) -> Iterator[Row | None]:
    try:
        yield from rows
    finally:
        task.reading.close()
        broker.close()


def _limited(rows: Iterator[Row | None], meaning: Meaning, limit: int | None) -> Iterator[Texts | None]:
    texts = [_text_of(column) for column in meaning.value]
    left = limit
    while left is None or left > 0:
        try:
            row = next(rows)
        except StopIteration:
            return
        if row is not None and (row.columns is not None or meaning.kind is Kind.TABLE):
            left = None if left is None else left - 1
            yield _shown(row, meaning, texts)
        else:
            yield None
    rows.close()  # type: ignore[attr-defined]


def _text_of(column: Column) -> Callable[[Value], str]:
    show = texts_of(column.type)
    return lambda value: "null" if value is None else show(value)


def _shown(row: Row, meaning: Meaning, texts: list[Callable[[Value], str]]) -> Texts:
    if row.columns is not None:
        return tuple(show(value) for show, value in zip(texts, row.columns, strict=False))
    key = dict(zip((column.name for column in meaning.key), row.key or (), strict=False))
    return tuple(
        show(key[column.name]) if column.name in key else TOMBSTONE
        for show, column in zip(texts, meaning.value, strict=True)
    )


# --- PRINT


def printed(broker: Broker, statement: PrintTopic) -> Iterator[str | None]:
    """A line a record."""
    if broker.topic(statement.topic) is None:
        broker.close()
        raise StatementError(f"Topic {statement.topic} does not exist", statement.at)
    partitions = broker.partitions([statement.topic])
    starts = broker.begins(partitions) if statement.from_beginning else broker.ends(partitions)
    return _lines(broker, Reading(broker, starts), statement.interval or 1, statement.limit)


def _lines(broker: Broker, reading: Reading, interval: int, limit: int | None) -> Iterator[str | None]:
    count = shown = 0
    try:
        while limit is None or shown < limit:
            arrived = reading.poll()
            while (limit is None or shown < limit) and (record := reading.merging.next()) is not None:
                if count % interval == 0:
                    shown += 1
                    yield record_line(record)
                count += 1
            if not arrived:
                yield None
                time.sleep(PAUSE_S)
    finally:
        reading.close()
        broker.close()


def record_line(record: Record) -> str:
    return (
        f"rowtime: {timestamp_text(record.time)}Z, key: {_readable(record.key)}, value: {_readable(record.value)}, "
        f"partition: {record.partition}, offset: {record.offset}"
    )


def _readable(data: bytes | None) -> str:
    """Text where it is text, else what Java's integers are, else hexadecimal digits."""
    if data is None:
        return "<null>"
    if len(data) in (4, 8) and not _is_text(data):
        return str(int.from_bytes(data, "big", signed=True))
    if not _is_text(data):
        return f"0x{data.hex()}"
    return json.dumps(data.decode())[1:-1].replace('\\"', '"')


def _is_text(data: bytes) -> bool:
    try:
        return all(character.isprintable() or character in "\t\r\n" for character in data.decode())
    except UnicodeDecodeError:
        return False
