"""For emitted programs: a query of a script that is not compiled, as our operators in the program's own session."""

from __future__ import annotations

from pathlib import Path

from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.hosts import spark_streaming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"


def start(
    spark: SparkSession, script: str, query_id: str, bootstrap: str, checkpoints: str, starts: str, once: bool
) -> StreamingQuery:
    """The query, running. `starts` is earliest or latest."""
    from pykafkad.pipelines.hosts.spark import CONFIGS

    checker = Checker()
    for problem in checker.script(script, "the script"):
        raise StatementError(str(problem))
    spark.conf.set(STATE_STORE, CONFIGS[STATE_STORE])
    options = spark_streaming.StreamingQueryOptions(
        bootstrap,
        Path(checkpoints),
        until_idle=once,
        starting_offsets=starts,
        query_id=query_id,
        compiles=False,
    )
    return spark_streaming.start(spark, query_id, checker.session.meanings[query_id].plan, options)
