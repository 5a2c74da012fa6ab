"""kazoo behind our face of ZooKeeper, over loopback, with a server whose ensemble is the one in memory."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper.client import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Result,
    SetData,
    State,
)
from pykafkad.zookeeper.kazoo_client import KazooZooKeeper
from pykafkad.zookeeper.settings import Login, Settings
from tests.net.zookeeper_server import ZooKeeperServer

PATIENCE_S = 60
ALL, READ = 31, 1


class Loop:
    """The loop is the test's own thread."""

    def __init__(self) -> None:
        self._calls: queue.Queue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.Queue()

    def post(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._calls.put((call, arguments))

    def until(self, is_so: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline
            try:
                call, arguments = self._calls.get(timeout=0.05)
            except queue.Empty:
                continue
            call(*arguments)


class One:
    def __init__(
        self, loop: Loop, server: ZooKeeperServer, chroot: str = "", others: str = "", **settings: Any
    ) -> None:
        self.loop = loop
        self.zookeeper = KazooZooKeeper(Settings(others + server.address + chroot, **settings), loop.post)
        self.states: list[State] = []
        self.paths: list[str] = []
        self.zookeeper.on_state(self.states.append)
        self.zookeeper.on_watch(self.paths.append)
        self.zookeeper.start()
        loop.until(lambda: self.states)

    def ask(self, *ops: Any) -> list[Result]:
        answers: list[list[Result]] = []
        self.zookeeper.submit(ops, answers.append)
        self.loop.until(lambda: answers)
        return answers[0]


@pytest.fixture
def server() -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer()
    yield server
    server.close()


@pytest.fixture
def begin(server: ZooKeeperServer) -> Iterator[Callable[..., One]]:
    begun: list[One] = []

    def one(chroot: str = "", others: str = "", **settings: Any) -> One:
        begun.append(One(Loop(), server, chroot, others, **settings))
        return begun[-1]

    yield one
    for each in begun:
        each.zookeeper.close()


def test_operations_and_their_results(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin()
    created, numbered, none = one.ask(
        Create("/a", b"1", ephemeral=True), Create("/n_", sequential=True), Create("/null")
    )
    assert (created.path, created.version, created.owner) == ("/a", 0, one.zookeeper.session_id)
    assert created.czxid == server.memory.nodes["/a"].czxid
    assert numbered.path == "/n_0000000001" and server.memory.data("/null") is None and none.error == zk.OK
    read, children, there, changed, gone, missing = one.ask(
        GetData("/a"),
        GetChildren("/"),
        Exists("/a"),
        SetData("/a", b"2", 0),
        Delete("/null"),
        Exists("/null"),
    )
    assert (read.data, read.czxid, there.version, changed.version) == (b"1", created.czxid, 0, 1)
    assert sorted(children.children) == ["a", "n_0000000001", "null"]
    assert (gone.error, missing.error) == (zk.OK, zk.NO_NODE)
    errors = [
        each.error
        for each in one.ask(
            Create("/a"),
            SetData("/a", b"", 7),
            Delete("/no"),
            GetData("/no"),
            GetChildren("/no"),
            Create("/a/b"),
        )
    ]
    assert errors == [
        zk.NODE_EXISTS,
        zk.BAD_VERSION,
        zk.NO_NODE,
        zk.NO_NODE,
        zk.NO_NODE,
        zk.NO_CHILDREN_FOR_EPHEMERALS,
    ]


def test_what_cannot_be_sent_is_answered_and_keeps_nobody_waiting(begin: Callable[..., One]) -> None:
    """A client's names become paths, and its values data."""
    one = begin()
    large = bytes(1 << 20)
    answers = one.ask(
        Create("/before"),
        GetData("/config/users/.."),
        Create("/./a", b""),
        Exists("/config/users/.."),
        Create("/large", large),
        Multi((Create("/half", large[: 1 << 19]), Create("/other", large[: 1 << 19]))),
        Create("/behind", large[: 1 << 19]),
    )
    bad, large_ones = [zk.BAD_ARGUMENTS] * 3, [zk.MARSHALLING_ERROR] * 2
    assert [each.error for each in answers] == [zk.OK, *bad, *large_ones, zk.OK]
    assert one.ask(Exists("/behind"))[0].error == zk.OK and one.states == [State.NEW_SESSION]


def test_multis(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin()
    made, failed = one.ask(
        Multi(
            [
                Create("/m", None, ephemeral=True),
                SetData("/m", b"x", 0),
                Check("/m", 1),
                Create("/d"),
                Delete("/d"),
            ]
        ),
        Multi([SetData("/m", b"y"), Check("/m", 7), Create("/o")]),
    )
    assert made.error == zk.OK and (made.results[0].path, made.results[0].version) == ("/m", 0)
    assert (made.results[1].version, made.results[1].czxid) == (1, server.memory.nodes["/m"].czxid)
    assert failed.error == zk.BAD_VERSION
    assert [each.error for each in failed.results] == [zk.ROLLED_BACK, zk.BAD_VERSION, zk.ROLLED_BACK]
    assert server.memory.data("/m") == b"x" and "/o" not in server.memory.nodes


def test_watches_are_told_once_and_before_the_answer(begin: Callable[..., One]) -> None:
    one, other = begin(), begin()
    one.ask(
        Create("/a"), GetData("/a", True), GetChildren("/a", True), Exists("/b", True), GetData("/none", True)
    )
    other.ask(SetData("/a", b"1"), SetData("/a", b"2"), Create("/none"))
    assert one.ask(GetData("/a"))[0].data == b"2" and one.paths == ["/a"]
    other.ask(Create("/b"), Create("/a/c"))
    one.loop.until(lambda: len(one.paths) == 3)
    assert one.paths[1:] == ["/b", "/a"]
    one.ask(GetData("/b", True), GetChildren("/b", True))
    other.ask(Delete("/b"), Delete("/none"))
    one.ask(Exists("/b"))
    assert set(one.paths[3:]) == {"/b"}


def test_a_chroot_is_made_and_not_seen(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin("/x/y")
    created, numbered, multi, children = one.ask(
        Create("/a"),
        Create("/a/s_", sequential=True),
        Multi([Create("/b"), SetData("/b", b"1")]),
        GetChildren("/", True),
    )
    assert (created.path, numbered.path, multi.results[0].path) == ("/a", "/a/s_0000000000", "/b")
    assert sorted(children.children) == ["a", "b"] and server.memory.data("/x/y/b") == b"1"
    one.ask(Delete("/b"))
    assert one.paths == ["/"]
    begin("/x/y").ask(Create("/c"))
    assert "/x/y/c" in server.memory.nodes


def test_a_lost_connection_loses_nothing(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin()
    one.ask(Create("/a", b"0"), Create("/e", ephemeral=True), GetData("/a", True), GetChildren("/a", True))
    session = one.zookeeper.session_id
    answers: list[Any] = []
    for number in range(200):
        one.zookeeper.submit([SetData("/a", b"%d" % number)], answers.append)
    server.cut()
    one.loop.until(lambda: len(answers) == 200)
    assert {each.error for (each,) in answers} == {zk.OK} and server.memory.data("/a") == b"199"
    one.loop.until(lambda: State.CONNECTED in one.states)
    assert one.states[:3] == [State.NEW_SESSION, State.DISCONNECTED, State.CONNECTED]
    assert "/a" in one.paths and one.zookeeper.session_id == session
    assert server.memory.nodes["/e"].owner == session


@pytest.mark.parametrize(
    "spoil",
    [
        lambda answer: b"\xff" * len(answer),  # a negative length
        lambda answer: b"\x7f\xff\xff\xff" + answer[4:],
        lambda answer: b"\0\0\0\0",
        lambda answer: b"\0\0\0\x10" + answer[4:20],  # without what was asked for
        lambda answer: answer[:4] + b"\x12\x34\x56\x78" + answer[8:],  # to something else
        lambda answer: answer[:16] + b"\0\0\0\x07" + answer[20:],  # an error that there is not
        lambda answer: answer[:20] + b"\x7f\xff\xff\xff" + answer[24:],
        lambda answer: answer[:20] + b"\0\0\0\2\xff\xfe" + answer[26:],  # no text
    ],
    ids=["negative", "huge", "empty", "cut", "xid", "error", "length inside", "text"],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(
    begin: Callable[..., One],
    server: ZooKeeperServer,
    spoil: Callable[[bytes], bytes],
    capfd: pytest.CaptureFixture[str],
) -> None:
    one = begin()
    one.ask(Create("/a", b"data"), Create("/a/child"))
    answers: list[Any] = []
    server.spoil = spoil
    one.zookeeper.submit([GetChildren("/a", True), GetData("/a")], answers.append)
    one.loop.until(lambda: answers)
    children, data = answers[0]
    if children.error != zk.SESSION_EXPIRED:  # where kazoo's thread ends, the session does
        assert children.children == ["child"] and data.data == b"data"
    assert one.ask(GetData("/a"))[0].data == b"data"
    said = capfd.readouterr().err
    assert "Traceback" not in said and len(said.splitlines()) < 12


@pytest.mark.parametrize(
    "spoil",
    [
        lambda answer: b"\0\0\0\x10" + answer[4:20],  # without its password
        lambda answer: answer[:8] + bytes(4) + answer[12:20] + b"\x7f\xff\xff\xff" + answer[24:],
        lambda answer: answer[:8] + b"\xff" * 16,  # a session that is over, and cut
        lambda answer: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
    ids=["cut", "length inside", "over", "another protocol"],
)
def test_a_handshake_that_cannot_be_read_is_begun_again(
    begin: Callable[..., One], server: ZooKeeperServer, spoil: Callable[[bytes], bytes]
) -> None:
    one = begin(session_timeout_ms=2000)
    one.ask(Create("/a", b"data"))
    server.spoil = spoil
    server.cut()
    one.loop.until(lambda: server.spoil is None)
    one.loop.until(lambda: one.states[-1] in (State.CONNECTED, State.NEW_SESSION) and len(one.states) > 2)
    assert one.ask(GetData("/a"))[0].data == b"data"


def test_whatever_ends_kazoos_own_thread_another_one_is_begun(
    begin: Callable[..., One], server: ZooKeeperServer
) -> None:
    """Also where it has said before that the session is over, after which it goes on by itself otherwise."""
    one = begin()
    connection = one.zookeeper._client._connection
    attempt = connection._connect_attempt

    def fails(*arguments: Any) -> None:
        attempt(*arguments)
        raise RuntimeError("what kazoo does not understand")

    connection._connect_attempt = fails
    server.expire()
    one.loop.until(lambda: one.states[-1] is State.NEW_SESSION and len(one.states) > 1)
    assert one.ask(Create("/a"))[0].error == zk.OK


def test_a_session_that_expires(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin()
    one.ask(Create("/e", ephemeral=True), GetData("/e", True))
    session = one.zookeeper.session_id
    server.expire()
    one.loop.until(lambda: one.states[-1] is State.NEW_SESSION and len(one.states) > 1)
    assert one.states == [State.NEW_SESSION, State.DISCONNECTED, State.EXPIRED, State.NEW_SESSION]
    assert one.zookeeper.session_id not in (0, session)
    assert one.ask(Exists("/e"))[0].error == zk.NO_NODE and one.paths == []


def test_a_server_that_comes_late_is_found(server: ZooKeeperServer) -> None:
    address = server.address
    server.close()
    loop = Loop()
    zookeeper = KazooZooKeeper(Settings(address), loop.post)
    answers: list[Any] = []
    zookeeper.start()
    zookeeper.submit([Exists("/")], answers.append)
    zookeeper.close()
    loop.until(lambda: answers)
    assert answers == [[Result(zk.CLOSED)]]


def test_a_server_that_does_not_answer_is_passed_over(begin: Callable[..., One]) -> None:
    """In the part of the session that is its own."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        silents = "".join(f"127.0.0.1:{port}," for _ in range(3))
        assert begin(others=silents, session_timeout_ms=4000).states == [State.NEW_SESSION]


def test_a_login_that_is_refused(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    """It is tried again, and nothing that was submitted is answered before one is taken."""
    one = begin(login=Login("sasl", "user", "secret"))
    answers: list[Any] = []
    one.zookeeper.submit([Create("/a")], answers.append)
    one.loop.until(lambda: len(one.states) == 2)
    assert one.states == [State.FAILED] * 2 and one.zookeeper.session_id == 0
    assert answers == [] and "/a" not in server.memory.nodes


def test_a_reason_is_said_once_until_it_works_again(
    begin: Callable[..., One], server: ZooKeeperServer, capsys: pytest.CaptureFixture[str]
) -> None:
    one = begin()
    for count in (1, 2):
        for _ in range(3):
            one.zookeeper._logger.warning("Connection dropped: %s", "refused")
        server.cut()
        one.loop.until(lambda: one.states.count(State.CONNECTED) == count)  # noqa: B023
        one.ask(Exists("/"))
    said = capsys.readouterr().err
    assert said.count("Connection dropped: refused") == 2 and "Transition" not in said
    assert said.count("connected again to") == 2


def test_the_end_of_the_session_takes_its_nodes(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin()
    one.ask(Create("/e", ephemeral=True))
    one.zookeeper.close()
    assert "/e" not in server.memory.nodes
    answers: list[Any] = []
    one.zookeeper.submit([Exists("/e")], answers.append)
    one.loop.until(lambda: answers)
    assert answers == [[Result(zk.CLOSED)]]


def test_who_may_change_what_we_create(begin: Callable[..., One], server: ZooKeeperServer) -> None:
    one = begin(secure=True, login=Login("digest", "user", "secret"))
    server.acls.clear()
    one.ask(Create("/config"), Create("/config/users"), Create("/consumers"), Multi([Create("/m")]))
    creator, everybody = (ALL, "auth", ""), (READ, "world", "anyone")
    assert server.acls == [
        [creator, everybody],
        [creator],
        [(ALL, "world", "anyone")],
        [creator, everybody],
    ]
    assert server.logins == [("digest", b"user:secret")]
