"""The examples against a broker: the trucks with drivers from a database, and what cannot be read put aside."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad.testing import Broker
from pykafkad.tools.producer import Producer

SECONDS = 120
EXAMPLES = Path(__file__).parents[2] / "examples"
SQL = ("-m", "pykafkad", "sql")
RUN = ("run", "--host", "local")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert found.returncode == 0, f"{found.stdout}\n{found.stderr}"
    return found


def run(broker: Broker, name: str, kept: Path) -> subprocess.CompletedProcess[str]:
    """What is there now, from where the last run ended."""
    script, options = EXAMPLES / name / f"{name}.sql", ("--once", "--checkpoints", str(kept))
    return python(*SQL, *RUN, str(script), *options, "--bootstrap-server", broker.bootstrap_servers)


def printed(broker: Broker, topic: str, count: int) -> list[str]:
    """So many records of a topic; one that is missing is waited for until the process is ended."""
    statement = f"PRINT '{topic}' FROM BEGINNING LIMIT {count};"
    return python(
        *SQL, "--bootstrap-server", broker.bootstrap_servers, "--execute", statement
    ).stdout.splitlines()


def produce(broker: Broker, topic: str, *records: tuple[str, str, int]) -> None:
    producer = Producer(broker.bootstrap_servers, {})
    for key, value, time in records:
        producer.send(topic, key.encode(), value.encode(), timestamp_ms=time)
    producer.close()


def write(database: Path, *rows: tuple[int, str, str, int]) -> None:
    connection = sqlite3.connect(database)
    connection.executemany("REPLACE INTO driver VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


def poll(broker: Broker, directory: Path) -> str:
    script, offsets = str(EXAMPLES / "trucks" / "poll_drivers.py"), str(directory / "offset")
    database = str(directory / "drivers.db")
    return python(script, database, broker.bootstrap_servers, "--offsets", offsets, "--once").stdout


def test_trucks_with_drivers_from_a_database(broker: Broker, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert poll(broker, tmp_path) == ""
    write(tmp_path / "drivers.db", (11, "Ada", "Muster", 1000), (12, "Bert", "Beispiel", 2000))
    assert poll(broker, tmp_path) == "2 drivers\n"
    run(broker, "trucks", kept)
    first = ("97", "61000,11,7,Overspeed,38.67,-90.21", 0), ("42", "62000,12,8,Normal,40.38,-89.17", 0)
    produce(broker, "truck_position", *first)
    run(broker, "trucks", kept)
    write(tmp_path / "drivers.db", (11, "Ada", "Beispiel", 64000))
    assert poll(broker, tmp_path) == "1 drivers\n", "only what has changed"
    produce(broker, "truck_position", ("97", "95000,11,7,Overspeed,38.7,-90.24", 0))
    facts = [json.loads(line) for line in run(broker, "trucks", kept).stdout.splitlines()]
    assert [one["rows_out"] for one in facts] == [1, 1, 2]
    lines = printed(broker, "dangerous_driving_and_driver", 2)
    assert '"FIRST_NAME":"Ada","LAST_NAME":"Muster"' in lines[0]
    assert '"FIRST_NAME":"Ada","LAST_NAME":"Beispiel"' in lines[1]


def test_a_payment_that_is_no_json_is_put_aside_as_it_was(broker: Broker, tmp_path: Path) -> None:
    run(broker, "retries", tmp_path)
    produce(broker, "payments", ('"a1"', "{no JSON", 7), ('"a1"', '{"AMOUNT": 2.50, "ANSWER": "paid"}', 8))
    found = run(broker, "retries", tmp_path)
    (dead,) = printed(broker, "payments.unreadable", 1)
    assert 'key: "a1", value: {no JSON' in dead and found.stderr.count("is left out") == 1
    (paid,) = printed(broker, "payments.paid", 1)
    assert '{"AMOUNT":2.50}' in paid


def test_the_log_in_a_topic_is_a_stream_that_can_be_read(broker: Broker, tmp_path: Path) -> None:
    script = tmp_path / "log.sql"
    script.write_text(
        "SET 'processing.log' = 'plog';"
        "CREATE STREAM texts (v STRING) WITH (kafka_topic='s', partitions=1, format='KAFKA');"
        "INSERT INTO texts VALUES ('{no JSON');"
        "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE STREAM t AS SELECT a FROM s;"
    )
    found = python(*SQL, *RUN, str(script), "--until-idle", "--bootstrap-server", broker.bootstrap_servers)
    assert "left out" not in found.stderr and json.loads(found.stdout.splitlines()[-1])["bad_records"] == 1
    read = (
        "CREATE STREAM plog (message STRUCT<type INT, deserializationError STRUCT<topic STRING>>) "
        "WITH (kafka_topic='plog', value_format='JSON');"
        "SELECT message->type AS n, message->deserializationError->topic AS t FROM plog;"
    )
    lines = python(*SQL, "--bootstrap-server", broker.bootstrap_servers, "--execute", read).stdout
    cells = [[cell.strip() for cell in line.split("|")] for line in lines.splitlines() if "|" in line]
    assert cells[-1] == ["0", "s"]
