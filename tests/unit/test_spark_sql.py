# ruff: noqa: E501 (statements in one line)

"""Which statements become Spark SQL, and why the others do not. (What they mean there: compat_tests/spark.)"""

from __future__ import annotations

import pytest

from pykafkad.pipelines.hosts import spark as host
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql import CONFIGS
from pykafkad.pipelines.spark_sql.statements import UNCOMPILED, Where, chain_of, said_of, statement
from pykafkad.pipelines.testing import prepared

SOURCE = "CREATE STREAM r (k STRING KEY, i INT, d DOUBLE, s STRING, a ARRAY<INT>{}) WITH (kafka_topic='r', value_format='{}');"
FLAT = SOURCE.replace(", a ARRAY<INT>{}", "")


def plan_of(query: str, source: str = FLAT.format("JSON"), **properties: str) -> Plan:
    return prepared([source, query], [], properties).plans[-1]


@pytest.mark.parametrize("form", ["JSON", "DELIMITED"])
def test_filters_and_projections_are_compiled(form: str) -> None:
    query = "CREATE STREAM w WITH (value_format='JSON') AS SELECT k, i + 1 AS i, UCASE(s) AS s FROM r WHERE d > 2;"
    plan = plan_of(query, FLAT.format(form))
    assert said_of(plan) == "In Spark: compiled to Spark SQL"
    assert [step for step in statement(plan).steps if isinstance(step, Where)]


@pytest.mark.parametrize(
    ("query", "source", "why"),
    [
        ("SELECT k, i FROM r", SOURCE.format("", "JSON"), "a JSON field A of type ARRAY<INTEGER>"),
        ("SELECT k, CAST(d AS STRING) AS t FROM r", FLAT.format("JSON"), "CAST of DOUBLE to STRING"),
        ("SELECT k, d % 2 AS t FROM r", FLAT.format("JSON"), "% of DOUBLE and INTEGER"),
        ("SELECT k, SPLIT(s, ',') AS t FROM r", FLAT.format("JSON"), "the function SPLIT"),
        ("SELECT k, s LIKE i + '' AS t FROM r", FLAT.format("JSON").replace("i INT", "i STRING"), "LIKE of a pattern that varies"),
        ("SELECT k, EXPLODE(ARRAY[i]) AS t FROM r", FLAT.format("JSON"), "the operator FlatMap"),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_said(query: str, source: str, why: str) -> None:
    plan = plan_of(f"CREATE STREAM w AS {query};", source)
    assert said_of(plan).startswith(
        f"In Spark: our operators, without state; not compiled to Spark SQL: {why}"
    )
    assert chain_of(plan) is UNCOMPILED


def test_a_log_in_a_topic_has_what_expressions_fail() -> None:
    plan = plan_of("CREATE STREAM w AS SELECT k, i FROM r;", **{"processing.log": "log"})
    assert said_of(plan).endswith("a log in a topic, which has what expressions fail")


def test_what_has_state_is_no_chain() -> None:
    plan = plan_of("CREATE TABLE w AS SELECT k, COUNT(*) AS n FROM r GROUP BY k;")
    assert chain_of(plan) is None
    assert said_of(plan) == "In Spark: our operators, their state in transformWithState"


def test_a_session_is_as_spark_makes_it_until_a_query_begins() -> None:
    """Projects in Spark's own SQL have Spark's own arithmetic."""
    assert not CONFIGS.keys() & {*host.CONFIGS, *host.running([])}
