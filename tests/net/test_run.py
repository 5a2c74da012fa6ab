"""`pykafkad run -- COMMAND`: the command finds a broker, gets the signals, and its exit code is ours."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.net.test_testing_lifetime import is_gone, wait_until

SECONDS = 60
RUN = [sys.executable, "-m", "pykafkad", "run"]


def run(*arguments: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )


def python(text: str) -> list[str]:
    return ["--", sys.executable, "-c", text]


@pytest.mark.parametrize(
    "variable",
    ["KAFKA_BOOTSTRAP_SERVERS", "BOOTSTRAP_SERVERS", "KAFKA_BROKERS", "SPRING_KAFKA_BOOTSTRAP_SERVERS"],
)
def test_the_command_finds_the_broker_and_its_topics(variable: str, tmp_path: Path) -> None:
    text = f"""
import os
from pykafkad.messages import MetadataRequest
from pykafkad.testing import Client
host, _, port = os.environ[{variable!r}].rpartition(":")
rows = Client(host, int(port)).call(MetadataRequest(topics=None), 12).topics
print(sorted((row.name, len(row.partitions)) for row in rows))
"""
    found = run("--topic", "orders:3", "--topic=bills", *python(text), temporary=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "[('bills', 1), ('orders', 3)]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
    ],
)
def test_the_exit_code_is_the_commands(text: str, code: int, tmp_path: Path) -> None:
    assert run(*python(text), temporary=tmp_path).returncode == code


def test_a_command_that_cannot_be_run(tmp_path: Path) -> None:
    found = run("--", "no-such-command", temporary=tmp_path)
    assert (found.returncode, found.stderr) == (127, "pykafkad: no-such-command: command not found\n")
    found = run("--", str(tmp_path), temporary=tmp_path)
    assert (found.returncode, found.stderr) == (126, f"pykafkad: {tmp_path}: Permission denied\n")


TELLING = """
import signal, sys, os
def came(number, frame):
    print(signal.Signals(number).name, flush=True)
    raise SystemExit(5)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, came)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT"])
def test_signals_are_passed_on(name: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*RUN, *python(TELLING)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=SECONDS)
    assert (out, process.returncode) == (f"{name}\n", 5)
    assert list(tmp_path.iterdir()) == []


COUNTING = """
import signal
came = []
signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
signal.signal(signal.SIGUSR1, lambda number, frame: print(f"SIGINT came {len(came)} times", flush=True))
print("ready", flush=True)
input()
"""


def test_a_terminals_interrupt_comes_once(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TMPDIR"] = str(tmp_path)
        os.execv(sys.executable, [*RUN, *python(COUNTING)])
    try:
        read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        read_until(terminal, b"^C")  # the terminal shows it when it has sent the signal
        os.kill(pid, signal.SIGUSR1)  # comes to the command after whatever was passed on before
        assert b"SIGINT came 1 times" in read_until(terminal, b"times")
        os.write(terminal, b"\n")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(terminal)


def read_until(terminal: int, wanted: bytes) -> bytes:
    shown = b""
    while wanted not in shown:
        assert select.select([terminal], [], [], SECONDS)[0], shown
        shown += os.read(terminal, 4096)
    return shown


def test_a_killed_run_leaves_no_broker(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*RUN, *python("import os; print(os.getpid(), flush=True); input()")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    command = int(process.stdout.readline())
    process.kill()
    process.wait(SECONDS)
    wait_until(lambda: not list(tmp_path.iterdir()))
    assert not is_gone(command)  # nothing can end it with us; here the end of its standard input does
    process.communicate(timeout=SECONDS)
    wait_until(lambda: is_gone(command))


def test_the_brokers_log_is_shown_at_the_end(tmp_path: Path) -> None:
    text = """
import os, socket
host, _, port = os.environ["KAFKA_BOOTSTRAP_SERVERS"].rpartition(":")
bad = socket.create_connection((host, int(port)))
bad.sendall(bytes.fromhex("7fffffff"))
bad.recv(1)
"""
    found = run("--log-level", "info", *python(text), temporary=tmp_path)
    assert found.returncode == 0
    assert "closed the connection of" in found.stderr


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    found = run("--override", "num.partitions=0", "--", "true", temporary=tmp_path)
    assert found.returncode == 1
    assert "num.partitions" in found.stderr and "Traceback" not in found.stderr
    assert list(tmp_path.iterdir()) == []
