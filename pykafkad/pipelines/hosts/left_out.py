"""What a task in Spark gathers of records that its query leaves out: what is to be said, and what is to be written.

It goes with the results to whoever writes them, in the same transaction where there is one.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.plan.bad_records import expressions_of
from pykafkad.pipelines.plan.ends import Record, place
from pykafkad.pipelines.plan.topology import Plan

SAID = 10
"""So many records that are left out each task of a batch names."""


class Gathered(NamedTuple):
    bad: int
    said: list[str]
    aside: list[Record]
    """Dead letters, and entries of the log."""


class LeftOut:
    def __init__(self, plan: Plan, query_id: str) -> None:
        self.bad = 0
        self.said: list[str] = []
        self.aside: list[Record] = []
        self.record: Record | None = None
        """That the operators have now, where it is known."""
        self._plan, self._query_id = plan, query_id
        if plan.bad_records.log_topic is not None:
            for expression in expressions_of(plan):
                expression.failures.on_problem = self._nulled

    def note(self, record: Record, error: BadRecord) -> None:
        """A record that could not be read, or what followed from it could not be written."""
        self.bad += 1
        bad_records = self._plan.bad_records
        self.aside += bad_records.left_out(self._query_id, record, error, _now_ms())
        if bad_records.is_said and len(self.said) < SAID:
            self.said.append(f"{place(record)} is left out: {error}")

    def row(self, error: BadRecord) -> None:
        """A row of a query with state that cannot be written: which record it comes from is not known."""
        assert self._plan.sink is not None
        self.bad += 1
        if self._plan.bad_records.is_said and len(self.said) < SAID:
            self.said.append(f"a row for {self._plan.sink.topic} is left out: {error}")
        if self._plan.bad_records.log_topic is not None:
            error.written_to = self._plan.sink.topic
            nowhere = Record(self._plan.sink.topic, None, None, 0)
            log_only = self._plan.bad_records._replace(dead_letters="", rows_included=False)
            self.aside += log_only.left_out(self._query_id, nowhere, error, _now_ms())

    def _nulled(self, reason: str) -> None:
        self.aside.append(self._plan.bad_records.nulled(self._query_id, self.record, reason, _now_ms()))

    def add(self, other: Gathered) -> None:
        self.bad += other.bad
        self.said += other.said[: SAID - len(self.said)]
        self.aside += other.aside

    @property
    def any(self) -> bool:
        return bool(self.bad or self.aside)

    def taken(self) -> Gathered:
        """What has been gathered since."""
        found = Gathered(self.bad, self.said, self.aside)
        self.bad, self.said, self.aside = 0, [], []
        return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
