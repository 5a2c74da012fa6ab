"""Brokers of a cluster that replicate: real handlers, storage and replication, obeying a controller that the test plays.

How their requests travel, and whose clock it is, is the test's matter: a broker is given its loop and its connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pykafkad import errors
from pykafkad.messages import AlterPartitionResponse, UpdateMetadataRequest
from pykafkad.replication.replication import Replication
from pykafkad.replication.requests import versions_for
from tests.unit.cluster_kit import (
    TOPIC_ID,
    ClusterDesk,
    known,
    state,
    told,
    topic_known,
)

TOPIC = "orders"
CONTROLLER = 9


class ReplicatingDesk(ClusterDesk):
    """A broker whose replication is real."""

    replication: Replication

    def replicate(self, loop: Any, connections: Any, protocol: str = "3.9") -> None:
        parts = cast(Any, self.parts)
        parts.controller_id = CONTROLLER
        self.replication = Replication(cast(Any, self), loop, connections, parts, versions_for(protocol))
        parts.replication = parts.control.roles._replication = self.replication

    def hear(self, brokers: Sequence[Any], states: Sequence[Any] = (), topic_id: bytes = TOPIC_ID) -> None:
        """UpdateMetadata."""
        topics = [topic_known(*states, topic_id=topic_id)] if states else []
        fields = told({"broker_epoch": self.parts.broker_epoch})
        answer = self.ask(UpdateMetadataRequest(live_brokers=list(brokers), topic_states=topics, **fields), 8)
        assert answer.error_code == 0

    @property
    def replica(self) -> Any:
        return self.replicas.table[TOPIC, 0]


class State:
    """Of the one partition, as the controller keeps it."""

    def __init__(self, replicas: Sequence[int]) -> None:
        self.replicas = list(replicas)
        self.isr = list(replicas)
        self.leader, self.epoch, self.partition_epoch = replicas[0], 0, 0

    def for_replicas(self) -> Any:
        return state(
            0,
            self.leader,
            self.epoch,
            replicas=list(self.replicas),
            isr=list(self.isr),
            partition_epoch=self.partition_epoch,
            is_new=False,
        )

    def for_metadata(self) -> Any:
        return known(
            0,
            self.leader,
            self.epoch,
            replicas=list(self.replicas),
            isr=list(self.isr),
            zk_version=self.partition_epoch,
        )

    def elect(self, leader: int, isr: Sequence[int]) -> None:
        self.leader, self.isr = leader, list(isr)
        self.epoch += 1
        self.partition_epoch += 1

    def alter(self, request: Any, live: Sequence[int]) -> Any:
        """The answer to AlterPartition, by the rules of Kafka's controller."""
        Topic, Data = AlterPartitionResponse.TopicData, AlterPartitionResponse.PartitionData
        (topic,) = request.topics
        (asked,) = topic.partitions
        isr = [each.broker_id for each in asked.new_isr_with_epochs] or list(asked.new_isr)
        answer = Data(partition_index=0, error_code=self._why_not(asked, isr, live))
        if not answer.error_code:
            if (self.leader, set(self.isr)) != (request.broker_id, set(isr)):
                self.leader, self.isr = request.broker_id, isr
                self.partition_epoch += 1
            answer.leader_id, answer.leader_epoch = self.leader, self.epoch
            answer.isr, answer.partition_epoch = list(self.isr), self.partition_epoch
        return AlterPartitionResponse(
            topics=[Topic(topic_id=topic.topic_id, topic_name=topic.topic_name, partitions=[answer])]
        )

    def _why_not(self, asked: Any, isr: list[int], live: Sequence[int]) -> int:
        if asked.leader_epoch < self.epoch:
            return errors.FENCED_LEADER_EPOCH
        if asked.partition_epoch > self.partition_epoch or asked.leader_epoch > self.epoch:
            return errors.NOT_CONTROLLER
        if set(isr) == set(self.isr):
            return errors.NONE
        if asked.partition_epoch < self.partition_epoch:
            return errors.INVALID_UPDATE_VERSION
        if not set(isr) <= set(live):
            return errors.INELIGIBLE_REPLICA
        return errors.NONE
