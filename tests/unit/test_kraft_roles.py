"""Who leads and follows, out of the metadata's deltas: what becomes of the replicas here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.kraft.image import QuorumImage
from pykafkad.cluster.kraft.roles import Roles
from pykafkad.config import BrokerConfig
from pykafkad.messages import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from pykafkad.slices import finish
from pykafkad.uuids import ZERO

ID, HERE, THERE, ELSEWHERE = b"\x07" * 16, 2, 1, 3
DIRECTORY = b"\x0d" * 16


class Replica:
    """Remembers the roles that it was given."""

    def __init__(self, topic: str, index: int) -> None:
        self.topic, self.index, self.name = topic, index, f"{topic}-{index}"
        self.log = SimpleNamespace(topic_id=ID)
        self.leader_epoch = self.leader_id = -1
        self.leadership: Any = None
        self.told: list[Any] = []

    def lead(self, epoch: int, members: Any) -> None:
        self.leader_epoch, self.leader_id, self.leadership = epoch, HERE, members
        self.told.append(("lead", epoch, list(members.isr), members.partition_epoch))

    def assigned(self, replicas: list[int]) -> None:
        self.told.append(("assigned", replicas))

    def become_follower(self, epoch: int, leader: int) -> None:
        self.leader_epoch, self.leader_id, self.leadership = epoch, leader, None
        self.told.append(("follow", epoch, leader))


class World:
    """The storage, the replicas, the replication and the coordinators, as far as roles ask them."""

    def __init__(self) -> None:
        self.image = QuorumImage()
        self.table: dict[tuple[str, int], Replica] = {}
        self.fetching: dict[str, tuple[int, int]] = {}
        self.deleted: list[tuple[str, int]] = []
        self.made: list[tuple[str, int, bytes]] = []
        self.prepared: list[tuple[tuple[str, int], int | None]] = []
        self.coordinator: list[Any] = []
        self.broken: Any = None  # a second log directory, which is offline
        config = BrokerConfig.from_sources(
            {
                "process.roles": "broker",
                "node.id": str(HERE),
                "controller.quorum.voters": "100@h:1",
                "controller.listener.names": "CONTROLLER",
            }
        )
        here = cast("Any", self)
        coordinator = SimpleNamespace(
            elected=lambda *said: self.coordinator.append(("elected", *said)),
            resigned=lambda *said: self.coordinator.append(("resigned", *said)),
            removed=lambda *said: self.coordinator.append(("removed", *said)),
        )
        both = cast("Any", (coordinator, coordinator))
        self.roles = Roles(config, self.image, here, here, here, both, here)
        self.image.take_delta()

    # the storage
    @property
    def directories(self) -> list[Any]:
        first = SimpleNamespace(is_online=True, directory_id=DIRECTORY)
        return [first, self.broken] if self.broken is not None else [first]

    @property
    def online(self) -> list[Any]:
        return [each for each in self.directories if each.is_online]

    def prepare(self, wanted: Any, done: Any) -> Any:
        self.prepared += [(new.key, new.leader_epoch) for new in wanted]
        done()
        return SimpleNamespace(take_back=lambda: None)

    def make(self, topic: str, index: int, topic_id: bytes, config: Any, directory: bytes) -> Any:
        self.made.append((topic, index, directory))
        self.table[topic, index] = Replica(topic, index)
        return self.table[topic, index]

    def delete(self, topic: str, index: int) -> None:
        self.deleted.append((topic, index))
        del self.table[topic, index]

    # the replicas
    def get(self, *key: Any) -> Any:
        return self.table.get(key[0] if len(key) == 1 else key)

    # the replication
    def follow(self, replica: Replica, leader: int, epoch: int) -> None:
        self.fetching[replica.name] = leader, epoch

    def stop(self, replica: Replica) -> None:
        self.fetching.pop(replica.name, None)

    # the assignments
    def directory_of(self, topic: str, index: int) -> bytes:
        partition = self.image.topics[topic].partitions[index]
        return partition.directories[partition.replicas.index(HERE)] if HERE in partition.replicas else ZERO

    def note(self, log: Any) -> None:
        pass

    # what the tests do
    def topic(self, name: str, leader: int, *replicas: int, directory: bytes = DIRECTORY) -> Replica | None:
        record = PartitionRecord(
            partition_id=0,
            topic_id=ID,
            replicas=list(replicas),
            isr=list(replicas),
            leader=leader,
            leader_epoch=4,
            partition_epoch=9,
            directories=[directory] * len(replicas),
        )
        self.publish(TopicRecord(name=name, topic_id=ID), record)
        return self.table.get((name, 0))

    def change(self, **fields: Any) -> None:
        self.publish(PartitionChangeRecord(partition_id=0, topic_id=ID, **fields))

    def publish(self, *records: Any) -> None:
        for record in records:
            self.image.apply(record)
        finish(self.roles.publish(self.image.take_delta()))


def made(world: World, leader: int, *replicas: int, name: str = "t") -> Replica:
    replica = world.topic(name, leader, *replicas)
    assert replica is not None
    return replica


def test_what_is_led_elsewhere_is_followed() -> None:
    world = World()
    replica = made(world, THERE, THERE, HERE)
    assert replica.told == [("follow", 4, THERE)]
    assert world.fetching == {"t-0": (THERE, 4)}
    assert world.made == [("t", 0, DIRECTORY)]
    assert world.prepared == [(("t", 0), None)]


def test_what_is_led_here_is_not_fetched() -> None:
    world = World()
    replica = made(world, THERE, THERE, HERE)
    world.change(leader=HERE, isr=[HERE])
    assert replica.told[-1] == ("lead", 5, [HERE], 10)
    assert world.fetching == {}


def test_an_isr_that_changes_in_the_same_epoch_is_told_without_a_new_election() -> None:
    world = World()
    replica = made(world, HERE, HERE, THERE, name="__consumer_offsets")
    world.change(isr=[HERE])
    assert replica.told == [
        ("lead", 4, [HERE, THERE], 9),
        ("assigned", [HERE, THERE]),
        ("lead", 4, [HERE], 10),
    ]
    assert world.coordinator == [("elected", 0, 4)]


def test_a_follower_is_not_told_again_of_whom_it_follows() -> None:
    world = World()
    replica = made(world, THERE, THERE, HERE)
    world.change(isr=[THERE])
    assert replica.told == [("follow", 4, THERE)]
    world.change(leader=ELSEWHERE, replicas=[THERE, HERE, ELSEWHERE])
    assert replica.told[1:] == [("follow", 5, ELSEWHERE)]


def test_without_a_leader_nothing_is_fetched() -> None:
    world = World()
    replica = made(world, THERE, THERE, HERE)
    world.change(leader=NO_LEADER)
    assert replica.told[-1] == ("follow", 5, NO_LEADER)
    assert world.fetching == {}


def test_others_partitions_are_none_of_ours_until_one_is_assigned_here() -> None:
    world = World()
    assert world.topic("t", THERE, THERE, ELSEWHERE) is None
    world.change(replicas=[THERE, ELSEWHERE, HERE], directories=[DIRECTORY] * 3)
    assert world.table["t", 0].told == [("follow", 4, THERE)]


def test_what_is_assigned_here_no_more_is_deleted() -> None:
    world = World()
    made(world, THERE, THERE, HERE, name="__transaction_state")
    world.change(replicas=[THERE, ELSEWHERE])
    assert world.deleted == [("__transaction_state", 0)]
    assert world.fetching == {}
    assert world.coordinator[-1] == ("removed", 0)


def test_a_topic_that_is_deleted_is_no_longer_followed() -> None:
    world = World()
    made(world, THERE, THERE, HERE)
    world.publish(RemoveTopicRecord(topic_id=ID))
    assert world.deleted == [("t", 0)]
    assert world.fetching == {}


def test_coordinators_hear_what_they_win_and_lose() -> None:
    world = World()
    made(world, HERE, HERE, THERE, name="__consumer_offsets")
    world.change(leader=THERE)
    world.change(leader=HERE)
    assert world.coordinator == [("elected", 0, 4), ("resigned", 0, 5), ("elected", 0, 6)]


@pytest.mark.parametrize("directory", [DIRECTORY, b"\x0e" * 16, ZERO])
def test_a_log_is_made_where_the_metadata_says_or_anywhere(directory: bytes) -> None:
    world = World()
    world.topic("t", HERE, HERE, directory=directory)
    assert [each[2] for each in world.made] == [directory if directory == DIRECTORY else ZERO]


def test_what_may_lie_in_a_directory_that_is_offline_is_not_made_anew() -> None:
    world = World()
    world.broken = SimpleNamespace(is_online=False, directory_id=b"\x0e" * 16)
    assert world.topic("t", HERE, HERE, directory=b"\x0e" * 16) is None
    assert world.made == []


def test_a_new_partition_goes_where_it_can() -> None:
    world = World()
    world.broken = SimpleNamespace(is_online=False, directory_id=b"\x0e" * 16)
    world.topic("t", HERE, HERE, directory=ZERO)
    assert world.made == []  # its epoch is not the first: it may have been here before
    world.publish(RemoveTopicRecord(topic_id=ID), TopicRecord(name="u", topic_id=ID))
    first = PartitionRecord(
        partition_id=0, topic_id=ID, replicas=[HERE], isr=[HERE], leader=HERE, directories=[ZERO]
    )
    first.leader_epoch = 0
    world.publish(first)
    assert world.made == [("u", 0, ZERO)]
