"""The plain loop: plans run one record at a time, their state in memory.

A record goes through every plan that reads its topic, in the order that they were added, and what they write goes
through the plans that read that before the next record is taken. Offsets are counted by topic, as of one partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.topology import Plan, States


def _ignore(record: Record, error: BadRecord) -> None:
    """Nobody asked to be told."""


class LocalHost:
    def __init__(self, problem: Callable[[Record, BadRecord], None] = _ignore) -> None:
        self._plans: list[tuple[Plan, States]] = []
        self._problem = problem
        self._next_offset: dict[str, int] = {}

    def add(self, plan: Plan) -> None:
        self._plans.append((plan, {}))

    def feed(self, record: Record) -> Iterator[Record]:
        """The records that follow from one, in the order that they are written in."""
        waiting = deque([record])
        while waiting:
            taken = self._placed(waiting.popleft())
            for plan, states in self._plans:
                for written in plan.records(taken, states, self._problem):
                    yield written
                    waiting.append(written)

    def _placed(self, record: Record) -> Record:
        offset = self._next_offset.get(record.topic, 0)
        self._next_offset[record.topic] = offset + 1
        return record._replace(offset=offset)
