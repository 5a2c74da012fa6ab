"""Plans in Spark: each stage with state is one transformWithState, whose keys are hash buckets.

A bucket's state is one value, all operators' states pickled: state by key costs Spark a round trip for each (a trial's
figures: 4,500 rows a second by key with 20,000 keys, 74,000 by 64 buckets). Spark promises no order within a bucket, so
rows carry a sequence that they are sorted by: the input's, and behind it a number for each row that followed.

A lane is what does not meet: the pipelines of one test among those of others, which share a job.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import OUT, Moving, Stages
from pykafkad.pipelines.plan.topology import Plan

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

INPUT = "lane STRING, seq BINARY, record BINARY"
MOVING = "lane STRING, bucket INT, seq BINARY, step INT, port INT, row BINARY"
COLUMNS = ["lane", "bucket", "seq", "step", "port", "row"]


class Numbered(NamedTuple):
    """A record and its place in the order of all."""

    seq: bytes
    record: Record


def session(master: str = "local[2]", configs: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session in which transformWithState runs, in this Python's own environment."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("pykafkad pipelines")
    for name, value in {**CONFIGS, **(configs or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    _ = made.streams  # a batch's transformWithState fails before the first use of these
    return made


CONFIGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def results(frame: DataFrame, stages: Mapping[str, Stages], buckets: int = 1) -> DataFrame:
    """What the lanes' plans emit for a frame of INPUT, as a frame of MOVING whose rows are records of the sinks."""
    moving = frame.mapInPandas(First(stages, buckets), MOVING)
    for stage in range(1, max((one.count for one in stages.values()), default=1)):
        moving = moving.groupBy("lane", "bucket").transformWithStateInPandas(
            statefulProcessor=later_stage(stage, stages, buckets),
            outputStructType=MOVING,
            outputMode="Append",
            timeMode="None",
        )
    return moving


class First:
    """The stage without state: records to rows that move."""

    def __init__(self, stages: Mapping[str, Stages], buckets: int) -> None:
        self.stages, self.buckets = stages, buckets

    def __call__(self, frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        for frame in frames:
            yield as_frame(self.rows(zip(frame["lane"], frame["seq"], frame["record"], strict=True)))

    def rows(self, records: Iterable[tuple[str, bytes, bytes]]) -> Iterator[tuple[Any, ...]]:
        for lane, seq, pickled in records:
            record, number = Record(*pickle.loads(pickled)), 0
            for entry in self.stages[lane].begin(record.topic):
                try:
                    row = entry.source.row(record)
                except BadRecord:
                    continue
                for moving in self.stages[lane].enter(entry, row):
                    yield packed(lane, self.stages[lane], moving, seq, number, self.buckets)
                    number += 1


def packed(
    lane: str, stages: Stages, moving: Moving, seq: bytes, number: int, buckets: int
) -> tuple[Any, ...]:
    bucket = stages.bucket(moving, buckets)
    row = pickle.dumps(tuple(moving.row))
    return lane, bucket, seq + number.to_bytes(4, "big"), moving.step, moving.port, row


def as_frame(rows: Iterable[tuple[Any, ...]]) -> pandas.DataFrame:
    import pandas

    frame = pandas.DataFrame(list(rows), columns=COLUMNS)
    return frame.astype({"bucket": "int32", "step": "int32", "port": "int32"})


def later_stage(stage: int, stages: Mapping[str, Stages], buckets: int) -> Any:
    """The processor of a stage. (Its class stands on one of PySpark's, which is imported with the first Spark host.)"""
    from pykafkad.pipelines.hosts.spark_processor import StageProcessor

    return StageProcessor(stage, stages, buckets)


class SparkHost:
    """Runs lanes to their end, as batches: for tests, and to show that it gives what the plain loop gives."""

    def __init__(self, spark: SparkSession, buckets: int = 1) -> None:
        self.spark, self.buckets = spark, buckets

    def run(self, lanes: Mapping[str, tuple[list[Plan], list[Record]]]) -> dict[str, list[Record]]:
        """Of each lane the records that its plans write for its records."""
        runs = {lane: LaneRun(plans, records) for lane, (plans, records) in lanes.items()}
        while any(run.left for run in runs.values()):
            self._round(runs)
        return {lane: run.written() for lane, run in runs.items()}

    def _round(self, runs: Mapping[str, LaneRun]) -> None:
        """The plans of all lanes for which all is written that they read, in one job."""
        ready = {
            f"{lane} {number}": (runs[lane], plan) for lane in runs for number, plan in runs[lane].ready()
        }
        rows = [
            (name, bytearray(one.seq), bytearray(pickle.dumps(tuple(one.record))))
            for name, (run, plan) in ready.items()
            for one in run.inputs(plan)
        ]
        found: dict[str, list[Numbered]] = {name: [] for name in ready}
        if rows:
            frame = self.spark.createDataFrame(rows, INPUT)
            stages = {name: Stages(plan) for name, (_, plan) in ready.items()}
            for row in results(frame, stages, self.buckets).collect():
                assert row.step == OUT
                record = written(ready[row.lane][1], Row(*pickle.loads(row.row)))
                if record is not None:
                    found[row.lane].append(Numbered(bytes(row.seq), record))
        for name, (run, plan) in ready.items():
            run.done(plan, found[name])


def written(plan: Plan, row: Row) -> Record | None:
    """The record of a row; None where its time cannot be told."""
    assert plan.sink is not None
    try:
        return plan.sink.record(row)
    except BadRecord:
        return None


class LaneRun:
    """The plans of a lane, each run when all that it reads is written."""

    def __init__(self, plans: list[Plan], records: list[Record]) -> None:
        self.left = dict(enumerate(plans))
        self.known = [Numbered(number.to_bytes(8, "big"), record) for number, record in enumerate(records)]
        self.given = len(self.known)

    def ready(self) -> list[tuple[int, Plan]]:
        """Those whose topics no other plan that is left writes; of a circle the first."""
        left = list(self.left.items())

        def awaited(number: int) -> set[str]:
            return {plan.sink.topic for other, plan in left if plan.sink is not None and other != number}

        return [(n, plan) for n, plan in left if not awaited(n) & set(plan.topics())] or left[:1]

    def inputs(self, plan: Plan) -> Iterator[Numbered]:
        topics, offsets = set(plan.topics()), dict[str, int]()
        for seq, record in sorted(self.known, key=attrgetter("seq")):
            if record.topic in topics:
                offset = offsets[record.topic] = offsets.get(record.topic, -1) + 1
                yield Numbered(seq, record._replace(offset=offset))

    def done(self, plan: Plan, results: list[Numbered]) -> None:
        number = next(number for number, one in self.left.items() if one is plan)
        del self.left[number]
        self.known += [Numbered(seq + number.to_bytes(4, "big"), record) for seq, record in results]

    def written(self) -> list[Record]:
        return [one.record for one in sorted(self.known[self.given :], key=attrgetter("seq"))]
