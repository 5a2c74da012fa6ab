"""This broker's znode: made, made anew, and another's."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.registration import BrokerRegistration, cluster_id
from pykafkad.config_listeners import Endpoint
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import Create, Delete, Exists, SetData
from pykafkad.zookeeper.znodes import PERSISTENT, read_registration
from tests.zookeeper_kit import MemoryZooKeeper

PATH = "/brokers/ids/1"
ENDPOINTS = [Endpoint("IN", "PLAINTEXT", "host", 9), Endpoint("OUT", "SSL", "other", 10)]


class Standing:
    def monotonic_us(self) -> int:
        return 0


@pytest.fixture
def server() -> MemoryZooKeeper:
    server = MemoryZooKeeper()
    server.do(Create("/brokers"), Create("/brokers/ids"))
    return server


def run_on(server: MemoryZooKeeper) -> Any:
    return Slices(lambda call: server._queue.append(call), Standing()).run  # type: ignore[arg-type]


class One:
    def __init__(self, server: MemoryZooKeeper) -> None:
        self.server = server
        self.zookeeper = server.client()
        self.registration = BrokerRegistration(self.zookeeper, 1, run_on(server), lambda: 77)
        self.told: list[int] = []
        self.registration.on_registered = lambda: self.told.append(self.registration.broker_epoch)
        self.answers: list[Any] = []
        self.zookeeper.start()
        server.settle()

    def register(self) -> None:
        self.registration.register(ENDPOINTS, "r", self.answers.append)
        self.server.settle()


def test_the_epoch_is_the_number_of_the_transaction_that_made_the_node(server: MemoryZooKeeper) -> None:
    one = One(server)
    one.register()
    assert one.answers == [None] and one.told == [server.zxid] == [server.nodes[PATH].czxid]
    (made,) = [each.ops for each in server.transactions if each.ops[0].path == PATH]
    assert [type(op).__name__ for op in made] == ["Create", "SetData"]
    registration = read_registration(server.data(PATH))
    assert [tuple(each) for each in registration.endpoints] == [
        ("IN", "host", 9, "PLAINTEXT"),
        ("OUT", "other", 10, "SSL"),
    ]
    assert (registration.rack, registration.timestamp_ms, server.nodes[PATH].version) == ("r", 77, 1)
    assert server.nodes[PATH].owner == one.zookeeper.session_id


def test_a_new_session_registers_anew(server: MemoryZooKeeper) -> None:
    one = One(server)
    one.register()
    one.zookeeper.expire()
    server.settle()
    assert len(one.told) == 2 and one.told[1] > one.told[0] and one.registration.broker_epoch == one.told[1]
    assert server.nodes[PATH].owner == one.zookeeper.session_id and one.answers == [None]


def test_the_end_of_another_s_session_is_waited_for(server: MemoryZooKeeper) -> None:
    """As of a process that was killed and started again at once."""
    before = One(server)
    before.register()
    late = One(server)
    late.register()
    assert late.answers == [] and late.told == [] and late.registration.broker_epoch == -1
    server.do(SetData(PATH, b"{}"))
    server.settle()
    assert late.answers == []
    server.end_session(before.zookeeper.session_id)
    server.settle()
    assert late.answers == [None] and server.nodes[PATH].owner == late.zookeeper.session_id
    assert late.told == [server.nodes[PATH].czxid]


def test_who_waits_for_another_goes_on_waiting_in_the_next_session(server: MemoryZooKeeper) -> None:
    before, late = One(server), One(server)
    before.register()
    late.register()
    late.zookeeper.expire()
    server.settle()
    late.zookeeper.disconnect()
    server.end_session(before.zookeeper.session_id)
    late.zookeeper.reconnect()
    server.settle()
    assert server.nodes[PATH].owner == late.zookeeper.session_id
    assert late.answers == [None] and len(late.told) == 1


def test_who_stops_waits_no_more(server: MemoryZooKeeper) -> None:
    before, late = One(server), One(server)
    before.register()
    late.register()
    late.registration.close(lambda: None)
    server.settle()
    assert len(late.answers) == 1 and server.nodes[PATH].owner == before.zookeeper.session_id


def test_a_try_whose_answer_was_lost_is_recognized(server: MemoryZooKeeper) -> None:
    one = One(server)
    one.registration.register(ENDPOINTS, None, one.answers.append)
    while PATH not in server.nodes:
        assert server.step()
    one.zookeeper.disconnect()
    one.zookeeper.reconnect()
    server.settle()
    assert one.answers == [None] and one.registration.broker_epoch == server.nodes[PATH].czxid


def test_what_is_left_of_our_last_session_is_replaced(server: MemoryZooKeeper) -> None:
    one = One(server)
    one.register()
    old = one.zookeeper.session_id
    one.zookeeper.expire()
    server.do(Create(PATH, b"{}"))  # as if the ensemble were behind: the node is of the old session yet
    server.nodes[PATH].owner = old
    server.settle()
    assert server.nodes[PATH].owner == one.zookeeper.session_id != old
    assert one.registration.broker_epoch == server.nodes[PATH].czxid


def test_a_node_that_goes_while_it_is_looked_at_is_made(server: MemoryZooKeeper) -> None:
    server.do(Create(PATH, b"{}"))
    one = One(server)
    one.registration.register(ENDPOINTS, None, one.answers.append)
    while not any(isinstance(op, Exists) for op, _ in one.zookeeper._requests):
        assert server.step()
    server.do(Delete(PATH))
    server.settle()
    assert one.answers == [None] and server.nodes[PATH].owner == one.zookeeper.session_id


def test_the_end_of_the_session_takes_the_node_along(server: MemoryZooKeeper) -> None:
    one = One(server)
    one.register()
    done: list[str] = []
    one.registration.close(lambda: done.append("done"))
    server.settle()
    assert done == ["done"] and PATH not in server.nodes


def test_what_every_broker_makes_and_who_names_the_cluster() -> None:
    server = MemoryZooKeeper()
    client = server.client()
    client.start()
    asking, got = Asking(client), list[Any]()
    for proposed in ("one", "two"):
        for work in (asking.create_persistent(), cluster_id(asking, proposed)):
            run_on(server)(work, got.append)
            server.settle()
    assert got == [None, "one", None, "one"] and set(PERSISTENT) < set(server.nodes)
    assert server.data("/brokers/topics") is None
