"""Our client of ZooKeeper with a real one: what it answers, what watches tell, and sessions that end."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.cluster.brokers import need_zookeeper
from pykafkad.local_cluster import zookeeper as local
from pykafkad.testing.ports import lasting_port
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
from pykafkad.zookeeper.settings import Settings

SESSION_MS = 4000  # as short as the server allows
DEADLINE_S = 60.0


class Session:
    """One client, whose calls to the loop are made by the test."""

    def __init__(self, connect: str) -> None:
        self._calls: queue.Queue[Any] = queue.Queue()
        self.states: list[State] = []
        self.told: list[str] = []
        self.client = KazooZooKeeper(Settings(connect, SESSION_MS), lambda *call: self._calls.put(call))
        self.client.on_state(self.states.append)
        self.client.on_watch(self.told.append)
        self.client.start()
        self.until(lambda: self.states == [State.NEW_SESSION])

    def until(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not there():
            assert time.monotonic() < deadline, f"states {self.states}, told {self.told}"
            try:
                call, *arguments = self._calls.get(timeout=0.05)
            except queue.Empty:
                continue
            call(*arguments)

    def ask(self, *ops: zk.Operation) -> list[Result]:
        answers: list[list[Result]] = []
        self.client.submit(ops, answers.append)
        self.until(lambda: bool(answers))
        return answers[0]

    def errors(self, *ops: zk.Operation) -> list[int]:
        return [result.error for result in self.ask(*ops)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_zookeeper()
    directory: Path = tmp_path_factory.mktemp("zookeeper")
    server = local.ZooKeeper(str(directory), lasting_port(local.HOST))
    server.start(local.jars())
    try:
        server.wait()
        yield server.address
    finally:
        server.process.kill()


@pytest.fixture
def begin(server: str) -> Iterator[Callable[[str], Session]]:
    begun: list[Session] = []

    def session(chroot: str) -> Session:
        begun.append(Session(f"{server}{chroot}"))
        return begun[-1]

    yield session
    for each in begun:
        each.client.close()


def test_nodes_are_made_changed_and_removed_by_their_versions(begin: Callable[[str], Session]) -> None:
    one = begin("/nodes")
    made, read = one.ask(Create("/a", b"x"), GetData("/a"))
    assert (made.path, made.error) == ("/a", zk.OK)
    assert (read.data, read.version) == (b"x", 0) and read.czxid == made.czxid > 0
    assert one.errors(
        Create("/a"), SetData("/a", b"y", 1), SetData("/a", b"y", 0), Delete("/a", 0), Delete("/b")
    ) == [
        zk.NODE_EXISTS,
        zk.BAD_VERSION,
        zk.OK,
        zk.BAD_VERSION,
        zk.NO_NODE,
    ]
    paths = [result.path for result in one.ask(*[Create("/a/n_", None, sequential=True) for _ in range(2)])]
    assert paths == ["/a/n_0000000000", "/a/n_0000000001"]
    assert sorted(one.ask(GetChildren("/a"))[0].children) == ["n_0000000000", "n_0000000001"]
    assert one.errors(Exists("/a"), Exists("/c"), Delete("/a")) == [zk.OK, zk.NO_NODE, zk.NOT_EMPTY]


def test_of_several_writes_all_are_done_or_none(begin: Callable[[str], Session]) -> None:
    one = begin("/several")
    (good,) = one.ask(Multi([Create("/a", b"1"), SetData("/a", b"2", 0), Check("/a", 1)]))
    assert good.error == zk.OK
    (bad,) = one.ask(Multi([Create("/b"), Check("/a", 7), Delete("/a")]))
    assert bad.error == zk.BAD_VERSION
    assert [each.error for each in bad.results] == [zk.ROLLED_BACK, zk.BAD_VERSION, zk.ROLLED_BACK]
    assert one.errors(Exists("/a"), Exists("/b")) == [zk.OK, zk.NO_NODE]


def test_what_is_watched_is_told_when_others_change_it(begin: Callable[[str], Session]) -> None:
    one, two = begin("/watched"), begin("/watched")
    one.ask(Create("/a"))
    one.ask(GetData("/a", watch=True), GetChildren("/a", watch=True), Exists("/b", watch=True))
    two.ask(SetData("/a", b"new"))
    one.until(lambda: one.told == ["/a"])
    two.ask(Create("/a/child"), SetData("/a", b"newer"), Create("/b"))
    one.until(lambda: sorted(one.told) == ["/a", "/a", "/b"])


def test_a_lost_connection_is_not_the_end_of_a_session(begin: Callable[[str], Session]) -> None:
    one = begin("/lost")
    one.ask(Create("/mine", ephemeral=True))
    one.client.cut()
    one.until(lambda: State.DISCONNECTED in one.states)
    answers: list[list[Result]] = []
    one.client.submit([Create("/asked while it was away"), Exists("/mine")], answers.append)
    one.client.mend()
    one.until(lambda: bool(answers))
    assert [result.error for result in answers[0]] == [zk.OK, zk.OK]
    assert one.states == [State.NEW_SESSION, State.DISCONNECTED, State.CONNECTED]


def test_a_session_that_is_cut_off_for_long_ends_with_what_it_had(begin: Callable[[str], Session]) -> None:
    one, two = begin("/ended"), begin("/ended")
    one.ask(Create("/mine", ephemeral=True))
    two.ask(Exists("/mine", watch=True))
    first = one.client.session_id
    one.client.cut()
    two.until(lambda: two.told == ["/mine"])
    answers: list[list[Result]] = []
    one.client.submit([Exists("/mine")], answers.append)
    one.client.mend()
    one.until(lambda: bool(answers) and State.EXPIRED in one.states)
    assert answers[0][0].error == zk.SESSION_EXPIRED
    one.until(lambda: one.states[-1] is State.NEW_SESSION)
    assert one.client.session_id not in (0, first)
    assert one.errors(Exists("/mine")) == [zk.NO_NODE]
