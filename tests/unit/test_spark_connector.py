"""Spark's Kafka connector is found where Maven keeps it, and fetched by Maven only where it is missing."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from pykafkad.pipelines.hosts.spark_connector import COORDINATES, NoConnector, jar, jars

MAVEN = """#!/bin/sh
for word; do case $word in -Dmaven.repo.local=*) home=${word#*=};; -Dartifact=*) artifact=${word#*=};; esac; done
echo "$artifact" >> "$home/fetched"
if [ -f "$home/away" ]; then echo "[ERROR] no network"; exit 1; fi
cp -r "$home/remote/." "$home"
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYKAFKAD_SPARK_JARS", str(tmp_path))
    return tmp_path


@pytest.fixture
def maven(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Maven that has everything, and says what it was asked for."""
    program = repository / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(MAVEN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    for coordinate in COORDINATES:
        put(repository / "remote", coordinate)


def put(where: Path, coordinate: str) -> None:
    jar(where, coordinate).parent.mkdir(parents=True, exist_ok=True)
    jar(where, coordinate).touch()


def test_jars_that_are_there_are_not_fetched(repository: Path) -> None:
    for coordinate in COORDINATES:
        put(repository, coordinate)
    told: list[str] = []
    assert [path.name for path in jars(told.append)][2] == "kafka-clients-3.9.2.jar" and not told


def test_what_is_missing_is_fetched_with_a_line_for_each(repository: Path, maven: None) -> None:
    told: list[str] = []
    assert all(path.is_file() for path in jars(told.append))
    assert told[0] == f"Spark's Kafka connector, once: {COORDINATES[0]} (1 of 5)"
    assert (repository / "fetched").read_text().split() == list(COORDINATES)


def test_what_maven_cannot_fetch_is_one_line(repository: Path, maven: None) -> None:
    (repository / "away").touch()
    with pytest.raises(NoConnector, match=r"^Maven brought no .*spark-sql-kafka.*: \[ERROR\] no network$"):
        jars(lambda text: None)


def test_without_maven_it_is_said_what_is_missing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NoConnector, match="there is no Maven"):
        jars(lambda text: None)
