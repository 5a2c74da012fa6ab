"""Requests about committed offsets, in every version, and a group that both brokers coordinate."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import topic_id
from compat_tests.differential.tree import differences
from pykafkad.messages import (
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

READY_SECONDS = 60
MEMBER_ID_REQUIRED = 79
TOPIC_IDS_SINCE = 10

Row = tuple[Any, ...]  # partition, offset, [metadata, [leader epoch]]


def group(pair: Pair, stem: str = "group") -> str:
    """The id of a new group, for which both brokers have a coordinator that has loaded."""
    name = pair.new_name(stem)
    deadline = time.monotonic() + READY_SECONDS
    for side in pair.sides:
        while not coordinates(side, name):
            assert time.monotonic() < deadline, f"{side.name} finds no coordinator"
            time.sleep(0.05)
    return name


def coordinates(side: Side, name: str) -> bool:
    if side.demand(FindCoordinatorRequest(coordinator_keys=[name]), 4).coordinators[0].error_code:
        return False
    wanted = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=[])])
    return not side.demand(wanted, 8).groups[0].error_code


def commit_of(side: Side, group_id: str, topics: Sequence[tuple[str, Sequence[Row]]], **fields: Any) -> Any:
    kind = OffsetCommitRequest

    def partition(index: int, offset: int, metadata: str | None = "", epoch: int = -1) -> Any:
        return kind.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=epoch,
        )

    entries = [
        kind.OffsetCommitRequestTopic(
            name=name, topic_id=topic_id(side, name), partitions=[partition(*row) for row in rows]
        )
        for name, rows in topics
    ]
    return kind(**{"group_id": group_id, "topics": entries, **fields})


def commit(group_id: str, topic: str, *rows: Row, **fields: Any) -> Each:
    """Commit rows of one topic."""
    return commit_topics(group_id, [(topic, rows)], **fields)


def commit_topics(group_id: str, topics: Sequence[tuple[str, Sequence[Row]]], **fields: Any) -> Each:
    return lambda side: commit_of(side, group_id, topics, **fields)


def fetch(
    version: int, group_id: str, topics: Sequence[tuple[str, Sequence[int]]] | None, **fields: Any
) -> Each:
    """The offsets of one group, with a request of that version; topics None: all of them."""
    if version < 8:
        return lambda side: old_fetch(group_id, topics, **fields)
    stable = {"require_stable": fields.pop("require_stable")} if "require_stable" in fields else {}
    return lambda side: OffsetFetchRequest(groups=[wanted(side, group_id, topics, **fields)], **stable)


def old_fetch(group_id: str, topics: Sequence[tuple[str, Sequence[int]]] | None, **fields: Any) -> Any:
    kind = OffsetFetchRequest
    entries = None
    if topics is not None:
        entries = [
            kind.OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes))
            for name, indexes in topics
        ]
    return kind(group_id=group_id, topics=entries, **fields)


def wanted(
    side: Side, group_id: str, topics: Sequence[tuple[str, Sequence[int]]] | None, **fields: Any
) -> Any:
    """One group of a request for several."""
    kind = OffsetFetchRequest
    entries = None
    if topics is not None:
        entries = [
            kind.OffsetFetchRequestTopics(
                name=name, topic_id=topic_id(side, name), partition_indexes=list(indexes)
            )
            for name, indexes in topics
        ]
    return kind.OffsetFetchRequestGroup(group_id=group_id, topics=entries, **fields)


def delete(group_id: str, *topics: tuple[str, Sequence[int]]) -> Any:
    kind = OffsetDeleteRequest
    entries = [
        kind.OffsetDeleteRequestTopic(
            name=name,
            partitions=[kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in topics
    ]
    return kind(group_id=group_id, topics=entries)


def same_list(pair: Pair, request: Any, version: int, names: Collection[str]) -> Any:
    """Compares ListGroups of both for these groups alone, since other tests have their own. Returns Kafka's answer."""
    ours, theirs = (side.demand(request, version) for side in pair.sides)
    for answer in (ours, theirs):
        answer.groups = [each for each in answer.groups if each.group_id in names]
    pair.report(request, version, differences(pair, ours, theirs))
    return theirs


def subscription(*topics: str) -> bytes:
    """The metadata of a member of protocol type "consumer", version 0."""
    names = b"".join(len(name).to_bytes(2) + name.encode() for name in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


def member(side: Side, group_id: str, *topics: str, instance: str | None = None) -> tuple[str, int]:
    """A new member, alone in its group, which is then Stable: its id and the generation."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription(*topics))
    asked: dict[str, Any] = {
        "group_id": group_id,
        "session_timeout_ms": 600_000,  # longer than any test takes
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
        "group_instance_id": instance,
    }
    answer = side.demand(JoinGroupRequest(**asked), 7)
    if answer.error_code == MEMBER_ID_REQUIRED:
        answer = side.demand(JoinGroupRequest(**asked, member_id=answer.member_id), 7)
    assert answer.error_code == 0, f"{side.name} does not let a member into {group_id}: {answer}"
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"")
    synced = side.demand(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=instance,
            assignments=[assignment],
        ),
        4,
    )
    assert synced.error_code == 0, f"{side.name}: {synced}"
    return answer.member_id, answer.generation_id


def consumer(side: Side, group_id: str, *topics: str) -> tuple[str, int]:
    """A new member of the consumer protocol, alone in its group: its id and its epoch once it owns all partitions."""
    member_id = "A" * 21 + "Q"
    epoch = 0
    deadline = time.monotonic() + READY_SECONDS
    while True:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=600_000 if epoch == 0 else -1,
            subscribed_topic_names=list(topics) if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        answer = side.demand(request, 1)
        assert answer.error_code == 0, f"{side.name}: {answer}"
        epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return member_id, epoch
        assert time.monotonic() < deadline, f"{side.name} assigns nothing"
        time.sleep(0.05)
