"""Every quick start does what the text around it says, as it stands there; but the broker has another port.

Each test has a broker of its own, as whoever reads the README has: the quick starts share topics' names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests import needs
from compat_tests.conftest import running_broker
from compat_tests.quickstart.blocks import block, blocks

TIMEOUT_S = 300
TRIED = {
    "shell",
    "kcat",
    "confluent-kafka",
    "kafka-python",
    "aiokafka",
    "java",
    "pytest",
    "broker of its own",
    "spark",
}
PROGRAMS = str(Path(sys.executable).parent)


@pytest.fixture
def fresh() -> Iterator[str]:
    with running_broker({}) as broker:
        yield broker.bootstrap_servers


def run(command: list[str], directory: Path, **environment: str) -> str:
    """What it prints; the programs of this environment are found, as in one that is activated."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": os.pathsep.join([PROGRAMS, os.environ["PATH"]]), **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def saved(directory: Path, file: str, text: str) -> str:
    (directory / file).write_text(text)
    return file


def test_every_quick_start_is_tried() -> None:
    assert blocks().keys() == TRIED


def test_the_tools_carry_first_records(fresh: str, tmp_path: Path) -> None:
    said = run(["sh", "-e", "-c", block("shell")], tmp_path, KAFKA_BOOTSTRAP_SERVERS=fresh)
    assert "Created topic greetings." in said
    assert sorted(said.splitlines()[-2:]) == ["hello", "world"]


def test_kcat_carries_first_records(fresh: str, tmp_path: Path) -> None:
    needs.program("kcat")
    assert run(["sh", "-e", "-c", block("kcat", fresh)], tmp_path).splitlines() == ["hello", "world"]


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_a_python_client_carries_first_records(client: str, fresh: str, tmp_path: Path) -> None:
    file = saved(tmp_path, "greetings.py", block(client, fresh))
    assert run([sys.executable, file], tmp_path).splitlines() == [f"hello from {client}"]


def test_the_java_client_carries_first_records(fresh: str, tmp_path: Path) -> None:
    jars = needs.jars("java")
    file = saved(tmp_path, "Greetings.java", block("java", fresh))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    assert run(["java", quiet, "-cp", f"{jars}/*", file], tmp_path).splitlines() == ["hello from Java"]


def test_the_pytest_fixture_is_a_broker(tmp_path: Path) -> None:
    file = saved(tmp_path, "test_orders.py", block("pytest"))
    assert "1 passed" in run([sys.executable, "-m", "pytest", file], tmp_path)


def test_a_test_has_a_broker_of_its_own(tmp_path: Path) -> None:
    file = saved(tmp_path, "own.py", block("broker of its own"))
    host, _, port = run([sys.executable, file], tmp_path).strip().rpartition(":")
    assert host == "127.0.0.1" and port.isdigit()


def test_spark_writes_and_reads_orders(fresh: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    jars = ",".join(str(jar) for jar in sorted(needs.jars("spark").glob("*.jar")))
    file = saved(tmp_path, "orders.py", block("spark", fresh))
    local = ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
    said = run(["spark-submit", "--master", "local[2]", *local, "--jars", jars, file], tmp_path)
    assert said.splitlines()[-1] == "11 orders"
