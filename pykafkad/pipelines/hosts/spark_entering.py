"""Between the halves of a compiled aggregation (spark_sql/aggregates.py): a task looks at its partition's rows in order.

The records that Spark leaves to our operators are taken by these, in their places, up to where they are grouped. What
they leave out, and the headers that results get from them, no group can carry: a task keeps them in a file beside the
batch's checkpoint, which the tasks that write the batch read, since all of these come after all of those.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.hosts.left_out import Gathered, LeftOut
from pykafkad.pipelines.hosts.spark import failed_at, without_collection
from pykafkad.pipelines.hosts.spark_writing import record_of
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Headers, Row
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.plan.windows import NO_TIME, AggregateWindows
from pykafkad.pipelines.spark_sql.aggregates import aggregation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy
    import pyarrow

BATCH = "streaming.sql.batchId"
"""The property by which Spark tells tasks their batch."""


class Aside(NamedTuple):
    """What a task has for those that write."""

    left_out: Gathered
    headers: dict[bytes, tuple[int, int, Headers]]
    """By the keys of results: of the last record its place in the order, the partition's time first, and its headers."""


ASIDE = ".aside"


def aside_of(home: Path, batch: int) -> list[Path]:
    """The files of a batch."""
    return sorted(home.glob(f"{batch}-*{ASIDE}"))


class Taken(NamedTuple):
    """A row that one of our operators has, or might have, come across."""

    values: tuple[Any, ...]
    time: int
    headers: Headers


class Entering:
    def __init__(self, plan: Plan, query_id: str, home: Path) -> None:
        """`home`: where tasks keep what is aside; all machines of a cluster see it."""
        self.plan, self.query_id, self.home, self.form = plan, query_id, home, aggregation(plan)
        operator = self.form.operator
        self.windows = operator if isinstance(operator, AggregateWindows) else None
        functions = operator.aggregates.functions
        self.arguments = [one for function in functions for one in function.arguments]  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        return Entering, (self.plan, self.query_id, self.home)

    @property
    def schema(self) -> str:
        columns = {**self.form.types, "time": "BIGINT"} | ({"closed": "BIGINT"} if self.windows else {})
        return ", ".join(f"{name} {of}" for name, of in columns.items())

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        task = Task(self)
        for batch in batches:
            yield task.entered(batch)
        task.keep_aside()


class Task:
    """One partition's rows of a batch."""

    def __init__(self, of: Entering) -> None:
        self.of, self.left_out = of, LeftOut(of.plan, of.query_id)
        self.headers: dict[bytes, tuple[int, int, Headers]] = {}
        self.latest = NO_TIME
        self.noted = NO_TIME, 0
        """The place in the order of all partitions' records of the last whose headers were looked at."""

    def entered(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        if batch.column("record").null_count == batch.num_rows and not self.headers:
            columns = [batch.column(name) for name in (*self.of.form.types, "time")]
            return self.closing(columns, batch.num_rows)[0]
        with without_collection():
            taken = list(self.taken(batch))
            found, closed = self.closing(self.columns_of(taken), len(taken))
            for row, until in zip(taken, closed, strict=True):
                self.note_headers(row, until)
        return found

    def closing(self, columns: list[Any], count: int) -> tuple[pyarrow.RecordBatch, list[int]]:
        """The rows that belong to a group, each with the time until which windows are closed to it."""
        import numpy
        import pyarrow

        of = self.of
        kept = pyarrow.RecordBatch.from_arrays(columns, names=[*of.form.types, "time"])
        if any(column.null_count for column in columns[: of.form.keys]):
            kept = kept.filter(_all_there(columns[: of.form.keys]))
        times = kept.column("time").to_numpy()
        if of.windows is None or not len(times):
            return kept if of.windows is None else _with_closed(kept, times), [0] * count
        latest = numpy.maximum(numpy.maximum.accumulate(times), self.latest)
        self.latest = int(latest[-1])
        closed = latest - of.windows.grace
        found = _with_closed(kept, closed)
        return (found.filter(pyarrow.array(times >= 0)) if times.min() < 0 else found), closed.tolist()

    def taken(self, batch: pyarrow.RecordBatch) -> Iterator[Taken]:
        """Rows of groups, those of our operators among them."""
        keys = self.of.form.keys
        named = [batch.column(name).to_pylist() for name in self.of.form.types]
        columns = zip(*named, strict=True) if named else iter(())
        for values, time, odd in zip(
            columns, batch.column("time").to_pylist(), batch.column("record"), strict=True
        ):
            if odd.is_valid:
                yield from self.operated(record_of(odd))
            elif None not in values[:keys]:
                yield Taken(values, time, ())

    def operated(self, record: Record) -> Iterator[Taken]:
        self.left_out.record = record
        source = self.of.plan.entries[0].source
        try:
            rows = [source.row(record)]
            for step in self.of.form.before:
                rows = [follows for row in rows for follows in step.operator.on_row(0, row, {})]
            for row in rows:
                yield self.taken_of(row)
        except BadRecord as error:
            self.left_out.note(record, error)
        except Exception as error:
            raise failed_at(error, record) from None

    def taken_of(self, row: Row) -> Taken:
        assert row.key is not None and row.columns is not None, "it is of a group"
        values = [*row.key, *(argument(row.columns) for argument in self.of.arguments)]
        whole = (utf8(value).decode() if isinstance(value, str) else value for value in values)
        return Taken(tuple(whole), row.time, row.headers)

    def columns_of(self, taken: list[Taken]) -> list[Any]:
        import pyarrow

        types = [_arrow_type(of) for of in self.of.form.types.values()]
        columns = [pyarrow.array([row.values[place] for row in taken], of) for place, of in enumerate(types)]
        return [*columns, pyarrow.array([row.time for row in taken], pyarrow.int64())]

    def note_headers(self, row: Taken, closed: int) -> None:
        """A result has those of the last of its records; once there are any, rows without them count too."""
        if not row.headers and not self.headers:
            return
        self.noted = max(self.noted[0], row.time), self.noted[1] + 1
        sink, windows = self.of.plan.sink, self.of.windows
        assert sink is not None
        key = row.values[: self.of.form.keys]
        last = *self.noted, row.headers
        plain = sink.key_bytes(key) or b""
        if windows is None or sink.window is None:
            self.headers[plain] = last
            return
        for start in windows.starts(row.time):
            if start + windows.size > closed:
                self.headers[sink.window.join(plain, (start, start + windows.size))] = last

    def keep_aside(self) -> None:
        from pyspark import TaskContext

        if not self.left_out.any and not self.headers:
            return
        context = TaskContext.get()
        assert context is not None, "it runs in a task"
        name = f"{context.getLocalProperty(BATCH)}-{context.partitionId()}"
        self.of.home.mkdir(parents=True, exist_ok=True)
        beside = self.of.home / f"{name}-{context.taskAttemptId()}.new"
        beside.write_bytes(pickle.dumps(Aside(self.left_out.taken(), self.headers)))
        os.replace(beside, self.of.home / f"{name}{ASIDE}")


def _with_closed(rows: pyarrow.RecordBatch, closed: numpy.ndarray[Any, Any]) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(
        [*rows.columns, pyarrow.array(closed, pyarrow.int64())], names=[*rows.schema.names, "closed"]
    )


def _all_there(columns: list[Any]) -> Any:
    from pyarrow import compute

    found = compute.is_valid(columns[0])
    for column in columns[1:]:
        found = compute.and_(found, compute.is_valid(column))
    return found


def _arrow_type(of: str) -> Any:
    import pyarrow

    types = {
        "BOOLEAN": pyarrow.bool_(),
        "INT": pyarrow.int32(),
        "BIGINT": pyarrow.int64(),
        "DOUBLE": pyarrow.float64(),
        "STRING": pyarrow.string(),
        "BINARY": pyarrow.binary(),
    }
    return types[of]
