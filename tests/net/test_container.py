"""The image, without making it: what the Containerfile names is there, and its start script starts a broker which its
health check finds healthy.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad.testing.ports import lasting_port

ROOT = Path(__file__).parent.parent.parent
LINES = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
RUN = ROOT / "container" / "run"
PROGRAMS = str(Path(sys.executable).parent)
READY = "pykafkad ready: bootstrap.servers="
TIMEOUT_S = 60
SHOW = '#!/bin/sh\nenv | grep ^KAFKA_ | sort\necho "$@"\n'


def instructions(name: str) -> list[str]:
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


def environment(**variables: str) -> dict[str, str]:
    """Of a container: no variable of ours but these, and the programs of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return (
        kept
        | {"PATH": os.pathsep.join([PROGRAMS, os.environ["PATH"]]), "PYKAFKAD_PROPERTIES": "/nowhere"}
        | variables
    )


def test_all_that_is_copied_is_there_and_is_not_ignored() -> None:
    sources = [path for line in instructions("COPY") if "--from" not in line for path in line.split()[:-1]]
    assert len(sources) > 5
    kept = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in kept, source


def test_what_is_started_and_asked_for_health_is_what_was_copied() -> None:
    placed = {line.split()[-1] for line in instructions("COPY") if line.startswith("container/run")}
    commands = [json.loads(command) for command in instructions("CMD")]
    (health,) = (json.loads(line[line.index("[") :]) for line in instructions("HEALTHCHECK"))
    assert commands == [["/etc/kafka/docker/run"]]
    assert health == ["/etc/kafka/docker/run", "healthy"]
    assert {command[0] for command in [*commands, health]} <= placed
    assert os.access(RUN, os.X_OK)


def test_the_data_is_in_the_volume_and_the_user_has_no_rights() -> None:
    (volume,) = instructions("VOLUME")
    assert f"KAFKA_LOG_DIRS={volume}" in RUN.read_text()
    assert instructions("USER") == ["1000"]


@pytest.fixture
def shown(tmp_path: Path) -> str:
    """A PATH on which `pykafkad` only shows how it was called."""
    program = tmp_path / "bin" / "pykafkad"
    program.parent.mkdir()
    program.write_text(SHOW)
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), os.environ["PATH"]])


def started(path: str, *arguments: str, **variables: str) -> list[str]:
    done = subprocess.run(
        [RUN, *arguments], env=environment(PATH=path, **variables), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_without_listeners_it_serves_localhost_from_everywhere(shown: str) -> None:
    assert started(shown) == [
        "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092",
        "KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092",
        "KAFKA_LOG_DIRS=/var/lib/kafka/data",
        "start",
    ]


def test_listeners_are_those_that_are_advertised(shown: str) -> None:
    said = started(shown, KAFKA_ADVERTISED_LISTENERS="IN://kafka:29092,OUT://localhost:9092")
    assert "KAFKA_LISTENERS=IN://0.0.0.0:29092,OUT://0.0.0.0:9092" in said


@pytest.mark.parametrize("prefix", ["KAFKA_", "KAFKA_CFG_"])
def test_what_is_given_stays_as_it_is(shown: str, prefix: str) -> None:
    given = {f"{prefix}LISTENERS": "PLAINTEXT://:1234", f"{prefix}LOG_DIRS": "/data"}
    assert started(shown, **given) == [*sorted(f"{name}={value}" for name, value in given.items()), "start"]


def test_a_mounted_file_is_read_alone(shown: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=CONTROLLER://:9093,PLAINTEXT://:19092\n")
    assert started(shown, PYKAFKAD_PROPERTIES=str(file)) == [f"start {file}"]


def is_healthy(variables: dict[str, str]) -> bool:
    asked = [str(RUN), "healthy"]
    return subprocess.run(asked, env=variables, timeout=TIMEOUT_S, capture_output=True).returncode == 0


def of_the_readme() -> dict[str, str]:
    """The broker's variables in the compose file, on free ports of loopback, which is all that a test may use."""
    compose = (ROOT / "README.md").read_text().split("```yaml\nservices:\n")[1].split("  app:")[0]
    variables = dict(re.findall(r"^ +(KAFKA_\w+): (.+)$", compose, re.MULTILINE))
    assert len(variables) > 5
    listeners = re.sub(
        r"0\.0\.0\.0:\d+", lambda _: f"127.0.0.1:{lasting_port('127.0.0.1')}", variables["KAFKA_LISTENERS"]
    )
    return variables | {"KAFKA_LISTENERS": listeners}


def test_the_compose_file_of_the_readme_starts_a_healthy_broker(tmp_path: Path) -> None:
    variables = environment(
        **of_the_readme(), KAFKA_HEAP_OPTS="-Xmx1g", KAFKA_LOG_DIRS=str(tmp_path / "data")
    )
    assert is_healthy(variables) is False
    with subprocess.Popen([RUN], env=variables, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline().startswith(
                READY
            )  # what is advertised cannot be reached from here
            assert is_healthy(variables)
            broker.send_signal(signal.SIGTERM)  # to the shell's process, which the broker has taken over
            assert broker.wait(TIMEOUT_S) == 0
        finally:
            broker.kill()
    assert (tmp_path / "data" / "meta.properties").exists()
