"""A compiled statement whose results Spark writes itself, by its Kafka sink: in real-time mode, and in emitted programs.

That sink writes no times, and no Python runs there: a record that Spark leaves to our operators becomes a dead letter, if
there is a topic for these, and is left out otherwise.
"""

from __future__ import annotations

from pykafkad.pipelines.plan.bad_records import HEADER
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql.sql import quoted
from pykafkad.pipelines.spark_sql.statements import is_stateless
from pykafkad.pipelines.spark_sql.steps import Chain, Select, Where

MESSAGE = "Spark SQL does not read this record just as pykafkad does"


def direct(plan: Plan, chain: Chain) -> Chain:
    """The chain with what Spark's Kafka sink wants: topic, key, value, headers."""
    assert plan.sink is not None
    topic, dead = quoted(plan.sink.topic), plan.bad_records.dead_letters
    if not dead or not is_stateless(plan):  # a group's row is no dead letter
        return Chain(
            (*chain.steps, Where("record IS NULL"), Select((f"{topic} AS topic", "key", "value", "headers")))
        )
    chosen = (
        f"CASE WHEN record IS NULL THEN {topic} ELSE {quoted(dead)} END AS topic",
        "CASE WHEN record IS NULL THEN key ELSE record.key END AS key",
        "CASE WHEN record IS NULL THEN value ELSE record.value END AS value",
        f"CASE WHEN record IS NULL THEN headers ELSE {_explained()} END AS headers",
    )
    return Chain((*chain.steps, Select(chosen)))


def _explained() -> str:
    """The record's headers, and those of a dead letter."""
    facts = {
        "message": quoted(MESSAGE),
        "topic": "record.topic",
        "partition": "CAST(record.partition AS STRING)",
        "offset": "CAST(record.offset AS STRING)",
    }
    added = ", ".join(
        f"named_struct('key', {quoted(HEADER + name)}, 'value', CAST({text} AS BINARY))"
        for name, text in facts.items()
    )
    return f"concat(coalesce(record.headers, array()), array({added}))"
