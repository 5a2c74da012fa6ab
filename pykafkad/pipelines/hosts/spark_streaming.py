"""A query kept going in Spark: topics through a plan's stages into the sink's topic, a micro-batch at a time.

A statement is Spark SQL as far as it is proven to mean the same (spark_sql/): without state its records stay where they
are, and of groups Spark keeps the state (spark_entering.py, spark_totals.py). Else, within a batch the records of a
partition keep their order, and those of several are put in the order of their times, as Kafka Streams chooses among
partitions. Spark's checkpoint remembers offsets and state; spark_writing.py writes, and tells the process that began the
query what a batch has written and left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path

from pykafkad.pipelines import spark_sql
from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.hosts.sink import BatchSink
from pykafkad.pipelines.hosts.spark import PACKED, First, configured, later_stages, without_collection
from pykafkad.pipelines.hosts.spark_entering import Entering
from pykafkad.pipelines.hosts.spark_totals import Totals
from pykafkad.pipelines.hosts.spark_writing import (
    BatchWriter,
    Done,
    PackedRows,
    PartitionWriter,
    Results,
    headers_of,
)
from pykafkad.pipelines.plan.ends import Record, record_of
from pykafkad.pipelines.plan.stages import Stages
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql import aggregates
from pykafkad.pipelines.spark_sql.direct import direct
from pykafkad.pipelines.spark_sql.forms import aggregation_of
from pykafkad.pipelines.spark_sql.sql import NotCompiled
from pykafkad.pipelines.spark_sql.statements import chain_of, is_stateless, statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BUCKETS = 64
"""So many that a batch rewrites little state, and so few that most of a batch's rows share one."""
MAX_BATCH_RECORDS = 500_000
"""What a batch reads at most: it bounds memory, and how much is done again after a failure."""
ARROW = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Batches for Python are cut by records alone. Where bytes count, too, Spark measures the whole batch after each record,
which takes the longer the more of them have no headers: most of the time of a statement."""
ARROW_RECORDS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1000"}
"""Of a statement without state: it bounds the memory for large records. (Rows with state are packed by these batches.)"""
LOCAL_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""Of compiled statements, whose checkpoints are files that are written once, or again with the same: the other manager
begins processes for each of them, which takes a batch 50 ms more, and 200 with a state."""
REAL_TIME_BATCH = "10 seconds"
"""How often a query in real-time mode writes its checkpoint, and how much it may do again."""
SPARKS_OWN = re.compile(
    r"bootstrap\.servers|(key|value)\.(de)?serializer|auto\.offset\.reset|enable\.auto\.commit|"
    "interceptor\\.classes|group\\.id"
)
"""Configs of clients that Spark refuses to be given, or chooses itself."""


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
    query_id: str = ""
    """By which the log of what is left out names the query; its name if there is none."""
    realtime: bool = False
    """In Spark's real-time mode, where `not_in_real_time` has nothing against it."""
    compiles: bool = True
    """Whether a statement becomes Spark SQL where it may."""


def start(spark: SparkSession, name: str, plan: Plan, options: StreamingQueryOptions) -> StreamingQuery:
    """The query, running; it is found again by its name."""
    own: dict[str, str] = {}
    if is_stateless(plan):
        own = ARROW | ARROW_RECORDS | LOCAL_FILES
    elif options.compiles and aggregation_of(plan) is not None:
        own = ARROW | LOCAL_FILES | aggregates.CONFIGS
    with configured(spark, {**spark_sql.CONFIGS, **own}):
        return _started(spark, name, plan, options)


def _started(spark: SparkSession, name: str, plan: Plan, options: StreamingQueryOptions) -> StreamingQuery:
    assert plan.sink is not None, "only a plan with a sink writes"
    records = records_of(spark, plan, options)
    if options.realtime and not_in_real_time(plan, options.exactly_once) is None:
        return _real_time(records, name, plan, options)
    rows, mode, tasks = _rows(records, name, plan, options)
    writer = (
        rows.writeStream.queryName(name)
        .outputMode(mode)
        .option("checkpointLocation", str(options.checkpoints / name))
        .foreachBatch(BatchWriter(tasks, options.done))
    )
    return (writer.trigger(availableNow=True) if options.until_idle else writer).start()


def _rows(
    records: DataFrame, name: str, plan: Plan, options: StreamingQueryOptions
) -> tuple[DataFrame, str, Callable[[int], PartitionWriter]]:
    """What a query writes of records, Spark's mode for that, and what writes a batch."""
    assert plan.sink is not None
    query_id = options.query_id or name
    sink = BatchSink(
        options.identity or name, plan.sink.topic, options.bootstrap, options.configs, options.exactly_once
    )
    chain = chain_of(plan, options.compiles)
    if chain is not None:
        return chain.applied(records), "append", partial(Results, plan, query_id, sink)
    form = aggregation_of(plan) if options.compiles else None
    if form is None:
        packed = operated(records, name, plan, options, query_id)
        return packed, "append", partial(PackedRows, plan, query_id, sink)
    aside = options.checkpoints / name / "aside"
    entering = Entering(plan, query_id, aside)
    entered = form.entering.applied(records).mapInArrow(entering, entering.schema)
    return form.totals.applied(entered), "update", partial(Totals, plan, query_id, sink, home=aside)


def not_in_real_time(plan: Plan, exactly_once: bool) -> str | None:
    """Why a query cannot run in real-time mode, if so: no Python runs there, and no transactions."""
    if exactly_once:
        return "exactly_once_v2 is kept by batches"
    if not is_stateless(plan):
        return "it has state"
    try:
        statement(plan)
    except NotCompiled as why:
        return f"it is not compiled to Spark SQL: {why}"
    if not plan.bad_records.dead_letters:
        return (
            "there is no topic for records that Spark cannot read (SET 'errors.dead.letter.queue.topic.name')"
        )
    return None


def _real_time(records: DataFrame, name: str, plan: Plan, options: StreamingQueryOptions) -> StreamingQuery:
    """Records pass as they come, at least once; Spark's checkpoint is written when a batch's time is over."""
    rows = direct(plan, statement(plan)).applied(records)
    writer: Any = rows.writeStream.format("kafka").queryName(name).outputMode("update")
    for key, value in {"linger.ms": "0", "acks": "all", **options.configs}.items():
        if not SPARKS_OWN.fullmatch(key):
            writer = writer.option(f"kafka.{key}", value)
    writer = writer.option("kafka.bootstrap.servers", options.bootstrap).option("includeHeaders", "true")
    writer = writer.option("checkpointLocation", str(options.checkpoints / name))
    query: StreamingQuery = writer.trigger(realTime=REAL_TIME_BATCH).start()
    return query


def operated(
    records: DataFrame, name: str, plan: Plan, options: StreamingQueryOptions, query_id: str
) -> DataFrame:
    stages = {name: Stages(plan)}
    columns = records.selectExpr(*FirstOfTopics.COLUMNS)
    moving = columns.mapInArrow(FirstOfTopics(name, stages, options.buckets, query_id), PACKED)
    return later_stages(moving, stages, options.buckets, query_id, plan.every_change)


def records_of(spark: SparkSession, plan: Plan, options: StreamingQueryOptions) -> DataFrame:
    """What the topics have that is committed. What retention has taken is gone, and no reason to fail."""
    reader = spark.readStream.format("kafka")
    waits = {"fetch.max.wait.ms": "10"}  # a batch's last fetch waits so long for more
    for key, value in {**waits, **options.configs, "isolation.level": "read_committed"}.items():
        if not SPARKS_OWN.fullmatch(key):
            reader = reader.option(f"kafka.{key}", value)
    if not options.realtime:
        reader = reader.option("maxOffsetsPerTrigger", str(MAX_BATCH_RECORDS))
    return (
        reader.option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", ",".join(dict.fromkeys(plan.topics())))
        .option("startingOffsets", options.starting_offsets)
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

    HEADERS = "coalesce(headers, array()) AS headers"  # lists that are not there make batches slow, see ARROW
    COLUMNS = ("topic", "partition", "offset", "key", "value", HEADERS, "unix_millis(timestamp) AS time")

    def __init__(self, name: str, stages: Mapping[str, Stages], buckets: int, query_id: str) -> None:
        self.name, self.query_id, self.first = name, query_id, First(stages, buckets)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.first.left_out = LeftOut(self.first.stages[self.name].plan, self.query_id)
        latest: dict[tuple[str, int], int] = {}
        for batch in batches:
            with without_collection():
                packed = self.first.packed(self.numbered(batch, latest)).batch()
            yield packed

    def numbered(
        self, batch: pyarrow.RecordBatch, latest: dict[tuple[str, int], int]
    ) -> Iterator[tuple[str, bytes, Record]]:
        """Each record with its place: the greatest time so far of its partition, the partition, its offset."""
        columns = (values_of(batch.column(name)) for name in ("topic", "partition", "offset", "key", "value"))
        headers = batch.column("headers")
        plain = repeat(()) if not len(headers.flatten()) else map(headers_of, headers.to_pylist())
        rows = zip(*columns, plain, values_of(batch.column("time")), strict=False)
        for topic, partition, offset, key, value, theirs, time in rows:
            at = topic, partition
            now = latest.get(at, 0)
            if time > now:
                now = latest[at] = time
            seq = LONG(now) + topic.encode() + PLACE(partition, offset)
            yield self.name, seq, record_of((topic, key, value, time, theirs, partition, offset))


LONG, PLACE = struct.Struct(">Q").pack, struct.Struct(">IQ").pack


def values_of(column: pyarrow.Array) -> list[Any]:
    """As to_pylist gives them, which makes an object of Arrow's of each before."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found
