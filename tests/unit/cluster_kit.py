"""A broker of a cluster without loop, sockets and ZooKeeper: the real dispatcher, handlers and storage, obeying requests
that tests send as a controller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pykafkad import messages
from pykafkad.cluster.publishing import GROUPS, TRANSACTIONS, Publishers
from pykafkad.cluster.zookeeper.control import Control
from pykafkad.cluster.zookeeper.metadata import ClusterImage
from pykafkad.cluster.zookeeper.roles import Roles
from pykafkad.config import TopicConfig
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.handlers import cluster_apis
from pykafkad.replication.quotas import LEADER, ReplicationQuota
from pykafkad.slices import Wait, Work
from tests.unit.data_kit import Desk

BROKER_EPOCH = 100
LeaderAndIsr, StopReplica, UpdateMetadata = (
    messages.LeaderAndIsrRequest,
    messages.StopReplicaRequest,
    messages.UpdateMetadataRequest,
)
TOPIC_ID = b"topic-id-of-some"


class FakeReplication:
    def __init__(self, desk: ClusterDesk) -> None:
        self.leader_quota = ReplicationQuota(LEADER, desk.config, desk.clock, desk.cluster_image)
        self.followed: dict[str, tuple[int, int]] = {}
        self.stopped: list[str] = []

    def follow(self, replica: Any, leader_id: int, leader_epoch: int) -> None:
        self.followed[replica.name] = (leader_id, leader_epoch)

    def stop(self, replica: Any) -> None:
        self.followed.pop(replica.name, None)
        self.stopped.append(replica.name)


class FakeCluster:
    def __init__(self, desk: ClusterDesk) -> None:
        self.broker_epoch = BROKER_EPOCH
        self.controller_id = -1
        self.replication = FakeReplication(desk)
        self.publishers = Publishers()
        self.control = Control(
            desk.cluster_image,
            Roles(
                desk.cluster_image,
                desk.replicas,
                desk.storage,
                cast(Any, self.replication),
                (desk.group_coordinator, desk.transaction_coordinator),
                lambda name: TopicConfig(desk.config, desk.cluster_image.configs.get((2, name), {})),
                self.load_topics,
            ),
            self.publishers,
            lambda: self.broker_epoch,
            desk.slices.run,
        )
        self.loaded: list[Sequence[str]] = []
        self.waiting: list[Wait] | None = None  # None: answered at once

    def load_topics(self, names: Sequence[str]) -> Work[list[str]]:
        self.loaded.append(names)
        if self.waiting is not None:
            wait = Wait()
            self.waiting.append(wait)
            error = yield from wait.result()
            if error is not None:
                raise error
        return [name for name in names if name.startswith("unread")]


class ClusterDesk(Desk):
    apis = cluster_apis.APIS

    def __init__(self, directory: Path, node_id: int = 0, **overrides: str) -> None:
        super().__init__(directory, node_id=str(node_id), **overrides)
        self.image = self.cluster_image = ClusterImage()
        self.group_coordinator = GroupCoordinator(
            self.config, self.coordinator_loop, self.replicas, self.image
        )
        self.transaction_coordinator = self.new_transaction_coordinator()
        for coordinator in (self.group_coordinator, self.transaction_coordinator):
            coordinator.follows_metadata = False
            coordinator.start()
        self.parts = FakeCluster(self)
        self.cluster = cast(Any, self.parts)
        self.parts.publishers.add(GROUPS, self.group_coordinator.publish)
        self.parts.publishers.add(TRANSACTIONS, self.transaction_coordinator.publish)

    def live(self, *broker_ids: int, **fields: Any) -> Any:
        """UpdateMetadata with these brokers."""
        brokers = [live_broker(broker_id) for broker_id in broker_ids]
        return self.ask(UpdateMetadata(live_brokers=brokers, **told(fields)), 8)

    def lead_and_follow(
        self, *states: Any, topic: str = "orders", topic_id: bytes = TOPIC_ID, **fields: Any
    ) -> dict[int, int]:
        """LeaderAndIsr; the error of each partition."""
        kind = LeaderAndIsr.LeaderAndIsrTopicState
        asked = kind(topic_name=topic, topic_id=topic_id, partition_states=list(states))
        answer = self.ask(LeaderAndIsr(topic_states=[asked], **told(fields)), 7)
        return {
            each.partition_index: each.error_code for one in answer.topics for each in one.partition_errors
        }

    def stop(self, *states: Any, topic: str = "orders", **fields: Any) -> dict[int, int]:
        """StopReplica; the error of each partition."""
        asked = [StopReplica.StopReplicaTopicState(topic_name=topic, partition_states=list(states))]
        answer = self.ask(StopReplica(topic_states=asked, **told(fields)), 4)
        return {each.partition_index: each.error_code for each in answer.partition_errors}


def told(fields: dict[str, Any]) -> dict[str, Any]:
    return {"controller_id": 9, "controller_epoch": 1, "broker_epoch": BROKER_EPOCH, **fields}


def live_broker(broker_id: int, **fields: Any) -> Any:
    points = [
        UpdateMetadata.UpdateMetadataEndpoint(host=f"host{broker_id}", port=port, listener=name)
        for name, port in (("PLAINTEXT", 9092), ("INTERNAL", 9093))
    ]
    return UpdateMetadata.UpdateMetadataBroker(id=broker_id, endpoints=points, rack=None, **fields)


def state(index: int = 0, leader: int = 0, epoch: int = 0, **fields: Any) -> Any:
    """Of a partition in LeaderAndIsr."""
    fields = {"replicas": [0, 1, 2], "isr": [0, 1, 2], "is_new": True, **fields}
    kind = LeaderAndIsr.LeaderAndIsrPartitionState
    return kind(partition_index=index, leader=leader, leader_epoch=epoch, **fields)


def known(index: int = 0, leader: int = 0, epoch: int = 0, **fields: Any) -> Any:
    """Of a partition in UpdateMetadata."""
    fields = {"replicas": [0, 1, 2], "isr": [0, 1, 2], **fields}
    kind = UpdateMetadata.UpdateMetadataPartitionState
    return kind(partition_index=index, leader=leader, leader_epoch=epoch, **fields)


def topic_known(*states: Any, topic: str = "orders", topic_id: bytes = TOPIC_ID) -> Any:
    kind = UpdateMetadata.UpdateMetadataTopicState
    return kind(topic_name=topic, topic_id=topic_id, partition_states=list(states))


def stopped(index: int = 0, epoch: int = 0, *, delete: bool = False) -> Any:
    kind = StopReplica.StopReplicaPartitionState
    return kind(partition_index=index, leader_epoch=epoch, delete_partition=delete)
