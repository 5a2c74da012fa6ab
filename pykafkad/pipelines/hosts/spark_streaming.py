"""A query kept going in Spark: topics through a plan's stages into the sink's topic, a micro-batch at a time.

Within a batch the records of a partition keep their order, and those of several are put in the order of their times, as
Kafka Streams chooses among partitions. Spark's checkpoint remembers offsets and state; hosts/sink.py writes. What a batch
has written, and what was left out, its tasks tell the process that began the query.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafkad import errors
from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.hosts.sink import BatchSink
from pykafkad.pipelines.hosts.spark import BAD, PACKED, First, QueryFailed, later_stages
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import Stages
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.tools import failures

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BUCKETS = 64
"""So many that a batch rewrites little state, and so few that most of a batch's rows share one."""
MAX_BATCH_RECORDS = 500_000
"""What a batch reads at most: it bounds memory, and how much is done again after a failure."""
SAID = 10
"""So many records that are left out each task of a batch names."""
SPARKS_OWN = re.compile(
    r"bootstrap\.servers|(key|value)\.(de)?serializer|auto\.offset\.reset|enable\.auto\.commit|"
    "interceptor\\.classes|group\\.id"
)
"""Configs of clients that Spark refuses to be given, or chooses itself."""


class Done(NamedTuple):
    """What a batch did: records written, those left out, and some of these named."""

    written: int
    bad: int
    said: list[str]


HOPELESS = frozenset(
    (
        errors.MESSAGE_TOO_LARGE,
        errors.RECORD_LIST_TOO_LARGE,
        errors.INVALID_RECORD,
        errors.INVALID_TIMESTAMP,
        errors.TOPIC_AUTHORIZATION_FAILED,
    )
)
"""What is refused with these codes is refused again."""


class WriteFailed(Exception):
    """A batch could not be written; it may be later."""


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
    done: Callable[[Done], object] = lambda done: None
    """Hears of each batch, in a thread of Spark's."""
    identity: str = ""
    """By which the sink knows what it has written; the query's name if there is none."""


def start(spark: SparkSession, name: str, plan: Plan, options: StreamingQueryOptions) -> StreamingQuery:
    """The query, running; it is found again by its name."""
    assert plan.sink is not None, "only a plan with a sink writes"
    stages = {name: Stages(plan)}
    records = _records(spark, plan, options)
    moving = records.mapInPandas(FirstOfTopics(name, stages, options.buckets), PACKED)
    sink = BatchSink(
        options.identity or name, plan.sink.topic, options.bootstrap, options.configs, options.exactly_once
    )
    writer = (
        later_stages(moving, stages, options.buckets)
        .writeStream.queryName(name)
        .outputMode("append")
        .option("checkpointLocation", str(options.checkpoints / name))
        .foreachBatch(BatchWriter(plan, sink, options.done))
    )
    return (writer.trigger(availableNow=True) if options.until_idle else writer).start()


def _records(spark: SparkSession, plan: Plan, options: StreamingQueryOptions) -> DataFrame:
    """What the topics have that is committed. What retention has taken is gone, and no reason to fail."""
    reader = spark.readStream.format("kafka")
    waits = {"fetch.max.wait.ms": "10"}  # a batch's last fetch waits so long for more
    for key, value in {**waits, **options.configs, "isolation.level": "read_committed"}.items():
        if not SPARKS_OWN.fullmatch(key):
            reader = reader.option(f"kafka.{key}", value)
    return (
        reader.option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", ",".join(dict.fromkeys(plan.topics())))
        .option("startingOffsets", options.starting_offsets)
        .option("maxOffsetsPerTrigger", str(MAX_BATCH_RECORDS))
        .option("failOnDataLoss", "false")
        .option("includeHeaders", "true")
        .load()
    )


FAILURE = re.compile(r"(?:QueryFailed|WriteFailed): (.*)")
LAST_OF_TRACEBACK = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*: .*)$", re.MULTILINE)


def one_line(text: str) -> str:
    """What an error of Spark's says, without the traces that it may have."""
    found = FAILURE.search(text) or LAST_OF_TRACEBACK.search(text)
    return (found[1] if found else text.strip().partition("\n")[0]).strip()


def failure_of(query: StreamingQuery) -> tuple[str, bool] | None:
    """Why a query has ended, in one line, and whether it may go better later; None if it did not fail."""
    error = query.exception()
    if error is None:
        return None
    text = str(error)
    return one_line(text), "QueryFailed: " not in text


class FirstOfTopics:
    """The stage without state over what Spark's Kafka source gives, which is a partition's records in their order."""

    def __init__(self, name: str, stages: Mapping[str, Stages], buckets: int) -> None:
        self.name, self.first = name, First(stages, buckets, tells=True)

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

    def __init__(self, plan: Plan, sink: BatchSink, done: Callable[[Done], object]) -> None:
        self.plan, self.sink, self.done = plan, sink, done

    def __call__(self, frame: DataFrame, batch: int) -> None:
        writer = PartitionWriter(self.plan, self.sink, batch)
        for task in frame.mapInPandas(writer, "written LONG, bad LONG, said ARRAY<STRING>").collect():
            self.done(Done(task.written, task.bad, list(task.said)))


class PartitionWriter:
    def __init__(self, plan: Plan, sink: BatchSink, batch: int) -> None:
        self.plan, self.sink, self.batch = plan, sink, batch

    def __call__(self, frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        import pandas
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "it runs in a task"
        left_out: list[str] = []
        records = self.records(frames, left_out)
        first = next(records, None)
        count = 0 if first is None else self.write(context.partitionId(), _with(first, records))
        yield pandas.DataFrame({"written": [count], "bad": [len(left_out)], "said": [left_out[:SAID]]})

    def write(self, partition: int, records: Iterator[Record]) -> int:
        try:
            return self.sink.write(partition, self.batch, records)
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            said = ": ".join((failures.message_of(error).rstrip("."), *notes))
            hopeless = isinstance(error, errors.KafkaError) and error.code in HOPELESS
            raise (QueryFailed if hopeless else WriteFailed)(said) from None

    def records(self, frames: Iterator[pandas.DataFrame], left_out: list[str]) -> Iterator[Record]:
        assert self.plan.sink is not None
        for frame in frames:
            for packed in frame["rows"]:
                for _, step, _, row in pickle.loads(packed):
                    if step == BAD:
                        left_out.append(row[0])
                        continue
                    try:
                        yield self.plan.sink.record(Row(*row))
                    except BadRecord as error:
                        left_out.append(f"a row is left out: {error}")


def _with(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from rest
