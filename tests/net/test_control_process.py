"""The control socket of a real broker: who may open it, what lies at its path, and that nobody on it holds the broker."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad.control import LINE_BYTES, SOCKET
from pykafkad.control.client import ControlClient, ControlError
from pykafkad.control.server import CONNECTIONS_MAX
from pykafkad.messages import ApiVersionsRequest, ListOffsetsRequest, MetadataRequest
from pykafkad.net import unix_sockets
from pykafkad.server import DRAIN_MS
from pykafkad.testing import Broker
from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop, body_of

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}) as broker:
        yield broker


@pytest.fixture
def control(kafka: Broker) -> Iterator[ControlClient]:
    client = ControlClient(kafka.data)
    yield client
    client.close()


def raw(kafka: Broker) -> socket.socket:
    return unix_sockets.connect(os.path.join(kafka.data, SOCKET), DEADLINE_S)


def said(sock: socket.socket) -> dict[str, Any]:
    """The end of the answer to the last request."""
    lines = sock.makefile("rb")
    while True:
        row: dict[str, Any] = json.loads(lines.readline())  # ValueError: the connection has ended
        if "end" in row:
            return row


def until(what: Any) -> None:
    end = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


# -- the socket


def test_only_its_owner_can_open_it(kafka: Broker) -> None:
    found = os.stat(os.path.join(kafka.data, SOCKET))
    assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused(kafka: Broker) -> None:
    """Even one to whom a careless chmod has opened it."""
    path = os.path.join(kafka.data, SOCKET)
    reader, writer = os.pipe()
    sock = socket.socket(
        socket.AF_UNIX, socket.SOCK_STREAM
    )  # made here: the other user may not reach the directory
    directory = os.open(kafka.data, os.O_PATH)
    os.chmod(path, 0o666)
    child = os.fork()
    if not child:
        code = b"failed"
        try:
            os.setresuid(65534, 65534, 65534)
            sock.connect(f"/proc/self/fd/{directory}/{SOCKET}")
            sock.settimeout(DEADLINE_S)
            code = b"refused" if not sock.recv(1) else b"served"
        except PermissionError:
            code = b"not allowed"
        except ConnectionResetError:
            code = b"refused"
        finally:
            os.write(writer, code)
            os._exit(0)
    os.waitpid(child, 0)
    os.chmod(path, 0o600)
    assert os.read(reader, 100) in (b"refused", b"not allowed")
    for fd in (reader, writer, directory):
        os.close(fd)
    sock.close()


def test_a_stale_one_is_replaced_and_a_stop_leaves_none(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        os.kill(broker.pid, signal.SIGKILL)  # Broker.kill() would tidy up
        until(lambda: not broker.running)
        assert (tmp_path / SOCKET).exists()
        with pytest.raises(ControlError, match="no broker runs in"):
            ControlClient(os.fspath(tmp_path))
        broker.start()
        client = ControlClient(os.fspath(tmp_path))
        assert [row for row in client.ask("status") if "broker" in row]
        client.close()
        assert broker.stop() == 0
        assert not (tmp_path / SOCKET).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="goes by /proc")
def test_a_path_that_is_too_long_for_an_address_will_do(tmp_path: Path) -> None:
    data = tmp_path / ("long" * 40) / ("longer" * 30)
    data.mkdir(parents=True)
    with Broker(data=data) as broker:
        client = ControlClient(os.fspath(data))
        assert next(client.ask("status"))["broker"]["pid"] == broker.pid
        client.close()
        assert stat.S_IMODE(os.stat(data / SOCKET).st_mode) == 0o600


def test_where_it_cannot_be_made_the_broker_says_so_and_serves(tmp_path: Path) -> None:
    (tmp_path / SOCKET).mkdir()
    with Broker(data=tmp_path, topics=["t"]) as broker:
        assert "there is no control socket" in broker.log_text()


def test_an_opened_directory_is_not_written_to(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data", topics={"t": 1}) as broker:
        broker.stop()
    before = sorted(os.listdir(tmp_path / "data"))
    command = [
        sys.executable,
        "-m",
        "pykafkad",
        "open",
        os.fspath(tmp_path / "data"),
        "--read-only",
        "--port",
        "0",
    ]
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": os.fspath(tmp_path / "temporary")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None and process.stdout.readline().startswith(b"pykafkad ready")
    assert sorted(os.listdir(tmp_path / "data")) == before
    sockets = list((tmp_path / "temporary").rglob(SOCKET))
    client = ControlClient(os.fspath(sockets[0].parent))
    assert "t" in [row["topic"]["name"] for row in client.ask("status") if "topic" in row]
    client.close()
    process.terminate()
    assert process.wait(DEADLINE_S) == 0
    process.stdout.close()


# -- what is said over it


def test_what_is_no_request_is_told_so_and_the_next_one_is_answered(kafka: Broker) -> None:
    sock = raw(kafka)
    wrong = {
        b"hello": "this is no JSON",
        b"[]": "a request is an object",
        b'{"command": "status"}': "version None",
        b'{"version": 2, "command": "status"}': "version 2",
        b'{"version": 1}': "no command",
        b'{"version": 1, "command": "sink"}': "no command 'sink': there are status",
        b'{"version": 1, "command": "status", "x": 1}': "unknown argument x",
        b'{"version": 1, "command": "facts"}': "facts about what",
        b'{"version": 1, "command": "facts", "topic": 5}': "topic is a text",
        b'{"version": 1, "command": "trace", "errors": 5}': "errors is true or false",
        b"\xff\xfe": "this is no JSON",
        b"[" * 10_000: "this is no JSON",
    }
    for line, text in wrong.items():
        sock.sendall(line + b"\n")
        assert text in said(sock)["error"], line
    sock.sendall(b'{"version": 1, "command": "status"}\n')
    assert said(sock) == {"end": True}
    sock.close()


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_sent_has_an_answer_in_which_nothing_has_failed(kafka: Broker, seed: int) -> None:
    chance = random.Random(seed)
    values: list[Any] = [
        None,
        True,
        1,
        -1,
        10**400,
        1e300,
        "",
        "x",
        "\ud800",
        "orders",
        "*" * 50,
        [],
        {},
        [[{}]],
    ]
    commands = ["status", "facts", "trace", "nothing", ""]
    names = ["version", "command", "group", "topic", "api", "client", "errors", "bodies", "\u0000"]
    sock = raw(kafka)
    lines = sock.makefile("rb")
    for _ in range(200):
        request = {name: chance.choice(values) for name in names if chance.random() < 0.2}
        request |= {"version": 1, "command": chance.choice(commands)} if chance.random() < 0.9 else {}
        line = bytearray(json.dumps(request).encode())
        for _ in range(chance.choice([0, 0, 1, 5])):
            line[chance.randrange(len(line))] = chance.choice(b'{}[]",:0e\\ \xff\x00')
        sock.sendall(bytes(line) + b"\n")
        row: dict[str, Any] = {}
        while "end" not in row:
            found = lines.readline()
            assert found, line
            row = json.loads(found) if found != b"\n" else {}
    lines.close()
    sock.close()
    assert "a command failed" not in kafka.log_text()


def test_half_a_line_waits_for_its_end_and_holds_nobody(kafka: Broker, control: ControlClient) -> None:
    sock = raw(kafka)
    sock.sendall(b'{"version": 1, "comm')
    assert list(control.ask("status"))
    sock.sendall(b'and": "status"}\n')
    assert said(sock) == {"end": True}
    sock.sendall(b'{"version": 1, "command": "st')
    sock.close()
    assert list(control.ask("status"))


def test_a_huge_line_ends_its_connection_alone(kafka: Broker, control: ControlClient) -> None:
    sock = raw(kafka)
    ended = False
    for _ in range(1_000):
        try:
            sock.sendall(b"x" * LINE_BYTES)
        except OSError:
            ended = True
            break
    assert ended
    sock.close()
    assert list(control.ask("status"))


def test_several_requests_sent_at_once_are_answered_in_order(kafka: Broker) -> None:
    sock = raw(kafka)
    sock.sendall(b'{"version": 1, "command": "status"}\n{"version": 1, "command": "nothing"}\n' * 20)
    lines = sock.makefile("rb")
    ends: list[bool] = []
    while len(ends) < 40:
        row = json.loads(lines.readline())
        if "end" in row:
            ends.append("error" in row)
    assert ends == [False, True] * 20
    lines.close()
    sock.close()


def test_there_are_only_so_many_connections(kafka: Broker) -> None:
    held: list[socket.socket] = []

    def hold() -> bool:
        """One more; those of the tests before may not have been seen to close."""
        sock = raw(kafka)
        try:
            sock.sendall(b'{"version": 1, "command": "status"}\n')
            served = said(sock) == {"end": True}
        except (OSError, ValueError):
            served = False
        if served:
            held.append(sock)
        else:
            sock.close()
        return served

    for _ in range(CONNECTIONS_MAX):
        until(hold)
    refused = raw(kafka)
    assert refused.recv(1) == b""
    refused.close()
    for sock in held:
        sock.close()

    def is_served() -> bool:
        try:
            client = ControlClient(kafka.data)
            found = list(client.ask("status"))
            client.close()
        except ControlError:
            return False
        return bool(found)

    until(is_served)


# -- the trace


def test_a_trace_shows_what_is_asked_for(kafka: Broker, control: ControlClient) -> None:
    assert list(control.ask("trace", api="metadata", errors=False, bodies=True)) == []
    with kafka.client() as client:
        client.call(ApiVersionsRequest(client_software_name="me", client_software_version="1"), 3)
        topic: Any = MetadataRequest.MetadataRequestTopic
        client.call(MetadataRequest(topics=[topic(name="orders")], allow_auto_topic_creation=False), 9)
    request = next(control.events())["request"]
    assert request["api"] == "Metadata v9" and request["topics"] == ["orders"] and request["errors"] == ["OK"]
    assert request["request"]["topics"] == [{"name": "orders"}]
    assert request["response"]["topics"][0]["name"] == "orders"


def test_errors_alone_can_be_asked_for(kafka: Broker, control: ControlClient) -> None:
    assert list(control.ask("trace", errors=True, topic="no*")) == []
    topic: Any = ListOffsetsRequest.ListOffsetsTopic
    partition: Any = ListOffsetsRequest.ListOffsetsPartition
    with kafka.client() as client:
        for name in ("orders", "nothing"):
            asked = topic(name=name, partitions=[partition(timestamp=-1)])
            client.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5)
    request = next(control.events())["request"]
    assert request["errors"] == ["UNKNOWN_TOPIC_OR_PARTITION"] and request["topics"] == ["nothing"]


def test_one_trace_is_enough_for_a_connection(control: ControlClient) -> None:
    assert list(control.ask("trace")) == []
    with pytest.raises(ControlError, match="has a trace already"):
        list(control.ask("trace"))


def test_a_reader_that_does_not_read_is_left_lines_out_and_told_how_many(
    kafka: Broker, control: ControlClient
) -> None:
    """And nobody waits for it: the requests are answered all the same."""
    assert list(control.ask("trace", api="Metadata", bodies=True)) == []
    count = 3_000
    with kafka.client() as client:
        for _ in range(count):
            client.call(MetadataRequest(topics=[]), 9)
    rows: list[dict[str, Any]] = []
    events = control.events()
    stop = threading.Event()

    def keep_asking() -> None:  # what was left out is told with the next request that fits
        with kafka.client() as client:
            while not stop.is_set():
                client.call(MetadataRequest(topics=[]), 9)

    asking = threading.Thread(target=keep_asking)
    asking.start()
    while not any("left_out" in row for row in rows):
        rows.append(next(events))
    stop.set()
    asking.join()
    left_out = next(row["left_out"] for row in rows if "left_out" in row)
    assert left_out > 0 and len(rows) - 1 + left_out >= count


def test_a_stop_does_not_wait_for_who_does_not_read(tmp_path: Path) -> None:
    """Where it did, it would take DRAIN_MS each time."""

    def stop_takes_s(broker: Broker) -> float:
        control = ControlClient(os.fspath(tmp_path))
        list(control.ask("trace", bodies=True))
        with broker.client() as client:
            for _ in range(2_000):
                client.call(MetadataRequest(topics=[]), 9)
        before = time.monotonic()
        assert broker.stop() == 0
        took_s = time.monotonic() - before
        control.close()
        broker.start()
        return took_s

    with Broker(data=tmp_path, topics=["t"]) as broker:
        assert any(stop_takes_s(broker) * 1000 < DRAIN_MS for _ in range(3))


def test_a_trace_outlives_the_time_after_which_idle_connections_are_closed(tmp_path: Path) -> None:
    with Broker(data=tmp_path, topics=["t"], config={"connections.max.idle.ms": 300}) as broker:
        control = ControlClient(os.fspath(tmp_path))
        idle = ControlClient(os.fspath(tmp_path))
        list(control.ask("trace", api="Metadata"))
        with pytest.raises(ControlError, match="closed"):
            next(idle.events())
        with broker.client() as client:
            client.call(MetadataRequest(topics=[]), 9)
        assert next(control.events())["request"]["api"] == "Metadata v9"
        control.close()
        idle.close()


# -- the tools


def tool(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    command = [sys.executable, "-m", "pykafkad", *arguments]
    return subprocess.run(
        command, env={**kept, **environment}, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def pid_shown(*arguments: str, **environment: str) -> int:
    shown = tool("status", "--json", *arguments, **environment)
    assert shown.returncode == 0, shown.stderr
    pid: int = json.loads(shown.stdout)["broker"]["pid"]
    return pid


def test_the_tools_find_the_broker(kafka: Broker, tmp_path: Path) -> None:
    """By its directory, by where it listens, by the environment, and in the usual directory."""
    nowhere = {"XDG_DATA_HOME": os.fspath(tmp_path), "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    assert pid_shown("--data", kafka.data, **nowhere) == kafka.pid
    assert pid_shown("--bootstrap-server", f"127.0.0.1:1,{kafka.bootstrap_servers}", **nowhere) == kafka.pid
    assert pid_shown(**{**nowhere, "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}) == kafka.pid
    with Broker(data=tmp_path / "pykafkad") as usual:
        assert pid_shown(**nowhere) == usual.pid
    neither = tool("status", **nowhere)
    assert neither.returncode == 1
    assert neither.stderr == (
        f"no broker runs in {tmp_path}/pykafkad; no broker answers at 127.0.0.1:1: Connection refused."
        " Name one with --data DIR or --bootstrap-server\n"
    )


def test_a_broker_of_the_same_directory_that_listens_elsewhere_is_not_the_one(tmp_path: Path) -> None:
    """As on another machine, whose broker names a directory that there is here too."""
    with Broker(data=tmp_path / "one") as one, Broker(data=tmp_path / "two") as two:
        os.rename(tmp_path / "one" / SOCKET, tmp_path / "hidden")
        os.rename(tmp_path / "two" / SOCKET, tmp_path / "one" / SOCKET)
        shown = tool("status", "--bootstrap-server", one.bootstrap_servers)
        assert shown.returncode == 1 and "has no control socket that can be opened from here" in shown.stderr
        os.rename(tmp_path / "one" / SOCKET, tmp_path / "two" / SOCKET)
        assert pid_shown("--bootstrap-server", two.bootstrap_servers) == two.pid


def test_a_trace_ends_with_an_interrupt_and_with_its_broker(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        command = [sys.executable, "-m", "pykafkad", "trace", "--data", os.fspath(tmp_path)]
        traces = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        with broker.client() as client:
            for process in traces:  # one line shows that it is there
                stop = threading.Event()

                def keep_asking(stop: threading.Event = stop) -> None:
                    while not stop.wait(0.01):
                        client.call(MetadataRequest(topics=[]), 9)

                asking = threading.Thread(target=keep_asking)
                asking.start()
                assert process.stdout is not None and "Metadata v9 OK" in process.stdout.readline()
                stop.set()
                asking.join()
        traces[0].send_signal(signal.SIGINT)
        assert traces[0].wait(DEADLINE_S) == 0
        broker.stop()
        said_last = traces[1].communicate(timeout=DEADLINE_S)[1]
        assert traces[1].returncode == 1 and "has closed the control connection" in said_last
        traces[0].communicate()


# -- lines of text, on both loops


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_lines_are_frames_with_their_ends(module: Any) -> None:
    loop = Loop(module)
    frames: list[bytes] = []
    closed: list[str | None] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        frames.append(body_of(buffer, start, end))
        return b"."

    protocol = module.Protocol(
        on_frame,
        framing=module.TEXT_LINES,
        max_frame_bytes=100,
        on_close=lambda connection, reason: closed.append(reason),
    )
    ours, theirs = socket.socketpair()
    loop.reactor.adopt(theirs, protocol=protocol)
    peer = loop.join(ours)
    peer.send_bytes(b"one\n\ntw")
    loop.until(lambda: len(frames) == 2)
    peer.send_bytes(b"o\n" + b"x" * 100 + b"\n" + b"y" * 99)
    loop.until(lambda: len(frames) == 4)
    assert frames == [b"one\n", b"\n", b"two\n", b"x" * 100 + b"\n"]
    peer.send_bytes(b"yy")
    loop.until(lambda: bool(closed))
    assert closed == ["Invalid receive (size = 101 larger than 100)"]
    loop.close()
