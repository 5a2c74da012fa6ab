"""`pykafkad sql run DIR`: a project of Spark's declarative pipelines."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.commands.test import missing_for_spark
from pykafkad.pipelines.projects.spec import ProjectError, Spec, load
from pykafkad.tools import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession

NOT_FOR_PROJECTS = {
    "--checkpoints": "the storage of spark-pipeline.yml has a project's checkpoints",
    "--changed": "delete the checkpoint of a flow below the storage to begin it anew",
    "--command-config": "TBLPROPERTIES of tables has configs of clients: 'kafka.security.protocol' = ...",
}


def main(given: Arguments) -> int:
    """--once or --until-idle: to the end of what is there; else until it is stopped."""
    for option, instead in NOT_FOR_PROJECTS.items():
        if option in given.values:
            raise UsageError(f"{option} is not for a project: {instead}")
    if given.values.get("--host", "spark") != "spark":
        raise UsageError("a project runs in Spark, and not on another host")
    if (missing := missing_for_spark()) is not None:
        raise UsageError(missing)
    try:
        spec = load(Path(given.file()))
        with _session(spec, given.values.get("--master", "local[*]")) as spark:
            return _run(spark, spec, given)
    except ProjectError as error:
        output.error(str(error))
        return 1


def _run(spark: SparkSession, spec: Spec, given: Arguments) -> int:
    from pykafkad.pipelines.commands.run import Stopping
    from pykafkad.pipelines.projects import definitions
    from pykafkad.pipelines.projects.graph import Graph
    from pykafkad.pipelines.projects.running import ProjectRun

    bootstrap = given.values.get("--bootstrap-server") or os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    graph = Graph(spark, definitions.read(spark, spec), spec.storage, bootstrap or "localhost:9092")
    run = ProjectRun(spark, graph, _tell)
    stopping = Stopping()
    if given.flags:
        run.once(lambda: stopping.asked)
    else:
        run.keep_going(lambda: stopping.asked)
    return 1 if run.has_failed else 0


def _tell(flow: str, facts: dict[str, Any]) -> None:
    if os.isatty(1):
        output.line(f"{flow}: " + ", ".join(f"{name} {value}" for name, value in facts.items()))
    else:
        output.line(json.dumps({"flow": flow, **facts}))
    output.flush()


@contextmanager
def _session(spec: Spec, master: str) -> Iterator[SparkSession]:
    """Spark's own log is spark.log in the storage, or in a temporary directory where that is on another machine."""
    from pykafkad.pipelines.hosts import spark, spark_connector

    jars = spark_connector.jars(output.error)
    place = urlsplit(spec.storage)
    directory = (
        Path(unquote(place.path)) if place.scheme == "file" else Path(tempfile.mkdtemp(prefix="pykafkad-"))
    )
    directory.mkdir(parents=True, exist_ok=True)
    configs = {
        "spark.sql.warehouse.dir": f"{spec.storage}/warehouse",
        **spark.running(jars),
        **spec.configuration,
    }
    with spark.saying_into(directory / "spark.log"):
        made = spark.session(master, configs)
    # PySpark's, which says each error as a line of JSON.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    try:
        _choose(made, spec)
        yield made
    finally:
        made.stop()


def _choose(made: SparkSession, spec: Spec) -> None:
    from pykafkad.pipelines.projects.definitions import said_by

    try:
        if spec.catalog is not None:
            made.catalog.setCurrentCatalog(spec.catalog)
        if spec.database is not None:
            made.sql(f"CREATE DATABASE IF NOT EXISTS `{spec.database}`")
            made.catalog.setCurrentDatabase(spec.database)
    except Exception as error:  # Spark's errors have many classes
        raise ProjectError(f"{spec.directory}: {said_by(error)}") from None
