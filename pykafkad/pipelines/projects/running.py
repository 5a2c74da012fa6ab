"""A project's flows as streaming queries of Spark, each with a checkpoint of its own below the spec's storage.

Once: flow after flow, each after those that it reads, to the end of what is there; then the materialized views.
Continuously: all at the same time, the views again and again; one that fails is begun again from its checkpoint, five
times with longer and longer pauses, while the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pykafkad.pipelines.hosts.spark import configured
from pykafkad.pipelines.projects.definitions import KAFKA, MATERIALIZED, Dataset, Flow, said_by
from pykafkad.pipelines.projects.graph import OUTPUT_MODE, READS, Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MAX_FAILURES = 5
REFRESH_S = 60.0
"""Between two times that the materialized views are made, in a run that goes on."""
IDLE_S = 0.1


@dataclass(slots=True)
class Task:
    flow: Flow
    query: StreamingQuery | None = None
    failures: int = 0
    again_at: float = 0.0
    batch: int = -1
    """The last that was told of."""
    failed: str | None = None


class ProjectRun:
    """`told` hears of each batch and of what fails, as a name and facts."""

    def __init__(
        self, spark: SparkSession, graph: Graph, told: Callable[[str, dict[str, Any]], object]
    ) -> None:
        self._spark, self._graph, self._told = spark, graph, told
        self.tasks = [Task(flow) for flow in graph.order if graph.table(flow).kind != MATERIALIZED]
        self.views = [Task(flow) for flow in graph.order if graph.table(flow).kind == MATERIALIZED]

    @property
    def has_failed(self) -> bool:
        return any(task.failed for task in (*self.tasks, *self.views))

    def once(self, stopped: Callable[[], bool]) -> None:
        """What is there now, with all that follows from it; nothing after the first flow that fails."""
        for task in self.tasks:
            self._start(task, once=True)
            while task.query is not None and not stopped():
                self._watch(task, patient=False)
                time.sleep(IDLE_S)
            if stopped() or task.failed:
                self.stop()
                return
        self._refresh()

    def keep_going(self, stopped: Callable[[], bool]) -> None:
        for task in self.tasks:
            self._start(task)
        refresh_at = time.monotonic()
        while not stopped() and any(task.failed is None for task in (*self.tasks, *self.views)):
            for task in self.tasks:
                if task.query is not None:
                    self._watch(task, patient=True)
                elif task.failed is None and time.monotonic() >= task.again_at:
                    self._start(task)
            if self.views and time.monotonic() >= refresh_at:
                self._refresh()
                refresh_at = time.monotonic() + REFRESH_S
            time.sleep(IDLE_S)
        self.stop()

    def stop(self) -> None:
        for task in self.tasks:
            if task.query is not None:
                task.query.stop()

    # --- a flow

    def _start(self, task: Task, once: bool = False) -> None:
        flow, table = task.flow, self._graph.table(task.flow)
        try:
            with configured(self._spark, flow.configs):
                writer = self._writer(table, flow).option("checkpointLocation", self._graph.checkpoint(flow))
                task.query = (writer.trigger(availableNow=True) if once else writer).start()
        except Exception as error:  # Spark's errors have many classes
            self._fail(task, said_by(error), patient=False)

    def _writer(self, table: Dataset, flow: Flow) -> Any:
        writer = self._graph.frame(flow).writeStream.queryName(flow.name).format(table.format)
        if table.format != KAFKA:
            path = self._graph.path(table, flow)
            return writer.options(**table.properties).option("path", path).partitionBy(*table.partitions)
        properties = {key.lower(): value for key, value in table.properties.items()}
        writer = writer.outputMode(properties.pop(OUTPUT_MODE, "append"))
        options = {key: value for key, value in properties.items() if key not in READS}
        return writer.options(**self._graph.servers(table), **options)

    def _watch(self, task: Task, patient: bool) -> None:
        """Tells of its last batch; of a query that has ended, whether it failed."""
        query = task.query
        assert query is not None
        ended = not query.isActive
        self._tell(task, query)
        if not ended:
            return
        task.query = None
        error = query.exception()
        if error is not None:
            self._fail(task, _reason(error), patient)

    def _tell(self, task: Task, query: StreamingQuery) -> None:
        progress: Any = query.lastProgress
        if progress is None or progress["batchId"] == task.batch or not progress["numInputRows"]:
            return
        task.batch, task.failures = progress["batchId"], 0
        millis = progress["durationMs"].get("triggerExecution", 0)
        self._told(task.flow.name, {"batch": task.batch, "in": progress["numInputRows"], "ms": millis})

    def _fail(self, task: Task, why: str, patient: bool) -> None:
        task.failures += 1
        if patient and task.failures <= MAX_FAILURES:
            pause = 2.0 ** (task.failures - 1)
            task.again_at = time.monotonic() + pause
            self._told(task.flow.name, {"failed": why, "again_in_s": pause})
        else:
            task.failed = why
            self._told(task.flow.name, {"failed": why})

    # --- materialized views

    def _refresh(self) -> None:
        """Each is computed from what is there, and takes the place of what it was."""
        for task in self.views:
            flow, table = task.flow, self._graph.table(task.flow)
            try:
                with configured(self._spark, flow.configs):
                    writer = self._graph.fresh(flow).write.mode("overwrite").format(table.format)
                    writer = writer.options(**table.properties).partitionBy(*table.partitions)
                    writer.save(self._graph.path(table, flow))
            except Exception as error:  # Spark's errors have many classes
                self._fail(task, said_by(error), patient=False)
            else:
                task.failed = None
                self._told(flow.name, {"refreshed": True})


def _reason(error: Any) -> str:
    """The innermost cause that has something to say."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return causes[-1].removeprefix("Caused by: ") if causes else said_by(error)
