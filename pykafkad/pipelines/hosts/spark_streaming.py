"""A query kept going in Spark: topics through a plan's stages into the sink's topic, a micro-batch at a time.

Within a batch the records of a partition keep their order, and those of several are put in the order of their times, as
Kafka Streams chooses among partitions. Spark's checkpoint remembers offsets and state; hosts/sink.py writes.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.hosts.sink import BatchSink
from pykafkad.pipelines.hosts.spark import PACKED, First, later_stages, written
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import Stages
from pykafkad.pipelines.plan.topology import Plan

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BUCKETS = 64
"""So many that a batch rewrites little state, and so few that most of a batch's rows share one."""


@dataclass(frozen=True, slots=True)
class StreamingQueryOptions:
    bootstrap: str
    checkpoints: Path
    configs: Mapping[str, str] = field(default_factory=dict)
    """Of Kafka clients, for reading and for writing."""
    exactly_once: bool = False
    """processing.guarantee=exactly_once_v2"""
    until_idle: bool = False
    """End when all is read that was there at the start."""
    buckets: int = BUCKETS
    starting_offsets: str = "earliest"


def start(spark: SparkSession, name: str, plan: Plan, options: StreamingQueryOptions) -> StreamingQuery:
    """The query, running; it is found again by its name."""
    assert plan.sink is not None, "only a plan with a sink writes"
    reader = spark.readStream.format("kafka")
    for key, value in options.configs.items():
        reader = reader.option(f"kafka.{key}", value)
    records = (
        reader.option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", ",".join(plan.topics()))
        .option("startingOffsets", options.starting_offsets)
        .option("includeHeaders", "true")
        .load()
    )
    stages = {name: Stages(plan)}
    moving = records.mapInPandas(FirstOfTopics(name, stages, options.buckets), PACKED)
    sink = BatchSink(name, plan.sink.topic, options.bootstrap, options.configs, options.exactly_once)
    writer = (
        later_stages(moving, stages, options.buckets)
        .writeStream.queryName(name)
        .outputMode("append")
        .option("checkpointLocation", str(options.checkpoints / name))
        .foreachBatch(BatchWriter(plan, sink))
    )
    return (writer.trigger(availableNow=True) if options.until_idle else writer).start()


def said(record: Record, error: BadRecord) -> None:
    """A record that cannot be read is left out, and the worker's log says which."""
    place = f"{record.topic}-{record.partition} offset {record.offset}"
    logging.getLogger("pykafkad.pipelines").warning("%s is left out: %s", place, error)


class FirstOfTopics:
    """The stage without state over what Spark's Kafka source gives, which is a partition's records in their order."""

    def __init__(self, name: str, stages: Mapping[str, Stages], buckets: int) -> None:
        self.name, self.first = name, First(stages, buckets, said)

    def __call__(self, frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        latest: dict[tuple[str, int], int] = {}
        for frame in frames:
            yield self.first.packed(self.numbered(frame, latest))

    def numbered(
        self, frame: pandas.DataFrame, latest: dict[tuple[str, int], int]
    ) -> Iterator[tuple[str, bytes, Record]]:
        """Each record with its place: the greatest time so far of its partition, the partition, its offset."""
        times = frame["timestamp"].astype("datetime64[ms]").astype("int64")
        columns = (frame[name] for name in ("topic", "partition", "offset", "key", "value", "headers"))
        for time, topic, partition, offset, key, value, headers in zip(times, *columns, strict=True):
            at = topic, int(partition)
            now = latest[at] = max(latest.get(at, 0), int(time))
            seq = b"".join(
                (now.to_bytes(8, "big"), topic.encode(), at[1].to_bytes(4, "big"), offset.to_bytes(8, "big"))
            )
            yield self.name, seq, Record(topic, key, value, int(time), _headers(headers), at[1], int(offset))


def _headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    return () if given is None else tuple((one["key"], one["value"]) for one in given)


class BatchWriter:
    """Writes a micro-batch, each of Spark's partitions by a task of its own."""

    def __init__(self, plan: Plan, sink: BatchSink) -> None:
        self.plan, self.sink = plan, sink

    def __call__(self, frame: DataFrame, batch: int) -> None:
        frame.mapInPandas(PartitionWriter(self.plan, self.sink, batch), "written LONG").collect()


class PartitionWriter:
    def __init__(self, plan: Plan, sink: BatchSink, batch: int) -> None:
        self.plan, self.sink, self.batch = plan, sink, batch

    def __call__(self, frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        import pandas
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "it runs in a task"
        records = self.records(frames)
        first = next(records, None)
        count = (
            0 if first is None else self.sink.write(context.partitionId(), self.batch, _with(first, records))
        )
        yield pandas.DataFrame({"written": [count]})

    def records(self, frames: Iterator[pandas.DataFrame]) -> Iterator[Record]:
        for frame in frames:
            for packed in frame["rows"]:
                for _, _, _, row in pickle.loads(packed):
                    record = written(self.plan, Row(*row))
                    if record is not None:
                        yield record


def _with(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from rest
