"""One connection of the tools' client, over a socket that is none: what it asks, how it reads, and for how long."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from struct import Struct
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.errors import KafkaError
from pykafkad.net import connection
from pykafkad.net.answers import WrongAnswer
from pykafkad.net.connection import Connection, UnsupportedVersion, abandoned, readable
from pykafkad.net.reaching import NoAnswer, NotKafka

HEARTBEAT, API_VERSIONS = messages.HeartbeatResponse.api_key, messages.ApiVersionsResponse.api_key
HEAD = Struct(">ihhih")  # size, API, version, number, length of the client's id
MIB = 1 << 20


class Socket:
    """Gives what the test lets come, at most so many bytes at a time, each after a second."""

    def __init__(self, now: list[float]) -> None:
        self.now = now
        self.options: dict[tuple[int, int], int] = {}
        self.sent = b""
        self.coming = b""
        self.at_a_time = 1 << 30
        self.at_end: Exception | None = None  # None: the other side closes
        self.limits: list[float] = []
        self.closed = False

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.options[level, option] = value

    def settimeout(self, seconds: float) -> None:
        self.limits.append(round(seconds, 6))

    def sendall(self, data: Any) -> None:
        self.sent += bytes(data)

    def recv_into(self, view: memoryview) -> int:
        self.now[0] += 1
        if not self.coming and self.at_end is not None:
            raise self.at_end
        part = self.coming[: min(len(view), self.at_a_time)]
        self.coming = self.coming[len(part) :]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self.closed = True

    def asked(self) -> list[tuple[int, int, int, bytes]]:
        """API, version, number and client of each request that was sent."""
        found, left = [], self.sent
        while left:
            size, key, version, number, length = HEAD.unpack_from(left)
            found.append((key, version, number, left[HEAD.size : HEAD.size + length]))
            left = left[4 + size :]
        return found

    def answer(self, number: int, response: Any, version: int) -> None:
        body = number.to_bytes(4, "big") + bytes(response.encode(version))
        self.coming += len(body).to_bytes(4, "big") + body


Opener = Callable[..., tuple[Connection, Socket]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Connects, at the time 1000."""

    def connect(**options: Any) -> tuple[Connection, Socket]:
        now = [1000.0]
        sock = Socket(now)
        monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr(socket, "create_connection", lambda address, timeout_s: sock)
        return Connection("kafka", 9092, "me", **options), sock

    return connect


def versions_answer(code: int = 0, **apis: tuple[int, int]) -> Any:
    kind = messages.ApiVersionsResponse
    rows = [
        kind.ApiVersion(
            api_key=getattr(messages, f"{name}Request").api_key, min_version=low, max_version=high
        )
        for name, (low, high) in apis.items()
    ]
    return kind(error_code=code, api_keys=rows)


def ready(opened: Opener) -> tuple[Connection, Socket]:
    """To a broker that knows Heartbeat in the versions that have no tags in the header."""
    found, sock = opened()
    found.versions = {HEARTBEAT: (0, 3)}
    return found, sock


# -- the socket


def test_small_requests_go_at_once_and_buffers_are_the_systems_unless_somebody_says_so(
    opened: Opener,
) -> None:
    for unsaid in (-1, 0):
        _, sock = opened(send_bytes=unsaid, receive_bytes=unsaid)
        assert sock.options == {(socket.IPPROTO_TCP, socket.TCP_NODELAY): 1}
    for size in (1, 70_000):
        _, sock = opened(send_bytes=size, receive_bytes=size)
        assert sock.options[socket.SOL_SOCKET, socket.SO_SNDBUF] == size
        assert sock.options[socket.SOL_SOCKET, socket.SO_RCVBUF] == size
    _, sock = opened()
    assert len(sock.options) == 1


def test_a_name_that_can_be_none_is_a_host_that_is_not_known() -> None:
    with pytest.raises(socket.gaierror):
        Connection("x" * 64 + ".", 9092, "me")


# -- the first question


def test_it_learns_which_versions_the_broker_serves(opened: Opener) -> None:
    found, sock = opened()
    sock.answer(1, versions_answer(Heartbeat=(1, 3), Fetch=(4, 17)), 3)
    found.learn_versions(1030.0)
    assert found.versions == {HEARTBEAT: (1, 3), messages.FetchRequest.api_key: (4, 17)}
    assert sock.asked() == [(API_VERSIONS, 3, 1, b"me")] and b"pykafkad" in sock.sent
    assert found.under_way == 0


def test_a_broker_of_old_is_asked_again_in_version_0(opened: Opener) -> None:
    found, sock = opened()
    sock.answer(1, versions_answer(errors.UNSUPPORTED_VERSION), 0)
    sock.answer(2, versions_answer(Heartbeat=(0, 0)), 0)
    found.learn_versions(1030.0)
    assert [(version, number) for _, version, number, _ in sock.asked()] == [(3, 1), (0, 2)]
    assert found.versions == {HEARTBEAT: (0, 0)} and found.under_way == 0


@pytest.mark.parametrize("code", [errors.CLUSTER_AUTHORIZATION_FAILED, errors.UNSUPPORTED_VERSION])
def test_a_broker_that_does_not_say_is_of_no_use(opened: Opener, code: int) -> None:
    found, sock = opened()
    sock.answer(1, versions_answer(code), 0 if code == errors.UNSUPPORTED_VERSION else 3)
    sock.answer(2, versions_answer(code), 0)
    with pytest.raises(KafkaError) as refused:
        found.learn_versions(1030.0)
    assert refused.value.code == code


@pytest.mark.parametrize("head", [b"HTTP", b"\0\0\0\3", b"\xff\xff\xff\xff", (MIB + 1).to_bytes(4, "big")])
def test_what_is_no_size_is_another_protocol(opened: Opener, head: bytes) -> None:
    found, sock = opened()
    sock.coming = head + b"/1.1 400 Bad Request"
    with pytest.raises(NotKafka) as told:
        found.learn_versions(1030.0)
    assert told.value.head == head


@pytest.mark.parametrize("size", [4, MIB])
def test_whoever_is_silent_or_leaves_before_an_answer_is_whole_gives_none(opened: Opener, size: int) -> None:
    for problem, words in ((TimeoutError(), "does not answer"), (None, "closes them without an answer")):
        found, sock = opened()
        sock.coming, sock.at_end = size.to_bytes(4, "big") + b"\0\0\0", problem
        with pytest.raises(NoAnswer, match=words):
            found.learn_versions(1030.0)


# -- versions


@pytest.mark.parametrize(
    ("served", "at_most", "version"),
    [((0, 4), 99, 4), ((0, 99), 99, 4), ((0, 2), 99, 2), ((1, 4), 1, 1), ((4, 9), 99, 4)],
)
def test_the_newest_version_that_both_know_is_used(
    opened: Opener, served: tuple[int, int], at_most: int, version: int
) -> None:
    found, _ = opened()
    found.versions = {HEARTBEAT: served}
    assert found.version_for(messages.HeartbeatRequest(), at_most) == version


@pytest.mark.parametrize(
    ("versions", "at_most"), [({}, 99), ({HEARTBEAT: (5, 9)}, 99), ({HEARTBEAT: (1, 4)}, 0)]
)
def test_without_such_a_version_the_api_is_named(
    opened: Opener, versions: dict[int, tuple[int, int]], at_most: int
) -> None:
    found, sock = opened()
    found.versions.update(versions)
    with pytest.raises(UnsupportedVersion, match="The node does not support HEARTBEAT") as refused:
        found.call(messages.HeartbeatRequest(), 1030.0, at_most=at_most)
    assert refused.value.code == errors.UNSUPPORTED_VERSION and not sock.sent
    assert connection.constant_name(messages.ListOffsetsRequest()) == "LIST_OFFSETS"


# -- requests and answers


def test_answers_belong_to_requests_in_their_order(opened: Opener) -> None:
    found, sock = ready(opened)
    for _ in range(2):
        assert found.send(messages.HeartbeatRequest(), 1030.0) == 3
    assert found.under_way == 2
    sock.answer(1, messages.HeartbeatResponse(error_code=1), 3)
    sock.answer(2, messages.HeartbeatResponse(error_code=2), 3)
    assert [found.receive(1030.0).error_code for _ in range(2)] == [1, 2] and found.under_way == 0
    sock.answer(4, messages.HeartbeatResponse(), 3)
    with pytest.raises(WrongAnswer):
        found.call(messages.HeartbeatRequest(), 1030.0)


def test_what_is_not_answered_is_not_waited_for(opened: Opener) -> None:
    found, sock = ready(opened)
    assert found.send(messages.HeartbeatRequest(), 1030.0, at_most=2, answered=False) == 2
    assert found.under_way == 0 and [version for _, version, _, _ in sock.asked()] == [2]


def test_after_the_first_one_answers_may_be_large(opened: Opener) -> None:
    found, sock = ready(opened)
    sock.answer(1, messages.HeartbeatResponse(), 3)
    size = 2 * MIB
    sock.coming = size.to_bytes(4, "big") + sock.coming[4:].ljust(size, b"\0")
    assert found.call(messages.HeartbeatRequest(), 1030.0).error_code == 0 and not sock.coming
    sock.coming = ((1 << 30) + 1).to_bytes(4, "big")
    with pytest.raises(NotKafka):
        found.call(messages.HeartbeatRequest(), 1030.0)


def test_each_wait_has_what_is_left_until_the_deadline(opened: Opener) -> None:
    found, sock = ready(opened)
    sock.answer(1, messages.HeartbeatResponse(), 3)
    sock.at_a_time = 2
    found.call(messages.HeartbeatRequest(), 1003.0)
    assert sock.limits[:4] == [3.0, 3.0, 2.0, 1.0]  # of the request, and of what came a second apart
    assert set(sock.limits[4:]) == {0.001}, "what is there already is still read"
    found.send(messages.HeartbeatRequest(), 1003.0)
    assert sock.limits[-1] == 0.001


def test_an_answer_that_ends_early_says_who_closed(opened: Opener) -> None:
    found, sock = ready(opened)
    sock.answer(1, messages.HeartbeatResponse(), 3)
    sock.coming = sock.coming[:-1]
    with pytest.raises(ConnectionError, match="kafka:9092 closed the connection"):
        found.call(messages.HeartbeatRequest(), 1030.0)
    found.close()
    assert sock.closed


# -- descriptors


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:  # the test did
            pass


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How long each question waits for descriptors, of which none is ever ready."""
    found: list[int | None] = []
    poll = SimpleNamespace(register=lambda *_: None, poll=lambda wait: found.append(wait) or [])
    monkeypatch.setattr(select, "poll", lambda: poll)
    return found


def test_an_answer_has_begun_if_one_is_awaited_and_something_came(
    opened: Opener, pipe: tuple[int, int]
) -> None:
    found, sock = ready(opened)
    sock.fileno = lambda: pipe[0]  # type: ignore[attr-defined]
    found.send(messages.HeartbeatRequest(), 1030.0)
    assert not found.has_answer
    os.write(pipe[1], b"x")
    assert found.has_answer and readable([found.fileno()], None) == [pipe[0]]
    sock.answer(1, messages.HeartbeatResponse(), 3)
    found.receive(1030.0)
    assert not found.has_answer


@pytest.mark.parametrize(
    ("seconds", "ms"), [(None, None), (0, 0), (-5, 0), (0.0001, 1), (0.25, 250), (1.0001, 1001)]
)
def test_nobody_waits_for_less_than_is_asked(
    waits: list[int | None], seconds: float | None, ms: int | None
) -> None:
    assert readable([1, 2], seconds) == [] and waits == [ms]


def test_what_is_there_is_asked_without_a_wait(opened: Opener, waits: list[int | None]) -> None:
    found, sock = ready(opened)
    found.send(messages.HeartbeatRequest(), 1030.0)
    sock.fileno = lambda: 1  # type: ignore[attr-defined]
    assert not found.has_answer and not abandoned(1) and waits == [0, 0]


def test_whoever_reads_no_more_has_abandoned_a_pipe_or_a_terminal(pipe: tuple[int, int]) -> None:
    assert not abandoned(pipe[1])
    os.close(pipe[0])
    assert abandoned(pipe[1])
    user, terminal = os.openpty()
    assert not abandoned(terminal)
    os.close(user)
    assert abandoned(terminal)
    os.close(terminal)
