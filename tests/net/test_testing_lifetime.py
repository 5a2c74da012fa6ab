"""A broker never outlives who started it: however the test run ends, the process is gone and its directory too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pykafkad.messages import MetadataRequest
from pykafkad.testing import Broker, Client

SECONDS = 60
TELL = "print(pid, port, flush=True)\n"
WAIT = "time.sleep(600)\n"

# What the killed program had done with its broker.
DONE = {
    "nothing": "",
    "paused": "broker.pause()\n",
    "restarted": "broker.restart(); pid = broker.pid\n",
    "dropped": "del broker; import gc; gc.collect()\n",
}
FORKED = """
import multiprocessing
fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
fork.start()
print(fork.pid, flush=True)
"""


def started(script: str, temporary: Path) -> subprocess.Popen[str]:
    """A program that has a broker, and what it says on standard output."""
    begin = (
        "import os, sys, time\nfrom pykafkad.testing import Broker\nbroker = Broker(topics=['t'])\n"
        "pid, port = broker.pid, broker.port\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", begin + script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )


def numbers_of(program: subprocess.Popen[str]) -> list[int]:
    assert program.stdout is not None
    return [int(word) for word in program.stdout.readline().split()]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def state_of(pid: int) -> str:
    """The letter that `ps` has for the process; nothing if there is none."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1]


def is_gone(pid: int) -> bool:
    """A process that nobody waits for stays as a zombie until init looks."""
    return state_of(pid) in ("", "Z")


def assert_all_gone(pid: int, temporary: Path) -> None:
    wait_until(lambda: is_gone(pid))
    wait_until(lambda: not list(temporary.iterdir()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("done", DONE.values(), ids=DONE)
def test_a_killed_test_run_leaves_nothing(done: str, number: signal.Signals, tmp_path: Path) -> None:
    program = started(done + TELL + WAIT, tmp_path)
    pid, _ = numbers_of(program)
    assert list(tmp_path.iterdir())
    program.send_signal(number)
    program.communicate(timeout=SECONDS)
    assert_all_gone(pid, tmp_path)


def test_what_nobody_could_remove_is_removed_by_the_next_run(tmp_path: Path) -> None:
    program = started("broker.kill()\n" + TELL + WAIT, tmp_path)
    assert numbers_of(program)
    program.kill()
    program.communicate(timeout=SECONDS)
    (left,) = tmp_path.iterdir()
    foreign, other = tmp_path / "pykafkad-test-foreign", tmp_path / "other"
    for each in (foreign, other):
        each.mkdir()
    used = started(TELL + WAIT, tmp_path)
    numbers_of(used)
    try:
        assert not left.exists()
        (own,) = set(tmp_path.iterdir()) - {foreign, other}
        again = started("broker.close()", tmp_path)
        again.communicate(timeout=SECONDS)
        assert set(tmp_path.iterdir()) == {own, foreign, other}
        assert (own / "broker.log").exists()
    finally:
        used.kill()
        used.communicate(timeout=SECONDS)


def test_a_fork_that_lives_on_does_not_keep_the_broker(tmp_path: Path) -> None:
    program = started(TELL + FORKED + WAIT, tmp_path)
    pid, _ = numbers_of(program)
    (fork,) = numbers_of(program)
    try:
        program.kill()
        program.wait(SECONDS)
        assert_all_gone(pid, tmp_path)
        assert not is_gone(fork)
    finally:
        os.kill(fork, signal.SIGKILL)
        program.communicate(timeout=SECONDS)


def test_a_fork_that_ends_does_not_end_the_broker() -> None:
    with Broker() as broker:
        child = os.fork()
        if not child:
            broker.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with broker.client() as client:
            assert client.call(MetadataRequest(topics=None), 12).brokers
        assert os.path.isdir(broker.data)


def test_a_broker_that_nobody_remembers_serves_until_the_program_ends(tmp_path: Path) -> None:
    program = started(DONE["dropped"] + TELL + "input()", tmp_path)
    pid, port = numbers_of(program)
    with Client("127.0.0.1", port) as client:
        assert client.call(MetadataRequest(topics=None), 12).topics[0].name == "t"
    program.communicate(timeout=SECONDS)
    assert_all_gone(pid, tmp_path)


@pytest.mark.parametrize("killed", ["runner", "workers"])
def test_killed_workers_of_pytest_leave_nothing(killed: str, tmp_path: Path) -> None:
    temporary, pids = tmp_path / "tmp", tmp_path / "pids"
    temporary.mkdir()
    pids.mkdir()
    test = tmp_path / "test_hanging.py"
    test.write_text(f"""
import os, time, pytest
from pathlib import Path
from pykafkad.testing import Broker

@pytest.mark.parametrize("number", [1, 2])
def test_hangs(number):
    with Broker() as broker:
        part = Path({str(pids)!r}, f"{{number}}.part")
        part.write_text(f"{{os.getpid()}} {{broker.pid}}")
        part.rename(part.with_suffix(".whole"))
        time.sleep(600)
""")
    options = [
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "--max-worker-restart=0",
    ]
    runner = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, f"--basetemp={tmp_path / 'base'}", str(test)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(list(pids.glob("*.whole"))) == 2)
        found = [tuple(map(int, path.read_text().split())) for path in pids.glob("*.whole")]
        for worker, _ in found:
            if killed == "workers":
                os.kill(worker, signal.SIGKILL)
    finally:
        if killed == "runner":
            runner.kill()
        runner.wait(SECONDS)
    for worker, broker in found:
        wait_until(partial(is_gone, worker))
        assert_all_gone(broker, temporary)


def test_a_paused_broker_answers_when_it_goes_on() -> None:
    with Broker(topics=["t"]) as broker, broker.client() as client:
        broker.pause()
        wait_until(lambda: state_of(broker.pid) == "T")
        broker.resume()
        assert client.call(MetadataRequest(topics=None), 12).topics[0].name == "t"
        broker.pause()
        assert broker.stop() == 0
        broker.restart()
        broker.pause()
