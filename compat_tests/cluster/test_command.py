"""`pykafkad cluster` as a user has it: up, the ready line, what each command does, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.cluster.brokers import need_zookeeper
from pykafkad.testing.broker import READY

DEADLINE_S = 90.0
PYKAFKAD = [sys.executable, "-m", "pykafkad", "cluster"]


class Up:
    """`cluster up` in the foreground."""

    def __init__(self, *arguments: str) -> None:
        command = [*PYKAFKAD, "up", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline().rstrip("\n")
        assert line.startswith(READY), (line, self.process.stderr.read())
        self.servers = line.removeprefix(READY).split(",")
        said = self.process.stderr.readline()
        self.directory = Path(said.removeprefix("pykafkad: the cluster is in ").rstrip("\n"))

    def pids(self) -> list[int]:
        return [int(path.read_text()) for path in self.directory.glob("*/pid")]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


def run(command: str, directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*PYKAFKAD, command, *arguments, "--data", str(directory)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def status(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("status", directory, "--json"))
    return found


def states(directory: Path) -> list[str]:
    return [broker["state"] for broker in status(directory)["brokers"]]


def are_gone(pids: list[int]) -> bool:
    """Also those that have ended and are waited for by nobody."""
    alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    return all(" Z " in Path(f"/proc/{pid}/stat").read_text() for pid in alive)


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not are_gone(pids):
        assert time.monotonic() < deadline, f"some of {pids} live on"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def zookeeper() -> None:
    need_zookeeper()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    made = Up("--brokers", "3", "--data", str(tmp_path / "cluster"))
    yield made
    made.close()


def test_each_command_does_what_it_says(up: Up) -> None:
    home = up.directory
    assert len(set(up.servers)) == 3
    first = status(home)
    assert first["bootstrap.servers"] == ",".join(up.servers)
    assert [broker["state"] for broker in first["brokers"]] == ["running"] * 3
    assert first["controller"] in (0, 1, 2) and first["controller_epoch"] == 1
    for command, id, state in (
        ("kill", 0, "stopped"),
        ("start", 0, "running"),
        ("pause", 1, "paused"),
        ("resume", 1, "running"),
        ("isolate", 2, "isolated"),
        ("heal", 2, "running"),
        ("stop", 1, "stopped"),
    ):
        run(command, home, str(id))
        assert states(home)[id] == state, command
    pids = up.pids()
    run("down", home)
    assert up.process.wait(DEADLINE_S) == 0
    wait_until_gone(pids)
    assert states(home) == ["stopped"] * 3


def test_a_cluster_comes_up_again_with_its_data(up: Up) -> None:
    from pykafkad.testing.cluster import Cluster

    home = up.directory
    cluster_id = status(home)["cluster_id"]
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(DEADLINE_S) == 0
    with Cluster(data=home) as cluster:
        assert cluster.bootstrap_servers.split(",") == up.servers
        assert cluster.status()["cluster_id"] == cluster_id


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_cluster_without_a_directory(number: signal.Signals) -> None:
    up = Up("--brokers", "1")
    try:
        pids = up.pids()
        assert len(pids) == 2 and up.directory.is_dir()
        os.kill(up.process.pid, number)
        up.process.wait(DEADLINE_S)
        wait_until_gone(pids)
        deadline = time.monotonic() + DEADLINE_S
        while up.directory.exists():
            assert time.monotonic() < deadline, f"{up.directory} is still there"
            time.sleep(0.05)
    finally:
        up.close()
