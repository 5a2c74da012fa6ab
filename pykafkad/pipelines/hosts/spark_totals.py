"""The results of a compiled aggregation, written with what its tasks have kept aside (spark_entering.py)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.hosts.sink import Chunk
from pykafkad.pipelines.hosts.spark_entering import Aside, aside_of
from pykafkad.pipelines.hosts.spark_writing import Results, in_chunks
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Headers, Row
from pykafkad.pipelines.spark_sql.aggregates import aggregation

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Totals(Results):
    home: Path = field(kw_only=True)

    def chunks(self, batches: Iterator[pyarrow.RecordBatch], left_out: LeftOut) -> Iterator[Chunk]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "it runs in a task"
        headers: dict[bytes, tuple[int, int, Headers]] = {}
        for file in aside_of(self.home, self.batch):
            aside: Aside = pickle.loads(file.read_bytes())
            if context.partitionId() == 0:
                left_out.add(aside.left_out)
            for key, last in aside.headers.items():
                if key not in headers or last[:2] > headers[key][:2]:
                    headers[key] = last
        if not headers:
            yield from Results.chunks(self, batches, left_out)
        else:
            for batch in batches:
                found = [self._with_headers(one, headers) for one in self._each(batch, left_out)]
                yield from in_chunks(found)

    def _with_headers(self, record: Record, headers: dict[bytes, tuple[int, int, Headers]]) -> Record:
        last = headers.get(record.key or b"")
        return record if last is None else record._replace(headers=last[2])

    def _odd(self, odd: pyarrow.StructScalar, left_out: LeftOut) -> Iterator[Record]:
        """Our operators go on with a group's row."""
        assert self.plan.sink is not None
        form = aggregation(self.plan)
        *columns, time = odd.as_py().values()
        window = tuple(columns[-2:]) if form.windowed else None
        rows = [Row(tuple(columns[: form.keys]), tuple(columns), time, None, window)]
        for step in form.after:
            rows = [follows for row in rows for follows in step.operator.on_row(0, row, {})]
        for row in rows:
            try:
                yield self.plan.sink.record(row)
            except BadRecord as error:
                left_out.row(error)

    def end(self) -> None:
        for file in aside_of(self.home, self.batch):
            file.unlink()
