"""Coordinators of groups and of transactions move with the partitions of their topics: real controllers on a ZooKeeper in
memory decide who leads, real brokers obey them and go on with what the one before them wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from pykafkad.pure.controller import events
from tests.controller_kit import SESSION_MS, Life, Node, World
from tests.unit.cluster_kit import ClusterDesk

BROKERS = 3
VERSIONS = {"LeaderAndIsrRequest": 7, "UpdateMetadataRequest": 8, "StopReplicaRequest": 4}
ROUNDS = 3  # an append is fetched, the fetch after it tells the leader, and the one after that the follower


class DeskLife(Life):
    """A run of a broker whose replicas and coordinators are real."""

    def __init__(self, node: DeskNode) -> None:
        self.desk = ClusterDesk(node.new_disk(), node.id)
        super().__init__(node)

    def obey(self, request: Any) -> Any:
        answer = super().obey(request)
        self.desk.parts.broker_epoch = self.broker_epoch
        self.desk.ask(request, VERSIONS[type(request).__name__])
        return answer


class DeskNode(Node):
    def __init__(self, world: World, broker_id: int, path: Path) -> None:
        super().__init__(world, broker_id)
        self.path = path

    def new_disk(self) -> Path:
        """It comes back with nothing: what it has then it was sent."""
        self.path /= "next"
        self.path.mkdir(parents=True)
        return self.path

    def start(self) -> None:
        self.life = DeskLife(self)


class Town:
    def __init__(self, path: Path) -> None:
        self.world = World(BROKERS)
        self.world.nodes = {id: DeskNode(self.world, id, path / str(id)) for id in range(BROKERS)}
        self.world.start(0)
        self.world.run(50)
        self.world.start(1, 2)
        self.world.run(100)
        for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, "orders"):
            self.world.create_topic(topic, [[0, 1, 2]])
        self.world.run(100)

    def desk(self, id: int) -> ClusterDesk:
        life = self.world.nodes[id].life
        assert isinstance(life, DeskLife)
        return life.desk

    def live(self) -> list[int]:
        return [id for id, node in self.world.nodes.items() if node.life is not None]

    def replicate(self) -> None:
        for _ in range(ROUNDS):
            for id in self.live():
                for key, leader in self.desk(id).replicas.table.items():
                    if leader.leadership is not None:
                        self._fetch_all(leader, key)
            for id in self.live():
                self.desk(id).end_pass()
                self.desk(id).advance(0)

    def _fetch_all(self, leader: Any, key: tuple[str, int]) -> None:
        for id in leader.leadership.followers:
            follower = self.desk(id).replicas.get(key) if id in self.live() else None
            if follower is None or follower.leader_epoch != leader.leader_epoch:
                continue
            start, end = follower.log_start_offset, follower.log_end_offset
            leader.follower_fetched(id, end, start)
            found = leader.read(end, 1 << 20, limit_offset=leader.written_offset, at_least_one=True)
            data = found.read() if found is not None else b""
            follower.append_fetched(data, leader.high_watermark, leader.log_start_offset, 0)

    def ask(self, id: int, request: Any, version: int) -> Any:
        """Of that broker; its answer, when the others have what it needs them to have."""
        desk = self.desk(id)
        given = desk.send(request, version)
        desk.end_pass()
        self.replicate()
        return desk.answer_of(given, type(request).__name__, version)

    def leader(self, topic: str) -> int:
        return self.world.state(topic).leader

    def elect_preferred(self, topic: str) -> None:
        """When the leader has had all who follow it taken into the ISR."""
        leader = self.world.nodes[self.leader(topic)].life
        assert leader is not None
        leader.tend()
        self.world.run(100)
        self.world.ask(events.ElectLeaders, [(topic, 0)], False)
        self.world.run(100)
        self.replicate()

    def crash(self, id: int) -> None:
        self.world.nodes[id].crash()
        self.world.run(2 * SESSION_MS)
        self.replicate()

    def start(self, id: int) -> None:
        self.world.start(id)
        self.world.run(SESSION_MS)
        self.replicate()


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def commit(town: Town, id: int, offset: int) -> int:
    kind = messages.OffsetCommitRequest
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = kind.OffsetCommitRequestTopic(name="orders", partitions=[partition])
    answer = town.ask(id, kind(group_id="g", topics=[topic]), 8)
    return int(answer.topics[0].partitions[0].error_code)


def committed(town: Town, id: int) -> tuple[int, int]:
    kind = messages.OffsetFetchRequest
    topic = kind.OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    answer = town.ask(id, kind(group_id="g", topics=[topic]), 7)
    if answer.error_code:
        return int(answer.error_code), -1
    return 0, int(answer.topics[0].partitions[0].committed_offset)


def test_a_group_goes_on_at_the_next_coordinator(town: Town) -> None:
    first = town.leader(CONSUMER_OFFSETS)
    assert commit(town, first, 7) == errors.NONE
    assert committed(town, first) == (errors.NONE, 7)
    for id in {0, 1, 2} - {first}:
        assert committed(town, id) == (errors.NOT_COORDINATOR, -1)
    town.crash(first)
    second = town.leader(CONSUMER_OFFSETS)
    assert second not in (-1, first)
    assert committed(town, second) == (errors.NONE, 7)
    assert commit(town, second, 9) == errors.NONE


def init(town: Town, id: int) -> tuple[int, int, int]:
    request = messages.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    answer = town.ask(id, request, 4)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_a_producer_goes_on_at_the_next_transaction_coordinator(town: Town) -> None:
    first = town.leader(TRANSACTION_STATE)
    code, producer_id, epoch = init(town, first)
    assert (code, epoch) == (errors.NONE, 0)
    for id in {0, 1, 2} - {first}:
        assert init(town, id)[0] == errors.NOT_COORDINATOR
    town.crash(first)
    second = town.leader(TRANSACTION_STATE)
    assert second not in (-1, first)
    assert init(town, second) == (errors.NONE, producer_id, 1), "the same producer, fencing its older self"


def test_who_comes_back_is_a_coordinator_again_when_it_leads(town: Town) -> None:
    """With what was written while it was away."""
    first = town.leader(CONSUMER_OFFSETS)
    commit(town, first, 7)
    town.crash(first)
    second = town.leader(CONSUMER_OFFSETS)
    assert commit(town, second, 9) == errors.NONE
    town.start(first)
    assert committed(town, first) == (errors.NOT_COORDINATOR, -1)
    assert committed(town, second) == (errors.NONE, 9)
    town.elect_preferred(CONSUMER_OFFSETS)
    assert town.leader(CONSUMER_OFFSETS) == first
    assert committed(town, first) == (errors.NONE, 9)
    assert committed(town, second) == (errors.NOT_COORDINATOR, -1)
