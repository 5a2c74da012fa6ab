"""A plan cut into stages, for a host that spreads keys over buckets.

A row must be where the state of its key is. Wherever an operator with state takes rows by a key that they were not placed
by yet, the plan is cut: the stage before emits them as Moving, and the host hands each to the bucket of its key for the
next stage. The operators are the plan's own, and so is the order within a bucket. A stream's time is that of a bucket, as
in Kafka Streams it is that of a partition: one bucket is a topic of one partition.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafkad.pipelines.plan.aggregates import Change, Total, Totalling, told
from pykafkad.pipelines.plan.ends import ReadTopic
from pykafkad.pipelines.plan.rows import Row, State, made_of
from pykafkad.pipelines.plan.stateless import AppendKey, Group, Project, Rekey
from pykafkad.pipelines.plan.table_joins import JoinForeignKey
from pykafkad.pipelines.plan.tables import GroupTable
from pykafkad.pipelines.plan.topology import Entry, Plan, States, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

OUT = -1


class Moving(NamedTuple):
    """A row on its way to a step's input in a later stage; to OUT it is the plan's result."""

    step: int
    port: int
    row: Row


class _Place(NamedTuple):
    """Where rows are that leave an operator: in which stage, and whether by their key."""

    stage: int
    by_key: bool


class Gathered(NamedTuple):
    """The last change of a total in a batch, what the total was before the batch, and the place in the order of the row
    that did it."""

    step: int
    change: Change
    before: Total | None
    seq: bytes


moving_of, gathered_of = made_of(Moving), made_of(Gathered)


@dataclass(slots=True)
class Bucket:
    """A bucket while a batch's rows arrive: its state, and if changes are gathered, the last of each key."""

    states: States
    changes: dict[Any, Gathered] | None = None
    seq: bytes = b""
    """The place of the row that has arrived."""
    moving: list[Moving] = field(default_factory=list)

    def state(self, step: int) -> State:
        found = self.states.get(step)
        if found is None:
            found = self.states[step] = {}
        return found

    def gather(self, step: int, change: Change) -> None:
        """Keys are in the order of their last changes, as caches of Kafka Streams are flushed."""
        assert self.changes is not None
        at = step, change.at, change.window
        first = self.changes.pop(at, None)
        before = change.before if first is None else first.before
        self.changes[at] = gathered_of((step, change, before, self.seq))


NONE: State = {}
"""Of operators without state."""

Push: TypeAlias = Callable[[Row, Bucket], None]
"""Takes a row into a step, and what follows from it further on."""


class Beginning(NamedTuple):
    """What reads a topic's records, and takes their rows."""

    source: ReadTopic
    push: Push


class Stages:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._pushes: dict[tuple[int | None, int, int], Push] = {}
        self.entered: dict[int, int] = {}
        """The steps whose rows come from other buckets, and their stages."""
        self._whole = {OUT}
        """The steps whose rows are all in one bucket."""
        self.count = 1
        places: dict[int, list[_Place]] = {}
        for entry in plan.entries:
            self._leads(entry, _Place(0, False), places)
        for number, step in enumerate(plan.steps):
            self._leads(step, self._placed(number, step, places[number]), places)
        self.arriving: dict[tuple[int, int], Push] = {}
        """What takes rows that have moved, by the step and the port that they come to."""
        ends: list[Entry | Step] = [*plan.entries, *plan.steps]
        for end in ends:
            if end.consumer is not None and end.consumer in self.entered:
                push = self._push(end.consumer, end.port, self.entered[end.consumer])
                self.arriving[end.consumer, end.port] = push
        self._begin: dict[str, list[Beginning]] = {}
        for entry in plan.entries:
            begins = Beginning(entry.source, self._push(entry.consumer, entry.port, 0))
            self._begin.setdefault(entry.source.topic, []).append(begins)

    def _leads(self, end: Entry | Step, place: _Place, places: dict[int, list[_Place]]) -> None:
        if end.consumer is not None:
            places.setdefault(end.consumer, []).append(place)

    def _placed(self, number: int, step: Step, inputs: list[_Place]) -> _Place:
        operator = step.operator
        if not step.stateful:
            rekeys = isinstance(operator, Group | Rekey | GroupTable)
            return _Place(inputs[0].stage, inputs[0].by_key and not rekeys)
        stage, whole = max(place.stage for place in inputs), isinstance(operator, JoinForeignKey)
        if whole or any(place != _Place(stage, True) for place in inputs):
            stage += 1
            self.entered[number] = stage
            if whole:
                self._whole.add(number)
            self.count = max(self.count, stage + 1)
        return _Place(stage, not whole)

    def begin(self, topic: str) -> list[Beginning]:
        """The first stage, which has no state."""
        return self._begin.get(topic, [])

    def __reduce__(self) -> tuple[Any, ...]:
        return Stages, (self.plan,)

    def flush(self, stage: int, bucket: Bucket) -> Iterator[Moving]:
        """What follows from the changes that were gathered. A key that held nothing before and holds nothing now has
        not changed."""
        for step, change, before, seq in (bucket.changes or {}).values():
            if change.after is None and before is None:
                continue
            end = self.plan.steps[step]
            total: Any = end.operator
            row = told(total.aggregates, change, before if self._undoes(end.consumer) else None)
            bucket.seq, bucket.moving = seq, []
            self._push(end.consumer, end.port, stage)(row, bucket)
            yield from bucket.moving

    def _undoes(self, at: int | None) -> bool:
        """Whether a step, or one behind it, asks what a key held before."""
        while at is not None and isinstance(self.plan.steps[at].operator, Project | AppendKey):
            at = self.plan.steps[at].consumer
        return at is not None

    def _push(self, at: int | None, port: int, stage: int) -> Push:
        """What takes rows into a step's input in a stage; it is put together once."""
        found = self._pushes.get((at, port, stage))
        if found is None:
            found = self._pushes[at, port, stage] = self._made(at, port, stage)
        return found

    def _made(self, at: int | None, port: int, stage: int) -> Push:
        if at is None or self.entered.get(at, stage) > stage:
            to = OUT if at is None else at
            return lambda row, bucket: bucket.moving.append(moving_of((to, port, row)))
        step = self.plan.steps[at]
        on_row, further = step.operator.on_row, self._push(step.consumer, step.port, stage)
        stateful = step.stateful

        def push(row: Row, bucket: Bucket) -> None:
            for follows in on_row(port, row, bucket.state(at) if stateful else NONE):
                further(follows, bucket)

        if not isinstance(step.operator, Totalling) or not step.operator.tells_changes:
            return push
        changes = step.operator.changes

        def gather(row: Row, bucket: Bucket) -> None:
            if bucket.changes is None:
                push(row, bucket)
            else:
                for change in changes(row, bucket.state(at)):
                    bucket.gather(at, change)

        return gather

    def bucket(self, moving: Moving, buckets: int) -> int:
        """Where a row moves to. A join by foreign key has its sides by different keys, so it is in one bucket."""
        step, _, row = moving
        return 0 if step in self._whole else zlib.crc32(repr(row[0]).encode()) % buckets
