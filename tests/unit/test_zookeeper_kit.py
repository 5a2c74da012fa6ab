"""What ZooKeeper promises, of the one in memory that all other tests of the cluster rest on, and of the pipeline."""

from __future__ import annotations

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
from pykafkad.zookeeper.pipeline import Pipeline
from tests.zookeeper_kit import MemoryClient, MemoryZooKeeper


@pytest.fixture
def server() -> MemoryZooKeeper:
    return MemoryZooKeeper(clock=lambda: 1234)


@pytest.fixture
def client(server: MemoryZooKeeper) -> MemoryClient:
    return started(server)


def started(server: MemoryZooKeeper) -> MemoryClient:
    client = server.client()
    client.start()
    server.settle()
    return client


def ask(client: MemoryClient, *ops: Any) -> list[Result]:
    answers: list[list[Result]] = []
    client.submit(ops, answers.append)
    client._server.settle()
    (results,) = answers
    return results


def told(client: MemoryClient) -> list[str]:
    paths: list[str] = []
    client.on_watch(paths.append)
    return paths


def test_versions_count_the_changes_of_data_and_czxid_stays(client: MemoryClient) -> None:
    created, changed, read = ask(client, Create("/a", b"1"), SetData("/a", b"2", 0), GetData("/a"))
    assert (created.path, created.version, created.error) == ("/a", 0, zk.OK)
    assert (changed.version, changed.czxid) == (1, created.czxid)
    assert (read.data, read.version, read.czxid, read.ctime_ms) == (b"2", 1, created.czxid, 1234)


def test_what_cannot_be_done_is_refused(client: MemoryClient) -> None:
    ask(client, Create("/a"), Create("/a/b"), Create("/e", ephemeral=True))
    errors = [
        result.error
        for result in ask(
            client,
            Create("/a"),
            Create("/no/child"),
            Create("/e/child"),
            SetData("/a", b"", 7),
            SetData("/no", b""),
            Delete("/a"),
            Delete("/no"),
            GetData("/no"),
            GetChildren("/no"),
            Exists("/no"),
        )
    ]
    assert errors == [
        zk.NODE_EXISTS,
        zk.NO_NODE,
        zk.NO_CHILDREN_FOR_EPHEMERALS,
        zk.BAD_VERSION,
        zk.NO_NODE,
        zk.NOT_EMPTY,
        *[zk.NO_NODE] * 4,
    ]


def test_sequential_nodes_are_numbered_by_their_parent(client: MemoryClient) -> None:
    ask(client, Create("/n"))
    first, _, second = ask(client, Create("/n/c_", sequential=True), Delete("/n/c_0000000000"),
                           Create("/n/c_", sequential=True))  # fmt: skip
    assert (first.path, second.path) == ("/n/c_0000000000", "/n/c_0000000001")


def test_a_multi_is_all_or_nothing(client: MemoryClient, server: MemoryZooKeeper) -> None:
    ask(client, Create("/a", b"1"), Create("/gone"))
    before = server.tree()
    (failed,) = ask(
        client, Multi([SetData("/a", b"2"), Create("/b"), Delete("/gone"), Check("/a", 9), Create("/c")])
    )
    assert failed.error == zk.BAD_VERSION
    errors = [result.error for result in failed.results]
    assert errors == [zk.ROLLED_BACK, zk.ROLLED_BACK, zk.ROLLED_BACK, zk.BAD_VERSION, zk.ROLLED_BACK]
    assert server.tree() == before and server.nodes["/a"].version == 0
    (done,) = ask(
        client, Multi([Check("/a", 0), SetData("/a", b"2"), Create("/b", b"x"), SetData("/b", b"y", 0)])
    )
    assert done.error == zk.OK and [result.version for result in done.results] == [-1, 1, 0, 1]
    assert server.data("/b") == b"y" and server.nodes["/b"].czxid == server.zxid


def test_watches_fire_once_and_before_the_change_is_seen(
    client: MemoryClient, server: MemoryZooKeeper
) -> None:
    seen: list[object] = []
    client.on_watch(seen.append)
    ask(
        client,
        Create("/a"),
        GetData("/a", watch=True),
        GetChildren("/a", watch=True),
        Exists("/b", watch=True),
    )
    server.do(SetData("/a", b"1"), SetData("/a", b"2"))
    client.submit([GetData("/a")], lambda results: seen.append(results[0].data))
    server.settle()
    assert seen == ["/a", b"2"]
    server.do(Create("/a/child"), Delete("/a/child"), Create("/b"), Delete("/b"))
    server.settle()
    assert seen == ["/a", b"2", "/a", "/b"]
    ask(client, GetData("/none", watch=True))
    server.do(Create("/none"))
    server.settle()
    assert seen[4:] == []


def test_a_session_that_expires_takes_its_ephemeral_nodes_in_one_transaction(server: MemoryZooKeeper) -> None:
    one, other = started(server), started(server)
    ask(one, Create("/x", ephemeral=True), Create("/y", ephemeral=True), Create("/stays"))
    ask(other, Exists("/x", watch=True))
    paths, answers = told(other), list[Any]()
    old = one.session_id
    one.submit([Exists("/x")], answers.append)
    one.expire()
    server.settle()
    assert [op.path for op in server.transactions[-1].ops] == ["/x", "/y"] and "/stays" in server.nodes
    assert paths == ["/x"]
    assert answers == [[Result(zk.SESSION_EXPIRED)]]
    assert one.states == [State.NEW_SESSION, State.DISCONNECTED, State.EXPIRED, State.NEW_SESSION]
    assert one.session_id not in (0, old)


def test_what_was_lost_with_the_connection_is_sent_again(
    client: MemoryClient, server: MemoryZooKeeper
) -> None:
    answers: list[Any] = []
    client.submit([Create("/a"), Create("/a/b")], answers.append)
    while "/a" not in server.nodes:
        assert server.step()
    client.disconnect()  # the answer to the first is lost, the second never arrived
    server.settle()
    assert answers == [] and "/a/b" not in server.nodes
    client.reconnect()
    server.settle()
    assert [result.error for result in answers[0]] == [zk.NODE_EXISTS, zk.OK]


def test_every_watched_path_is_told_after_a_lost_connection(
    client: MemoryClient, server: MemoryZooKeeper
) -> None:
    ask(client, Create("/a"), Create("/b"), GetData("/a", watch=True), GetData("/b", watch=True))
    paths = told(client)
    server.do(SetData("/a", b"1"))  # on its way when the connection is lost
    client.disconnect()
    server.settle()
    assert paths == []
    client.reconnect()
    server.settle()
    assert paths == ["/a", "/b"]


def test_a_session_that_expires_while_cut_off_is_learnt_of_later(
    client: MemoryClient, server: MemoryZooKeeper
) -> None:
    client.disconnect()
    client.expire()
    server.settle()
    assert client.states[-1] is State.DISCONNECTED
    client.reconnect()
    server.settle()
    assert client.states[-2:] == [State.EXPIRED, State.NEW_SESSION]


def test_what_is_submitted_without_a_session_waits_for_the_next(server: MemoryZooKeeper) -> None:
    client, answers = server.client(), list[Any]()
    client.submit([Create("/a")], answers.append)
    server.settle()
    assert answers == []
    client.start()
    server.settle()
    assert [result.error for result in answers[0]] == [zk.OK]


def test_a_closed_client_answers_what_is_left(client: MemoryClient, server: MemoryZooKeeper) -> None:
    answers: list[Any] = []
    ask(client, Create("/e", ephemeral=True))
    client.submit([GetData("/e"), GetData("/e")], answers.append)
    client.close()
    client.submit([GetData("/e")], answers.append)
    server.settle()
    assert answers == [[Result(zk.CLOSED)] * 2, [Result(zk.CLOSED)]] and "/e" not in server.nodes


def test_the_pipeline_sends_no_more_than_it_may_and_answers_in_order() -> None:
    sent: list[tuple[Any, Any]] = []
    pipeline = Pipeline(lambda op, answer: sent.append((getattr(op, "path", None), answer)), max_in_flight=2)
    told: list[Any] = []
    pipeline.submit(
        [Exists("/1"), Exists("/2")], lambda results: told.append([each.path for each in results])
    )
    pipeline.submit([], lambda results: told.append(results))
    pipeline.submit([Exists("/3")], lambda results: told.append([each.path for each in results]))
    assert sent == []
    pipeline.opened()
    assert [path for path, _ in sent] == ["/1", "/2"]
    sent[1][1](Result(path="/2"))
    assert told == []
    sent[0][1](Result(path="/1"))
    assert told == [["/1", "/2"], []] and sent[2][0] == "/3"
    old = sent[2][1]
    pipeline.cut()
    pipeline.opened()
    old(Result(path="old"))
    assert len(told) == 2 and sent[3][0] == "/3"
    sent[3][1](Result(zk.CONNECTION_LOST))
    pipeline.end(zk.SESSION_EXPIRED)
    sent[3][1](Result(path="late"))
    assert told[2] == [""]


def test_an_answer_that_cannot_be_handled_does_not_stop_the_others() -> None:
    sent: list[Any] = []
    pipeline = Pipeline(lambda op, answer: sent.append(answer))
    told: list[Any] = []

    def fails(results: list[Result]) -> None:
        raise RuntimeError

    pipeline.submit([Exists("/1")], fails)
    pipeline.submit([Exists("/2")], told.append)
    pipeline.opened()
    sent[0](Result())
    sent[1](Result())
    assert told == [[Result()]]
