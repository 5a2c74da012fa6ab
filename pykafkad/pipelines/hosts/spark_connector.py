"""Spark's Kafka source: the jars that go beside PySpark's own, in Maven's local repository or brought there once.

The coordinates fit PySpark 4.2.0; what they depend on besides is in PySpark. Found once, they are found offline.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

SPARK = "4.2.0"
COORDINATES = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
    "org.scala-lang.modules:scala-parallel-collections_2.13:1.2.0",
)
TIMEOUT_S = 600


class NoConnector(Exception):
    """The jars are not here and cannot be brought."""


def repository() -> Path:
    """Maven's own, unless PYKAFKAD_SPARK_JARS names another of the same form."""
    return Path(os.environ.get("PYKAFKAD_SPARK_JARS") or Path.home() / ".m2" / "repository")


def jars(told: Callable[[str], object]) -> list[Path]:
    """Where the jars are. `told` hears that some are fetched."""
    where = repository()
    missing = [coordinate for coordinate in COORDINATES if not jar(where, coordinate).is_file()]
    for number, coordinate in enumerate(missing, start=1):
        told(f"Spark's Kafka connector, once: {coordinate} ({number} of {len(missing)})")
        _fetch(where, coordinate)
    return [jar(where, coordinate) for coordinate in COORDINATES]


def jar(where: Path, coordinate: str) -> Path:
    group, artifact, version = coordinate.split(":")
    return where.joinpath(*group.split("."), artifact, version, f"{artifact}-{version}.jar")


def _fetch(where: Path, coordinate: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoConnector(f"{coordinate} is not in {where}, and there is no Maven (mvn) here to fetch it")
    command = [maven, "-q", "-B", f"-Dmaven.repo.local={where}", "dependency:get", "-Dtransitive=false"]
    done = subprocess.run(
        [*command, f"-Dartifact={coordinate}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0 or not jar(where, coordinate).is_file():
        said = next((line for line in done.stdout.splitlines() if line.startswith("[ERROR]")), done.stderr)
        raise NoConnector(f"Maven brought no {coordinate}: {said.strip()}")
