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
        self._readers: dict[str, list[tuple[Plan, States]]] = {}
        self._problem = problem
        self._next_offset: dict[str, int] = {}

    def add(self, plan: Plan) -> None:
        states: States = {}
        for topic in dict.fromkeys(plan.topics()):
            self._readers.setdefault(topic, []).append((plan, states))

    def feed(self, record: Record) -> Iterator[Record]:
        """The records that follow from one, in the order that they are written in."""
        waiting = deque([record])
        while waiting:
            taken = waiting.popleft()
            readers = self._readers.get(taken.topic)
            if readers is None:
                continue
            offset = self._next_offset.get(taken.topic, 0)
            self._next_offset[taken.topic] = offset + 1
            topic, key, value, time, headers, partition, _ = taken
            placed = Record(topic, key, value, time, headers, partition, offset)
            for plan, states in readers:
                for written in plan.records(placed, states, self._problem):
                    yield written
                    waiting.append(written)
