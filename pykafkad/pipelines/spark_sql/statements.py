"""A plan without state as what Spark's frames do: selects and filters, one after another.

The frame that begins is Spark's Kafka source with headers. What ends has `key`, `value`, `time`, `headers` as they are to
be written, or, where Spark's answer would not be ours, the record itself in `record`. The steps between carry the record
along, and the row's columns as c0, c1 ..., its key's as k0 ... once it has another key than its record's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pykafkad.pipelines.plan.ends import ReadTopic, WriteTopic
from pykafkad.pipelines.plan.stateless import FilterStream, Project, Rekey
from pykafkad.pipelines.plan.topology import Entry, Plan, Step
from pykafkad.pipelines.spark_sql.expressions import compiled
from pykafkad.pipelines.spark_sql.reading import reading
from pykafkad.pipelines.spark_sql.sql import NotCompiled, any_of
from pykafkad.pipelines.spark_sql.steps import AnyStep, Chain, Select, Where
from pykafkad.pipelines.spark_sql.writing import writing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECORD = ("topic", "key", "value", "timestamp", "headers", "partition", "offset")
RAW = tuple(f"`{name}`" for name in RECORD)
AS_RECORD = f"struct({', '.join(RAW)})"
RESULT = ("key", "value", "time", "headers", "record")


NOTHING = ("CAST(NULL AS BINARY) AS key", "CAST(NULL AS BINARY) AS value", "0L AS time")
UNCOMPILED = Chain((Select((*NOTHING, "headers", f"{AS_RECORD} AS record")),))
"""Of a statement without state that is not compiled: all records are for our operators."""


def is_stateless(plan: Plan) -> bool:
    """Whether each record is a thing of its own: then no state is kept, and nothing moves by key."""
    return not any(step.stateful for step in plan.steps) and plan.sink is not None


def chain_of(plan: Plan, compiles: bool = True) -> Chain | None:
    """A statement without state as a chain; where it is not compiled, one that is all our operators'."""
    if not is_stateless(plan):
        return None
    try:
        return statement(plan) if compiles else UNCOMPILED
    except NotCompiled:
        return UNCOMPILED


def statement(plan: Plan) -> Chain:
    """A plan's chain; NotCompiled says what it has that is not proven."""
    if plan.bad_records.log_topic is not None:
        raise NotCompiled("a log in a topic, which has what expressions fail")
    entry, steps, sink = line_of(plan)
    making = Making()
    making.read(entry.source)
    for step in steps:
        making.then(step.operator)
    making.write(entry.source, sink)
    return Chain(tuple(making.steps))


def line_of(plan: Plan) -> tuple[Entry, list[Step], WriteTopic]:
    if len(plan.entries) != 1 or plan.sink is None:
        raise NotCompiled("several topics read")
    steps, at = [], plan.entries[0].consumer
    while at is not None:
        steps.append(plan.steps[at])
        at = plan.steps[at].consumer
    return plan.entries[0], steps, plan.sink


@dataclass(slots=True)
class Making:
    steps: list[AnyStep] = field(default_factory=list)
    width: int = 0
    key: list[str] | None = None
    """The columns of the key that the row has been given; None is its record's own."""
    own_key: list[str] = field(default_factory=list)

    def read(self, source: ReadTopic) -> None:
        if source.window is not None:
            raise NotCompiled("a windowed topic")
        if source.timestamp is not None:
            raise NotCompiled("a time that is a column's")
        if any(not isinstance(place, int) for place in source.places):
            raise NotCompiled("columns from headers")
        key, value = reading(source.key, "key", "pk", True), reading(source.value, "value", "pv", False)
        parsed = [(one.parsed, name) for one, name in ((key, "pk"), (value, "pv")) if one.parsed is not None]
        if parsed:
            self.steps.append(Select((*RAW, *(f"{text} AS {name}" for text, name in parsed))))
        taken = [value.values[place] for place in source.places if isinstance(place, int)]
        columns = [*key.values, *taken, "unix_millis(timestamp)", "partition", "offset"]
        self.own_key = [f"c{place}" for place in range(len(key.values))]
        self._select(columns, f"coalesce({any_of(*key.odd, *value.odd)}, true)")

    def _select(self, columns: Sequence[str], odd: str, key: Sequence[str] = ()) -> None:
        named = [f"{text} AS c{place}" for place, text in enumerate(columns)]
        keys = [f"{text} AS k{place}" for place, text in enumerate(key)]
        self.steps.append(Select((*RAW, *named, *keys, f"{odd} AS odd")))
        self.width = len(columns)

    def also_odd(self, conditions: Sequence[str]) -> str:
        return any_of("odd", *(f"coalesce({one}, false)" for one in conditions))

    def then(self, operator: Any) -> None:
        match operator:
            case FilterStream(condition):
                found = compiled(condition)
                self.steps.append(Where(any_of(self.also_odd(found.odd), found.condition)))
                if found.odd:  # it is to be known further on, too
                    self._again(self.also_odd(found.odd))
            case Project(columns):
                if self.key is None:
                    self._keep_key()
                self._select(*self._made(columns), key=self.key or ())
                self.key = self.key and [f"k{place}" for place in range(len(self.key))]
            case Rekey(key):
                made, odd = self._made(key)
                self._select([f"c{place}" for place in range(self.width)], odd, key=made)
                self.key = [f"k{place}" for place in range(len(made))]
            case _:
                raise NotCompiled(f"the operator {type(operator).__name__}")

    def _keep_key(self) -> None:
        """The record's own key goes on beside columns that may no longer have it."""
        self.key = list(self.own_key)

    def _again(self, odd: str) -> None:
        self._select([f"c{place}" for place in range(self.width)], odd, self.key or ())

    def _made(self, expressions: Sequence[Any]) -> tuple[list[str], str]:
        found = [compiled(one) for one in expressions]
        return [one.value for one in found], self.also_odd([odd for one in found for odd in one.odd])

    def write(self, source: ReadTopic, sink: WriteTopic) -> None:
        if sink.window is not None or sink.timestamp is not None:
            raise NotCompiled("a time or a window that the sink writes")
        parts = list(self.own_key if self.key is None else self.key)
        key = writing(sink.key, parts)
        if len(parts) == 1:  # a key that is null is none, whatever the format
            key = key._replace(text=f"CASE WHEN {parts[0]} IS NOT NULL THEN {key.text} END")
        value = writing(sink.value, [f"c{place}" for place in range(self.width)])
        odd = self.also_odd([*key.odd, *value.odd])
        self.steps.append(
            Select(
                (
                    f"{key.text} AS key",
                    f"{value.text} AS value",
                    "unix_millis(timestamp) AS time",
                    "headers",
                    f"CASE WHEN {odd} THEN {AS_RECORD} END AS record",
                )
            )
        )
