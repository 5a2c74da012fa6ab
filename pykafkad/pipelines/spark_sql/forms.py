"""In which form a plan runs in Spark, for people, and for checkpoints: a state is of one form, and no other reads it."""

from __future__ import annotations

from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql.aggregates import Aggregation, aggregation
from pykafkad.pipelines.spark_sql.sql import NotCompiled
from pykafkad.pipelines.spark_sql.statements import is_stateless, statement

OPERATORS = "operators"


def aggregation_of(plan: Plan) -> Aggregation | None:
    """The plan as Spark's own aggregation, where it is compiled to that."""
    if plan.sink is None or is_stateless(plan):
        return None
    try:
        return aggregation(plan)
    except NotCompiled:
        return None


def state_of(plan: Plan) -> str:
    """The form of a plan's state; without state there is none to be of another form."""
    found = aggregation_of(plan)
    return "" if is_stateless(plan) else OPERATORS if found is None else found.form


def said_of(plan: Plan) -> str:
    stateless = is_stateless(plan)
    try:
        _ = statement(plan) if stateless else aggregation(plan)
    except NotCompiled as why:
        how = "without state" if stateless else "their state in transformWithState"
        return f"In Spark: our operators, {how}; not compiled to Spark SQL: {why}"
    return "In Spark: compiled to Spark SQL" + ("" if stateless else ", with an aggregation of Spark's own")
