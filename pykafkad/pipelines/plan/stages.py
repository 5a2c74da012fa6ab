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

from pykafkad.pipelines.plan.aggregates import AggregateStream, AggregateTable
from pykafkad.pipelines.plan.rows import Columns, Row, hashable
from pykafkad.pipelines.plan.stateless import Group, Rekey
from pykafkad.pipelines.plan.table_joins import JoinForeignKey
from pykafkad.pipelines.plan.tables import GroupTable
from pykafkad.pipelines.plan.topology import Entry, Plan, States, Step
from pykafkad.pipelines.plan.windows import AggregateSessions, AggregateWindows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

OUT = -1
TOTALS = AggregateStream | AggregateTable | AggregateWindows | AggregateSessions


class Moving(NamedTuple):
    """A row on its way to a step's input in a later stage; to OUT it is the plan's result."""

    step: int
    port: int
    row: Row


class _Place(NamedTuple):
    """Where rows are that leave an operator: in which stage, and whether by their key."""

    stage: int
    by_key: bool


class Change(NamedTuple):
    """The last that a batch says of a key, what the key held before the batch, and the place in the order of the row
    that it followed from."""

    step: int
    row: Row
    old: Columns | None
    seq: bytes


@dataclass(slots=True)
class Bucket:
    """A bucket while a batch's rows arrive: its state, and if changes are gathered, the last of each key."""

    states: States
    changes: dict[Any, Change] | None = None
    seq: bytes = b""
    """The place of the row that has arrived."""
    moving: list[Moving] = field(default_factory=list)

    def gather(self, step: int, row: Row) -> None:
        """Keys are in the order of their last changes, as caches of Kafka Streams are flushed."""
        assert self.changes is not None
        at = step, hashable(row.key), row.window
        first = self.changes.pop(at, None)
        self.changes[at] = Change(step, row, row.old if first is None else first.old, self.seq)


Push: TypeAlias = Callable[[Row, Bucket], None]
"""Takes a row into a step, and what follows from it further on."""


class Stages:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._pushes: dict[tuple[int | None, int, int], Push] = {}
        self.entered: dict[int, int] = {}
        """The steps whose rows come from other buckets, and their stages."""
        self.count = 1
        places: dict[int, list[_Place]] = {}
        self._begin: dict[str, list[Entry]] = {}
        for entry in plan.entries:
            self._begin.setdefault(entry.source.topic, []).append(entry)
            self._leads(entry, _Place(0, False), places)
        for number, step in enumerate(plan.steps):
            self._leads(step, self._placed(number, step, places[number]), places)

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
            self.count = max(self.count, stage + 1)
        return _Place(stage, not whole)

    def begin(self, topic: str) -> list[Entry]:
        return self._begin.get(topic, [])

    def __reduce__(self) -> tuple[Any, ...]:
        return Stages, (self.plan,)

    def enter(self, entry: Entry, row: Row) -> list[Moving]:
        """The first stage, which has no state: what follows from a record's row until it must move."""
        bucket = Bucket({})
        self.entered_by(entry, row, bucket)
        return bucket.moving

    def entered_by(self, entry: Entry, row: Row, bucket: Bucket) -> None:
        """The same of one among a batch's."""
        self._push(entry.consumer, entry.port, 0)(row, bucket)

    def arrive(self, moved: Moving, states: States) -> list[Moving]:
        """What follows from a row in the bucket that it moved to."""
        bucket = Bucket(states)
        self.arrived(moved.step, moved.port, moved.row, bucket)
        return bucket.moving

    def arrived(self, step: int, port: int, row: Row, bucket: Bucket) -> None:
        """The same of one among a batch's."""
        self._push(step, port, self.entered[step])(row, bucket)

    def flush(self, stage: int, bucket: Bucket) -> Iterator[Moving]:
        """What follows from the changes that were gathered. A key that held nothing before and holds nothing now has
        not changed."""
        for step, row, old, seq in (bucket.changes or {}).values():
            if row.columns is None and old is None:
                continue
            end = self.plan.steps[step]
            bucket.seq, bucket.moving = seq, []
            self._push(end.consumer, end.port, stage)(row._replace(old=old), bucket)
            yield from bucket.moving

    def _push(self, at: int | None, port: int, stage: int) -> Push:
        """What takes rows into a step's input in a stage; it is put together once."""
        found = self._pushes.get((at, port, stage))
        if found is None:
            found = self._pushes[at, port, stage] = self._made(at, port, stage)
        return found

    def _made(self, at: int | None, port: int, stage: int) -> Push:
        if at is None or self.entered.get(at, stage) > stage:
            to = OUT if at is None else at
            return lambda row, bucket: bucket.moving.append(Moving(to, port, row))
        step = self.plan.steps[at]
        on_row, further = step.operator.on_row, self._push(step.consumer, step.port, stage)
        gathers = is_total(step)

        def push(row: Row, bucket: Bucket) -> None:
            state = bucket.states.get(at)
            if state is None:
                state = bucket.states[at] = {}
            if gathers and bucket.changes is not None:
                for follows in on_row(port, row, state):
                    bucket.gather(at, follows)
            else:
                for follows in on_row(port, row, state):
                    further(follows, bucket)

        return push

    def bucket(self, moving: Moving, buckets: int) -> int:
        """Where a row moves to. A join by foreign key has its sides by different keys, so it is in one bucket."""
        if moving.step == OUT or isinstance(self.plan.steps[moving.step].operator, JoinForeignKey):
            return 0
        return zlib.crc32(repr(moving.row.key).encode()) % buckets


def is_total(step: Step) -> bool:
    """Whether it says of a key what its total is, each time that it changes; not where it says it once."""
    operator = step.operator
    return isinstance(operator, TOTALS) and not getattr(operator, "final", False)
