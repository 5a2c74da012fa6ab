"""The plain loop: plans run one record at a time, their state in memory.

A record goes through every plan that reads its topic, in the order that they were added, and what they write goes
through the plans that read that before the next record is taken. Offsets are counted by topic, as of one partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pykafkad.pipelines.plan.ends import Problem, Record, ignore
from pykafkad.pipelines.plan.topology import Plan, States

MAX_FOLLOWING = 100_000
"""So many records follow from one at most: queries that write what they read may go round without end."""


class EndlessQueries(Exception):
    """Queries write what they read, and one record had no end."""


class LocalHost:
    def __init__(self, problem: Problem = ignore) -> None:
        self._readers: dict[str, list[tuple[Plan, States]]] = {}
        self._problem = problem
        self._next_offset: dict[str, int] = {}

    def add(self, plan: Plan) -> None:
        states: States = {}
        for topic in dict.fromkeys(plan.topics()):
            self._readers.setdefault(topic, []).append((plan, states))

    def feed(self, record: Record) -> Iterator[Record]:
        """The records that follow from one, in the order that they are written in."""
        waiting, count = deque([record]), 0
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
                    count += 1
                    if count > MAX_FOLLOWING:
                        raise EndlessQueries(
                            f"more than {MAX_FOLLOWING} records follow from one: queries write topic {written.topic}, "
                            "which they read, without end"
                        )
                    yield written
                    waiting.append(written)
