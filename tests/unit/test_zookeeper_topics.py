"""Topics of a cluster on ZooKeeper: what is written, who may ask, and when the answer comes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.image import Image
from pykafkad.cluster.names import Names
from pykafkad.cluster.publishing import Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.configs import ClusterConfigs
from pykafkad.cluster.zookeeper.topic_changes import TopicChanges
from pykafkad.config import BrokerConfig
from pykafkad.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykafkad.quiet import always
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import Create, Delete, SetData
from pykafkad.zookeeper.config_znodes import write_config
from pykafkad.zookeeper.znodes import (
    PERSISTENT,
    Assignment,
    ControllerNode,
    Replicas,
    parents,
    read_assignment,
    write_assignment,
    write_controller,
)
from tests.zookeeper_kit import MemoryZooKeeper

Topic = CreateTopicsRequest.CreatableTopic
Assigned = CreateTopicsRequest.CreatableReplicaAssignment
Config = CreateTopicsRequest.CreatableTopicConfig
More = CreatePartitionsRequest.CreatePartitionsTopic
MoreAssigned = CreatePartitionsRequest.CreatePartitionsAssignment


class Standing:
    def monotonic_us(self) -> int:
        return 0


class One:
    """A broker of three, and what a controller would tell it."""

    def __init__(self, **keys: str) -> None:
        self.server = MemoryZooKeeper()
        for path in PERSISTENT:
            self.server.do(*map(Create, parents(path)))
        self.server.do(Create("/controller", write_controller(ControllerNode(7))))
        self.image = Image()
        for broker in range(3):
            self.image.apply(RegisterBrokerRecord(broker_id=broker, rack=f"rack-{broker}"))
        zookeeper = self.server.client()
        zookeeper.start()
        run = Slices(lambda call: self.server._queue.append(call), Standing()).run  # type: ignore[arg-type]
        asking = Asking(zookeeper)
        configs = ClusterConfigs(asking, self.image, Publishers(), Turns(run).run, run, lambda: 0)
        self.is_controller = True
        self.timers: list[Any] = []
        self.topics = TopicChanges(
            BrokerConfig({"node.id": "0", **keys}),
            asking,
            self.image,
            Names(self.image),
            configs,
            lambda: self.is_controller,
            run,
            lambda ms, call: self.timers.append(call),
            lambda count: 0,
            always,
        )
        self.answers: list[Any] = []

    def create(self, *topics: Any, validate_only: bool = False) -> None:
        self.topics.create_topics(topics, validate_only, self.answers.append)
        self.server.settle()

    def grow(self, *topics: Any, validate_only: bool = False) -> None:
        self.topics.create_partitions(topics, validate_only, self.answers.append)
        self.server.settle()

    def codes(self) -> list[int]:
        """Of the one answer there is."""
        (planned,) = self.answers
        self.answers.clear()
        return [0 if each.error is None else each.error.code for each in planned]

    def written(self, name: str) -> Assignment:
        return read_assignment(self.server.data(f"/brokers/topics/{name}"))

    def show(self, *names: str, leader: int = 0) -> None:
        """As if the controller had elected leaders and told us."""
        for name in names:
            assignment = self.written(name)
            known = self.image.topics.get(name)
            if known is None:
                self.image.apply(TopicRecord(name=name, topic_id=assignment.topic_id))
            there = len(known.partitions) if known else 0
            for index in range(there, len(assignment.partitions)):
                self.image.apply(
                    PartitionRecord(
                        topic_id=assignment.topic_id,
                        partition_id=index,
                        leader=leader,
                        replicas=list(assignment.partitions[index].replicas),
                    )
                )
        self.topics.image_changed()
        self.server.settle()


@pytest.fixture
def one() -> One:
    return One()


def topic(name: str, partitions: int = -1, factor: int = -1, **configs: str) -> Any:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[Config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def assigned(name: str, *replicas: list[int]) -> Any:
    return Topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[Assigned(partition_index=at, broker_ids=each) for at, each in enumerate(replicas)],
    )


def test_a_topic_is_written_configs_first_and_answered_when_it_has_leaders(one: One) -> None:
    one.create(topic("t", 3, 2, retention_ms="5"))
    written = one.written("t")
    assert [list(each.replicas) for each in written.partitions.values()] == [[0, 1], [1, 2], [2, 0]]
    paths = [op.path for each in one.server.transactions for op in each.ops if op.path.endswith("/t")]
    assert paths == ["/config/topics/t", "/brokers/topics/t"]
    assert json.loads(one.server.data("/config/topics/t") or b"") == {
        "version": 1,
        "config": {"retention.ms": "5"},
    }
    assert one.answers == [] and one.server.tree("/config/changes") == {"/config/changes": None}
    one.show("t", leader=-1)
    assert one.answers == []
    one.image.topics["t"].partitions.clear()
    one.show("t")
    (planned,) = one.answers[0]
    assert planned.error is None and planned.topic_id == written.topic_id == one.image.topics["t"].id
    assert one.image.topics["t"].configs == {"retention.ms": "5"}
    for call in one.timers:
        call()
    assert len(one.answers) == 1


def test_only_the_controller_is_asked_by_clients(one: One) -> None:
    one.is_controller = False
    one.create(topic("t"), topic("u"))
    assert one.codes() == [errors.NOT_CONTROLLER] * 2
    one.grow(More(name="t", count=2))
    assert one.codes() == [errors.NOT_CONTROLLER]
    one.topics.delete_topics([bytes(16)], one.answers.append)
    assert one.answers[0][bytes(16)].code == errors.NOT_CONTROLLER
    assert one.server.tree("/brokers/topics") == {"/brokers/topics": None}


def test_what_cannot_be_is_refused_and_nothing_is_written(one: One) -> None:
    before = one.server.tree()
    one.create(
        topic("many", 1, 4),
        topic("none", 0, 1),
        topic("zero", 1, 0),
        topic("wrong name", 1, 1),
        topic("config", 1, 1, retention_ms="x"),
    )
    assert one.codes() == [
        errors.INVALID_REPLICATION_FACTOR,
        errors.INVALID_PARTITIONS,
        errors.INVALID_REPLICATION_FACTOR,
        errors.INVALID_TOPIC_EXCEPTION,
        errors.INVALID_CONFIG,
    ]
    one.create(topic("good", 2, 2), validate_only=True)
    assert one.codes() == [0] and one.server.tree() == before


def test_brokers_with_and_without_racks_cannot_be_mixed(one: One) -> None:
    one.image.brokers[1].rack = None
    one.create(topic("t", 1, 2))
    assert one.codes() == [errors.UNKNOWN_SERVER_ERROR]


def test_what_exists_or_is_being_deleted_is_taken(one: One) -> None:
    one.create(assigned("t", [0, 1]))
    one.server.do(Create("/admin/delete_topics/gone"))
    one.create(topic("t", 1, 1), topic("gone", 1, 1))
    assert one.codes() == [errors.TOPIC_ALREADY_EXISTS] * 2
    one.show("t")
    assert one.codes() == [0]
    one.create(topic("t", 1, 1))
    assert one.codes() == [errors.TOPIC_ALREADY_EXISTS]


def test_configs_left_of_another_topic_do_not_count(one: One) -> None:
    one.server.do(Create("/config/topics/t", write_config({"retention.ms": "1", "segment.bytes": "2000"})))
    one.create(topic("t", 1, 1, retention_ms="7"))
    assert json.loads(one.server.data("/config/topics/t") or b"")["config"] == {"retention.ms": "7"}


def test_a_topic_of_which_the_controller_makes_nothing_times_out(one: One) -> None:
    one.create(topic("t", 1, 1), topic("u", 1, 1))
    one.show("t")
    assert one.answers == []
    for call in one.timers:
        call()
    assert one.codes() == [0, errors.REQUEST_TIMED_OUT]
    one.show("u")
    assert one.answers == []


def test_a_lost_answer_is_no_other_topic(one: One) -> None:
    client = one.topics._asking.zookeeper
    one.topics.create_topics([topic("t", 1, 1)], False, one.answers.append)
    while "/brokers/topics/t" not in one.server.nodes:
        assert one.server.step()
    client.disconnect()  # type: ignore[attr-defined]
    client.reconnect()  # type: ignore[attr-defined]
    one.server.settle()
    one.show("t")
    assert one.codes() == [0]


def test_without_a_controller_no_topic_is_made(one: One) -> None:
    one.server.do(Delete("/controller"))
    one.create(topic("t", 1, 1))
    assert one.codes() == [errors.STALE_CONTROLLER_EPOCH] and "/brokers/topics/t" not in one.server.nodes


# -- growth


def test_new_partitions_go_on_where_the_old_ones_end(one: One) -> None:
    one.create(assigned("t", [0, 1, 2], [1, 2, 0]))
    one.show("t")
    one.answers.clear()
    before = one.written("t")
    one.grow(More(name="t", count=4, assignments=None))
    after = one.written("t")
    assert after.topic_id == before.topic_id
    assert {index: list(each.replicas) for index, each in after.partitions.items()} == {
        0: [0, 1, 2], 1: [1, 2, 0], 2: [2, 0, 1], 3: [0, 2, 1],
    }  # fmt: skip
    assert one.answers == []
    one.show("t")
    assert one.codes() == [0]


def test_growth_that_cannot_be(one: One) -> None:
    one.create(assigned("t", [0, 1], [1, 2]))
    one.show("t")
    one.answers.clear()

    def more(count: int, *replicas: list[int]) -> Any:
        given = [MoreAssigned(broker_ids=each) for each in replicas] if replicas else None
        return More(name="t", count=count, assignments=given)

    data = one.server.data("/brokers/topics/t")
    for wanted, code in (
        (More(name="none", count=2, assignments=None), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (more(1), errors.INVALID_PARTITIONS),
        (more(2), errors.INVALID_PARTITIONS),
        (more(20_000), errors.POLICY_VIOLATION),
        (more(3, [0, 1], [1, 2]), errors.INVALID_REPLICA_ASSIGNMENT),
        (more(3, [0, 9]), errors.INVALID_REPLICA_ASSIGNMENT),
        (more(3, [0, 0]), errors.INVALID_REPLICA_ASSIGNMENT),
        (more(3, [0] * 100_000), errors.INVALID_REPLICA_ASSIGNMENT),
        (more(3, [0]), errors.INVALID_REPLICA_ASSIGNMENT),
        (more(3, []), errors.INVALID_REPLICA_ASSIGNMENT),
    ):
        one.grow(wanted)
        assert one.codes() == [code], wanted
    one.grow(more(3, [2, 0]), validate_only=True)
    assert one.codes() == [0] and one.server.data("/brokers/topics/t") == data


def test_no_growth_during_a_reassignment(one: One) -> None:
    moving = Assignment(bytes(15) + b"\x07", {0: Replicas([0, 1], adding=[1])})
    one.server.do(Create("/brokers/topics/t", write_assignment(moving)))
    one.grow(More(name="t", count=2, assignments=None))
    assert one.codes() == [errors.REASSIGNMENT_IN_PROGRESS]


def test_a_reassignment_that_begins_meanwhile_is_not_overwritten(one: One) -> None:
    path, plain = "/brokers/topics/t", Assignment(bytes(15) + b"\x07", {0: Replicas([0])})
    moving = Assignment(plain.topic_id, {0: Replicas([0, 1], adding=[1])})
    one.server.do(Create(path, write_assignment(plain)))
    one.topics.create_partitions([More(name="t", count=2, assignments=None)], False, one.answers.append)
    requests = one.topics._asking.zookeeper._requests  # type: ignore[attr-defined]
    while not any(isinstance(op, SetData) for op, _ in requests):
        assert one.server.step()
    one.server.do(SetData(path, write_assignment(moving)))
    one.server.settle()
    assert one.codes() == [errors.REASSIGNMENT_IN_PROGRESS] and one.server.nodes[path].version == 1


@pytest.mark.parametrize("name", ["t/partitions", "", ".", "..", "t/../t"])
def test_a_name_that_is_the_path_of_another_znode_is_no_topic(one: One, name: str) -> None:
    one.create(assigned("t", [0]))
    one.answers.clear()
    one.server.do(Create("/brokers/topics/t/partitions"))
    one.grow(More(name=name, count=2, assignments=None))
    assert one.codes() == [errors.UNKNOWN_TOPIC_OR_PARTITION]


# -- deletion


def test_a_deletion_is_a_wish_and_answered_when_it_is_so(one: One) -> None:
    one.create(assigned("t", [0]))
    one.show("t")
    one.answers.clear()
    topic_id, unknown = one.image.topics["t"].id, bytes(15) + b"\x09"
    for _ in range(2):  # who asks a second time waits with the first
        one.topics.delete_topics([topic_id, unknown], one.answers.append)
        one.server.settle()
    assert "/admin/delete_topics/t" in one.server.nodes and one.answers == []
    one.image.apply(RemoveTopicRecord(topic_id=topic_id))
    one.topics.image_changed()
    assert len(one.answers) == 2
    for failures in one.answers:
        assert {each: error.code for each, error in failures.items()} == {unknown: errors.UNKNOWN_TOPIC_ID}


def test_a_deletion_that_does_not_come_to_be_times_out(one: One) -> None:
    one.create(assigned("t", [0]))
    one.show("t")
    one.answers.clear()
    topic_id = one.image.topics["t"].id
    one.topics.delete_topics([topic_id], one.answers.append)
    one.server.settle()
    for call in one.timers:
        call()
    assert one.answers[0][topic_id].code == errors.REQUEST_TIMED_OUT


# -- what is made because somebody needs it


def test_any_broker_makes_what_it_needs_itself(one: One) -> None:
    one.is_controller = False
    told: list[Any] = []
    one.topics.auto_create("__consumer_offsets", told.append, lambda: 0)
    one.topics.auto_create_all(["t", "t2"], lambda: told.append("both"))
    one.server.settle()
    assert one.topics.is_auto_creating("__consumer_offsets") and told == []
    offsets = one.written("__consumer_offsets")
    assert len(offsets.partitions) == 50 and {len(each.replicas) for each in offsets.partitions.values()} == {
        3
    }
    configs = json.loads(one.server.data("/config/topics/__consumer_offsets") or b"")["config"]
    assert configs["cleanup.policy"] == "compact"
    one.show("__consumer_offsets")
    assert [each.error for each in told] == [None] and not one.topics.is_auto_creating("__consumer_offsets")
    one.show("t", "t2")
    assert told[1:] == ["both"]


def test_internal_topics_wait_for_brokers_enough(one: One) -> None:
    del one.image.brokers[2]
    told: list[Any] = []
    one.topics.auto_create("__transaction_state", told.append, lambda: 0)
    one.server.settle()
    assert told[0].error.code == errors.INVALID_REPLICATION_FACTOR
    assert "/brokers/topics/__transaction_state" not in one.server.nodes


def test_a_factor_that_somebody_set_is_kept() -> None:
    one = One(**{"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "5"})
    one.topics.auto_create("__consumer_offsets", one.answers.append)
    one.server.settle()
    assert [list(each.replicas) for each in one.written("__consumer_offsets").partitions.values()] == [
        [0], [1], [2], [0], [1],
    ]  # fmt: skip
