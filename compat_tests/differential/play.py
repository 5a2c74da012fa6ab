"""A consumer group on both brokers: members' heartbeats, and the records of both in `__consumer_offsets`.

`play = Play(pair)` is a new group that computes target assignments at once (consumer.assignment.interval.ms=0). Member
ids are the test's own, so they are the same on both; topics are given by name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from compat_tests.differential.meant import record_order, sort_partitions
from compat_tests.differential.offset_requests import group
from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import topic_id
from compat_tests.differential.tree import Difference, differences
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.hot import records
from pykafkad.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from pykafkad.pure.effects import UnknownRecord
from pykafkad.pure.groups.records import decode

GROUP_RESOURCE = 32
FETCH_VERSION = 12
OFFSETS = "__consumer_offsets"
READY_SECONDS = 10.0

Heartbeat = ConsumerGroupHeartbeatRequest
Owned = Mapping[str, Iterable[int]]


class Play:
    def __init__(self, pair: Pair, stem: str = "play", interval_ms: int | None = 0) -> None:
        self.pair = pair
        self.group_id = group(pair, stem)
        self.epochs: dict[str, int] = {}
        if interval_ms is not None:
            self.configure("consumer.assignment.interval.ms", str(interval_ms))

    def configure(self, name: str, value: str) -> None:
        """Set a config of the group on both; in Kafka it takes effect a moment later."""
        kind = IncrementalAlterConfigsRequest
        config = kind.AlterableConfig(name=name, config_operation=0, value=value)
        resource = kind.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.group_id, configs=[config]
        )
        for side in self.pair.sides:
            answer = side.demand(kind(resources=[resource]), 1).responses[0]
            assert answer.error_code == 0, f"{side.name}: {answer}"
        time.sleep(0.15)

    # -- heartbeats

    def request(self, member: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Each:
        def build(side: Side) -> Any:
            topics = None
            if owned is not None:
                topics = [
                    Heartbeat.TopicPartitions(topic_id=topic_id(side, name), partitions=list(partitions))
                    for name, partitions in owned.items()
                ]
            given = {"group_id": self.group_id, "member_id": member, "member_epoch": epoch}
            return Heartbeat(**{**given, "topic_partitions": topics, **fields})

        return build

    def beat(self, member: str, epoch: int | None = None, version: int = 1, **fields: Any) -> Any:
        """Kafka's answer, which is also ours. Without an epoch the member uses the last one it got."""
        if epoch is None:
            epoch = self.epochs.get(member, 0)
        answer = self.pair.same(self.request(member, epoch, **fields), version)
        if not answer.error_code:
            self.epochs[member] = max(answer.member_epoch, 0)
        return answer

    def join(self, member: str, *topics: str, version: int = 1, **fields: Any) -> Any:
        given: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "owned": {}}
        if "subscribed_topic_regex" not in fields:
            given["subscribed_topic_names"] = list(topics)
        return self.beat(member, 0, version, **{**given, **fields})

    def leave(self, member: str, epoch: int = -1, **fields: Any) -> Any:
        return self.beat(member, epoch, **fields)

    def describe(self, version: int = 1, *group_ids: str, **fields: Any) -> Any:
        asked = ConsumerGroupDescribeRequest(group_ids=list(group_ids) or [self.group_id], **fields)
        return self.pair.same(asked, version).groups[0]

    # -- records

    def written(self, side: Side) -> list[tuple[Any, Any]]:
        """The group's records, in the order of the log."""
        index = partition_for(self.group_id, partitions_of(side))
        found = []
        for record in read(side, index):
            try:
                key, value = decode(record.key, record.value)
            except UnknownRecord:
                continue
            if self.group_id in (getattr(key, "group_id", None), getattr(key, "group", None)):
                sort_partitions(value)
                found.append((key, value))
        return found

    def compare_records(self, in_order: bool = True) -> list[tuple[Any, Any]]:
        """Fails if they differ; returns Kafka's. For several members the order is not compared."""
        ours, theirs = (self.written(side) for side in self.pair.sides)
        if not in_order:
            ours, theirs = (sorted(rows, key=lambda row: record_order(row[0])) for rows in (ours, theirs))
        found = []
        names = [[type(key).__name__ for key, _ in rows] for rows in (ours, theirs)]
        if names[0] != names[1]:
            found.append(Difference("records", names[0], names[1]))
        else:
            for (our_key, our_value), (their_key, their_value) in zip(ours, theirs, strict=True):
                found += differences(self.pair, our_key, their_key)
                found += compare_values(self.pair, our_value, their_value)
        self.pair.report(f"records of {self.group_id}", 0, found)
        return theirs


def compare_values(pair: Pair, ours: Any, theirs: Any) -> list[Difference]:
    if ours is None or theirs is None:
        return [] if ours is theirs else [Difference("value", ours, theirs)]
    return differences(pair, ours, theirs)


def partitions_of(side: Side) -> int:
    topic = MetadataRequest.MetadataRequestTopic(name=OFFSETS)
    return len(side.demand(MetadataRequest(topics=[topic]), 12).topics[0].partitions)


def read(side: Side, index: int) -> list[Any]:
    """All records of a partition of `__consumer_offsets`."""
    found: list[Any] = []
    offset = 0
    while True:
        kind = FetchRequest
        asked = kind.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 24)
        topics = [kind.FetchTopic(topic=OFFSETS, partitions=[asked])]
        request = kind(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics)
        part = side.demand(request, FETCH_VERSION).responses[0].partitions[0]
        assert part.error_code == 0, part
        rows = list(records.read(part.records)) if part.records else []
        rows = [row for row in rows if row.offset >= offset]
        if not rows:
            return found
        found += rows
        offset = rows[-1].offset + 1
