"""A plan: operators that hang together as a tree, from the topics that a query reads to what it emits.

Each operator has one consumer, so a row is pushed depth first: all that follows from it is emitted before the next row
is taken, which is the order of Kafka Streams' tasks. A plan is picklable; its state is a mapping for each operator, which
the host keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field

from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.plan import stateless
from pykafkad.pipelines.plan.bad_records import SAID_ONLY, BadRecords
from pykafkad.pipelines.plan.ends import Problem, ReadTopic, Record, WriteTopic
from pykafkad.pipelines.plan.rows import Operator, Row, State
from pykafkad.pipelines.plan.tables import GroupTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

States: TypeAlias = MutableMapping[int, State]


@dataclass(slots=True)
class Step:
    operator: Operator
    consumer: int | None = None
    port: int = 0
    """Which input of the consumer this is."""

    @property
    def stateful(self) -> bool:
        return type(self.operator).__module__ != stateless.__name__ and type(self.operator) is not GroupTable


@dataclass(slots=True)
class Entry:
    """A topic that is read, and the operator that its rows go to; None is straight out."""

    source: ReadTopic
    consumer: int | None = None
    port: int = 0


@dataclass(slots=True)
class Plan:
    entries: list[Entry] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sink: WriteTopic | None = None
    bad_records: BadRecords = SAID_ONLY
    """What becomes of those that are left out, for hosts that write to a cluster."""
    every_change: bool = False
    """Whether a host of batches, too, tells of every change of a total, and not only of the last of a key in each."""

    def topics(self) -> list[str]:
        return [entry.source.topic for entry in self.entries]

    def rows(self, record: Record, states: States, problem: Problem) -> list[Row]:
        """What follows from a record, as rows. One that cannot be read is a problem, and nothing follows from it."""
        found: list[Row] = []
        for entry in self.entries:
            if entry.source.topic == record.topic:
                try:
                    row = entry.source.row(record)
                except BadRecord as error:
                    problem(record, error)
                else:
                    self._push(entry.consumer, entry.port, row, states, found)
        return found

    def _push(self, at: int | None, port: int, row: Row, states: States, found: list[Row]) -> None:
        if at is None:
            found.append(row)
            return
        step, state = self.steps[at], states.get(at)
        if state is None:
            state = states[at] = {}
        for follows in step.operator.on_row(port, row, state):
            self._push(step.consumer, step.port, follows, states, found)

    def records(self, record: Record, states: States, problem: Problem) -> Iterator[Record]:
        """What follows from a record, as records of the sink's topic."""
        assert self.sink is not None, "only a plan with a sink writes"
        for row in self.rows(record, states, problem):
            try:
                written = self.sink.record(row)
            except BadRecord as error:
                problem(record, error)
            else:
                yield written


@dataclass(slots=True)
class Flow:
    """A part of a plan while it is built: the ends that are still open."""

    plan: Plan
    open: list[Entry | Step] = field(default_factory=list)

    def then(self, operator: Operator) -> Flow:
        return merge(self.plan, [self], operator)


def start(plan: Plan, source: ReadTopic) -> Flow:
    entry = Entry(source)
    plan.entries.append(entry)
    return Flow(plan, [entry])


def merge(plan: Plan, flows: Sequence[Flow], operator: Operator) -> Flow:
    """The flows led into an operator, the first into its port 0."""
    step, number = Step(operator), len(plan.steps)
    plan.steps.append(step)
    for port, flow in enumerate(flows):
        for end in flow.open:
            end.consumer, end.port = number, port
    return Flow(plan, [step])
