"""SQL pipelines in Spark: the same operators as in the plain loop give the same there; all pipelines share one job."""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.spark.kit import create
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.hosts.spark import SparkHost, configured, session
from pykafkad.pipelines.hosts.spark_streaming import StreamingQueryOptions, not_in_real_time, start
from pykafkad.pipelines.hosts.spark_writing import Done
from pykafkad.pipelines.spark_sql import CONFIGS
from pykafkad.pipelines.spark_sql.emitting import program
from pykafkad.pipelines.spark_sql.forms import said_of
from pykafkad.pipelines.testing import prepared, run_case, run_cases
from tests.unit.pipeline_kit import PIPELINES, by_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FLUSH_S, POLL_S, BATCH_S, TAKEN_S = 30, 10, 300, 90


@pytest.fixture(scope="module")
def pipelines_spark(spark: SparkSession) -> SparkSession:
    """The session of the other tests, as pipelines need it."""
    return session()


def test_spark_gives_what_the_plain_loop_gives(pipelines_spark: SparkSession) -> None:
    cases = {name: prepared(*pipeline) for name, pipeline in PIPELINES.items()}
    written = SparkHost(pipelines_spark, buckets=4).run(
        {name: (c.plans, c.records) for name, c in cases.items()}
    )
    got = {name: by_key(cases[name].plain(records)) for name, records in written.items()}
    assert got == {name: by_key(run_case(*pipeline, host="local")) for name, pipeline in PIPELINES.items()}


def test_a_case_runs_in_spark_unless_it_is_said_where(pipelines_spark: SparkSession) -> None:
    statements, inputs = PIPELINES["groups of a stream"]
    assert by_key(run_case(statements, inputs)) == by_key(
        run_cases([prepared(statements, inputs)], "local")[0]
    )


def produce(bootstrap: str, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, end):
        producer.produce(
            topic,
            json.dumps({"page": f"p{number % 3}"}),
            f"k{number % 7}",
        )
    assert producer.flush(FLUSH_S) == 0


def committed_counts(bootstrap: str, topic: str, expected: int) -> dict[bytes, list[int]]:
    """What was counted for each key, in order; it waits for as many records as are expected, and a while for more."""
    configs = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **configs})
    consumer.subscribe([topic])
    found: dict[bytes, list[int]] = {}
    count = 0
    while (message := consumer.poll(POLL_S if count < expected else 2)) is not None:
        assert message.error() is None
        found.setdefault(message.key() or b"", []).append(json.loads(message.value() or b"")["N"])
        count += 1
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("cache", "expected"), [("0", list(range(1, 31))), ("10485760", [20, 30])], ids=["every", "last"]
)
def test_a_query_goes_on_where_it_stopped_and_writes_a_repeated_batch_once(
    pipelines_spark: SparkSession,
    bootstrap: str,
    new_topic: Callable[[str], str],
    tmp_path: Path,
    cache: str,
    expected: list[int],
) -> None:
    """Of a total every change, or the last of each batch."""
    clicks, counts = create(bootstrap, new_topic("clicks"), 2), create(bootstrap, new_topic("counts"), 2)
    case = prepared(
        [
            f"CREATE STREAM c (who STRING KEY, page STRING) WITH (kafka_topic='{clicks}', value_format='JSON');",
            f"CREATE TABLE n WITH (kafka_topic='{counts}') AS SELECT page, COUNT(*) AS n FROM c GROUP BY page;",
        ],
        [],
        {"cache.max.bytes.buffering": cache},
    )
    options = StreamingQueryOptions(bootstrap, tmp_path, exactly_once=True, until_idle=True, buckets=4)

    def run() -> None:
        query = start(pipelines_spark, counts, case.plans[0], options)
        assert query.awaitTermination(BATCH_S)

    produce(bootstrap, clicks, 0, 60)
    run()
    produce(bootstrap, clicks, 60, 90)
    run()
    last = max((tmp_path / counts / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (last, last.with_name(f".{last.name}.crc")):  # as if Spark had died before it knew
        path.unlink(missing_ok=True)
    run()
    found = committed_counts(bootstrap, counts, 3 * len(expected))
    assert found == {f"p{n}".encode(): expected for n in range(3)}


# --- compiled statements

RIDES = (
    "CREATE STREAM rides (id BIGINT KEY, who STRING, km DOUBLE) WITH (kafka_topic='{rides}', format='JSON');"
)
FAR = (
    "CREATE STREAM far WITH (kafka_topic='{far}') AS SELECT id, who, km * 1000 AS m FROM rides WHERE km > 2;"
)


def forever(bootstrap: str, topic: str, partitions: int) -> str:
    """A topic that also keeps the records of 2023."""
    return create(bootstrap, topic, partitions, retention_ms="-1")


def ride(number: int) -> tuple[bytes, bytes]:
    """Some that Spark reads, some that it leaves to the operators, and some that nobody reads."""
    key = str(number).encode()
    match number % 10:
        case 7:
            return key, b'{"who": "coerced", "km": "4.5"}'
        case 8:
            return key, b'{"Who": "mixed", "KM": 3}'
        case 9:
            return key, b'{"who": no JSON'
        case _:
            return key, json.dumps({"who": f"w{number}", "km": number % 10}).encode()


def expected_rides(count: int) -> dict[bytes, dict[str, object]]:
    found: dict[bytes, dict[str, object]] = {}
    for number in range(count):
        km = {7: 4.5, 8: 3.0, 9: 0.0}.get(number % 10, float(number % 10))
        who = {7: "coerced", 8: "mixed"}.get(number % 10, f"w{number}")
        if km > 2:
            found[str(number).encode()] = {"WHO": who, "M": km * 1000}
    return found


def send_rides(bootstrap: str, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, end):
        key, value = ride(number)
        producer.produce(topic, value, key, timestamp=1_700_000_000_000 + number)
    assert producer.flush(FLUSH_S) == 0


def taken(bootstrap: str, topic: str, count: int) -> list[Any]:
    """So many committed messages; it waits a while for more."""
    configs = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **configs})
    consumer.subscribe([topic])
    found: list[Any] = []
    deadline = time.monotonic() + TAKEN_S
    while (message := consumer.poll(1)) is not None or (len(found) < count and time.monotonic() < deadline):
        if message is not None:
            assert message.error() is None
            found.append(message)
    consumer.close()
    return found


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_compiled_statement_with_records_that_are_not_as_declared(
    pipelines_spark: SparkSession,
    bootstrap: str,
    new_topic: Callable[[str], str],
    tmp_path: Path,
    exactly_once: bool,
) -> None:
    rides, far, dead = (forever(bootstrap, new_topic(name), 2) for name in ("rides", "far", "dead"))
    script = [RIDES.format(rides=rides), FAR.format(far=far)]
    (plan,) = prepared(script, [], {"errors.dead.letter.queue.topic.name": dead}).plans
    assert said_of(plan) == "In Spark: compiled to Spark SQL"
    done: list[Done] = []
    options = StreamingQueryOptions(
        bootstrap, tmp_path, exactly_once=exactly_once, until_idle=True, done=done.append
    )
    for first, end in ((0, 60), (60, 100)):
        send_rides(bootstrap, rides, first, end)
        assert start(pipelines_spark, far, plan, options).awaitTermination(BATCH_S)
    expected = expected_rides(100)
    written = taken(bootstrap, far, len(expected))
    assert [(m.key(), json.loads(m.value())) for m in sorted(written, key=lambda m: int(m.key()))] == list(
        expected.items()
    )
    assert {m.timestamp()[1] - int(m.key()) for m in written} == {1_700_000_000_000}
    letters = taken(bootstrap, dead, 10)
    assert sorted(int(m.key()) for m in letters) == list(range(9, 100, 10))
    assert {m.value() for m in letters} == {b'{"who": no JSON'}
    assert {dict(m.headers())["__streams.errors.topic"] for m in letters} == {rides.encode()}
    assert (sum(one.written for one in done), sum(one.bad for one in done)) == (len(expected), 10)
    assert "is left out" in next(text for one in done for text in one.said)


def test_an_emitted_program_does_it_without_pykafkad(
    pipelines_spark: SparkSession,
    bootstrap: str,
    new_topic: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rides, far = (forever(bootstrap, new_topic(name), 2) for name in ("rides", "far"))
    checker = Checker()
    text = f"SET 'auto.offset.reset' = 'earliest';{RIDES.format(rides=rides)}{FAR.format(far=far)}"
    assert list(checker.script(text, "far.sql")) == []
    file = tmp_path / "far.py"
    file.write_text(program("far.sql", text, checker.session))
    assert "import pykafkad" not in file.read_text() and "from pykafkad" not in file.read_text()
    send_rides(bootstrap, rides, 0, 40)
    monkeypatch.setattr(sys, "argv", [str(file), bootstrap, str(tmp_path / "kept"), "--once"])
    with configured(
        pipelines_spark, CONFIGS
    ):  # the program sets them, and has a session of its own otherwise
        runpy.run_path(str(file))
    expected = {key: one for key, one in expected_rides(40).items() if int(key) % 10 < 7}
    written = taken(bootstrap, far, len(expected))
    assert {m.key(): json.loads(m.value()) for m in written} == expected and len(written) == len(expected)


def test_real_time_mode(
    pipelines_spark: SparkSession, bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path
) -> None:
    """Results are there before the first batch ends; what Spark does not read is a dead letter."""
    rides, far, dead = (forever(bootstrap, new_topic(name), 1) for name in ("rides", "far", "dead"))
    script = [RIDES.format(rides=rides), FAR.format(far=far)]
    (plan,) = prepared(script, [], {"errors.dead.letter.queue.topic.name": dead}).plans
    query = start(pipelines_spark, far, plan, StreamingQueryOptions(bootstrap, tmp_path, realtime=True))
    try:
        send_rides(bootstrap, rides, 0, 10)
        written = taken(bootstrap, far, 4)
        assert {m.key() for m in written} == {b"3", b"4", b"5", b"6"}
        assert json.loads(written[0].value()) == {"WHO": "w3", "M": 3000.0}
        letters = taken(bootstrap, dead, 3)
        assert {m.key() for m in letters} == {b"7", b"8", b"9"}
        assert {dict(m.headers())["__streams.errors.offset"] for m in letters} == {b"7", b"8", b"9"}
    finally:
        query.stop()


def test_what_cannot_run_in_real_time_mode_is_said() -> None:
    counted = "CREATE TABLE n AS SELECT who, COUNT(*) AS n FROM rides GROUP BY who;"
    (plan,) = prepared([RIDES.format(rides="rides"), counted], []).plans
    assert not_in_real_time(plan, exactly_once=False) == "it has state"
    (plan,) = prepared([RIDES.format(rides="rides"), FAR.format(far="far")], []).plans
    assert "dead.letter" in (not_in_real_time(plan, exactly_once=False) or "")
    assert "exactly_once_v2" in (not_in_real_time(plan, exactly_once=True) or "")
