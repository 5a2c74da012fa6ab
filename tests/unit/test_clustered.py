"""A broker of a cluster on ZooKeeper at its start and end: what it asks ZooKeeper, and what it does without an answer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import clustered
from pykafkad.clock import ManualClock
from pykafkad.clustered import ClusterBroker
from pykafkad.config import BrokerConfig
from pykafkad.errors import StartupError
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import NODE_EXISTS, OK, Create, GetData, Result, State

NO_AUTH = -102


class Node:
    """A broker that was never made, on a loop in which a pass takes as long as it may, and a ZooKeeper."""

    def __init__(self, **texts: str) -> None:
        config = {"zookeeper.connect": "zk:2181", "broker.id": "3"}
        self.clock = ManualClock()
        self.states: list[State] = []  # those to come, one a pass
        self.told: list[Callable[[State], None]] = []
        self.started = False
        self.nodes: dict[str, bytes | None] = {}
        self.refused: str | None = None
        self.is_silent = False
        self.soon: list[Any] = []
        self.calls: list[str] = []
        controlling = SimpleNamespace(
            resign=lambda: self.calls.append("resign"), begin=lambda: self.calls.append("begin")
        )
        broker: Any = ClusterBroker.__new__(ClusterBroker)
        vars(broker).update(
            config=BrokerConfig({**config, **{key.replace("_", "."): text for key, text in texts.items()}}),
            node_id=3,
            clock=self.clock,
            _stopping=False,
            reactor=SimpleNamespace(
                run_pass=self.run_pass, call_soon=self.soon.append, call_later=None, stop=object()
            ),
            zookeeper=SimpleNamespace(on_state=self.told.append, start=self._start, submit=self.submit),
            cluster=SimpleNamespace(controlling=controlling, peers="peers"),
        )
        self.broker = broker

    def _start(self) -> None:
        assert self.told, "whoever starts it is told how that goes"
        self.started = True

    def run_pass(self, at_most_ms: int) -> None:
        self.clock.advance(at_most_ms)
        if self.states:
            for told in self.told:
                told(self.states[0])
            del self.states[0]

    def submit(self, ops: list[Any], done: Callable[[list[Result]], None]) -> None:
        if not self.is_silent:
            done(list(map(self._result, ops)))

    def _result(self, op: Any) -> Result:
        if op.path == self.refused:
            return Result(NO_AUTH, op.path)
        if isinstance(op, GetData):
            return Result(OK, op.path, self.nodes[op.path])
        assert isinstance(op, Create) and not op.ephemeral and not op.sequential
        assert op.path.rpartition("/")[0] in ("", *self.nodes), "a node has a parent"
        if op.path in self.nodes:
            return Result(NODE_EXISTS, op.path)
        self.nodes[op.path] = op.data
        return Result(OK, op.path)


# -- the session


def test_it_waits_for_its_session(said: io.StringIO) -> None:
    node = Node()
    node.states = [State.NEW_SESSION]
    node.broker._connect()
    assert node.started


@pytest.mark.parametrize(
    ("texts", "wait_ms"),
    [
        ({"zookeeper_session_timeout_ms": "7000"}, 7000),
        ({"zookeeper_session_timeout_ms": "7000", "zookeeper_connection_timeout_ms": "3000"}, 3000),
    ],
)
def test_it_does_not_wait_for_ever(texts: dict[str, str], wait_ms: int) -> None:
    node = Node(**texts)
    with pytest.raises(StartupError, match="ZooKeeper at zk:2181 does not answer"):
        node.broker._connect()
    assert wait_ms < node.clock.monotonic_ms() < wait_ms + 300


def test_a_login_that_is_refused_is_none() -> None:
    node = Node()
    node.states = [State.FAILED]
    with pytest.raises(StartupError, match="or not to this broker"):
        node.broker._connect()
    assert node.clock.monotonic_ms() < 1000


# -- the id of the cluster


def test_the_first_broker_makes_the_id_of_the_cluster_and_others_read_it() -> None:
    first = Node()
    made = first.broker._id_of_cluster()
    assert json.loads(first.nodes[znodes.CLUSTER_ID] or b"") == {"version": "1", "id": made}
    assert set(znodes.PERSISTENT) <= first.nodes.keys()
    second = Node()
    second.nodes = first.nodes
    assert second.broker._id_of_cluster() == made
    assert Node().broker._id_of_cluster() != made


def test_a_zookeeper_that_refuses_or_is_silent_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    node.refused = znodes.CLUSTER_ID
    with pytest.raises(StartupError, match="ZooKeeper refuses /cluster/id: error -102"):
        node.broker._id_of_cluster()
    node.is_silent = True
    monkeypatch.setattr(clustered, "WAIT_MS", 5000)
    with pytest.raises(StartupError, match="ZooKeeper has not answered in 5000 ms"):
        node.broker._id_of_cluster()
    assert 5000 < node.clock.monotonic_ms() < 5300


def test_what_is_begun_is_waited_for_as_long_as_it_may_take() -> None:
    node = Node()
    refusal: Any = object()
    for told in (None, refusal):
        assert node.broker._wait_for(lambda done, told=told: done(told), "not registered", 0) is told
    with pytest.raises(StartupError, match=r"^not registered in 2000 ms$"):
        node.broker._wait_for(lambda done: None, "not registered", 2000)


# -- while it runs, and at its end


def test_only_an_expired_session_costs_the_office_of_controller() -> None:
    node = Node()
    for state in State:
        node.broker._session_changed(state)
    assert node.calls == ["resign"]


@pytest.mark.parametrize("is_controlled", [True, False])
def test_a_stop_is_controlled_unless_that_is_turned_off(
    monkeypatch: pytest.MonkeyPatch, said: io.StringIO, is_controlled: bool
) -> None:
    asked: list[tuple[Any, ...]] = []

    def departure(*parts: Any) -> Any:
        return SimpleNamespace(ask=lambda: asked.append(parts))

    monkeypatch.setattr(clustered, "Departure", departure)
    node = Node(controlled_shutdown_enable=str(is_controlled).lower())
    node.broker.stop("SIGTERM")
    node.broker.stop("again")
    assert said.getvalue().count("SIGTERM") == 1 and "again" not in said.getvalue()
    if is_controlled:
        (parts,) = asked
        assert parts[1] == 3 and not node.soon, "the loop goes on until others lead"
        parts[-1]()
    assert node.soon == [node.broker.reactor.stop] and len(asked) == is_controlled


def test_it_has_no_metadata_log() -> None:
    node = Node()
    node.broker._check_metadata_directory()
    assert node.broker._holds_metadata(SimpleNamespace(path="/x")) is False
