"""ListOffsets (key 2), versions 1 to 11.

A timestamp, or one of: latest -1, earliest -2, the greatest timestamp -3 (KIP-734), earliest local -4 (KIP-405),
latest tiered -5 (KIP-1005), earliest pending upload -6 (KIP-1023). Nothing is tiered here, so local is all there
is and tiered is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find
from pykafkad.messages import ListOffsetsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker
    from pykafkad.storage.partition import Partition


LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_SINCE = 4
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
NOTHING = (-1, -1, -1)

TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
PartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse

Found = tuple[int, int, int]  # offset, timestamp, leader epoch


def handle(broker: Broker, request: Any, context: Context) -> Any:
    twice = named_twice(request.topics)
    # one entry for each topic and partition, however often it is named
    topics: dict[str, dict[int, Any]] = {}
    for topic in request.topics:
        for item in topic.partitions:
            answer = PartitionResponse(partition_index=item.partition_index)
            topics.setdefault(topic.name, {})[item.partition_index] = answer
            try:
                if (topic.name, item.partition_index) in twice:
                    raise KafkaError(errors.INVALID_REQUEST)
                found = find_offset(broker, request, context.version, topic.name, item)
            except KafkaError as error:
                answer.error_code = error.code
            else:
                answer.offset, answer.timestamp, epoch = found
                if context.version >= LEADER_EPOCH_SINCE:
                    answer.leader_epoch = epoch
    return ListOffsetsResponse(
        topics=[TopicResponse(name=name, partitions=list(rows.values())) for name, rows in topics.items()]
    )


def find_offset(broker: Broker, request: Any, version: int, topic: str, item: Any) -> Found:
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    if item.timestamp < 0 and version < SINCE_VERSION.get(item.timestamp, 32767):
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    partition = find(broker, topic, item.partition_index, item.current_leader_epoch)
    return look_up(partition, item.timestamp, request.isolation_level)


def named_twice(topics: list[Any]) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice = set()
    for topic in topics:
        for item in topic.partitions:
            key = (topic.name, item.partition_index)
            if key in seen:
                twice.add(key)
            seen.add(key)
    return twice


def look_up(partition: Partition, timestamp: int, isolation_level: int) -> Found:
    end = partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark
    if timestamp == LATEST:
        return end, -1, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log_start_offset
        return start, -1, partition.epoch_at(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    if timestamp == MAX_TIMESTAMP:
        found = partition.max_timestamp_offset()
    else:
        found = partition.offset_for_timestamp(timestamp)
    if found is None or (found[0] >= end and timestamp != MAX_TIMESTAMP):
        return NOTHING
    return found
