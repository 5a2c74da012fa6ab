"""What a broker obeys of a controller on ZooKeeper: the rules of LeaderAndIsr, StopReplica and UpdateMetadata, as
Apache Kafka 3.9 has them.

A controller is fenced by its epoch, the highest that was seen in any of the three; a request for an earlier registration
of this broker by the broker epoch. A partition's leader epoch says which of two states is the later one. No I/O.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

UNKNOWN_EPOCH = -1  # of a broker or a leader: nothing is compared
DURING_DELETE = -2  # the leader epoch, or the leader, of a partition whose topic is being deleted


class Fencing:
    __slots__ = ("controller_epoch",)

    def __init__(self) -> None:
        self.controller_epoch = 0  # the highest that was seen

    def admit(
        self, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest, broker_epoch: int
    ) -> int:
        """The error of the whole request, or NONE; `broker_epoch`: our own."""
        if request.broker_epoch != UNKNOWN_EPOCH and request.broker_epoch < broker_epoch:
            return errors.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return errors.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        return errors.NONE


def why_not_taken(
    node_id: int,
    state: LeaderAndIsrRequest.LeaderAndIsrPartitionState,
    topic_id: bytes,
    own_epoch: int,
    own_topic_id: bytes,
) -> int:
    """The error of a partition in LeaderAndIsr; `own`: of the replica that is here, -1 and ZERO where there is none."""
    if ZERO not in (topic_id, own_topic_id) and topic_id != own_topic_id:
        return errors.INCONSISTENT_TOPIC_ID
    if state.leader_epoch <= own_epoch:
        return errors.STALE_CONTROLLER_EPOCH
    if node_id not in state.replicas:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    return errors.NONE


def why_not_stopped(leader_epoch: int, own_epoch: int) -> int:
    """The error of a partition in StopReplica."""
    if leader_epoch in (UNKNOWN_EPOCH, DURING_DELETE) or leader_epoch >= own_epoch:
        return errors.NONE
    return errors.FENCED_LEADER_EPOCH


# -- the forms that the versions have


def states_of(request: LeaderAndIsrRequest | UpdateMetadataRequest) -> Iterator[tuple[str, bytes, Any]]:
    """The partitions of a LeaderAndIsr or UpdateMetadata: topic, topic id (ZERO in those that have none), state."""
    for state in request.ungrouped_partition_states:
        yield state.topic_name, ZERO, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def stops_of(request: StopReplicaRequest) -> Iterator[tuple[str, int, int, bool]]:
    """The partitions of a StopReplica: topic, index, leader epoch, whether it is deleted."""
    for one in request.ungrouped_partitions:
        yield one.topic_name, one.partition_index, UNKNOWN_EPOCH, request.delete_partitions
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield topic.name, index, UNKNOWN_EPOCH, request.delete_partitions
    for named in request.topic_states:
        for state in named.partition_states:
            yield named.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
