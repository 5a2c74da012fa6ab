"""The image, without making it: what the Containerfile names is there, and its start script starts a broker which its
health check finds healthy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pykafkad.testing.ports import lasting_port

ROOT = Path(__file__).parent.parent.parent
LINES = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
RUN = ROOT / "container" / "run"
PROGRAMS = str(Path(sys.executable).parent)
READY = "pykafkad ready: bootstrap.servers="
START = "start --single-node --log-format kafka"
TIMEOUT_S = 60
AWAITED = ["Transitioning from RECOVERY to RUNNING", "Kafka Server started"]  # by Testcontainers
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
    words = [line.split() for line in instructions("COPY") if "--from" not in line]
    sources = [word for line in words for word in line[:-1] if not word.startswith("--")]
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
        START,
    ]


def test_listeners_are_those_that_are_advertised(shown: str) -> None:
    said = started(shown, KAFKA_ADVERTISED_LISTENERS="IN://kafka:29092,OUT://localhost:9092")
    assert "KAFKA_LISTENERS=IN://0.0.0.0:29092,OUT://0.0.0.0:9092" in said


@pytest.mark.parametrize("prefix", ["KAFKA_", "KAFKA_CFG_"])
def test_what_is_given_stays_as_it_is(shown: str, prefix: str) -> None:
    given = {f"{prefix}LISTENERS": "PLAINTEXT://:1234", f"{prefix}LOG_DIRS": "/data"}
    assert started(shown, **given) == [*sorted(f"{name}={value}" for name, value in given.items()), START]


def test_a_mounted_file_is_read_alone(shown: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=CONTROLLER://:9093,PLAINTEXT://:19092\n")
    assert started(shown, PYKAFKAD_PROPERTIES=str(file)) == [f"{START} {file}"]


def is_healthy(variables: dict[str, str]) -> bool:
    asked = [str(RUN), "healthy"]
    return subprocess.run(asked, env=variables, timeout=TIMEOUT_S, capture_output=True).returncode == 0


def on_loopback(variables: dict[str, str]) -> dict[str, str]:
    """With the listeners on free ports of loopback, which is all that a test may use."""
    port = lambda _: f"//127.0.0.1:{lasting_port('127.0.0.1')}"  # noqa: E731
    return variables | {
        "KAFKA_LISTENERS": re.sub(r"//(?:0\.0\.0\.0)?:\d+", port, variables["KAFKA_LISTENERS"])
    }


def of_the_readme() -> dict[str, str]:
    compose = (ROOT / "README.md").read_text().split("```yaml\nservices:\n")[1].split("  app:")[0]
    return dict(re.findall(r"^ +(KAFKA_\w+): (.+)$", compose, re.MULTILINE))


# What Testcontainers set; what is advertised, only the started container's script knows.
OF_TESTCONTAINERS = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str(2**63 - 1),
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
OF_TESTCONTAINERS_APACHE = """#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:32768,BROKER://kafka:9093
/etc/kafka/docker/run
"""
OF_TESTCONTAINERS_CONFLUENT = """#!/bin/bash
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t x -c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
echo '' > /etc/confluent/docker/ensure
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:32768,BROKER://kafka:9093
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/ensure
/etc/confluent/docker/launch
"""


def placed(directory: Path, script: str) -> Path:
    """The script and those that it calls, with the directory in the place of the image's root."""
    shutil.copytree(ROOT / "container" / "confluent", directory / "etc/confluent/docker")
    (directory / "etc/kafka/docker").mkdir(parents=True)
    shutil.copy(RUN, directory / "etc/kafka/docker")
    (directory / "starter").write_text(script)
    (directory / "starter").chmod(0o755)
    for file in [directory / "starter", *(directory / "etc").rglob("*")]:
        if file.is_file():
            file.write_text(re.sub(r"/etc/(kafka|confluent)/docker", rf"{directory}\g<0>", file.read_text()))
    (directory / "bin").mkdir()
    (directory / "bin" / "kafka-storage").symlink_to("/bin/true")
    return directory / "starter"


@pytest.mark.parametrize(
    ("variables", "script"),
    [
        pytest.param(of_the_readme(), "#!/bin/sh\nexec /etc/kafka/docker/run\n", id="compose"),
        pytest.param(OF_TESTCONTAINERS, OF_TESTCONTAINERS_APACHE, id="testcontainers, apache/kafka"),
        pytest.param(OF_TESTCONTAINERS, OF_TESTCONTAINERS_CONFLUENT, id="testcontainers, cp-kafka"),
    ],
)
def test_a_broker_is_healthy_from_its_start_to_its_stop(
    variables: dict[str, str], script: str, tmp_path: Path
) -> None:
    root, data, log = tmp_path / "root", tmp_path / "data", tmp_path / "log"
    root.mkdir()
    starter = placed(root, script)
    variables = environment(**on_loopback(variables), KAFKA_HEAP_OPTS="-Xmx1g", KAFKA_LOG_DIRS=str(data))
    variables["PATH"] = f"{root / 'bin'}:{variables['PATH']}"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [starter], env=variables, stdout=subprocess.PIPE, stderr=errors, text=True, process_group=0
        ) as broker,
    ):
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline().startswith(READY)
            assert is_healthy(variables)  # though what is advertised cannot be reached from here
            os.killpg(broker.pid, signal.SIGTERM)
            broker.wait(TIMEOUT_S)
            deadline = time.monotonic() + TIMEOUT_S
            while is_healthy(variables):  # the broker may stop after the shell that waited for it
                assert time.monotonic() < deadline
        finally:
            with suppress(ProcessLookupError):
                os.killpg(broker.pid, signal.SIGKILL)
    assert all(line in log.read_text() for line in AWAITED)
    assert (data / "meta.properties").exists()


def test_a_stop_of_the_container_is_one_of_the_broker(tmp_path: Path) -> None:
    variables = environment(KAFKA_LISTENERS="PLAINTEXT://127.0.0.1:0", KAFKA_LOG_DIRS=str(tmp_path))
    with subprocess.Popen([RUN], env=variables, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith(READY)
        broker.send_signal(signal.SIGTERM)  # to what was the shell's process
        assert broker.wait(TIMEOUT_S) == 0
