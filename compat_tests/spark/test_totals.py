"""Groups that are compiled to Spark's own aggregation say what our operators say: generated records through both, as topics
in several batches, each by a query that goes on from its checkpoint.
"""

# ruff: noqa: E501 (tables of what is tried)

from __future__ import annotations

import json
import random
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.spark.kit import create
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.hosts.local import LocalHost
from pykafkad.pipelines.hosts.spark import configured, session
from pykafkad.pipelines.hosts.spark_streaming import StreamingQueryOptions, start
from pykafkad.pipelines.hosts.spark_writing import Done
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql import CONFIGS
from pykafkad.pipelines.spark_sql.emitting import program
from pykafkad.pipelines.spark_sql.forms import said_of
from pykafkad.pipelines.testing import prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLUSH_S, POLL_S, BATCH_S = 30, 15, 300
BEGINNING = 1_700_000_000_000
BATCHES, RECORDS = 3, 250

SOURCE = (
    "CREATE STREAM r (k STRING KEY, g STRING, f BOOLEAN, i INT, b BIGINT, s STRING, m TIMESTAMP) "
    "WITH (kafka_topic='{}', value_format='JSON');"
)
TUMBLING = "WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 4 SECONDS)"
HOPPING = "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 3 SECONDS, GRACE PERIOD 2 SECONDS)"
STATEMENTS = {
    "counts": "SELECT g, COUNT(*) AS n, COUNT(i) AS ni, COUNT(s) AS ns FROM r GROUP BY g",
    "sums": "SELECT g, SUM(i) AS si, SUM(b) AS sb, AVG(i) AS a, SUM(i + 1) AS s1 FROM r WHERE i <> 3 GROUP BY g",
    "averages": f"SELECT g, AVG(b) AS a, AVG(i) AS ai, AVG(b + 1) AS a1 FROM r {TUMBLING} GROUP BY g",
    "extremes": "SELECT f, MIN(i) AS a1, MAX(i) AS a2, MIN(b) AS a3, MAX(b) AS a4, MIN(s) AS a5, MAX(s) AS a6, MAX(m) AS a7 FROM r GROUP BY f",
    "tumbling": f"SELECT g, COUNT(*) AS n, SUM(b) AS sb, MAX(i) AS x FROM r {TUMBLING} GROUP BY g",
    "hopping": f"SELECT g, COUNT(*) AS n, MIN(s) AS x FROM r {HOPPING} GROUP BY g",
    "several keys": f"SELECT g, f, i + 1 AS h, COUNT(*) AS n FROM r {TUMBLING} WHERE i < 5 GROUP BY g, f, i + 1",
    "made of groups": f"SELECT g, UCASE(MAX(s)) AS x, SUM(i) + COUNT(*) AS y, WINDOWEND - WINDOWSTART AS z FROM r {TUMBLING} GROUP BY g",
    "having": f"SELECT g, COUNT(*) AS n, MAX(i) AS x FROM r {TUMBLING} GROUP BY g HAVING COUNT(*) > 2 AND (g <> 'c' OR 0 > MIN(b))",
    "having of all time": "SELECT g, COUNT(*) AS n FROM r GROUP BY g HAVING 150 <= COUNT(i) OR MAX(s) > LCASE(g)",
    "another format": "SELECT i, MAX(s) AS x, COUNT(*) AS n FROM r GROUP BY i",
}
FORMATS = {
    "several keys": ", key_format='JSON'",
    "extremes": ", key_format='JSON'",
    "another format": ", value_format='DELIMITED'",
}

NUMBERS = [0, 1, 2, 3, 4, -7, 2**31 - 1, -(2**31), None]
LONG = [*NUMBERS, 2**63 - 1, -(2**63), 10**18]
TEXTS = ["", "a", "abc", "Zz", "näh", "日本", "😀", 'q"q', "a,b", " pad", None]
FIELDS: dict[str, list[Any]] = {
    "G": ["a", "c", "ä", "日本", None], "F": [True, False, None], "I": NUMBERS, "B": LONG, "S": TEXTS, "M": [0, 5, None],
}  # fmt: skip
ODD = [
    None,
    b"",
    b"null",
    b"no JSON",
    b'{"G": "x", "I": "12"}',
    b'{"G": "x", "i": 7}',
    b'{"G": 1.50, "I": 1}',
    b'{"G": "\\ud800"}',
    b"[]",
]


class Sent(NamedTuple):
    value: bytes | None
    time: int
    partition: int
    headers: tuple[tuple[str, bytes], ...]


def generated(seed: int, partitions: int, late: tuple[int, ...], with_headers: bool) -> list[list[Sent]]:
    rng, now = random.Random(seed), BEGINNING
    batches = []
    for _ in range(BATCHES):
        batch = []
        for number in range(RECORDS):
            now += rng.randrange(400)
            made = {name: rng.choice(values) for name, values in FIELDS.items()}
            value = rng.choice(ODD) if rng.random() < 0.08 else json.dumps(made, ensure_ascii=False).encode()
            headers = (("n", str(number).encode()),) if with_headers and rng.random() < 0.1 else ()
            batch.append(Sent(value, max(0, now - rng.choice(late)), rng.randrange(partitions), headers))
        batches.append(batch)
    return batches


def plans(topic: str, targets: dict[str, str], **properties: str) -> dict[str, Plan]:
    found = {}
    for name, target in targets.items():
        made = f"CREATE TABLE w WITH (kafka_topic='{target}'{FORMATS.get(name, '')}) AS {STATEMENTS[name]};"
        found[name] = prepared([SOURCE.format(topic), made], [], properties).plans[-1]
    return found


Written = dict[bytes | None, list[tuple[Any, int, Any]]]


def expected(plan: Plan, topic: str, batches: list[list[Sent]]) -> tuple[Written, int]:
    """By key the last that each batch says of it, and how many records are left out."""
    bad: list[Record] = []
    host, found = LocalHost(lambda record, error: bad.append(record)), Written()
    host.add(plan)
    for batch in batches:
        last: dict[bytes | None, tuple[Any, int, Any]] = {}
        for one in batch:
            for made in host.feed(Record(topic, b"k", one.value, one.time, one.headers)):
                last[made.key] = plain(made.value), made.time, list(made.headers)
        for key, said in last.items():
            found.setdefault(key, []).append(said)
    return found, len(bad)


def plain(data: bytes | None) -> Any:
    return json.loads(data) if data is not None and data.startswith(b"{") else data


def send(bootstrap: str, topic: str, batch: list[Sent]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for one in batch:
        producer.produce(topic, one.value, b"k", one.partition, timestamp=one.time, headers=dict(one.headers))
    assert producer.flush(FLUSH_S) == 0


def written(bootstrap: str, topic: str, count: int) -> Written:
    configs = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **configs})
    consumer.subscribe([topic])
    found, seen = Written(), 0
    while (message := consumer.poll(POLL_S if seen < count else 1)) is not None:
        assert message.error() is None
        said = plain(message.value()), message.timestamp()[1], message.headers() or []
        found.setdefault(message.key(), []).append(said)
        seen += 1
    consumer.close()
    return found


@pytest.fixture(scope="module")
def pipelines_spark(spark: SparkSession) -> SparkSession:
    return session()


@pytest.mark.parametrize(
    ("partitions", "late", "with_headers"),
    [(1, (0, 0, 0, 500, 3000, 8000, 15_000, 60_000), True), (3, (0, 500, 1500), False)],
    ids=["late in one partition", "in several partitions"],
)
def test_groups(
    pipelines_spark: SparkSession,
    bootstrap: str,
    new_topic: Callable[[str], str],
    tmp_path: Path,
    partitions: int,
    late: tuple[int, ...],
    with_headers: bool,
) -> None:
    topic, dead = (
        create(bootstrap, new_topic(name), count, retention_ms="-1")
        for name, count in (("r", partitions), ("dead", 1))
    )
    targets = {name: create(bootstrap, new_topic("w"), 2, retention_ms="-1") for name in STATEMENTS}
    batches = generated(7, partitions, late, with_headers)
    found = plans(topic, targets, **{"errors.dead.letter.queue.topic.name": dead})
    done: dict[str, list[Done]] = {name: [] for name in found}
    for batch in batches:
        send(bootstrap, topic, batch)
        running = []
        for name, plan in found.items():
            assert said_of(plan) == "In Spark: compiled to Spark SQL, with an aggregation of Spark's own", (
                name
            )
            options = StreamingQueryOptions(
                bootstrap, tmp_path, exactly_once=name == "sums", until_idle=True, done=done[name].append
            )
            running.append(start(pipelines_spark, targets[name], plan, options))
        assert all(query.awaitTermination(BATCH_S) for query in running)
    letters = 0
    for name, plan in found.items():
        said, bad = expected(plan, topic, batches)
        count = sum(map(len, said.values()))
        assert written(bootstrap, targets[name], count) == said, name
        assert sum(one.written for one in done[name]) == count
        assert sum(one.bad for one in done[name]) == bad > 0, name
        letters += bad
    assert sum(map(len, written(bootstrap, dead, letters).values())) == letters


def test_an_emitted_program_counts_without_pykafkad(
    pipelines_spark: SparkSession,
    bootstrap: str,
    new_topic: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Spark does not read as we do is left out there; nothing is late in one batch."""
    topic, counts = (create(bootstrap, new_topic(name), 1, retention_ms="-1") for name in ("r", "w"))
    script = f"SET 'auto.offset.reset' = 'earliest'; {SOURCE.format(topic)} CREATE TABLE w WITH (kafka_topic='{counts}') AS {STATEMENTS['tumbling']};"
    checker = Checker()
    assert list(checker.script(script, "counts.sql")) == []
    file = tmp_path / "counts.py"
    file.write_text(program("counts.sql", script, checker.session))
    assert "import pykafkad" not in file.read_text() and "from pykafkad" not in file.read_text()
    batch = [one for one in generated(3, 1, (0,), False)[0] if one.value not in ODD]
    send(bootstrap, topic, [*batch, Sent(b"no JSON", BEGINNING, 0, ())])
    monkeypatch.setattr(sys, "argv", [str(file), bootstrap, str(tmp_path / "kept"), "--once"])
    with configured(
        pipelines_spark, CONFIGS
    ):  # the program sets them, and has a session of its own otherwise
        runpy.run_path(str(file))
    plan = prepared([SOURCE.format(topic), script.split(";", 2)[2]], []).plans[-1]
    said, _ = expected(plan, topic, [batch])
    got = written(bootstrap, counts, len(said))
    assert {key: found for key, ((found, _, _),) in got.items()} == {
        key: found for key, ((found, _, _),) in said.items()
    }
