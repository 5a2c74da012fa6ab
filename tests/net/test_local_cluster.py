"""The processes of a cluster on one machine, known by their files: here of programs that only wait."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster import status
from pykafkad.local_cluster.cluster import Launch, LocalCluster
from pykafkad.local_cluster.guard import Guard
from pykafkad.local_cluster.process import ClusterError, Process

WAITING = [sys.executable, "-S", "-c", "import sys, time; print('begun', flush=True); time.sleep(600)"]
DEADLINE_S = 30.0


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process("broker 7", str(tmp_path / "pid"))
    yield made
    if made.is_running:
        made.kill()


def begin(process: Process, tmp_path: Path) -> int:
    process.start(WAITING, str(tmp_path / "log"), os.environ)
    assert process.pid is not None
    until(lambda: "begun" in (tmp_path / "log").read_text())
    return process.pid


def test_others_know_a_process_by_its_file(process: Process, tmp_path: Path) -> None:
    other = Process("broker 7", str(tmp_path / "pid"))
    assert not other.is_running and other.pid is None
    pid = begin(process, tmp_path)
    assert other.is_running and other.pid == pid
    other.kill()
    assert not process.is_running and process.pid is None


def test_an_id_that_a_file_still_holds_is_nobody(process: Process, tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    assert process.pid is None
    with pytest.raises(ClusterError, match="broker 7 is not running"):
        process.kill()


def test_a_process_is_started_once(process: Process, tmp_path: Path) -> None:
    pid = begin(process, tmp_path)
    with pytest.raises(ClusterError, match="broker 7 is running already"):
        Process("broker 7", str(tmp_path / "pid")).start(WAITING, str(tmp_path / "log"), os.environ)
    assert process.pid == pid


def test_a_program_that_is_not_there_leaves_no_process(process: Process, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="broker 7 cannot be started"):
        process.start([str(tmp_path / "none")], str(tmp_path / "log"), os.environ)
    assert not process.is_running


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc, to see a process stopped by")
def test_a_paused_process_stands_still_and_hears_that_it_should_stop(
    process: Process, tmp_path: Path
) -> None:
    pid = begin(process, tmp_path)
    process.pause()
    until(lambda: state_of(pid) == "T")
    assert process.is_paused
    process.resume()
    until(lambda: state_of(pid) != "T")
    assert not process.is_paused
    process.pause()
    process.ask_to_stop()
    assert process.wait(DEADLINE_S)
    assert not process.is_paused


def waiting_cluster(tmp_path: Path) -> LocalCluster:
    home = homes.make(str(tmp_path / "cluster"), 2, "127.0.0.1:1", {"num.partitions": "5"})
    cluster = LocalCluster(home, lambda broker: Launch(WAITING, os.environ))
    for broker in home.brokers.values():
        cluster._begin(broker)
    return cluster


def test_each_command_finds_the_cluster_by_its_directory(tmp_path: Path) -> None:
    cluster = waiting_cluster(tmp_path)
    other = LocalCluster(homes.load(cluster.home.directory))
    assert other.home.bootstrap_servers == cluster.home.bootstrap_servers
    assert [broker.id for broker in other.running()] == [0, 1]
    other.kill_broker(1)
    assert [broker.id for broker in cluster.running()] == [0]
    other.stop()
    assert not cluster.running()


def test_a_broker_that_takes_connections_and_says_nothing_is_not_ready_and_has_no_status(
    tmp_path: Path,
) -> None:
    """As one on a machine with too much to do: its start is waited for all the same."""
    cluster = waiting_cluster(tmp_path)
    broker = cluster.home.broker(0)
    with socket.create_server(("127.0.0.1", broker.port)):
        assert not cluster._is_ready(broker, {0})
        assert status.gather(cluster.home)["controller"] is None
    cluster.kill()


def test_the_brokers_go_with_whoever_started_them(tmp_path: Path) -> None:
    cluster = waiting_cluster(tmp_path)
    guard = Guard(cluster.home.directory, remove=True)
    guard.let_go()  # as the end of this process would
    until(lambda: not Path(cluster.home.directory).exists())
    assert not cluster.running()


def test_who_has_ended_a_cluster_dismisses_its_guard(tmp_path: Path) -> None:
    cluster = waiting_cluster(tmp_path)
    Guard(cluster.home.directory, remove=True).dismiss()
    assert [broker.id for broker in cluster.running()] == [0, 1]
    cluster.kill()


def test_a_broker_that_ends_at_its_start_is_told_with_its_log(tmp_path: Path) -> None:
    home = homes.make(str(tmp_path / "cluster"), 1, "127.0.0.1:1", {})
    ending = [sys.executable, "-S", "-c", "print('no room'); raise SystemExit(1)"]
    cluster = LocalCluster(home, lambda broker: Launch(ending, os.environ))
    with pytest.raises(ClusterError, match="broker 0 ended at its start; its log ends:\nno room"):
        cluster.start_broker(0)


def test_a_broker_whose_old_session_lives_on_is_begun_again(tmp_path: Path) -> None:
    home = homes.make(str(tmp_path / "cluster"), 1, "127.0.0.1:1", {})
    begun: list[int] = []

    def launch(broker: object) -> Launch:
        begun.append(len(begun))
        said = "DUPLICATE_BROKER_REGISTRATION" if len(begun) < 3 else "no room"
        lines = f"print('{said}'); raise SystemExit(1)"
        return Launch([sys.executable, "-S", "-c", lines], os.environ)

    with pytest.raises(ClusterError, match="broker 0 ended at its start"):
        LocalCluster(home, launch).start_broker(0)
    assert begun == [0, 1, 2]


def test_without_a_zookeeper_no_broker_is_begun(tmp_path: Path) -> None:
    code = "import sys; from pykafkad.local_cluster.command import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "up", "--zookeeper", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "pykafkad: no ZooKeeper answers at 127.0.0.1:1\n"
