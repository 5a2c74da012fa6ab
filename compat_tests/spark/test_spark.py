"""Spark reads and writes topics through format("kafka"): in batches, and as a stream with a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from .kit import STREAM_TIMEOUT_S, columns, create, read, rows, values, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 100_000
KEYS = 1000
PARTITIONS = 3
TRANSACTION_TIMEOUT_S = 30


@pytest.fixture
def topic(bootstrap: str, new_topic: Callable[[str], str]) -> str:
    return create(bootstrap, new_topic("spark"), PARTITIONS)


def rows_by_place(frame: DataFrame) -> dict[tuple[int, int], int]:
    return {(row["partition"], row["offset"]): row["row"] for row in columns(frame).collect()}


def test_a_batch_of_rows_is_written_and_read_back(spark: SparkSession, bootstrap: str, topic: str) -> None:
    write(rows(spark, 0, ROWS), bootstrap, topic, **{"kafka.compression.type": "lz4"})
    got = columns(read(spark, bootstrap, topic)).cache()
    assert got.count() == ROWS
    assert got.select("row").distinct().count() == ROWS
    wrong = got.where(
        "row < 0 or row >= 100000 or header <> 'row' or header_count <> 1 or key <> 'key-' || (row % 1000) "
        "or not (value <=> case when row % 100 = 0 then null else 'value-' || row end)"
    )
    assert wrong.limit(3).collect() == []
    spans = got.groupBy("partition").agg({"offset": "max", "*": "count"}).collect()
    assert len(spans) == PARTITIONS
    assert all(span["max(offset)"] + 1 == span["count(1)"] for span in spans)
    assert got.select("key", "partition").distinct().count() == KEYS  # a key stays in one partition
    got.unpersist()


def test_a_batch_is_read_between_given_offsets(spark: SparkSession, bootstrap: str, topic: str) -> None:
    write(rows(spark, 0, 3000), bootstrap, topic)
    every = {
        (row["partition"], row["offset"]): row["row"]
        for row in columns(read(spark, bootstrap, topic)).collect()
    }
    some = read(
        spark,
        bootstrap,
        topic,
        startingOffsets=f'{{"{topic}":{{"0":10,"1":20,"2":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":15,"1":21,"2":3}}}}',
    )
    wanted = [(0, offset) for offset in range(10, 15)] + [(1, 20)] + [(2, offset) for offset in range(3)]
    assert rows_by_place(some) == {place: every[place] for place in wanted}


def drain(spark: SparkSession, bootstrap: str, topic: str, checkpoint: Path) -> list[int]:
    """Run the stream from its checkpoint until it has read everything, then stop it; returns the rows it has read."""
    seen: list[int] = []

    def take(batch: DataFrame, _batch_id: int) -> None:
        seen.extend(row["row"] for row in columns(batch).collect())

    stream: Any = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", "2000")
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert stream.awaitTermination(STREAM_TIMEOUT_S), "the stream did not come to the end of the topic"
    finally:
        stream.stop()
    return sorted(seen)


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    write(rows(spark, 0, 5000), bootstrap, topic)
    assert drain(spark, bootstrap, topic, checkpoint) == list(range(5000))
    write(rows(spark, 5000, 8000), bootstrap, topic)
    assert drain(spark, bootstrap, topic, checkpoint) == list(range(5000, 8000))
    assert drain(spark, bootstrap, topic, checkpoint) == []


def test_a_stream_writes_what_it_reads_to_another_topic(
    spark: SparkSession, bootstrap: str, topic: str, new_topic: Callable[[str], str], tmp_path: Path
) -> None:
    copy = create(bootstrap, new_topic("copy"), 1)
    write(rows(spark, 0, 1000), bootstrap, topic)
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
        .select("key", "value", "headers")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        stream.processAllAvailable()
    finally:
        stream.stop()
    got = columns(read(spark, bootstrap, copy)).select("row").collect()
    assert sorted(row["row"] for row in got) == list(range(1000))


def transaction(bootstrap: str, topic: str, values: list[str]) -> Producer:
    """A transaction of its own with these values in partition 0, acknowledged and open."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{values[0]}"})
    producer.init_transactions(TRANSACTION_TIMEOUT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(TRANSACTION_TIMEOUT_S) == 0
    return producer


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_batch_sees_of_transactions_what_its_isolation_level_shows(
    spark: SparkSession, bootstrap: str, new_topic: Callable[[str], str], isolation: str
) -> None:
    topic = create(bootstrap, new_topic("transactions"), 1)
    options = {"kafka.isolation.level": isolation}
    uncommitted = isolation == "read_uncommitted"  # the default
    transaction(bootstrap, topic, ["a", "b"]).commit_transaction(TRANSACTION_TIMEOUT_S)
    transaction(bootstrap, topic, ["lost"]).abort_transaction(TRANSACTION_TIMEOUT_S)
    transaction(bootstrap, topic, ["c"]).commit_transaction(TRANSACTION_TIMEOUT_S)
    opened = transaction(bootstrap, topic, ["d", "e"])
    decided = ["a", "b", *(["lost"] if uncommitted else []), "c"]
    assert values(read(spark, bootstrap, topic, **options)) == decided + (["d", "e"] if uncommitted else [])
    opened.commit_transaction(TRANSACTION_TIMEOUT_S)
    assert values(read(spark, bootstrap, topic, **options)) == [*decided, "d", "e"]


def test_a_stream_waits_for_open_transactions(
    spark: SparkSession, bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path
) -> None:
    """With read_committed: each of its runs goes on where decided records ended in the one before."""
    topic = create(bootstrap, new_topic("transactions"), 1)
    seen: list[str] = []

    def run() -> list[str]:
        seen.clear()
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.foreachBatch(lambda batch, _batch_id: seen.extend(values(batch)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert stream.awaitTermination(STREAM_TIMEOUT_S), (
                "the stream did not come to the end of the topic"
            )
        finally:
            stream.stop()
        return list(seen)

    transaction(bootstrap, topic, ["a", "b"]).commit_transaction(TRANSACTION_TIMEOUT_S)
    opened = transaction(bootstrap, topic, ["open", "too"])
    transaction(bootstrap, topic, ["behind"]).commit_transaction(TRANSACTION_TIMEOUT_S)
    assert run() == ["a", "b"]
    opened.abort_transaction(TRANSACTION_TIMEOUT_S)
    assert run() == ["behind"]
    assert run() == []
