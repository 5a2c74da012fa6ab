"""Rows of a table as records, as the JDBC source takes them in its timestamp mode: from SQLite in memory."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from pykafkad.pipelines.table_polling import OffsetFile, TablePolling
from pykafkad.pipelines.testing import run_case


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "dri""ver" (id INTEGER PRIMARY KEY, name TEXT, photo BLOB, at INTEGER)')
    return connection


def polling(database: sqlite3.Connection, key: str = "id", since: int = 0) -> TablePolling:
    return TablePolling(database, 'dri"ver', key, "at", "drivers", since)


def put(database: sqlite3.Connection, number: int, name: str, at: int | str | None) -> None:
    database.execute('REPLACE INTO "dri""ver" VALUES (?, ?, NULL, ?)', (number, name, at))


def names(poll: TablePolling, now: int) -> list[str]:
    """The names that a poll gives, as somebody asks who has them acknowledged."""
    records = poll.records(now)
    if records:
        poll.since = records[-1].time
    return [json.loads(record.value or b"")["name"] for record in records]


def test_rows_come_in_the_order_of_their_times_and_once(database: sqlite3.Connection) -> None:
    poll = polling(database)
    put(database, 1, "late", 20)
    put(database, 2, "early", 10)
    put(database, 3, "of now", 30)
    assert names(poll, now=30) == ["early", "late"], "a row of this millisecond may get company"
    assert names(poll, now=31) == ["of now"]
    put(database, 2, "changed", 31)
    assert names(poll, now=40) == ["changed"] and names(poll, now=50) == []


def test_what_was_not_acknowledged_comes_again(database: sqlite3.Connection) -> None:
    poll = polling(database, since=9)
    put(database, 1, "old", 9)
    put(database, 2, "new", 10)
    assert len(poll.records(50)) == len(poll.records(50)) == 1


def test_a_row_without_a_time_is_not_seen(database: sqlite3.Connection) -> None:
    put(database, 1, "timeless", None)
    assert names(polling(database), now=50) == []


def test_a_record_has_the_row_as_json_and_its_time(database: sqlite3.Connection) -> None:
    put(database, 7, "Zoë", 10)
    database.execute('UPDATE "dri""ver" SET photo = ?', (b"\0\1",))
    (record,) = polling(database).records(50)
    assert (record.topic, record.key, record.time) == ("drivers", b"7", 10)
    assert record.value == '{"id":7,"name":"Zoë","photo":"AAE=","at":10}'.encode()


def test_what_cannot_be_is_said(database: sqlite3.Connection) -> None:
    put(database, 1, "a", 10)
    with pytest.raises(ValueError, match=r"has no column nr: id, name, photo, at are there"):
        polling(database, key="nr").records(50)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        TablePolling(database, 'dri"ver', "id", "when", "drivers").records(50)
    poll = TablePolling(database, 'dri"ver', "id", "name", "drivers")
    with pytest.raises(ValueError, match="of 1 is no number of milliseconds: 'a'"):
        poll.records("b")  # type: ignore[arg-type]  # texts are compared with texts


def test_how_far_it_was_is_kept(tmp_path: Path) -> None:
    offsets = OffsetFile(tmp_path / "offset")
    assert offsets.read() == 0
    offsets.write(17)
    offsets.write(18)
    assert offsets.read() == 18 and [path.name for path in tmp_path.iterdir()] == ["offset"]
    (tmp_path / "offset").write_text("[]")
    with pytest.raises(ValueError, match="is no file of offsets"):
        offsets.read()


def test_a_table_reads_what_a_poll_has_made(database: sqlite3.Connection) -> None:
    put(database, 7, "Ada", 10)
    (record,) = polling(database).records(50)
    value = json.loads(record.value or b"")
    statements = [
        "CREATE TABLE d (id STRING PRIMARY KEY, name STRING) WITH (kafka_topic='drivers', value_format='JSON');",
        "CREATE TABLE t AS SELECT id, UCASE(name) AS name FROM d;",
    ]
    given = {
        "topic": "drivers",
        "key": (record.key or b"").decode(),
        "value": value,
        "timestamp": record.time,
    }
    assert [one["value"] for one in run_case(statements, [given], host="local")] == [{"NAME": "ADA"}]
