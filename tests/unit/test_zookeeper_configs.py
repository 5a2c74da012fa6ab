"""Configs, quotas and users of a cluster on ZooKeeper, between brokers that share a ZooKeeper in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.client_quotas import record_of
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.publishing import CONFIGS, Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.configs import ClusterConfigs
from pykafkad.cluster.zookeeper.entities import quota_text
from pykafkad.cluster.zookeeper.notifications import KEPT_MS
from pykafkad.errors import KafkaError
from pykafkad.messages import (
    NoOpRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from pykafkad.quiet import Allows, Quiet, always
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import Create, Delete, SetData
from pykafkad.zookeeper.config_znodes import write_config, write_config_change
from pykafkad.zookeeper.znodes import ControllerNode, write_controller
from tests.zookeeper_kit import MemoryZooKeeper

CHANGES = "/config/changes"


class Clock:
    """Time that stands, but for the tests that move it."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_us(self) -> int:
        return 0


class One:
    """One broker's view of the configs."""

    def __init__(self, server: MemoryZooKeeper, clock: Clock, allows: Allows = always) -> None:
        self.server = server
        self.zookeeper = server.client()
        self.image = Image()
        self.image.take_delta()
        publishers = Publishers()
        self.published: list[Any] = []
        publishers.add(CONFIGS, self.published.append)
        run = Slices(lambda call: server._queue.append(call), clock).run  # type: ignore[arg-type]
        line = Turns(run)
        self.run = run
        self.asking = Asking(self.zookeeper)
        self.changes = ClusterConfigs(
            self.asking, self.image, publishers, line.run, run, clock.now_ms, allows
        )
        self.zookeeper.start()
        server.settle()

    def told(self, ask: Any, *arguments: Any) -> KafkaError | None:
        answers: list[KafkaError | None] = []
        ask(*arguments, answers.append)
        self.server.settle()
        (answer,) = answers
        return answer

    def load(self) -> None:
        assert self.told(self.changes.load) is None

    def commit(self, *records: Any) -> KafkaError | None:
        return self.told(self.changes.commit, [(record, 0) for record in records])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> MemoryZooKeeper:
    server = MemoryZooKeeper(clock=clock.now_ms)
    paths = [
        "/config",
        CHANGES,
        *(f"/config/{kind}" for kind in ("topics", "brokers", "clients", "users", "ips")),
    ]
    server.do(*map(Create, paths), Create("/controller", write_controller(ControllerNode(7))))
    return server


@pytest.fixture
def ours(server: MemoryZooKeeper, clock: Clock) -> One:
    one = One(server, clock)
    one.load()
    return one


def stored(server: MemoryZooKeeper, path: str) -> Any:
    return json.loads(server.data(f"/config/{path}") or b"null")["config"]


def announced(server: MemoryZooKeeper) -> list[str]:
    tree = server.tree(CHANGES)
    return [json.loads(data)["entity_path"] for data in tree.values() if data is not None]


def topic_config(name: str, key: str, value: str | None) -> Any:
    return config_record(2, name, key, value)


def scram(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=b"salt",
        stored_key=b"stored",
        server_key=b"server",
        iterations=iterations,
    )


def test_what_there_is_is_loaded(server: MemoryZooKeeper, clock: Clock) -> None:
    server.do(
        Create("/config/topics/t", write_config({"retention.ms": "1"})),
        Create("/config/brokers/<default>", write_config({"log.retention.ms": "2"})),
        Create("/config/brokers/1", write_config({"log.cleaner.threads": "3"})),
        Create("/config/clients/c%201", write_config({"producer_byte_rate": "4"})),
        Create("/config/users/u", None),
        Create("/config/users/u/clients", None),
        Create("/config/users/u/clients/<default>", write_config({"request_percentage": "75.0"})),
        Create("/config/ips/10.0.0.1", write_config({"connection_creation_rate": "10"})),
    )
    one = One(server, clock)
    one.load()
    image = one.image
    assert image.configs == {
        (2, "t"): {"retention.ms": "1"},
        (4, ""): {"log.retention.ms": "2"},
        (4, "1"): {"log.cleaner.threads": "3"},
    }
    assert image.client_quotas == {
        (("client-id", "c 1"),): {"producer_byte_rate": 4.0},
        (("client-id", None), ("user", "u")): {"request_percentage": 75.0},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 10.0},
    }
    (delta,) = one.published
    assert set(delta.configs) == set(image.configs)


def test_a_change_is_written_announced_and_counts_everywhere(
    ours: One, server: MemoryZooKeeper, clock: Clock
) -> None:
    other = One(server, clock)
    other.load()
    assert (
        ours.commit(topic_config("t", "retention.ms", "5"), topic_config("t", "segment.bytes", "6")) is None
    )
    assert stored(server, "topics/t") == {"retention.ms": "5", "segment.bytes": "6"}
    assert announced(server) == ["topics/t"]
    for one in (ours, other):
        assert one.image.configs[2, "t"] == {"retention.ms": "5", "segment.bytes": "6"}
        assert [set(delta.configs) for delta in one.published] == [{(2, "t")}]


def test_the_write_is_fenced_by_the_controller(ours: One, server: MemoryZooKeeper) -> None:
    ours.commit(topic_config("t", "retention.ms", "5"))
    ours.commit(topic_config("t", "retention.ms", None))
    made, changed = [each.ops for each in server.transactions if each.ops[0].path == "/controller"][-2:]
    assert [type(op).__name__ for op in made] == ["Check", "Create", "Create"]
    assert [type(op).__name__ for op in changed] == ["Check", "SetData", "Create"]
    assert stored(server, "topics/t") == {} and ours.image.configs[2, "t"] == {}


@pytest.mark.parametrize("kraft_epoch", [None, 3])
def test_without_a_controller_nothing_is_changed(
    ours: One, server: MemoryZooKeeper, kraft_epoch: int | None
) -> None:
    if kraft_epoch is None:
        server.do(Delete("/controller"))
    else:
        server.do(SetData("/controller", write_controller(ControllerNode(1, 0, kraft_epoch))))
    error = ours.commit(topic_config("t", "retention.ms", "5"))
    assert error is not None and error.code == errors.STALE_CONTROLLER_EPOCH
    assert "/config/topics/t" not in server.nodes and announced(server) == []


def test_what_others_write_meanwhile_is_not_lost(ours: One, server: MemoryZooKeeper) -> None:
    server.do(Create("/config/topics/t", write_config({"a": "1"})))
    done: list[Any] = []
    ours.changes.commit([(topic_config("t", "b", "2"), 0)], done.append)
    is_theirs = False
    while not done:
        read = any(getattr(op, "path", "") == "/controller" for op, _ in ours.zookeeper._requests)
        assert server.step()
        if read and not is_theirs:  # it was read, and is not written yet
            is_theirs = True
            server.do(SetData("/config/topics/t", write_config({"a": "1", "c": "3"})))
    server.settle()
    assert is_theirs and done == [None]
    assert stored(server, "topics/t") == {"a": "1", "b": "2", "c": "3"} == ours.image.configs[2, "t"]


def test_passwords_of_brokers_are_not_written_as_they_are(server: MemoryZooKeeper, clock: Clock) -> None:
    name = "listener.name.secure.ssl.key.password"
    server.do(Create("/config/brokers/1", write_config({name: "encrypted", "a": "1"})))
    ours = One(server, clock)
    ours.load()
    assert ours.image.configs == {(4, "1"): {"a": "1"}}
    error = ours.commit(config_record(4, "1", name, "secret"))
    assert error is not None and error.code == errors.INVALID_REQUEST
    assert ours.commit(config_record(4, "1", "b", "2")) is None
    assert stored(server, "brokers/1") == {name: "encrypted", "a": "1", "b": "2"}
    assert ours.commit(config_record(4, "1", name, None)) is None
    assert stored(server, "brokers/1") == {"a": "1", "b": "2"}


def test_quotas_are_texts_of_their_types(ours: One, server: MemoryZooKeeper) -> None:
    both = {"user": "alice", "client-id": "c/1"}
    assert ours.commit(
        record_of(both, "producer_byte_rate", 1024.0),
        record_of(both, "request_percentage", 75.0),
        record_of({"client-id": None}, "consumer_byte_rate", 1e15),
        record_of({"ip": "10.0.0.1"}, "connection_creation_rate", 5.0),
    ) is None  # fmt: skip
    assert stored(server, "users/alice/clients/c%2F1") == {
        "producer_byte_rate": "1024",
        "request_percentage": "75.0",
    }
    assert server.data("/config/users/alice") is None and server.data("/config/users/alice/clients") is None
    assert stored(server, "clients/<default>") == {"consumer_byte_rate": "1000000000000000"}
    assert stored(server, "ips/10.0.0.1") == {"connection_creation_rate": "5"}
    assert ours.image.client_quotas[(("client-id", "c/1"), ("user", "alice"))]["request_percentage"] == 75.0
    assert sorted(announced(server)) == ["clients/<default>", "ips/10.0.0.1", "users/alice/clients/c%2F1"]


def test_what_is_empty_is_deleted_with_what_was_above_it(ours: One, server: MemoryZooKeeper) -> None:
    one, two = ({"user": "u", "client-id": name} for name in ("c1", "c2"))
    key = "producer_byte_rate"
    ours.commit(record_of(one, key, 1.0), record_of(two, key, 2.0), record_of({"client-id": "c"}, key, 3.0))
    ours.commit(record_of(one, key, None), record_of({"client-id": "c"}, key, None))
    assert "/config/users/u/clients/c1" not in server.nodes and "/config/users/u/clients/c2" in server.nodes
    assert "/config/clients/c" not in server.nodes
    ours.commit(record_of(two, key, None))
    assert server.tree("/config/users") == {"/config/users": None}
    assert ours.image.client_quotas == {}
    assert ours.commit(record_of(two, key, None)) is None


def test_a_user_with_quotas_for_clients_stays_when_it_is_empty(ours: One, server: MemoryZooKeeper) -> None:
    key = "producer_byte_rate"
    both = {"user": "u", "client-id": "c"}
    ours.commit(record_of({"user": "u"}, key, 1.0), record_of(both, key, 2.0))
    ours.commit(record_of({"user": "u"}, key, None))
    assert stored(server, "users/u") == {} and "/config/users/u/clients/c" in server.nodes
    ours.commit(record_of(both, key, None))
    assert "/config/users/u" not in server.nodes


def test_credentials_and_quotas_of_a_user_share_a_znode(
    ours: One, server: MemoryZooKeeper, clock: Clock
) -> None:
    other = One(server, clock)
    other.load()
    ours.commit(scram("alice"), scram("alice", 2), record_of({"user": "alice"}, "producer_byte_rate", 1.0))
    assert stored(server, "users/alice") == {
        "SCRAM-SHA-256": "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096",
        "SCRAM-SHA-512": "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096",
        "producer_byte_rate": "1",
    }
    assert other.image.scram_users["alice", 1].salt == b"salt"
    ours.commit(RemoveUserScramCredentialRecord(name="alice", mechanism=1), scram("alice", 2, 8192))
    for one in (ours, other):
        assert list(one.image.scram_users) == [("alice", 2)]
        assert one.image.scram_users["alice", 2].iterations == 8192
        assert one.image.client_quotas == {(("user", "alice"),): {"producer_byte_rate": 1.0}}


def test_what_is_announced_and_says_nothing_new_changes_nothing(ours: One, server: MemoryZooKeeper) -> None:
    ours.commit(topic_config("t", "retention.ms", "5"))
    count = len(ours.published)
    server.do(
        Create(f"{CHANGES}/config_change_", b'{"version":2,"entity_path":"topics/t"}', sequential=True),
        Create(f"{CHANGES}/config_change_", b"strange", sequential=True),
        Create(f"{CHANGES}/config_change_", b'{"version":2,"entity_path":"strange/t"}', sequential=True),
    )
    server.settle()
    assert len(ours.published) == count and ours.image.configs[2, "t"] == {"retention.ms": "5"}


def test_what_cannot_be_read_is_left_out(server: MemoryZooKeeper, clock: Clock) -> None:
    server.do(
        Create("/config/users/u", write_config({"producer_byte_rate": "x", "SCRAM-SHA-256": "y"})),
        Create("/config/clients/c", write_config({"producer_byte_rate": "4", "unknown": "z"})),
    )
    one = One(server, clock)
    one.load()
    assert one.image.scram_users == {}
    assert one.image.client_quotas == {(("client-id", "c"),): {"producer_byte_rate": 4.0}}


@pytest.mark.parametrize("data", [b"{", b"[" * 100_000, b'{"config":{"retention.ms":7}}', bytes(1 << 20)])
def test_configs_that_cannot_be_read_hide_no_others(
    server: MemoryZooKeeper, clock: Clock, data: bytes
) -> None:
    good = write_config({"retention.ms": "7"})
    server.do(Create("/config/topics/bad", data), Create("/config/topics/good", good))
    one = One(server, clock)
    one.load()
    assert one.image.configs == {(2, "good"): {"retention.ms": "7"}}
    server.do(SetData("/config/topics/good", write_config({"retention.ms": "8"})))
    for path in ("topics/bad", "topics/../x", "", "topics/", "nothing/x", "users/u/other/x", "topics/good"):
        server.do(Create(CHANGES + "/config_change_", write_config_change(path), sequential=True))
    server.settle()
    assert one.image.configs == {(2, "good"): {"retention.ms": "8"}}
    unread: list[Any] = []
    one.run(one.changes.load_topics(["bad", "good"]), unread.append)
    server.settle()
    assert unread == [["bad"]]  # whose log is not made, then


def test_notifications_and_configs_that_cannot_be_read_are_said_once_a_minute(
    server: MemoryZooKeeper, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    later: list[Any] = []
    quiet = Quiet(clock.now_ms, lambda delay_ms, call: later.append(call))
    one = One(server, clock, quiet.allows)
    one.load()
    for number in range(300):
        server.do(
            Create(f"/config/topics/bad-{number}", b"{"),
            Create(CHANGES + "/config_change_", b"nonsense %d" % number, sequential=True),
            Create(CHANGES + "/config_change_", write_config_change(f"topics/bad-{number}"), sequential=True),
        )
    server.settle()
    assert len([line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]) == 2
    clock.ms += 60_000
    later.pop()()
    told = capfd.readouterr().err
    assert f"notifications that cannot be read: 299 more from {CHANGES}" in told
    assert "configs that cannot be read: 299 more from topics" in told


def test_a_new_session_reads_everything_again(ours: One, server: MemoryZooKeeper) -> None:
    ours.commit(topic_config("t", "a", "1"), topic_config("u", "b", "2"))
    ours.zookeeper.disconnect()
    ours.zookeeper.expire()
    server.do(SetData("/config/topics/t", write_config({"a": "3"})), Delete("/config/topics/u"))
    ours.zookeeper.reconnect()
    server.settle()
    assert ours.image.configs[2, "t"] == {"a": "3"} and ours.image.configs[2, "u"] == {}
    server.do(
        SetData("/config/topics/t", write_config({})),
        Create(f"{CHANGES}/config_change_", b'{"version":2,"entity_path":"topics/t"}', sequential=True),
    )
    server.settle()
    assert ours.image.configs[2, "t"] == {}


def test_a_lost_connection_loses_no_change(ours: One, server: MemoryZooKeeper, clock: Clock) -> None:
    other = One(server, clock)
    other.load()
    ours.zookeeper.disconnect()
    other.commit(topic_config("t", "a", "1"))
    done: list[Any] = []
    ours.changes.commit([(topic_config("t", "b", "2"), 0)], done.append)
    server.settle()
    assert done == []
    ours.zookeeper.reconnect()
    server.settle()
    assert done == [None]
    assert ours.image.configs[2, "t"] == {"a": "1", "b": "2"} == other.image.configs[2, "t"]


def test_a_session_that_expires_under_way_refuses_the_change(ours: One, server: MemoryZooKeeper) -> None:
    done: list[Any] = []
    ours.changes.commit([(topic_config("t", "b", "2"), 0)], done.append)
    ours.zookeeper.expire()
    server.settle()
    (error,) = done
    assert error.code == errors.UNKNOWN_SERVER_ERROR
    assert ours.commit(topic_config("t", "b", "2")) is None


def test_old_notifications_are_deleted(ours: One, server: MemoryZooKeeper, clock: Clock) -> None:
    for number in range(3):
        ours.commit(topic_config("t", "a", str(number)))
    clock.ms += KEPT_MS
    ours.commit(topic_config("t", "a", "3"))
    assert len(announced(server)) == 4
    clock.ms += 1
    ours.commit(topic_config("t", "a", "4"))
    assert len(announced(server)) == 2


def test_what_was_deleted_before_it_was_read_is_not_missed(
    ours: One, server: MemoryZooKeeper, clock: Clock
) -> None:
    other = One(server, clock)
    other.load()
    ours.zookeeper.disconnect()
    other.commit(topic_config("t", "a", "1"))
    clock.ms += KEPT_MS + 1
    other.commit(topic_config("u", "b", "2"))
    assert announced(server) == ["topics/u"]
    ours.zookeeper.reconnect()
    server.settle()
    assert ours.image.configs == {(2, "t"): {"a": "1"}, (2, "u"): {"b": "2"}}


def test_who_dies_in_between_leaves_nobody_behind(ours: One, server: MemoryZooKeeper, clock: Clock) -> None:
    other = One(server, clock)
    other.load()
    ours.changes.commit([(topic_config("t", "a", "1"), 0)], lambda error: None)
    while "/config/topics/t" not in server.nodes:
        assert server.step()
    ours.zookeeper.close()
    server.settle()
    assert other.image.configs == {(2, "t"): {"a": "1"}}


def test_configs_of_a_new_topic_are_read_when_asked_for(ours: One, server: MemoryZooKeeper) -> None:
    server.do(Create("/config/topics/new", write_config({"retention.ms": "9"})))
    server.settle()
    assert (2, "new") not in ours.image.configs
    work = ours.changes.load_topics(["new", "none"])
    done: list[Any] = []
    ours.run(work, done.append)
    server.settle()
    assert done == [[]]  # all could be read
    assert ours.image.configs == {(2, "new"): {"retention.ms": "9"}}


def test_configs_of_topics_that_the_controller_tells_of_are_read(
    server: MemoryZooKeeper, clock: Clock
) -> None:
    server.do(Create("/config/topics/old", write_config({"retention.ms": "1"})))
    one = One(server, clock)
    one.load()

    def tell(name: str, number: int) -> None:
        one.image.apply(TopicRecord(name=name, topic_id=number.to_bytes(16, "big")))
        one.changes.topics_told()

    def reads() -> list[str]:
        return [getattr(op, "path", "") for op, _ in one.zookeeper._requests]

    tell("old", 1)
    assert reads() == []  # it was loaded
    server.do(Create("/config/topics/new", write_config({"retention.ms": "2"})))
    tell("new", 2)
    assert reads() == ["/config/topics/new"]
    server.settle()
    assert one.image.topics["new"].configs == {"retention.ms": "2"}
    one.changes.topics_told()
    assert reads() == []
    server.do(SetData("/config/topics/old", write_config({"retention.ms": "3"})))
    one.image.apply(RemoveTopicRecord(topic_id=one.image.topics["old"].id))
    one.changes.topics_told()
    assert reads() == []
    tell("old", 3)  # another of that name
    server.settle()
    assert one.image.topics["old"].configs == {"retention.ms": "3"}


def test_what_has_no_place_in_zookeeper_is_refused(ours: One) -> None:
    for record, code in ((NoOpRecord(), errors.UNSUPPORTED_VERSION), (config_record(16, "m", "k", "v"), 42)):
        error = ours.commit(record)
        assert error is not None and error.code == code


def test_plans_see_the_changes_before_them(ours: One, server: MemoryZooKeeper) -> None:
    seen: list[Any] = []
    done: list[Any] = []

    def plan() -> Any:
        count = len(ours.image.configs.get((2, "t"), {}))
        seen.append(count)
        return [(topic_config("t", f"key{count}", "x"), 0)] if count < 2 else []

    def fails() -> Any:
        raise KafkaError(errors.POLICY_VIOLATION)

    for each in (plan, plan, plan, fails):
        ours.changes.in_turn(each, done.append)
    server.settle()
    assert seen == [0, 1, 2] and done[:3] == [None] * 3 and done[3].code == errors.POLICY_VIOLATION


def test_a_quota_that_is_no_number_is_written_as_java_casts_it() -> None:
    assert (
        quota_text("producer_byte_rate", float("nan")) == "0" and quota_text("producer_byte_rate", 7.0) == "7"
    )
    assert quota_text("request_percentage", float("nan")) == "NaN"
