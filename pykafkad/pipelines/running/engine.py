"""The plain loop with a cluster: queries that read topics and write topics, a slice of records each in turn.

What a query writes is acknowledged before what it read counts as done (`Positions`), so whoever keeps these starts again
without a gap: at least once. A query's state is in memory. A query that fails stops alone, and says at which record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from pykafkad.errors import KafkaError
from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.formats.registry import RegistryError
from pykafkad.pipelines.plan.bad_records import expressions_of
from pykafkad.pipelines.plan.ends import Record, place
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.topology import Plan, States
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.running.hosting import Counts
from pykafkad.pipelines.running.reading import Reading
from pykafkad.tools import failures
from pykafkad.tools.admin import Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

T = TypeVar("T")

ATTEMPTS = 8
REGISTRY_PAUSES_S = (0.1, 0.3, 0.6, 1.0)
BAD_SAID = 10
"""So many records that are left out are named, then only each tenth, hundredth ... one."""
SLICE = 500
"""Records of one query before the next one has its turn."""


class Task:
    """A query that runs. `told` hears of records that cannot be read."""

    def __init__(self, query_id: str, plan: Plan, reading: Reading, told: Callable[[str], object]) -> None:
        self.id, self.plan, self.reading = query_id, plan, reading
        self.states: States = {}
        self.counts = Counts()
        self.is_paused = False
        self.problem: str | None = None
        """Why it has stopped."""
        self.stream_time = -1
        self.attempts, self.waits_until = 0, 0.0
        self._told = told
        self._last: Record | None = None
        self._aside: list[Record] = []
        """What is to be written of records that were left out."""
        if plan.bad_records.log_topic is not None:
            for expression in expressions_of(plan):
                expression.failures.on_problem = self._nulled

    @property
    def runs(self) -> bool:
        return not self.is_paused and self.problem is None

    @property
    def stands(self) -> Mapping[Partition, int]:
        return self.reading.merging.taken

    @property
    def lag(self) -> dict[Partition, int]:
        merging = self.reading.merging
        return {one: max(0, merging.ends.get(one, taken) - taken) for one, taken in merging.taken.items()}

    @property
    def details(self) -> dict[str, Any]:
        return {
            "state_entries": sum(len(state) for state in self.states.values()),
            "stream_time": self.stream_time if self.stream_time >= 0 else None,
        }

    def rows(self, limit: int) -> Iterator[Row]:
        """What follows from the next records, at most so many."""
        for record in self._next(limit):
            yield from patiently(partial(self.plan.rows, record, self.states, self._bad))

    def records(self, limit: int) -> Iterator[Record]:
        sink = self.plan.sink
        assert sink is not None, "only a plan with a sink writes"
        for record in self._next(limit):
            for row in patiently(partial(self.plan.rows, record, self.states, self._bad)):
                try:
                    written = patiently(partial(sink.record, row))
                except BadRecord as error:
                    error.written_to = sink.topic
                    self._bad(record, error)
                else:
                    self.counts.written += 1
                    yield written
            yield from self._aside
            self._aside.clear()

    def _next(self, limit: int) -> Iterator[Record]:
        for _ in range(limit):
            record = self.reading.merging.next()
            if record is None:
                return
            self.counts.read += 1
            self.stream_time = max(self.stream_time, record.time)
            self._last = record
            yield record

    def _bad(self, record: Record, error: BadRecord) -> None:
        self.counts.bad += 1
        bad_records = self.plan.bad_records
        self._aside += bad_records.left_out(self.id, record, error, _now_ms())
        if not bad_records.is_said:
            return
        if self.counts.bad <= BAD_SAID or str(self.counts.bad).strip("0") == "1":
            more = "" if self.counts.bad <= BAD_SAID else f" ({self.counts.bad} have been by now)"
            self._told(f"{self.id}: {place(record)} is left out: {error}{more}")

    def _nulled(self, reason: str) -> None:
        self._aside.append(self.plan.bad_records.nulled(self.id, self._last, reason, _now_ms()))

    def fail(self, error: Exception) -> None:
        where = f" at {place(self._last)}" if self._last is not None else ""
        self.problem = f"{said(error)}{where}"
        self._told(f"{self.id} has stopped: {self.problem}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def patiently(call: Callable[[], T]) -> T:
    """What a schema registry that does not answer keeps from being done is tried again for two seconds."""
    for pause in REGISTRY_PAUSES_S:
        try:
            return call()
        except RegistryError:
            time.sleep(pause)
    return call()


def said(error: Exception) -> str:
    known = isinstance(error, OSError | KafkaError | RegistryError)
    return failures.message_of(error) if known else f"{type(error).__name__}: {error}"


class Engine:
    exactly_once, pause_s = False, 0.01

    def __init__(self, broker: Broker, told: Callable[[str], object]) -> None:
        self.broker = broker
        self.tasks: dict[str, Task] = {}
        self.told = told
        self._refused: list[tuple[Task, Exception]] = []

    def start(
        self,
        query_id: str,
        plan: Plan,
        starts: Mapping[Partition, int],
        states: States | None = None,
        exactly_once: bool = False,
    ) -> None:
        assert not exactly_once, "the runner asks first whether it can be promised"
        task = self.tasks[query_id] = Task(query_id, plan, Reading(self.broker, starts), self.told)
        task.states = {} if states is None else states

    def begin(self, session: Session) -> None:
        """Queries have begun with their statements."""

    def pushed(self, plan: Plan, starts: Mapping[Partition, int]) -> None:
        """Whoever asks runs it, in a loop of its own."""

    def stop(self, query_id: str) -> None:
        self.tasks.pop(query_id).reading.close()

    def stop_at_ends(self) -> None:
        """What comes from now on into topics that no query writes is not read."""
        written = {task.plan.sink.topic for task in self.tasks.values() if task.plan.sink is not None}
        now = self.broker.ends(partition for partition in self.partitions() if partition[0] not in written)
        for task in self.tasks.values():
            task.reading.merging.stop_at(now)

    def step(self) -> bool:
        """A turn of each query; whether any had something to do."""
        moved = False
        for task in list(self.tasks.values()):
            if task.runs:
                moved = self._turn(task) or moved
        self.broker.flush()
        for task, error in self._refused:
            if task.problem is None:
                task.fail(error)
        self._refused.clear()
        return moved

    def _turn(self, task: Task) -> bool:
        if time.monotonic() < task.waits_until:
            return False
        try:
            arrived = task.reading.poll()
        except (OSError, KafkaError) as error:
            self._try_again(task, error)
            return False
        task.attempts = 0
        try:
            before = task.counts.read
            for record in task.records(SLICE):
                self.broker.send(record, partial(self._sent, task))
        except Exception as error:
            task.fail(error)
            return True
        return arrived or task.counts.read > before

    def _try_again(self, task: Task, error: Exception) -> None:
        """A cluster that does not answer may do so later: in 0.1 s, 0.2 s, 0.4 s ..."""
        task.attempts += 1
        if task.attempts > ATTEMPTS:
            task.fail(error)
            return
        if task.attempts == 1:
            self.told(f"{task.id}: {failures.message_of(error)}; it is tried again")
        task.waits_until = time.monotonic() + 0.05 * 2**task.attempts

    def _sent(self, task: Task, error: Exception | None) -> None:
        if error is not None:
            self._refused.append((task, error))

    def is_behind(self) -> bool:
        """Whether anything is left that a query which runs has not read. The topics' ends are asked."""
        ends = self.broker.ends(self.partitions())
        return any(task.runs and task.reading.merging.is_behind(ends) for task in self.tasks.values())

    def partitions(self) -> list[Partition]:
        """What is read by queries that run."""
        return list(
            dict.fromkeys(p for task in self.tasks.values() if task.runs for p in task.reading.partitions)
        )

    def close(self) -> None:
        for query_id in list(self.tasks):
            self.stop(query_id)
