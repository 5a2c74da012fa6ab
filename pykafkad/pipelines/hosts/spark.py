"""Plans in Spark: each stage with state is one transformWithState, whose keys are hash buckets.

A bucket's state is one value, all operators' states pickled: state by key costs Spark a round trip for each (a trial's
figures: 4,500 rows a second by key with 20,000 keys, 74,000 by 64 buckets). For the same reason rows move packed, those
of a frame for a bucket as one value. Spark promises no order within a bucket, so rows carry a sequence that they are
sorted by: the input's, and behind it a number for each row that followed.

A lane is what does not meet: the pipelines of one test among those of others, which share a job.
"""

from __future__ import annotations

import gc
import marshal
import os
import pickle
import struct
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.formats.registry import RegistryError
from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.plan.ends import Record, place
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import OUT, Bucket, Moving, Stages
from pykafkad.pipelines.plan.topology import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

INPUT = "lane STRING, seq BINARY, record BINARY"
PACKED = "lane STRING, bucket INT, rows BINARY"
COLUMNS = ["lane", "bucket", "rows"]

Placed: TypeAlias = tuple[bytes, int, int, tuple[Any, ...]]
"""A row that moves: its place in the order, the step and port that it goes to, and itself."""


BAD = -2
"""The step of a row that only has what was left out (left_out.Gathered): it goes through all stages to who tells."""


class NoSpark(Exception):
    """No session could be made."""


class QueryFailed(Exception):
    """An operator could not go on at a record; str() says why and at which."""


def failed_at(error: Exception, record: Record) -> Exception:
    """What ends the query; a schema registry that does not answer may answer later."""
    if isinstance(error, RegistryError | QueryFailed):
        return error
    return QueryFailed(f"{type(error).__name__}: {error} at {place(record)}")


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
    if master.startswith("local"):
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
    try:
        made = builder.getOrCreate()
    except Exception as error:
        java = getattr(error, "java_exception", None)
        said = java.toString() if java is not None else str(error)
        raise NoSpark(f"Spark does not begin with master {master}: {said.splitlines()[0]}") from None
    made.sparkContext.setLogLevel("ERROR")
    _ = made.streams  # a batch's transformWithState fails before the first use of these
    return made


def session_that_says(master: str, configs: Mapping[str, str], log: Path) -> SparkSession:
    """The same where what the JVM says goes into a file: there it may say why it does not begin."""
    begins = log.stat().st_size if log.exists() else 0
    try:
        return session(master, configs)
    except NoSpark as error:
        said = log.read_bytes()[begins:].decode(errors="replace").splitlines()
        why = next((f": {line}" for line in said if "Exception" in line or "Error" in line), "")
        raise NoSpark(f"{error}{why}") from None


@contextmanager
def configured(spark: SparkSession, configs: Mapping[str, str]) -> Iterator[None]:
    """With these configs of Spark, which a query that begins meanwhile keeps."""
    before = {key: spark.conf.get(key, None) for key in configs}
    try:
        for key, value in configs.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


@contextmanager
def saying_into(file: Path) -> Iterator[None]:
    """What begins in here, the JVM and its workers, writes its standard error into a file from then on."""
    sys.stderr.flush()
    before = os.dup(2)
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def say_aside(file: Path) -> None:
    """From now on this process writes into a file what is for its standard error, as the JVM does that it begins; but
    what Python says goes where it went."""
    sys.stderr.flush()
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)


def running(jars: Iterable[Path]) -> dict[str, str]:
    """Configs of a session that keeps queries going."""
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.streaming.noDataProgressEventInterval": "1000",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": "",
    }


CONFIGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # a batch of few rows writes what has changed, and not the files of RocksDB, which are uploaded from time to time
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def results(frame: DataFrame, stages: Mapping[str, Stages], buckets: int = 1) -> DataFrame:
    """What the lanes' plans emit for a frame of INPUT, as a frame of PACKED whose rows are the plans' results."""
    return later_stages(frame.mapInPandas(FirstOfLanes(stages, buckets), PACKED), stages, buckets)


def later_stages(
    moving: DataFrame,
    stages: Mapping[str, Stages],
    buckets: int,
    query_id: str = "",
    every_change: bool = True,
) -> DataFrame:
    """The stages with state after the one without. Unless every change is to be told, it is the last of a key in a
    batch."""
    for stage in range(1, max((one.count for one in stages.values()), default=1)):
        moving = moving.groupBy("lane", "bucket").transformWithStateInPandas(
            statefulProcessor=later_stage(stage, stages, buckets, query_id, every_change),
            outputStructType=PACKED,
            outputMode="Append",
            timeMode="None",
        )
    return moving


NUMBER = struct.Struct(">I").pack
PICKLED = b"\x80"
"""What is pickled begins so, and nothing that is marshalled does."""


def packed(placed: list[Placed]) -> bytes:
    """Rows that move between stages of a batch. marshal takes half the time of pickle, but does not know all that may be
    in them, such as decimals."""
    try:
        return marshal.dumps(placed)
    except ValueError:
        return pickle.dumps(placed, 5)


def unpacked(data: bytes | bytearray) -> list[Placed]:
    found: list[Placed] = pickle.loads(data) if data[:1] == PICKLED else marshal.loads(data)
    return found


class Packing:
    """Gathers rows by the bucket that they move to."""

    def __init__(self, stages: Mapping[str, Stages], buckets: int) -> None:
        self.stages, self.buckets = stages, buckets
        self._gathered: defaultdict[tuple[str, int], list[Placed]] = defaultdict(list)

    def add(self, lane: str, seq: bytes, number: int, moving: Moving) -> None:
        bucket = self.stages[lane].bucket(moving, self.buckets)
        step, port, row = moving
        self._gathered[lane, bucket].append((seq + NUMBER(number), step, port, tuple(row)))

    def put(self, lane: str, bucket: int, placed: Placed) -> None:
        self._gathered[lane, bucket].append(placed)

    def rows(self) -> list[tuple[str, int, bytes]]:
        return [(lane, bucket, packed(placed)) for (lane, bucket), placed in self._gathered.items()]

    def batch(self) -> pyarrow.RecordBatch:
        import pyarrow

        types = pyarrow.string(), pyarrow.int32(), pyarrow.binary()
        columns = zip(*self.rows(), strict=True) if self._gathered else ((), (), ())
        arrays = [pyarrow.array(column, of) for column, of in zip(columns, types, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, names=COLUMNS)

    def frame(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(self.rows(), columns=COLUMNS).astype({"bucket": "int32"})


@contextmanager
def without_collection() -> Iterator[None]:
    """Rows and states are data without cycles: Python's collector would go over all of them, again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class First:
    """The stage without state: records to rows that move."""

    def __init__(self, stages: Mapping[str, Stages], buckets: int, left_out: LeftOut | None = None) -> None:
        """`left_out`: of records that are left out a BAD row follows."""
        self.stages, self.buckets, self.left_out = stages, buckets, left_out

    def packed(self, records: Iterable[tuple[str, bytes, Record]]) -> Packing:
        packing = Packing(self.stages, self.buckets)
        bucket, left_out = Bucket({}), self.left_out
        for lane, seq, record in records:
            try:
                bucket.moving = []
                if left_out is not None:
                    left_out.record = record
                for source, push in self.stages[lane].begin(record.topic):
                    try:
                        row = source.row(record)
                    except BadRecord as error:
                        if left_out is not None:
                            left_out.note(record, error)
                    else:
                        push(row, bucket)
                for number, moving in enumerate(bucket.moving):
                    packing.add(lane, seq, number, moving)
                if left_out is not None and left_out.any:
                    packing.put(lane, 0, (seq, BAD, 0, (left_out.taken(),)))
            except Exception as error:
                raise failed_at(error, record) from None
        return packing


class FirstOfLanes:
    """The first stage over a frame of INPUT."""

    def __init__(self, stages: Mapping[str, Stages], buckets: int) -> None:
        self.first = First(stages, buckets)

    def __call__(self, frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        for frame in frames:
            rows = zip(frame["lane"], frame["seq"], frame["record"], strict=True)
            yield self.first.packed(
                (lane, seq, Record(*pickle.loads(record))) for lane, seq, record in rows
            ).frame()


def later_stage(
    stage: int, stages: Mapping[str, Stages], buckets: int, query_id: str, every_change: bool
) -> Any:
    """The processor of a stage. (Its class stands on one of PySpark's, which is imported with the first Spark host.)"""
    from pykafkad.pipelines.hosts.spark_processor import StageProcessor

    return StageProcessor(stage, stages, buckets, query_id, every_change)


class CircularQueries(Exception):
    """Queries write what they read."""


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
            for moved in results(frame, stages, self.buckets).collect():
                for seq, step, _, row in unpacked(moved.rows):
                    assert step == OUT
                    record = written(ready[moved.lane][1], Row(*row))
                    if record is not None:
                        found[moved.lane].append(Numbered(seq, record))
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
        """Those whose topics no plan that is left writes."""
        awaited = {plan.sink.topic for plan in self.left.values() if plan.sink is not None}
        found = [(number, plan) for number, plan in self.left.items() if not awaited & set(plan.topics())]
        if self.left and not found:
            raise CircularQueries(
                f"queries write what they read ({', '.join(sorted(awaited))}): as one batch in Spark they have no order; "
                "the plain loop, host local, runs them"
            )
        return found

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
