"""The program as a process: start, output, end. The tests use the test kit, which is tested with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafkad.messages import FetchRequest, MetadataRequest
from pykafkad.testing import Broker, BrokerError, Client

SECONDS = 60


def environment(**extra: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}, **extra}


def program(
    *arguments: str, stdin: int | None = None, before: Callable[[], None] | None = None, **extra: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "start", *arguments],
        stdin=stdin,
        preexec_fn=before,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**extra),
    )


def topics(broker: Broker) -> dict[str, int]:
    with broker.client() as client:
        answer = client.call(MetadataRequest(topics=None), 12)
    return {topic.name: len(topic.partitions) for topic in answer.topics}


def test_a_broker_has_its_topics_its_configs_and_ends_with_its_directory() -> None:
    with Broker(topics={"orders": 3, "bills": 1}, config={"num.partitions": 5}) as broker:
        assert topics(broker) == {"orders": 3, "bills": 1}
        broker.create_topic("late", 2, {"retention.ms": 1000})
        assert topics(broker)["late"] == 2
        assert os.path.isdir(broker.data)
        process, directory = broker.pid, os.path.dirname(broker.data)
        assert "Traceback" not in broker.log_text()
    assert not os.path.exists(directory)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_topics_outlive_a_stop_and_a_kill(way: str) -> None:
    with Broker(topics={"orders": 3}) as broker:
        port = broker.port
        getattr(broker, way)()
        assert not broker.running
        broker.restart()
        assert broker.port == port
        assert topics(broker) == {"orders": 3}


def test_a_refused_topic_says_why() -> None:
    with Broker(topics=["orders"]) as broker:
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic("orders")
        with pytest.raises(
            BrokerError, match=r"INVALID_CONFIG: Invalid value x for configuration retention\.ms"
        ):
            broker.create_topic("other", 1, {"retention.ms": "x"})


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(BrokerError, match=r"exit code 2(?s:.)*num\.partitions"):
        Broker(config={"num.partitions": 0})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_line_on_stdout_and_exit_0_when_told_to_stop(number: signal.Signals, tmp_path: Path) -> None:
    broker = program("--port", "0", "--ephemeral", TMPDIR=str(tmp_path))
    assert broker.stdout is not None
    assert broker.stdout.readline().startswith("pykafkad ready: bootstrap.servers=127.0.0.1:")
    assert len(list(tmp_path.iterdir())) == 1
    broker.send_signal(number)
    out, err = broker.communicate(timeout=SECONDS)
    assert (broker.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_nohup_keeps_it_running(tmp_path: Path) -> None:
    broker = program("--port", "0", "--ephemeral", TMPDIR=str(tmp_path), before=ignore_hang_ups)
    assert broker.stdout is not None
    host, _, port = broker.stdout.readline().rstrip().rpartition("=")[2].rpartition(":")
    broker.send_signal(signal.SIGHUP)
    with Client(host, int(port)) as client:
        assert client.call(MetadataRequest(topics=None), 12).brokers
    broker.terminate()
    _, err = broker.communicate(timeout=SECONDS)
    assert broker.returncode == 0
    assert "SIGHUP" not in err and "SIGTERM: stopping" in err


def ignore_hang_ups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_the_end_of_standard_input_is_a_clean_stop(tmp_path: Path) -> None:
    gone, data = tmp_path / "gone", tmp_path / "data"
    gone.mkdir()
    options = ["--data", str(data), "--until-eof", "--remove-at-eof", str(gone)]
    broker = program("--port", "0", *options, stdin=subprocess.PIPE)
    assert broker.stdout is not None and broker.stdin is not None
    assert broker.stdout.readline()
    broker.stdin.write("what comes means nothing\n")
    broker.stdin.flush()
    broker.stdin.close()
    assert broker.wait(SECONDS) == 0
    assert broker.stderr is not None
    assert "standard input ended: stopping" in broker.stderr.read()
    assert (data / ".kafka_cleanshutdown").exists()
    assert not gone.exists()


def test_a_broker_that_is_told_to_stop_removes_nothing(tmp_path: Path) -> None:
    options = ["--data", str(tmp_path / "data"), "--until-eof", "--remove-at-eof", str(tmp_path)]
    broker = program("--port", "0", *options, stdin=subprocess.PIPE)
    assert broker.stdout is not None
    assert broker.stdout.readline()
    broker.terminate()
    assert broker.wait(SECONDS) == 0
    assert (tmp_path / "data").is_dir()
    broker.communicate()


def test_standard_input_that_never_ends_cannot_be_waited_for(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    options = ["--ephemeral", "--until-eof", "--remove-at-eof", str(tmp_path)]
    broker = program("--port", "0", "--log-level", "off", *options, stdin=subprocess.DEVNULL)
    out, err = broker.communicate(timeout=SECONDS)
    assert (broker.returncode, out) == (1, "")
    assert "--until-eof: standard input has to be a pipe" in err and len(err.splitlines()) == 1
    assert (tmp_path / "data").is_dir()


def test_the_default_data_directory_is_said(tmp_path: Path) -> None:
    broker = program("--port", "0", HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))
    assert broker.stdout is not None
    assert broker.stdout.readline()
    broker.terminate()
    _, err = broker.communicate(timeout=SECONDS)
    assert broker.returncode == 0
    assert str(tmp_path / "data" / "pykafkad") in err


def test_a_taken_port_is_one_line_and_exit_1() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = program("--ephemeral", "--log-level", "off", "--port", str(port))
        out, err = broker.communicate(timeout=SECONDS)
    assert (broker.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert str(port) in err


def test_a_second_broker_on_a_directory_is_refused(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data"):
        second = program("--port", "0", "--log-level", "off", "--data", str(tmp_path / "data"))
        out, err = second.communicate(timeout=SECONDS)
    assert (second.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert str(tmp_path / "data") in err
    assert (tmp_path / "data").is_dir()  # a given directory stays


def test_a_waiting_fetch_is_answered_when_the_broker_stops() -> None:
    with Broker(topics=["t"]) as broker, broker.client() as client:
        item = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics_ = [FetchRequest.FetchTopic(topic="t", partitions=[item])]
        waiting = FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=topics_)
        timer = threading.Timer(0.2, broker.stop)
        timer.start()
        answer = client.call(waiting, 12)
        timer.join()
        assert answer.responses[0].partitions[0].error_code == 0
        assert not broker.running


def test_several_listeners_are_served_and_each_client_is_told_its_own() -> None:
    listeners = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://outside.example:1234",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with Broker(config=listeners) as broker, broker.client() as client:
        told = client.call(MetadataRequest(topics=[]), 12).brokers
        assert [(each.host, each.port) for each in told] == [("127.0.0.1", broker.port)]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303"),
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\x0b\x03\xe7\0\0\0\0\0\1\0\1c",
        b"\0\0\0\0",
    ],
)
def test_what_is_no_request_ends_its_connection_with_one_line_and_nothing_else(sent: bytes) -> None:
    with Broker(topics=["t"]) as broker, broker.client() as other:
        before = len(broker.log_text().splitlines())
        with socket.create_connection((broker.host, broker.port), SECONDS) as bad:
            bad.sendall(sent)
            assert bad.recv(1) == b""
        assert other.call(MetadataRequest(topics=None), 12).topics[0].name == "t"
        lines = broker.log_text().splitlines()[before:]
        assert len(lines) == 1 and "INFO" in lines[0] and "Traceback" not in lines[0], lines
