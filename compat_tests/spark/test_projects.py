"""Projects of Spark's declarative pipelines with Kafka in them: topic to topic, topic to tables of files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests import needs
from compat_tests.spark.kit import create, produce, read, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_S = 300
SPEC = "name: shop\nstorage: state\nlibraries:\n  - glob:\n      include: sql/**\n"
TABLES = """
CREATE STREAMING TABLE orders USING kafka TBLPROPERTIES ('topic' = '{orders}');
CREATE STREAMING TABLE large USING kafka TBLPROPERTIES ('topic' = '{large}');
CREATE STREAMING TABLE kept (cents BIGINT, half STRING) PARTITIONED BY (half);
"""
FLOWS = """
-- What orders are is said in another file.
CREATE TEMPORARY VIEW parsed AS SELECT CAST(CAST(value AS STRING) AS INT) AS cents FROM STREAM(orders);
SET spark.sql.session.timeZone = UTC;
CREATE FLOW to_large AS INSERT INTO large BY NAME
  SELECT CAST(cents AS STRING) AS value FROM STREAM(parsed) WHERE cents >= 500;
CREATE FLOW first_half AS INSERT INTO kept BY NAME SELECT 'first' AS half, cents FROM STREAM(parsed) WHERE cents < 500;
CREATE FLOW second_half AS INSERT INTO kept BY NAME SELECT cents, 'second' AS half FROM STREAM(large_orders);
CREATE TEMPORARY VIEW large_orders AS SELECT CAST(CAST(value AS STRING) AS INT) AS cents FROM STREAM(large);
CREATE STREAMING TABLE copied USING json AS SELECT cents + 1 AS more FROM STREAM(kept);
CREATE MATERIALIZED VIEW totals AS SELECT half, SUM(cents) AS cents, COUNT(*) AS n FROM kept GROUP BY half;
"""


@pytest.fixture
def project(bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path) -> dict[str, Any]:
    """The project's directory, and its topics by name."""
    topics = {name: new_topic(name) for name in ("orders", "large")}
    create(bootstrap, topics["orders"], 1)
    create(bootstrap, topics["large"], 1)
    (tmp_path / "sql").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    (tmp_path / "sql" / "flows.sql").write_text(FLOWS)
    (tmp_path / "sql" / "tables.sql").write_text(TABLES.format(**topics))
    return {"directory": tmp_path, **topics}


def run_once(spark: SparkSession, bootstrap: str, directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """What it told of."""
    from pykafkad.pipelines.projects import definitions, spec
    from pykafkad.pipelines.projects.graph import Graph
    from pykafkad.pipelines.projects.running import ProjectRun

    loaded = spec.load(directory)
    graph = Graph(spark, definitions.read(spark, loaded), loaded.storage, bootstrap)
    told: list[tuple[str, dict[str, Any]]] = []
    run = ProjectRun(spark, graph, lambda flow, facts: told.append((flow, facts)))
    run.once(lambda: False)
    assert not run.has_failed, told
    return told


def totals(spark: SparkSession, directory: Path) -> list[tuple[Any, ...]]:
    read = spark.read.parquet(str(directory / "state" / "tables" / "totals" / "totals"))
    return sorted(tuple(row) for row in read.select("half", "cents", "n").collect())


def test_flows_go_on_where_they_were(spark: SparkSession, bootstrap: str, project: dict[str, Any]) -> None:
    directory = project["directory"]
    produce(bootstrap, project["orders"], [str(cents) for cents in range(0, 1000, 10)])
    told = run_once(spark, bootstrap, directory)
    assert [(flow, facts.get("in")) for flow, facts in told] == [
        ("to_large", 100),
        ("first_half", 100),
        ("second_half", 50),
        ("copied", 100),
        ("totals", None),
    ]
    assert values(read(spark, bootstrap, project["large"])) == [str(cents) for cents in range(500, 1000, 10)]
    assert totals(spark, directory) == [
        ("first", sum(range(0, 500, 10)), 50),
        ("second", sum(range(500, 1000, 10)), 50),
    ]
    produce(bootstrap, project["orders"], ["1", "501"])
    told = run_once(spark, bootstrap, directory)
    assert [(flow, facts.get("in")) for flow, facts in told] == [
        ("to_large", 2),
        ("first_half", 2),
        ("second_half", 1),
        ("copied", 2),
        ("totals", None),
    ]
    assert [n for _, _, n in totals(spark, directory)] == [51, 51]
    copied = spark.read.json(str(directory / "state" / "tables" / "copied" / "copied"))
    assert sorted(row["more"] for row in copied.collect()) == sorted([*range(1, 1000, 10), 2, 502])


def test_a_project_keeps_going_and_goes_on_after_a_kill(
    spark: SparkSession, bootstrap: str, project: dict[str, Any]
) -> None:
    needs.program("java")
    needs.program("mvn")
    directory = project["directory"]
    command = [sys.executable, "-m", "pykafkad", "sql", "run", str(directory), "--master", "local[2]"]
    produce(bootstrap, project["orders"], [str(cents) for cents in range(0, 1000, 10)])
    process = subprocess.Popen(
        [*command, "--bootstrap-server", bootstrap],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        waited = time.monotonic()
        seen: list[dict[str, Any]] = []
        while not any(
            one["flow"] == "second_half" for one in seen
        ):  # its records came through the topic of another flow
            line = process.stdout.readline()
            assert line and time.monotonic() - waited < DEADLINE_S, seen
            seen.append(json.loads(line))
    finally:
        process.kill()
        process.wait()
    produce(bootstrap, project["orders"], [str(cents) for cents in range(5, 1000, 10)])
    run_once(spark, bootstrap, directory)
    assert totals(spark, directory) == [
        ("first", sum(range(0, 500, 5)), 100),
        ("second", sum(range(500, 1000, 5)), 100),
    ]


def test_the_example_writes_each_record_into_parquet_once(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    example = Path(__file__).parents[2] / "examples" / "parquet"
    shutil.copytree(example / "to_files", tmp_path / "to_files")
    expected = [record["value"] for record in json.loads((example / "output.json").read_text())["outputs"]]
    create(bootstrap, "clicks.slow", 1)
    for value in expected:
        produce(bootstrap, "clicks.slow", [json.dumps(value)], key=b"k")
        run_once(spark, bootstrap, tmp_path / "to_files")
    tables = tmp_path / "to_files" / "state" / "tables"
    slow = spark.read.parquet(str(tables / "slow" / "slow"))
    assert sorted(
        tuple(row) for row in slow.selectExpr("page", "ms", "cast(day as string)").collect()
    ) == sorted((value["PAGE"], value["MS"], value["DAY"]) for value in expected)
    pages = spark.read.parquet(str(tables / "slow_pages" / "slow_pages"))
    assert sorted(tuple(row) for row in pages.collect()) == [("/cart", 1, 700), ("/pay", 1, 900)]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE STREAMING TABEL t AS SELECT 1;", "[PARSE_SYNTAX_ERROR]"),
        ("CREATE TABLE t USING kafka;", "bad.sql:1: CREATE TABLE has no place in a pipeline"),
        ("SELECT 1;", "has no place in a pipeline"),
        ("\n\nCREATE FLOW f AS INSERT INTO odrers BY NAME SELECT 1;",
         "bad.sql:3: there is no table odrers; did you mean orders?"),
        ("CREATE STREAMING TABLE t AS SELECT * FROM STREAM(odrers);", "did you mean orders?"),
        ("CREATE STREAMING TABLE t AS SELECT nothing FROM STREAM(orders);", "[UNRESOLVED_COLUMN"),
        ("CREATE STREAMING TABLE t AS SELECT * FROM orders;", "t is a streaming table, whose query has to read a stream"),
        ("CREATE MATERIALIZED VIEW t AS SELECT * FROM STREAM(orders);", "has to read what is there, without STREAM"),
        ("CREATE MATERIALIZED VIEW t USING kafka AS SELECT 1;", "which a topic cannot be"),
        ("CREATE STREAMING TABLE ORDERS USING kafka;", "is defined at"),
        ("CREATE STREAMING TABLE t USING kafka;", "TBLPROPERTIES names the topic of t"),
        ("CREATE STREAMING TABLE t USING kafka TBLPROPERTIES ('topik' = 'x');", "topik is no property"),
        ("CREATE STREAMING TABLE t USING kafka TBLPROPERTIES ('subscribe' = 'x'); "
         "CREATE FLOW f AS INSERT INTO t BY NAME SELECT value FROM STREAM(orders);", "has to name its 'topic'"),
        ("CREATE STREAMING TABLE a AS SELECT * FROM STREAM(b); CREATE STREAMING TABLE b AS SELECT * FROM STREAM(a);",
         "a reads b reads a: they read each other"),
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM(orders) o JOIN orders p ON o.key = p.key;",
         "orders is read as a stream and as a table in one query"),
        ("CREATE STREAMING TABLE d.t AS SELECT 1;", "d.t: names here have no database in front"),
    ],
)  # fmt: skip
def test_what_is_not_taken_is_said(
    spark: SparkSession, bootstrap: str, project: dict[str, Any], statement: str, why: str
) -> None:
    from pykafkad.pipelines.projects.spec import ProjectError

    (project["directory"] / "sql" / "bad.sql").write_text(statement)
    with pytest.raises(ProjectError) as refused:
        run_once(spark, bootstrap, project["directory"])
    assert why in str(refused.value) and "\n" not in str(refused.value), refused.value
