"""A plan cut into stages, for a host that spreads keys over buckets.

A row must be where the state of its key is. Wherever an operator with state takes rows by a key that they were not placed
by yet, the plan is cut: the stage before emits them as Moving, and the host hands each to the bucket of its key for the
next stage. The operators are the plan's own, and so is the order within a bucket. A stream's time is that of a bucket, as
in Kafka Streams it is that of a partition: one bucket is a topic of one partition.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stateless import Group, Rekey
from pykafkad.pipelines.plan.table_joins import JoinForeignKey
from pykafkad.pipelines.plan.tables import GroupTable
from pykafkad.pipelines.plan.topology import Entry, Plan, States, Step

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


class Stages:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.entered: dict[int, int] = {}
        """The steps whose rows come from other buckets, and their stages."""
        self.count = 1
        places: dict[int, list[_Place]] = {}
        for entry in plan.entries:
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

    def begin(self, topic: str) -> Iterator[Entry]:
        return (entry for entry in self.plan.entries if entry.source.topic == topic)

    def enter(self, entry: Entry, row: Row) -> list[Moving]:
        """The first stage, which has no state: what follows from a record's row until it must move."""
        found: list[Moving] = []
        self._push(entry.consumer, entry.port, row, {}, 0, found)
        return found

    def arrive(self, moved: Moving, states: States) -> list[Moving]:
        """What follows from a row in the bucket that it moved to."""
        found: list[Moving] = []
        self._push(moved.step, moved.port, moved.row, states, self.entered[moved.step], found)
        return found

    def _push(
        self, at: int | None, port: int, row: Row, states: States, stage: int, found: list[Moving]
    ) -> None:
        if at is None or self.entered.get(at, stage) > stage:
            found.append(Moving(OUT if at is None else at, port, row))
            return
        step = self.plan.steps[at]
        for follows in step.operator.on_row(port, row, states.setdefault(at, {})):
            self._push(step.consumer, step.port, follows, states, stage, found)

    def bucket(self, moving: Moving, buckets: int) -> int:
        """Where a row moves to. A join by foreign key has its sides by different keys, so it is in one bucket."""
        if moving.step == OUT or isinstance(self.plan.steps[moving.step].operator, JoinForeignKey):
            return 0
        return zlib.crc32(repr(moving.row.key).encode()) % buckets
