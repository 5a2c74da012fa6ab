"""`pykafkad sql run --host spark`: scripts as processes, which are killed and go on from their checkpoints."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests import needs
from compat_tests.spark.kit import create
from pykafkad.pipelines.hosts.spark_connector import COORDINATES

FLUSH_S, POLL_S, DEADLINE_S = 30, 10, 300
FIRST, SECOND = 3_000, 1_500

SCRIPT = """
SET 'processing.guarantee' = 'exactly_once_v2';
SET 'ksql.streams.cache.max.bytes.buffering' = '0';
CREATE STREAM clicks (who STRING KEY, page STRING, ms INT) WITH (kafka_topic='{clicks}', value_format='JSON');
CREATE STREAM slow WITH (kafka_topic='{slow}', partitions=2) AS
  SELECT who, page, ms / 10 AS cs FROM clicks WHERE ms >= 20;
CREATE TABLE pages WITH (kafka_topic='{pages}', partitions=2) AS SELECT page, COUNT(*) AS n FROM slow GROUP BY page;
"""


@pytest.fixture
def script(bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path) -> dict[str, str]:
    """The script's file, and its topics by name. The connector is where Maven keeps it."""
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    needs.program("java")
    needs.program("mvn")
    topics = {name: new_topic(name) for name in ("clicks", "slow", "pages")}
    create(bootstrap, topics["clicks"], 2)
    file = tmp_path / "clicks.sql"
    file.write_text(SCRIPT.format(**topics))
    return {"file": str(file), **topics}


@contextmanager
def running(bootstrap: str, file: str, kept: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "pykafkad",
        "sql",
        "run",
        file,
        "--host",
        "spark",
        "--master",
        "local[2]",
    ]
    process = subprocess.Popen(
        [*command, "--bootstrap-server", bootstrap, "--checkpoints", str(kept), *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(bootstrap: str, script: dict[str, str], kept: Path, *flags: str) -> tuple[list[dict[str, Any]], str]:
    """What the queries' last lines say, and standard error."""
    with running(bootstrap, script["file"], kept, *flags) as process:
        out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, f"{out[-2000:]}\n{err[-2000:]}"
    last = {facts["query"]: facts for facts in map(json.loads, out.splitlines())}
    return list(last.values()), err


def produce(bootstrap: str, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, end):
        producer.produce(topic, json.dumps({"page": f"p{number % 3}", "ms": number % 40}), f"k{number % 7}")
    assert producer.flush(FLUSH_S) == 0


def committed(bootstrap: str, topic: str, expected: int) -> list[tuple[str, dict[str, Any]]]:
    """Keys and values; it waits for as many records as are expected, and a while for more."""
    configs = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **configs})
    consumer.subscribe([topic])
    found: list[tuple[str, dict[str, Any]]] = []
    while (message := consumer.poll(POLL_S if len(found) < expected else 2)) is not None:
        assert message.error() is None, message.error()
        found.append(((message.key() or b"").decode(), json.loads(message.value() or b"")))
    consumer.close()
    return found


def is_slow(number: int) -> bool:
    return number % 40 >= 20


def test_a_killed_run_goes_on_and_every_result_is_there_once(
    bootstrap: str, script: dict[str, str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    produce(bootstrap, script["clicks"], 0, FIRST)
    with running(bootstrap, script["file"], kept, "--once") as process:
        deadline = time.monotonic() + DEADLINE_S
        while not any((kept / "SLOW" / "offsets").glob("[0-9]*")):  # its first batch is under way
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.02)
    produce(bootstrap, script["clicks"], FIRST, FIRST + SECOND)
    bad = Producer({"bootstrap.servers": bootstrap})
    bad.produce(script["clicks"], b"{no JSON", b"k", partition=0)
    assert bad.flush(FLUSH_S) == 0
    facts, err = run(bootstrap, script, kept, "--once")
    expected = [number for number in range(FIRST + SECOND) if is_slow(number)]
    assert [(one["state"], set(one["lag"].values())) for one in facts] == [("RUNNING", {0})] * 2
    assert f"CSAS_SLOW_1: {script['clicks']}-0 offset" in err and "is left out" in err
    slow = committed(bootstrap, script["slow"], len(expected))
    assert sorted((key, value["PAGE"], value["CS"]) for key, value in slow) == sorted(
        (f"k{number % 7}", f"p{number % 3}", number % 40 // 10) for number in expected
    )
    counts: dict[str, list[int]] = {}
    for key, value in committed(bootstrap, script["pages"], len(expected)):
        counts.setdefault(key, []).append(value["N"])
    assert counts == {
        f"p{page}": list(range(1, sum(number % 3 == page for number in expected) + 1)) for page in range(3)
    }


def test_the_connector_of_the_tests_is_that_of_pipelines() -> None:
    pom = (needs.HERE / "spark" / "pom.xml").read_text()
    for coordinate in COORDINATES:
        group, artifact, version = coordinate.split(":")
        assert (
            f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            in pom
        )
