"""Queries in Spark, each a streaming query of its own: begun when the whole script was obeyed, watched, tried again.

A query that ends by itself at a record has failed; after any other failure it goes on from its checkpoint, a few times.
What is read once (`stop_at_ends`) is read by one query after those that write what it reads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.hosts.spark import NoSpark
from pykafkad.pipelines.hosts.spark_showing import shown
from pykafkad.pipelines.hosts.spark_streaming import (
    StreamingQueryOptions,
    failure_of,
    not_in_real_time,
    one_line,
    start,
)
from pykafkad.pipelines.hosts.spark_writing import Done
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.topology import Plan, States
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.running.hosting import Counts
from pykafkad.pipelines.running.spark_checkpoints import Found, SparkCheckpoints
from pykafkad.tools.admin import Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ATTEMPTS = 5
BAD_SAID = 10


class SparkTask:
    def __init__(
        self,
        query_id: str,
        plan: Plan,
        starts: Mapping[Partition, int],
        exactly_once: bool,
        told: Callable[[str], object],
    ) -> None:
        self.id, self.plan, self.starts, self.exactly_once = query_id, plan, dict(starts), exactly_once
        self.counts = Counts()
        self.is_paused = self.is_done = False
        self.problem: str | None = None
        self.query: StreamingQuery | None = None
        self.checkpoint: Found | None = None
        self.attempts, self.waits_until = 0, 0.0
        self.details: dict[str, Any] = {"batch": None, "batch_ms": None, "state_bytes": 0}
        self.positions: dict[Partition, int] | None = None
        """The offsets behind what was read; not known before Spark says how far an earlier run came."""
        self.lag: dict[Partition, int] = {}
        self._told, self._counted = told, -1

    @property
    def runs(self) -> bool:
        return not self.is_paused and self.problem is None and not self.is_done

    @property
    def stands(self) -> Mapping[Partition, int]:
        return self.starts if self.positions is None else self.positions

    def batch_done(self, done: Done) -> None:
        self.counts.written += done.written
        for text in done.said[: max(0, BAD_SAID - self.counts.bad)]:
            self._told(f"{self.id}: {text}")
        self.counts.bad += done.bad

    def look(self) -> None:
        """Takes over what Spark says of the batches since."""
        assert self.query is not None
        for progress in self.query.recentProgress:
            if progress.numInputRows and progress.batchId > self._counted:
                self._counted, self.attempts = progress.batchId, 0
                self.counts.read += progress.numInputRows
                self.details = {
                    "batch": progress.batchId,
                    "batch_ms": progress.batchDuration,
                    "state_bytes": sum(one.memoryUsedBytes for one in progress.stateOperators),
                }
        last = self.query.lastProgress
        if last is not None and last.sources[0].endOffset not in (None, "null"):
            self.positions = {**(self.positions or {}), **_offsets(last.sources[0].endOffset)}
            latest = _offsets(last.sources[0].latestOffset)
            self.lag = {one: max(0, latest.get(one, at) - at) for one, at in self.positions.items()}

    def fail(self, said: str) -> None:
        self.problem = said
        self._told(f"{self.id} has stopped: {said}")


def _awaits(task: SparkTask, others: list[SparkTask]) -> bool:
    """Whether one of the others writes what a query reads."""
    written = {one.plan.sink.topic for one in others if one.plan.sink is not None}
    return not written.isdisjoint(task.plan.topics())


def _offsets(text: str | None) -> dict[Partition, int]:
    """Spark's JSON of offsets by topic and partition."""
    found = json.loads(text) if text else None
    return {(topic, int(index)): at for topic, ends in (found or {}).items() for index, at in ends.items()}


def _in_json(starts: Mapping[Partition, int]) -> str:
    offsets: dict[str, dict[str, int]] = {}
    for (topic, index), offset in starts.items():
        offsets.setdefault(topic, {})[str(index)] = offset
    return json.dumps(offsets)


class SparkEngine:
    exactly_once, pause_s = True, 0.1

    def __init__(
        self,
        broker: Broker,
        told: Callable[[str], object],
        spark: Callable[[], SparkSession | None],
        checkpoints: SparkCheckpoints,
        realtime: bool = False,
    ) -> None:
        """`spark`: the session; None while it is being made. `realtime`: queries run in Spark's real-time mode where
        they can."""
        self.broker, self.told, self._realtime = broker, told, realtime
        self.tasks: dict[str, SparkTask] = {}
        self._spark, self._checkpoints = spark, checkpoints
        self._once = False

    def start(
        self,
        query_id: str,
        plan: Plan,
        starts: Mapping[Partition, int],
        states: States | None = None,
        exactly_once: bool = False,
    ) -> None:
        assert states is None, "Spark keeps its state itself"
        self.tasks[query_id] = SparkTask(query_id, plan, starts, exactly_once, self.told)

    def begin(self, session: Session) -> None:
        """Finds the queries' checkpoints; they begin with the next step."""
        for query_id, task in self.tasks.items():
            if task.checkpoint is not None:
                continue
            task.checkpoint = self._checkpoints.found(session, query_id)
            if not task.checkpoint.goes_on:
                task.positions = dict(task.starts)
            if not task.checkpoint.compiles:
                self.told(
                    f"{query_id} goes on as operators, whose state its checkpoint has. --changed anew begins it without "
                    "that, compiled to Spark SQL, which is faster"
                )

    def stop(self, query_id: str) -> None:
        query = self.tasks.pop(query_id).query
        if query is not None:
            query.stop()

    def stop_at_ends(self) -> None:
        self._once = True
        left = [task for task in self.tasks.values() if task.runs]
        while ready := [task for task in left if not _awaits(task, left)]:
            left = [task for task in left if task not in ready]
        if left:
            names = ", ".join(task.id for task in left)
            raise StatementError(
                f"Queries write what they read ({names}): there is no order in which Spark could run each once. "
                "--until-idle ends when all is read"
            )

    def step(self) -> bool:
        for task in list(self.tasks.values()):
            if task.query is not None and task.is_paused:
                self._pause(task)
            elif task.query is not None:
                self._look(task)
            elif task.runs and time.monotonic() >= task.waits_until and self._may_begin(task):
                self._begin(task)
        return False

    def _pause(self, task: SparkTask) -> None:
        """It goes on from its checkpoint."""
        assert task.query is not None
        task.look()
        task.query.stop()
        task.query = None

    def _may_begin(self, task: SparkTask) -> bool:
        """Of what is read once all must have been written."""
        return not self._once or not _awaits(task, [one for one in self.tasks.values() if one.runs])

    def _begin(self, task: SparkTask) -> None:
        try:
            spark = self._spark()
        except Exception as error:
            task.fail(one_line(str(error)))
            return
        if spark is not None:
            self._begin_in(spark, task)

    def _begin_in(self, spark: SparkSession, task: SparkTask) -> None:
        assert task.checkpoint is not None, "the engine was begun"
        options = StreamingQueryOptions(
            self.broker.bootstrap,
            self._checkpoints.directory,
            self.broker.configs,
            task.exactly_once,
            until_idle=self._once,
            starting_offsets=_in_json(task.starts),
            done=task.batch_done,
            identity=task.checkpoint.identity,
            query_id=task.id,
            realtime=self._in_real_time(task),
            compiles=task.checkpoint.compiles,
        )
        try:
            task.query = start(spark, task.checkpoint.name, task.plan, options)
        except Exception as error:
            task.fail(one_line(str(error)))

    def _in_real_time(self, task: SparkTask) -> bool:
        why = not_in_real_time(task.plan, task.exactly_once) if self._realtime else None
        if why is not None and task.attempts == 0:
            self.told(f"{task.id} runs in micro-batches: {why}")
        return self._realtime and why is None

    def _look(self, task: SparkTask) -> None:
        assert task.query is not None
        ended = not task.query.isActive
        task.look()
        if not ended:
            return
        failure, task.query = failure_of(task.query), None
        if failure is None:
            task.is_done = True
            return
        said, is_transient = failure
        task.attempts += 1
        if not is_transient or task.attempts > ATTEMPTS:
            task.fail(said)
            return
        task.waits_until = time.monotonic() + 0.25 * 2**task.attempts
        if task.attempts == 1:
            self.told(f"{task.id}: {said}; it is tried again")

    def is_behind(self) -> bool:
        """The positions are taken before the ends: who has read all until then has written what follows from it."""
        tasks = [task for task in self.tasks.values() if task.runs]
        if self._once or any(task.query is None or task.positions is None for task in tasks):
            return bool(tasks)
        positions = {task.id: dict(task.positions or {}) for task in tasks}
        ends = self.broker.ends(dict.fromkeys(one for task in tasks for one in task.starts))
        return any(positions[task.id].get(one, 0) < ends[one] for task in tasks for one in task.starts)

    def close(self) -> None:
        for query_id in list(self.tasks):
            self.stop(query_id)
        with suppress(NoSpark):  # then there is nothing to stop
            spark = self._spark()
            if spark is not None:
                spark.stop()
        self._checkpoints.close()

    def pushed(self, plan: Plan, starts: Mapping[Partition, int]) -> Iterator[Row | None]:
        options = StreamingQueryOptions(
            self.broker.bootstrap,
            self._checkpoints.directory,
            self.broker.configs,
            starting_offsets=_in_json(starts),
        )
        while (spark := self._spark()) is None:
            yield None
            time.sleep(self.pause_s)
        yield from shown(spark, plan, options, self.told)
