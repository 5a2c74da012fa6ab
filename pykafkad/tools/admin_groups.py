"""Requests of the tools about groups and their committed offsets.

Owns the requests, the search for each group's coordinator, and the reading of members' assignments. A group is first
described by the API of the consumer protocol, and by that of the classic one if it is of another type, as Kafka's admin
client does (KIP-848, KIP-1043).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.hot.wire import WireError
from pykafkad.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from pykafkad.net.client import Cluster, check
from pykafkad.net.connection import UnsupportedVersion
from pykafkad.tools.admin import Partition, grouped, list_topics
from pykafkad.tools.java import hash_order, partition_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

NOT_READY = frozenset(
    {
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.REBALANCE_IN_PROGRESS,
    }
)
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
CONSUMER_PROTOCOL = "consumer"


class Listing:
    """A group as ListGroups shows it. An empty type or state means that the broker does not report it."""

    __slots__ = ("group_id", "protocol_type", "state", "type")

    def __init__(self, row: Any) -> None:
        self.group_id: str = row.group_id
        self.protocol_type: str = row.protocol_type
        self.state: str = row.group_state
        self.type: str = row.group_type.capitalize()  # the broker says `classic`, the tools say `Classic`


class Member:
    """A member. `target` and `epoch` are None in a classic group; `upgraded` says which protocol it uses."""

    __slots__ = ("assignment", "client_id", "epoch", "host", "id", "instance_id", "target", "upgraded")

    def __init__(self, id: str, instance_id: str | None, client_id: str, host: str) -> None:
        self.id = id
        self.instance_id = instance_id
        self.client_id = client_id
        self.host = host
        self.assignment: list[Partition] = []
        self.target: list[Partition] | None = None
        self.epoch: int | None = None
        self.upgraded: bool | None = None


class Description:
    __slots__ = ("assignor", "coordinator", "epoch", "group_id", "members", "state", "target_epoch")

    def __init__(self, group_id: str, state: str, assignor: str) -> None:
        self.group_id = group_id
        self.state = state
        self.assignor = assignor
        self.members: list[Member] = []
        self.epoch: int | None = None
        self.target_epoch: int | None = None
        self.coordinator: tuple[int, str, int] = (-1, "", 0)  # node id, host, port


def list_groups(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    protocols: Collection[str] = (),
    timeout_ms: int | None = None,
) -> list[Listing]:
    """The groups of all brokers, in the order of Kafka's admin client."""
    found: dict[str, Listing] = {}

    def call() -> None:
        cluster.metadata([])
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        for node_id in cluster.brokers:
            response = cluster.call(cluster.broker(node_id), request)
            check(response.error_code)
            for row in response.groups:
                if not protocols or row.protocol_type in protocols:
                    found[row.group_id] = Listing(row)

    cluster.attempt("listGroups", call, timeout_ms=timeout_ms)
    return [found[group_id] for group_id in hash_order(found)]


def at_coordinator(
    cluster: Cluster,
    name: str,
    group_id: str,
    ask: Callable[[Any], T],
    *,
    timeout_ms: int | None = None,
) -> T:
    """Call ask(connection) with the group's coordinator, and again while the coordinator is not ready."""
    return cluster.attempt(
        name,
        lambda: ask(cluster.coordinator(group_id)),
        timeout_ms=timeout_ms,
        retriable=NOT_READY.__contains__,
    )


# -- describing


def describe_group(cluster: Cluster, group_id: str, *, timeout_ms: int | None = None) -> Description:
    """Raises KafkaError GROUP_ID_NOT_FOUND if there is no such group."""

    def ask(connection: Any) -> Description:
        text = None
        try:
            request = ConsumerGroupDescribeRequest(group_ids=[group_id])
            (row,) = cluster.call(connection, request).groups
            if not row.error_code:
                return _of_consumer_group(row)
            if row.error_code not in (errors.GROUP_ID_NOT_FOUND, errors.UNSUPPORTED_VERSION):
                raise errors.KafkaError(row.error_code, row.error_message)
            text = row.error_message
        except UnsupportedVersion:
            pass
        (row,) = cluster.call(connection, DescribeGroupsRequest(groups=[group_id])).groups
        if row.error_code:
            raise errors.KafkaError(row.error_code, text or row.error_message)
        return _of_classic_group(row)

    found = at_coordinator(cluster, "describeConsumerGroups", group_id, ask, timeout_ms=timeout_ms)
    node_id = cluster.coordinator_id(group_id)
    found.coordinator = (node_id, *cluster.brokers[node_id])
    return found


def _of_consumer_group(row: Any) -> Description:
    found = Description(row.group_id, row.group_state, row.assignor_name)
    found.epoch, found.target_epoch = row.group_epoch, row.assignment_epoch
    for entry in row.members:
        member = Member(entry.member_id, entry.instance_id, entry.client_id, entry.client_host)
        member.assignment = _partitions(entry.assignment)
        member.target = _partitions(entry.target_assignment)
        member.epoch = entry.member_epoch
        if entry.member_type in (CLASSIC_MEMBER, CONSUMER_MEMBER):
            member.upgraded = entry.member_type == CONSUMER_MEMBER
        found.members.append(member)
    return found


def _partitions(assignment: Any) -> list[Partition]:
    found = [(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions]
    return hash_order(found, partition_hash)


def _of_classic_group(row: Any) -> Description:
    if row.protocol_type not in (CONSUMER_PROTOCOL, ""):
        raise ValueError(f"GroupId {row.group_id} is not a consumer group ({row.protocol_type}).")
    found = Description(row.group_id, row.group_state, row.protocol_data)
    for entry in row.members:
        member = Member(entry.member_id, entry.group_instance_id, entry.client_id, entry.client_host)
        member.assignment = hash_order(read_assignment(entry.member_assignment), partition_hash)
        found.members.append(member)
    return found


def read_assignment(data: bytes) -> list[Partition]:
    """The partitions of a consumer's assignment: int16 version, then ConsumerProtocolAssignment."""
    if len(data) < 2:
        return []
    version = min(int.from_bytes(data[:2], "big"), ConsumerProtocolAssignment.max_version)
    try:
        found, _ = ConsumerProtocolAssignment.decode_prefix(data, version, 2)
    except WireError as problem:
        raise ValueError(
            f"Buffer underflow while parsing consumer protocol's assignment: {problem}"
        ) from None
    return [(row.topic, index) for row in found.assigned_partitions for index in row.partitions]


# -- committed offsets


class Committed:
    """A committed offset; the leader epoch is None if the commit had none."""

    __slots__ = ("leader_epoch", "metadata", "offset")

    def __init__(self, row: Any) -> None:
        self.offset: int = row.committed_offset
        self.leader_epoch: int | None = (
            row.committed_leader_epoch if row.committed_leader_epoch >= 0 else None
        )
        self.metadata: str | None = row.metadata


def committed_offsets(
    cluster: Cluster,
    group_id: str,
    partitions: Collection[Partition] | None = None,
    *,
    member_id: str | None = None,
    member_epoch: int = -1,
    timeout_ms: int | None = None,
) -> dict[Partition, Committed]:
    """The committed offsets of the group, for all partitions or for these; partitions without one are left out."""

    def ask(connection: Any) -> dict[Partition, Committed]:
        request = OffsetFetchRequest(require_stable=False)
        if connection.version_for(request) >= 8:
            _fill_groups(cluster, connection, request, group_id, partitions, member_id, member_epoch)
        else:
            request.group_id = group_id
            request.topics = _named_topics(partitions, OffsetFetchRequest.OffsetFetchRequestTopic)
        response = cluster.call(connection, request)
        group = response.groups[0] if response.groups else response
        check(group.error_code)
        return _committed(cluster, group)

    return at_coordinator(cluster, "listConsumerGroupOffsets", group_id, ask, timeout_ms=timeout_ms)


def _fill_groups(
    cluster: Cluster,
    connection: Any,
    request: Any,
    group_id: str,
    partitions: Collection[Partition] | None,
    member_id: str | None,
    member_epoch: int,
) -> None:
    """Fill in the group of the request; from version 10 on, topics are given by their ids."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=None
    )
    request.groups = [group]
    version = connection.version_for(request)
    if version < 9:
        group.member_id, group.member_epoch = None, -1
    rows = _named_topics(partitions, OffsetFetchRequest.OffsetFetchRequestTopics)
    if version >= 10 and rows is not None:
        ids = {row.name: row.topic_id for row in cluster.metadata([row.name for row in rows]).topics}
        for row in rows:
            row.topic_id, row.name = ids[row.name], ""
    group.topics = rows


def _named_topics(partitions: Collection[Partition] | None, row: Any) -> list[Any] | None:
    if partitions is None:
        return None
    return [row(name=topic, partition_indexes=indexes) for topic, indexes in grouped(partitions).items()]


def _committed(cluster: Cluster, group: Any) -> dict[Partition, Committed]:
    names: dict[bytes, str] = {}
    if any(not topic.name for topic in group.topics):
        names = {topic.id: topic.name for topic in list_topics(cluster)}
    found = {}
    for topic in group.topics:
        name = topic.name or names.get(topic.topic_id)
        for row in topic.partitions:
            if name is not None and not row.error_code and row.committed_offset >= 0:
                found[name, row.partition_index] = Committed(row)
    return found


def commit_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: dict[Partition, int],
    *,
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    leader_epochs: dict[Partition, int] | None = None,
    timeout_ms: int | None = None,
) -> dict[Partition, int]:
    """Commit these offsets, as an administrator if no member is given; returns the error code of each partition."""
    epochs = leader_epochs or {}

    def ask(connection: Any) -> dict[Partition, int]:
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[topic, index],
                        committed_leader_epoch=epochs.get((topic, index), -1),
                        committed_metadata="",
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in grouped(offsets).items()
        ]
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=topics,
        )
        response = cluster.call(connection, request, at_most=9)  # topics by name
        found = {
            (topic.name, row.partition_index): row.error_code
            for topic in response.topics
            for row in topic.partitions
        }
        for code in found.values():
            if code in NOT_READY:
                raise errors.KafkaError(code)
        return found

    return at_coordinator(cluster, "alterConsumerGroupOffsets", group_id, ask, timeout_ms=timeout_ms)


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Collection[Partition], *, timeout_ms: int | None = None
) -> tuple[int, dict[Partition, int]]:
    """The error code of the whole request, and of each partition."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)
                    for index in indexes
                ],
            )
            for topic, indexes in grouped(partitions).items()
        ],
    )

    def ask(connection: Any) -> tuple[int, dict[Partition, int]]:
        response = cluster.call(connection, request)
        if response.error_code in NOT_READY:
            raise errors.KafkaError(response.error_code)
        return response.error_code, {
            (topic.name, row.partition_index): row.error_code
            for topic in response.topics
            for row in topic.partitions
        }

    return at_coordinator(cluster, "deleteConsumerGroupOffsets", group_id, ask, timeout_ms=timeout_ms)


def delete_group(cluster: Cluster, group_id: str, *, timeout_ms: int | None = None) -> None:
    def ask(connection: Any) -> None:
        (row,) = cluster.call(connection, DeleteGroupsRequest(groups_names=[group_id])).results
        check(row.error_code)

    at_coordinator(cluster, "deleteConsumerGroups", group_id, ask, timeout_ms=timeout_ms)
