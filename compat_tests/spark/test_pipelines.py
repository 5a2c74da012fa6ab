"""SQL pipelines in Spark: the same operators as in the plain loop give the same there; all pipelines share one job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.spark.kit import create
from pykafkad.pipelines.hosts.spark import SparkHost, session
from pykafkad.pipelines.hosts.spark_streaming import StreamingQueryOptions, start
from pykafkad.pipelines.testing import prepared, run_case, run_cases
from tests.unit.pipeline_kit import PIPELINES, by_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FLUSH_S, POLL_S, BATCH_S = 30, 10, 300


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


def test_a_query_goes_on_where_it_stopped_and_writes_a_repeated_batch_once(
    pipelines_spark: SparkSession, bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path
) -> None:
    clicks, counts = create(bootstrap, new_topic("clicks"), 2), create(bootstrap, new_topic("counts"), 2)
    case = prepared(
        [
            f"CREATE STREAM c (who STRING KEY, page STRING) WITH (kafka_topic='{clicks}', value_format='JSON');",
            f"CREATE TABLE n WITH (kafka_topic='{counts}') AS SELECT page, COUNT(*) AS n FROM c GROUP BY page;",
        ],
        [],
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
    assert committed_counts(bootstrap, counts, 90) == {f"p{n}".encode(): list(range(1, 31)) for n in range(3)}
