"""Pipes that close early, closed and full streams, Ctrl-C, encodings: the tools end as others do, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pykafkad.testing import Broker

SECONDS = 60  # against hangs
READ = ["consume", "--topic", "t", "--partition", "0", "--offset", "earliest"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        lines = "".join(f"{number}\n" for number in range(20_000))
        assert run(broker, "produce", "--topic", "t", stdin=lines).returncode == 0
        yield broker


def started(broker: Broker, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pykafkad", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers, **environment},
    )


def run(
    broker: Broker, *arguments: str, stdin: str = "", streams: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """`streams`: redirections, as a shell has them."""
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "pykafkad", *arguments]
    return subprocess.run(
        command,
        input=None if "<" in streams else stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
        env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers, **environment},
    )


@pytest.mark.parametrize("all_of_it", [False, True], ids=["while it writes", "while it waits for more"])
def test_who_reads_goes(broker: Broker, all_of_it: bool) -> None:
    tool = started(broker, *READ)
    assert tool.stdout is not None and tool.stderr is not None
    assert tool.stdout.readline() == "0\n"
    while all_of_it and tool.stdout.readline() != "19999\n":
        pass
    tool.stdout.close()
    assert tool.wait(SECONDS) == 141
    assert tool.stderr.read() == ""
    tool.stderr.close()


def test_ctrl_c(broker: Broker) -> None:
    tool = started(broker, *READ)
    assert tool.stdout is not None
    assert tool.stdout.readline() == "0\n"
    tool.send_signal(signal.SIGINT)
    _, err = tool.communicate(timeout=SECONDS)
    assert tool.returncode == 130 and "Traceback" not in err


@pytest.mark.parametrize(
    "arguments", [["topics", "--list"], ["topics", "--list", "--json"], [*READ, "--max-messages", "1"]]
)
@pytest.mark.parametrize(
    ("streams", "said"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_cannot_be_written(broker: Broker, arguments: list[str], streams: str, said: str) -> None:
    if "/dev/full" in streams and not os.path.exists("/dev/full"):
        streams, said = ">&-", "Bad file descriptor"
    done = run(broker, *arguments, streams=streams)
    assert done.returncode == 1 and f"standard output: {said}\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broker_that_dies_while_records_are_produced() -> None:
    how = ["--topic", "t", "--sync", "--command-property", "delivery.timeout.ms=1000"]
    with Broker() as broker:
        assert run(broker, "topics", "--create", "--topic", "t").returncode == 0
        tool = subprocess.Popen(
            [sys.executable, "-m", "pykafkad", "produce", *how],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        )
        assert tool.stdin is not None
        tool.stdin.write("stored\n")
        tool.stdin.flush()
        assert run(broker, *READ, "--max-messages", "1").stdout == "stored\n"
        os.kill(broker.pid, signal.SIGKILL)
        _, err = tool.communicate("lost\nnot read\n", timeout=SECONDS)
    assert tool.returncode == 1
    assert "ERROR Error when sending message to topic t with key: null, value: 4 bytes with error: " in err
    assert err.endswith(
        "ERROR 1 of 2 records were not stored in topic t: line 2\nERROR nothing after line 2 was read\n"
    )


def test_closed_streams(broker: Broker) -> None:
    done = run(broker, "topics", "--list", streams="2>&-")
    assert (done.returncode, done.stdout) == (0, "t\n")
    assert run(broker, "topics", "--lst", streams="2>&-").returncode == 1
    done = run(broker, *READ, "--max-messages", "1", streams="2>&-")
    assert (done.returncode, done.stdout) == (0, "0\n")
    done = run(broker, "produce", "--topic", "t", streams="<&-")
    assert (done.returncode, done.stderr) == (1, "standard input is closed\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_other_encodings(broker: Broker, encoding: str) -> None:
    """Records are bytes, and are written as they are; the explanations can be written in any encoding."""
    assert run(broker, "produce", "--topic", "other", stdin="é€\n").returncode == 0
    how = ["consume", "--topic", "other", "--partition", "0", "--offset", "earliest", "--max-messages", "1"]
    for arguments in ([*how], ["help"], ["topics", "--help"], ["topics"], ["configs", "--describe"]):
        done = run(broker, *arguments, PYTHONIOENCODING=encoding if arguments[0] != "help" else "ascii")
        assert "Traceback" not in done.stderr and "Error" not in done.stderr
    assert run(broker, *how, PYTHONIOENCODING=encoding).stdout == "é€\n"


def test_names_that_have_no_effect(broker: Broker) -> None:
    produced = ["--reader-property", "parse.ky=true", "--command-property", "linger.mss=3"]
    done = run(broker, "produce", "--topic", "other", *produced, stdin="")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        "WARN parse.ky has no effect here; did you mean parse.key?",
        "WARN linger.mss has no effect here; did you mean linger.ms?",
    ]
    shown = ["--formatter-property", "print.keys=true", "--command-property", "fetch.min.byte=1"]
    done = run(broker, *READ, "--max-messages", "1", *shown)
    assert done.returncode == 0 and done.stderr.splitlines()[:2] == [
        "WARN print.keys has no effect here; did you mean print.key?",
        "WARN fetch.min.byte has no effect here; did you mean fetch.min.bytes?",
    ]
