# ruff: noqa: E501 (statements in one line)

"""Which statements become Spark SQL, and why the others do not. (What they mean there: compat_tests/spark.)"""

from __future__ import annotations

import pytest

from pykafkad.pipelines.hosts import spark as host
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql import CONFIGS
from pykafkad.pipelines.spark_sql.forms import said_of
from pykafkad.pipelines.spark_sql.statements import UNCOMPILED, chain_of, statement
from pykafkad.pipelines.spark_sql.steps import Where
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


TABLE = "CREATE TABLE w WITH (key_format='JSON') AS SELECT k, {} FROM r {} GROUP BY k{};"


@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 HOUR)", "WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE)"])  # fmt: skip
def test_groups_are_compiled_to_an_aggregation(window: str) -> None:
    plan = plan_of(
        TABLE.format(
            "COUNT(*), COUNT(d), SUM(i) + 1, MIN(s), MAX(i), AVG(i), AVG(CAST(i AS BIGINT))", window, ""
        )
    )
    assert chain_of(plan) is None
    assert said_of(plan) == "In Spark: compiled to Spark SQL, with an aggregation of Spark's own"


@pytest.mark.parametrize(
    "having",
    [
        "COUNT(*) > 1",
        "2 <= COUNT(s)",
        "k = 'a' OR MAX(i) >= 5",
        "MIN(i) < MAX(LEN(s))",
        "k LIKE 'x%' AND COUNT(*) > LEN(k)",
    ],
)
def test_having_is_compiled_where_no_group_leaves(having: str) -> None:
    plan = plan_of(TABLE.format("COUNT(*)", "", f" HAVING {having}"))
    assert said_of(plan).startswith("In Spark: compiled to Spark SQL, with an aggregation")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (("SUM(d)", "", ""), "SUM of DOUBLE, whose order counts"),
        (("AVG(d)", "", ""), "AVG of DOUBLE, whose order counts"),
        (("MAX(d)", "", ""), "MAX of DOUBLE"),
        (("COLLECT_LIST(s)", "", ""), "the aggregate COLLECT_LIST"),
        (("COUNT(*)", "", ", d"), "groups by DOUBLE"),
        (("COUNT(*)", "", " HAVING COUNT(*) < 9"), "HAVING that a group may leave"),
        (("COUNT(*)", "", " HAVING COUNT(*) = 1"), "HAVING that a group may leave"),
        (("SUM(i)", "", " HAVING SUM(i) > 1"), "HAVING that a group may leave"),
        (("MIN(i)", "", " HAVING COUNT(*) > 1 AND MIN(i) > 1"), "HAVING that a group may leave"),
        (("MIN(i)", "", " HAVING 9 - COUNT(*) > 1"), "HAVING that a group may leave"),
        (("MIN(i)", "", " HAVING NOT (COUNT(*) > 1)"), "HAVING that a group may leave"),
        (("COUNT(*)", "WINDOW SESSION (5 SECONDS)", ""), "the operator AggregateSessions"),
        (("COUNT(*)", "WINDOW TUMBLING (SIZE 5 SECONDS)", " EMIT FINAL"), "EMIT FINAL"),
    ],
)
def test_groups_whose_answer_may_differ_are_not_compiled(query: tuple[str, str, str], why: str) -> None:
    plan = plan_of(
        TABLE.format(*query).replace("SELECT k,", "SELECT k, d," if "d" in query[2] else "SELECT k,")
    )
    assert said_of(plan).startswith(
        f"In Spark: our operators, their state in transformWithState; not compiled to Spark SQL: {why}"
    )


def test_every_change_of_a_total_is_told_by_operators() -> None:
    plan = plan_of(TABLE.format("COUNT(*)", "", ""), **{"cache.max.bytes.buffering": "0"})
    assert said_of(plan).endswith("every change of a total is to be told")


def test_a_session_is_as_spark_makes_it_until_a_query_begins() -> None:
    """Projects in Spark's own SQL have Spark's own arithmetic."""
    assert not CONFIGS.keys() & {*host.CONFIGS, *host.running([])}
