"""What the tests of Spark share: rows that can be checked, writing and reading with format("kafka"), streams that end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADMIN_TIMEOUT_S = 30
STREAM_TIMEOUT_S = 120


def create(bootstrap: str, topic: str, partitions: int, **configs: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    named = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result(ADMIN_TIMEOUT_S)
    return topic


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(ADMIN_TIMEOUT_S)


def produce(
    bootstrap: str,
    topic: str,
    values: list[str],
    partition: int = 0,
    timestamps: Callable[[int], int] = lambda number: 0,
    **fields: Any,
) -> None:
    """`timestamps`: of the n-th record; 0: now."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=partition, timestamp=timestamps(number), **fields)
    assert producer.flush(ADMIN_TIMEOUT_S) == 0


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Row i: the key is key-(i mod 1000), there is no value if i is a multiple of 100, and a header has i."""
    return spark.range(first, end).selectExpr(
        "cast('key-' || (id % 1000) as binary) as key",
        "case when id % 100 = 0 then null else cast('value-' || id as binary) end as value",
        "array(named_struct('key', 'row', 'value', cast(cast(id as string) as binary))) as headers",
    )


def write(frame: DataFrame, bootstrap: str, topic: str | None, **options: str) -> None:
    """`topic` None: the rows name theirs."""
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    if topic is not None:
        writer.option("topic", topic)
    writer.option("includeHeaders", "true").options(**options).save()


def read(spark: SparkSession, bootstrap: str, topic: str | None, **options: str) -> DataFrame:
    """`topic` None: the options say which."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    if topic is not None:
        reader.option("subscribe", topic)
    return reader.option("includeHeaders", "true").options(**options).load()


def columns(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(
        "cast(key as string) as key",
        "cast(value as string) as value",
        "cast(cast(headers[0].value as string) as long) as row",
        "headers[0].key as header",
        "size(headers) as header_count",
        "partition",
        "offset",
    )


def values(frame: DataFrame) -> list[str]:
    """In the order of one partition, or of several after each other."""
    shown = frame.selectExpr("cast(value as string) as value", "partition", "offset")
    return [row["value"] for row in shown.sort("partition", "offset").collect()]


def places(topic: str, offsets: Mapping[int, int]) -> str:
    """The JSON of offsets, or of timestamps, of partitions."""
    return json.dumps({topic: {str(index): offset for index, offset in offsets.items()}})


# -- streams


def stream(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )
    return reader.options(**options).load()


def run_once(
    frame: DataFrame, checkpoint: Path, take: Callable[[DataFrame, int], None], mode: str = "append"
) -> None:
    """From the checkpoint to what is there now; `take` has each batch."""
    query: Any = (
        frame.writeStream.foreachBatch(take)
        .outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    ended(query)


def emitted(frame: DataFrame, checkpoint: Path, mode: str = "append") -> list[tuple[Any, ...]]:
    """The rows that a run from the checkpoint to what is there now gives; of mode complete, the last batch's."""
    seen: list[tuple[Any, ...]] = []

    def take(batch: DataFrame, _batch_id: int) -> None:
        if mode == "complete":
            seen.clear()
        seen.extend(tuple(row) for row in batch.collect())

    run_once(frame, checkpoint, take, mode)
    return seen


def ended(query: Any) -> None:
    try:
        assert query.awaitTermination(STREAM_TIMEOUT_S), "the stream did not come to the end of the topic"
    finally:
        query.stop()
