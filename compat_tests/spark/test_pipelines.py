"""SQL pipelines in Spark: the same operators as in the plain loop give the same there; all pipelines share one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafkad.pipelines.hosts.spark import SparkHost, session
from pykafkad.pipelines.testing import prepared, run_case, run_cases
from tests.unit.pipeline_kit import PIPELINES, by_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def pipelines_spark(spark: SparkSession) -> SparkSession:
    """The session of the other tests, as pipelines need it."""
    return session()


def test_spark_gives_what_the_plain_loop_gives(pipelines_spark: SparkSession) -> None:
    cases = {name: prepared(*pipeline) for name, pipeline in PIPELINES.items()}
    written = SparkHost(pipelines_spark, buckets=4).run(
        {name: (c.plans, c.records) for name, c in cases.items()}
    )
    got = {name: by_key(cases[name].plain(records)) for name, records in written.items()}
    assert got == {name: by_key(run_case(*pipeline, host="local")) for name, pipeline in PIPELINES.items()}


def test_a_case_runs_in_spark_unless_it_is_said_where(pipelines_spark: SparkSession) -> None:
    statements, inputs = PIPELINES["groups of a stream"]
    assert by_key(run_case(statements, inputs)) == by_key(
        run_cases([prepared(statements, inputs)], "local")[0]
    )
