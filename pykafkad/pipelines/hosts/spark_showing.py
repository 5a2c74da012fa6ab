"""A query in Spark whose rows somebody looks at: nothing is written, the rows of each batch come to this process.

Within a batch they have the order of the records that they follow from. Its checkpoint is for the occasion.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from queue import Empty, SimpleQueue

from pykafkad.pipelines import spark_sql
from pykafkad.pipelines.hosts.left_out import Gathered
from pykafkad.pipelines.hosts.spark import BAD, Placed, QueryFailed, configured, unpacked
from pykafkad.pipelines.hosts.spark_streaming import (
    StreamingQueryOptions,
    failure_of,
    operated,
    records_of,
)
from pykafkad.pipelines.plan.rows import Row, row_of
from pykafkad.pipelines.plan.topology import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "shown"
WAIT_S = 0.05


def shown(
    spark: SparkSession, plan: Plan, options: StreamingQueryOptions, told: Callable[[str], object]
) -> Iterator[Row | None]:
    """Rows as they come, None while there are none. Closed, it ends the query; `told` hears what was left out."""
    batches: SimpleQueue[list[Row]] = SimpleQueue()

    def take(frame: DataFrame, batch: int) -> None:
        batches.put(list(_rows(frame, told)))

    with tempfile.TemporaryDirectory(prefix="pykafkad-shown-") as directory:
        own = replace(options, checkpoints=Path(directory))
        with configured(spark, spark_sql.CONFIGS):
            frame = operated(records_of(spark, plan, own), NAME, plan, own, NAME)
            writer = frame.writeStream.outputMode("append").foreachBatch(take)
            query = writer.option("checkpointLocation", directory).start()
        try:
            while query.isActive:
                try:
                    yield from batches.get(timeout=WAIT_S)
                except Empty:
                    yield None
            if (failed := failure_of(query)) is not None:
                raise QueryFailed(failed[0])
        finally:
            query.stop()


def _rows(frame: DataFrame, told: Callable[[str], object]) -> Iterator[Row]:
    found: list[Placed] = [placed for packed in frame.collect() for placed in unpacked(packed.rows)]
    for _, step, _, row in sorted(found, key=itemgetter(0)):
        if step == BAD:
            (gathered,) = row
            assert isinstance(gathered, Gathered)
            for text in gathered.said:
                told(text)
        else:
            yield row_of(row)
