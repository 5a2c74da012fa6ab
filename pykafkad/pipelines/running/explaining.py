"""EXPLAIN: a query's plan as text, from what it writes down to what it reads."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from pykafkad.pipelines.analysis.query import Meaning
from pykafkad.pipelines.answers import Answer, Grid, Message
from pykafkad.pipelines.expressions.compiling import Compiled
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql.forms import said_of
from pykafkad.pipelines.syntax.formatting import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def explained(meaning: Meaning) -> list[Answer]:
    columns = [(column.name, f"{column.type}  (key)") for column in meaning.key]
    columns += [(column.name, str(column.type)) for column in meaning.value]
    made = f"Makes a {meaning.kind.value.lower()}" + (
        f", windowed: {meaning.window.type}" if meaning.window else ""
    )
    lines = plan_lines(meaning.plan)
    if meaning.plan.sink is not None:
        lines.append(said_of(meaning.plan))
    return [Grid(("Field", "Type"), columns, title=made), Message("\n".join(lines))]


def plan_lines(plan: Plan) -> list[str]:
    """A line an operator, what feeds it indented below it."""
    lines = []
    if plan.sink is not None:
        lines.append(
            f"> write topic {plan.sink.topic} (key {plan.sink.key.name}, value {plan.sink.value.name})"
        )
    last = [number for number, step in enumerate(plan.steps) if step.consumer is None]
    for number in last:
        _below(plan, number, len(lines), lines)
    lines += [
        _entry(plan, index, len(lines)) for index, entry in enumerate(plan.entries) if entry.consumer is None
    ]
    return lines


def _below(plan: Plan, number: int, depth: int, lines: list[str]) -> None:
    lines.append(f"{'  ' * depth}> {operator_text(plan.steps[number].operator)}")
    feeding = [
        (entry.port, -1, index) for index, entry in enumerate(plan.entries) if entry.consumer == number
    ]
    feeding += [(step.port, index, 0) for index, step in enumerate(plan.steps) if step.consumer == number]
    for _, step_number, index in sorted(feeding):
        if step_number < 0:
            lines.append(_entry(plan, index, depth + 1))
        else:
            _below(plan, step_number, depth + 1, lines)


def _entry(plan: Plan, index: int, depth: int) -> str:
    source = plan.entries[index].source
    return f"{'  ' * depth}> read topic {source.topic} (key {source.key.name}, value {source.value.name})"


def operator_text(operator: Any) -> str:
    """The operator's name, and those of its parts that are expressions or plain values."""
    said = []
    for one in fields(operator) if is_dataclass(operator) else ():
        shown = _part(getattr(operator, one.name))
        if shown:
            said.append(f"{one.name}: {shown}")
    name = type(operator).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return f"{words} ({'; '.join(said)})" if said else words


def _part(value: Any) -> str:
    if isinstance(value, Compiled):
        return text(value.expression)
    if isinstance(value, tuple):
        return ", ".join(shown for shown in map(_part, value) if shown)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
