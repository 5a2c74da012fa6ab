"""The end of a query in Spark: each of a batch's partitions written by a task of its own, with what it leaves out.

Two forms of frames are written: the rows that operators with state emit, packed, and what a statement without state is
compiled to (spark_sql/), where our operators take the records that Spark leaves to them, in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from pykafkad import errors
from pykafkad.hot.records import Columns
from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.hosts.sink import BatchSink, Chunk
from pykafkad.pipelines.hosts.spark import BAD, QueryFailed, failed_at, unpacked, without_collection
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Headers, row_of
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.tools import failures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pyarrow
    from pyspark.sql import DataFrame

SUMMARY = "written LONG, bad LONG, said ARRAY<STRING>"


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
class BatchWriter:
    """Writes a micro-batch, in a thread of Spark's."""

    tasks: Callable[[int], PartitionWriter]
    """What writes a batch's partitions, by the batch's number."""
    done: Callable[[Done], object]

    def __call__(self, frame: DataFrame, batch: int) -> None:
        writer = self.tasks(batch)
        for task in frame.mapInArrow(writer, SUMMARY).collect():
            self.done(Done(task.written, task.bad, list(task.said)))
        writer.end()


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    plan: Plan
    query_id: str
    sink: BatchSink
    batch: int

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "it runs in a task"
        left_out = LeftOut(self.plan, self.query_id)
        aside = 0

        def put_aside() -> Iterator[Chunk]:
            nonlocal aside
            found, left_out.aside = left_out.aside, []
            aside += len(found)
            yield from in_chunks(found)

        def chunks() -> Iterator[Chunk]:
            for chunk in self.chunks(batches, left_out):
                yield chunk
                yield from put_aside()
            yield from put_aside()  # nothing may have followed from any record

        count = self.write(context.partitionId(), chunks())
        said = left_out.said
        yield pyarrow.RecordBatch.from_pydict(
            {"written": [max(0, count - aside)], "bad": [left_out.bad], "said": [said]},
            schema=pyarrow.schema(
                [
                    ("written", pyarrow.int64()),
                    ("bad", pyarrow.int64()),
                    ("said", pyarrow.list_(pyarrow.string())),
                ]
            ),
        )

    def chunks(self, batches: Iterator[pyarrow.RecordBatch], left_out: LeftOut) -> Iterator[Chunk]:
        raise NotImplementedError

    def end(self) -> None:
        """All of the batch is written."""

    def write(self, partition: int, chunks: Iterator[Chunk]) -> int:
        try:
            return self.sink.write(partition, self.batch, chunks)
        except QueryFailed:
            raise
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            said = ": ".join((failures.message_of(error).rstrip("."), *notes))
            hopeless = isinstance(error, errors.KafkaError) and error.code in HOPELESS
            raise (QueryFailed if hopeless else WriteFailed)(said) from None


class PackedRows(PartitionWriter):
    """Rows of operators, as hosts/spark.py packs them."""

    __slots__ = ()

    def chunks(self, batches: Iterator[pyarrow.RecordBatch], left_out: LeftOut) -> Iterator[Chunk]:
        for batch in batches:
            for packed in batch.column("rows"):
                with without_collection():
                    found = list(in_chunks(list(self._records(unpacked(packed.as_py()), left_out))))
                yield from found

    def _records(self, packed: Any, left_out: LeftOut) -> Iterator[Record]:
        assert self.plan.sink is not None
        for _, step, _, row in packed:
            if step == BAD:
                left_out.add(*row)
                continue
            try:
                yield self.plan.sink.record(row_of(row))
            except BadRecord as error:
                left_out.row(error)


class Results(PartitionWriter):
    """The results of a compiled statement, and the records that our operators take."""

    __slots__ = ()

    def chunks(self, batches: Iterator[pyarrow.RecordBatch], left_out: LeftOut) -> Iterator[Chunk]:
        assert self.plan.sink is not None
        plain: list[pyarrow.RecordBatch] = []
        for batch in batches:
            if _is_plain(batch) and batch.num_rows:
                plain.append(batch)
                if sum(one.nbytes for one in plain) < GATHERED_BYTES:
                    continue
            if plain:
                yield self.plan.sink.topic, columns_of(plain)
                plain = []
            if not _is_plain(batch):
                yield from in_chunks(list(self._each(batch, left_out)))
        if plain:
            yield self.plan.sink.topic, columns_of(plain)

    def _each(self, batch: pyarrow.RecordBatch, left_out: LeftOut) -> Iterator[Record]:
        assert self.plan.sink is not None
        topic = self.plan.sink.topic
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "time", "headers"))
        for key, value, time, headers, odd in zip(*columns, batch.column("record"), strict=True):
            if not odd.is_valid:
                yield Record(topic, key, value, time, headers_of(headers))
                continue
            yield from self._odd(odd, left_out)

    def _odd(self, odd: pyarrow.StructScalar, left_out: LeftOut) -> Iterator[Record]:
        left_out.record = record = record_of(odd)
        try:
            yield from self.plan.records(record, {}, left_out.note)
        except Exception as error:
            raise failed_at(error, record) from None


GATHERED_BYTES = 1 << 20
"""Of Arrow's batches that are written as one."""


def _is_plain(batch: pyarrow.RecordBatch) -> bool:
    """Whether its rows are written as they are, without headers."""
    return all(batch.column(name).null_count == batch.num_rows for name in ("record", "headers"))


def columns_of(batches: list[pyarrow.RecordBatch]) -> Columns:
    import pyarrow

    keys, values, times = (
        pyarrow.concat_arrays([batch.column(name) for batch in batches]) for name in ("key", "value", "time")
    )
    return Columns(
        len(keys),
        (keys.offset, *keys.buffers()),
        (values.offset, *values.buffers()),
        (times.offset, times.buffers()[1]),
    )


def record_of(odd: pyarrow.StructScalar) -> Record:
    import pyarrow

    found = {name: odd[name].as_py() for name in ("topic", "key", "value", "partition", "offset")}
    time = odd["timestamp"].cast(pyarrow.timestamp("us", "UTC")).value // 1000
    headers = headers_of(odd["headers"].as_py())
    return Record(
        found["topic"], found["key"], found["value"], time, headers, found["partition"], found["offset"]
    )


def headers_of(given: Any) -> Headers:
    return tuple((one["key"], one["value"]) for one in given or ())


def in_chunks(records: list[Record]) -> Iterator[Chunk]:
    """Records in their order, those of one topic together."""
    for topic, some in groupby(records, attrgetter("topic")):
        yield topic, [(one.key, one.value, one.headers, max(0, one.time)) for one in some]
