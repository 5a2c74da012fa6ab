"""Streams of format("kafka"): windows, joins, duplicates, partitions that come, records that went, real-time mode."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from .kit import (
    ADMIN_TIMEOUT_S,
    STREAM_TIMEOUT_S,
    create,
    emitted,
    grow,
    produce,
    read,
    run_once,
    stream,
    values,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NewTopicName = Callable[[str], str]
BEGIN_S = 1_700_000_040  # begins a minute
DAYS_KEPT = {"retention_ms": "-1"}
PARSED = "from_json(cast(value as string), 'id int, at timestamp, what string') as row"


def events(bootstrap: str, topic: str, *each: tuple[int, int, str], partition: int = 0) -> None:
    """Each: an id, the second of its time, what it is; the record's own timestamp is that time."""
    texts = [
        json.dumps({"id": number, "at": f"{at_text(second)}", "what": what}) for number, second, what in each
    ]
    produce(bootstrap, topic, texts, partition, lambda number: (BEGIN_S + each[number][1]) * 1000)


def at_text(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN_S + second))


def parsed(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(PARSED).select("row.*")


def seconds(column: str) -> str:
    return f"cast(unix_timestamp({column}) - {BEGIN_S} as int)"


# -- time


def test_windows_are_counted_and_late_events_left_out(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    """Appended when the watermark has passed the window's end; what came after that counts no more."""
    from pyspark.sql import functions

    topic = create(bootstrap, new_topic("windows"), 1, **DAYS_KEPT)

    def run() -> set[tuple[int, str, int]]:
        counted = (
            parsed(stream(spark, bootstrap, topic))
            .withWatermark("at", "30 seconds")
            .groupBy(functions.window("at", "1 minute"), "what")
            .count()
            .selectExpr(seconds("window.start"), "what", "cast(count as int)")
        )
        return set(emitted(counted, tmp_path / "checkpoint"))

    events(bootstrap, topic, (1, 0, "a"), (2, 10, "a"), (3, 20, "b"), (4, 59, "a"), (5, 70, "a"))
    assert run() == set()  # the watermark is at 40
    events(bootstrap, topic, (6, 100, "b"))  # and now at 70
    assert run() == {(0, "a", 3), (0, "b", 1)}
    events(bootstrap, topic, (7, 5, "a"), (8, 80, "b"), (9, 200, "a"))
    assert run() == {(60, "a", 1), (60, "b", 2)}


def test_the_time_of_a_record_is_its_timestamp(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic = create(bootstrap, new_topic("times"), 1, **DAYS_KEPT)
    events(bootstrap, topic, (1, 0, "a"), (2, 61, "a"), (3, 62, "a"))
    frame = stream(spark, bootstrap, topic).selectExpr(
        "date_trunc('minute', timestamp) as minute", "timestampType"
    )
    counted = (
        frame.groupBy("minute", "timestampType")
        .count()
        .selectExpr(seconds("minute"), "timestampType", "cast(count as int)")
    )
    found = emitted(counted, tmp_path / "checkpoint", "complete")
    assert sorted(found) == [(0, 0, 1), (60, 0, 2)]


# -- joins and duplicates


def test_two_streams_are_joined_within_an_interval(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    from pyspark.sql import functions

    shown, clicked = (create(bootstrap, new_topic(name), 2, **DAYS_KEPT) for name in ("shown", "clicked"))
    events(bootstrap, shown, (1, 0, "s1"), (2, 5, "s2"), (3, 100, "s3"))
    events(bootstrap, clicked, (1, 10, "c1"), (2, 40, "too late"), (3, 101, "c3"), (9, 5, "never shown"))

    left = parsed(stream(spark, bootstrap, shown)).withWatermark("at", "1 minute").alias("s")
    right = parsed(stream(spark, bootstrap, clicked)).withWatermark("at", "1 minute").alias("c")
    within = functions.expr("s.id = c.id and c.at >= s.at and c.at <= s.at + interval 20 seconds")
    joined = left.join(right, within).selectExpr("s.what", "c.what")

    def run() -> set[Any]:
        return set(emitted(joined, tmp_path / "checkpoint"))

    assert run() == {("s1", "c1"), ("s3", "c3")}
    events(bootstrap, clicked, (3, 110, "again"), partition=1)  # what was shown is remembered
    assert run() == {("s3", "again")}


def test_duplicates_are_dropped_across_runs(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic = create(bootstrap, new_topic("twice"), 2, **DAYS_KEPT)

    def run() -> list[int]:
        seen: list[int] = []
        once = (
            parsed(stream(spark, bootstrap, topic))
            .withWatermark("at", "10 minutes")
            .dropDuplicatesWithinWatermark(["id"])
        )
        run_once(
            once, tmp_path / "checkpoint", lambda batch, _: seen.extend(r["id"] for r in batch.collect())
        )
        return sorted(seen)

    events(bootstrap, topic, (1, 0, "a"), (1, 1, "a"), (2, 2, "b"))
    events(bootstrap, topic, (2, 2, "b"), (3, 3, "c"), partition=1)
    assert run() == [1, 2, 3]
    events(bootstrap, topic, (3, 4, "c"), (4, 5, "d"))
    assert run() == [4]


# -- what becomes of topics meanwhile


def test_partitions_that_are_added_are_read_from_their_beginning(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic = create(bootstrap, new_topic("growing"), 1)
    seen: list[str] = []
    query: Any = (
        stream(spark, bootstrap, topic, **{"kafka.metadata.max.age.ms": "500"})
        .writeStream.foreachBatch(lambda batch, _: seen.extend(values(batch)))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        produce(bootstrap, topic, ["old"])
        query.processAllAvailable()
        grow(bootstrap, topic, 3)
        produce(bootstrap, topic, ["new 1", "new 1 too"], 1)
        produce(bootstrap, topic, ["new 2"], 2)
        deadline = time.monotonic() + STREAM_TIMEOUT_S
        while len(seen) < 4:
            assert query.isActive and time.monotonic() < deadline, seen
            query.processAllAvailable()
            time.sleep(0.1)
    finally:
        query.stop()
    assert sorted(seen) == ["new 1", "new 1 too", "new 2", "old"]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_records_that_went_before_they_were_read(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path, fails: str
) -> None:
    """As by retention: the stream's next offset is below the log's start."""
    topic = create(bootstrap, new_topic("lost"), 1)
    seen: list[str] = []

    def run() -> None:
        frame = stream(spark, bootstrap, topic, failOnDataLoss=fails)
        run_once(frame, tmp_path / "checkpoint", lambda batch, _: seen.extend(values(batch)))

    produce(bootstrap, topic, ["0", "1"])
    run()
    produce(bootstrap, topic, ["2", "3", "4", "5"])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    place = TopicPartition(topic, 0, 4)
    (deleted,) = admin.delete_records([place], request_timeout=ADMIN_TIMEOUT_S).values()
    assert deleted.result(ADMIN_TIMEOUT_S).low_watermark == 4
    if fails == "true":
        with pytest.raises(Exception, match=r"(?i)data.?loss|missed|failOnDataLoss|out of range"):
            run()
        assert seen == ["0", "1"]
    else:
        run()
        assert seen == ["0", "1", "4", "5"]


# -- real-time mode


def test_real_time_mode(spark: SparkSession, bootstrap: str, new_topic: NewTopicName, tmp_path: Path) -> None:
    """Records pass while a batch is still under way: they are through before it ends."""
    source, target = (create(bootstrap, new_topic(name), 1) for name in ("in", "out"))
    writer: Any = (
        stream(spark, bootstrap, source)
        .selectExpr("key", "cast(upper(cast(value as string)) as binary) as value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("update")
    )
    query = writer.trigger(realTime="5 minutes").start()
    stopped = threading.Timer(STREAM_TIMEOUT_S, query.stop)
    stopped.start()
    try:
        for number in range(3):
            produce(bootstrap, source, [f"a{number}"])
            deadline = time.monotonic() + STREAM_TIMEOUT_S
            while len(found := values(read(spark, bootstrap, target))) <= number:
                assert query.isActive and time.monotonic() < deadline, found
            assert found == [f"A{each}" for each in range(number + 1)]
        assert query.lastProgress is None, "the first batch is still under way"
    finally:
        stopped.cancel()
        query.stop()
