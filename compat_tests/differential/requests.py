"""Requests in a short form. If a topic is given by its id, the request is made for each broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_tests.differential.pair import Each, Side
from pykafkad.hot import records
from pykafkad.messages import (
    CreateTopicsRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)

UNKNOWN_ID = bytes(range(16, 32))
OLD_MS = 1_700_000_000_000


def batch(*values: bytes, timestamp: int = OLD_MS, **header: Any) -> bytes:
    """A batch of records with these values, a millisecond apart."""
    entries: list[Any] = [(None, value, [], timestamp + index) for index, value in enumerate(values)]
    return bytes(records.build(entries, **header))


def topic_id(side: Side, topic: str) -> bytes:
    return side.topic_ids.get(topic, UNKNOWN_ID)


def produce(
    topic: str, parts: Mapping[int, bytes | None] | list[tuple[int, bytes | None]], **fields: Any
) -> Each:
    """Batches by partition of one topic; acks=all by default."""
    pairs = list(parts.items()) if isinstance(parts, Mapping) else parts

    def build(side: Side) -> Any:
        data = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index, batch in pairs]
        entry = ProduceRequest.TopicProduceData(
            name=topic, topic_id=topic_id(side, topic), partition_data=data
        )
        return ProduceRequest(**{"acks": -1, "timeout_ms": 10_000, "topic_data": [entry], **fields})

    return build


def fetch_partition(partition: int, offset: int, **fields: Any) -> Any:
    given = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields}
    return FetchRequest.FetchPartition(**given)


def fetch(topics: Mapping[str, list[Any]], **fields: Any) -> Each:
    """Partitions (of fetch_partition) by topic; by default without a session and without waiting."""

    def build(side: Side) -> Any:
        entries = [
            FetchRequest.FetchTopic(topic=name, topic_id=topic_id(side, name), partitions=partitions)
            for name, partitions in topics.items()
        ]
        given = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": entries}
        return FetchRequest(**{**given, **fields})

    return build


def list_offsets(topic: str, *asked: tuple[int, int], current_leader_epoch: int = -1, **fields: Any) -> Any:
    """Pairs of (partition, timestamp)."""
    kind = ListOffsetsRequest
    parts = [
        kind.ListOffsetsPartition(
            partition_index=index, timestamp=timestamp, current_leader_epoch=current_leader_epoch
        )
        for index, timestamp in asked
    ]
    given = {"replica_id": -1, "topics": [kind.ListOffsetsTopic(name=topic, partitions=parts)]}
    return kind(**{**given, **fields})


def leader_epochs(topic: str, *asked: tuple[int, int, int], **fields: Any) -> Any:
    """Triples of (partition, current leader epoch, leader epoch)."""
    kind = OffsetForLeaderEpochRequest
    parts = [
        kind.OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        for index, current, epoch in asked
    ]
    topics = [kind.OffsetForLeaderTopic(topic=topic, partitions=parts)]
    return kind(**{"replica_id": -1, "topics": topics, **fields})


def creatable(name: str, configs: Mapping[str, str | None] | None = None, **fields: Any) -> Any:
    """A topic for CreateTopics; by default with one partition and one replica."""
    kind = CreateTopicsRequest
    entries = [kind.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    return kind.CreatableTopic(
        **{"name": name, "num_partitions": 1, "replication_factor": 1, "configs": entries, **fields}
    )


def create(*topics: Any, **fields: Any) -> Any:
    return CreateTopicsRequest(**{"topics": list(topics), "timeout_ms": 10_000, **fields})
