"""ListOffsets (key 2), versions 1 to 11; in a cluster on ZooKeeper version 0, too (list_offsets_0.py).

The offset for a timestamp, or for one of: latest -1, earliest -2, the maximum timestamp -3 (KIP-734), earliest local -4
(KIP-405), latest tiered -5 (KIP-1005), earliest pending upload -6 (KIP-1023). There is no tiered storage here, so the
whole log is local and no offset is tiered.
"""

from __future__ import annotations

from typing import cast

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find, items_of
from pykafkad.messages import ListOffsetsResponse
from pykafkad.pure.authorization import DESCRIBE, LAST, TOPIC, Need
from pykafkad.slices import begun, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TypeVar

    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListOffsetsRequest
    from pykafkad.slices import OrWork, Work

    PartitionRequest = ListOffsetsRequest.ListOffsetsPartition
    Finding = Work["Found"]
    T = TypeVar("T")


LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
NAMED_OFFSETS_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_SINCE = 4
NOT_AVAILABLE_SINCE = 5
CONSUMER = -1  # a replica id, for whoever is none
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
NOTHING = (-1, -1, -1)

TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
PartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse

Found = tuple[int, int, int]  # offset, timestamp, leader epoch


needs = (Need(DESCRIBE, TOPIC, "topics.name", denied=LAST),)


def handle(broker: Broker, request: ListOffsetsRequest, context: Context) -> OrWork[ListOffsetsResponse]:
    if not context.version:
        from pykafkad.handlers import list_offsets_0

        return begun(list_offsets_0.answer(broker, request))
    return begun(answer(broker, request, context.version))


def answer(
    broker: Broker, request: ListOffsetsRequest, version: int
) -> Generator[None, None, ListOffsetsResponse]:
    twice = yield from named_twice(request.topics)
    # one entry for each topic and partition, however often it is named
    topics: dict[str, dict[int, PartitionResponse]] = {}
    for pause, (topic, item) in each(items_of(request.topics)):
        if pause:
            yield
        if item is None:
            continue
        answer = PartitionResponse(partition_index=item.partition_index)
        topics.setdefault(topic.name, {})[item.partition_index] = answer
        try:
            if (topic.name, item.partition_index) in twice:
                raise KafkaError(errors.INVALID_REQUEST)
            found = yield from find_offset(broker, request, version, topic.name, item)
        except KafkaError as error:
            answer.error_code = error.code
        else:
            answer.offset, answer.timestamp, epoch = found
            if version >= LEADER_EPOCH_SINCE:
                answer.leader_epoch = epoch
    answers = []
    for pause, (name, rows) in each(topics.items()):
        if pause:
            yield
        answers.append(TopicResponse(name=name, partitions=list(rows.values())))
    return ListOffsetsResponse(topics=answers)


def named_twice(
    topics: list[ListOffsetsRequest.ListOffsetsTopic],
) -> Generator[None, None, set[tuple[str, int]]]:
    seen: set[tuple[str, int]] = set()
    twice = set()
    for pause, (topic, item) in each(items_of(topics), 64):
        if pause:
            yield
        if item is not None:
            key = (topic.name, item.partition_index)
            if key in seen:
                twice.add(key)
            seen.add(key)
    return twice


def find_offset(
    broker: Broker, request: ListOffsetsRequest, version: int, topic: str, item: PartitionRequest
) -> Finding:
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    if item.timestamp < 0 and version < NAMED_OFFSETS_SINCE.get(item.timestamp, 32767):
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    partition = find(broker, topic, item.partition_index, item.current_leader_epoch)
    is_consumer = broker.cluster is None or request.replica_id == CONSUMER
    end = end_of(partition, request.isolation_level) if is_consumer else partition.log_end_offset
    if is_consumer and is_lagging(partition):
        return (yield from found_so_far(broker, partition, item.timestamp, end, version))
    if item.timestamp >= 0 or item.timestamp == MAX_TIMESTAMP:
        return (yield from by_time(broker, partition, item.timestamp, end))
    return by_name(partition, item.timestamp, end)


def end_of(partition: Replica, isolation_level: int) -> int:
    return partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark


def is_lagging(partition: Replica) -> bool:
    """A new leader does not know yet how far its followers have come: consumers of the one before may have seen a higher
    end of the log (KIP-207)."""
    leadership = partition.leadership
    return leadership is not None and partition.high_watermark < leadership.epoch_start


def found_so_far(broker: Broker, partition: Replica, timestamp: int, end: int, version: int) -> Finding:
    if timestamp < 0 and timestamp not in (LATEST, MAX_TIMESTAMP):
        return by_name(partition, timestamp, end)
    found = NOTHING
    if timestamp != LATEST:
        found = yield from by_time(broker, partition, timestamp, end)
    if found is NOTHING and is_lagging(partition):
        raise KafkaError(
            errors.OFFSET_NOT_AVAILABLE if version >= NOT_AVAILABLE_SINCE else errors.LEADER_NOT_AVAILABLE
        )
    return found


def by_name(partition: Replica, timestamp: int, end: int) -> Found:
    if timestamp == LATEST:
        return end, -1, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log_start_offset
        return start, -1, partition.epoch_at(start)
    return NOTHING  # latest tiered, and earliest pending upload


def by_time(broker: Broker, partition: Replica, timestamp: int, end: int) -> Finding:
    if timestamp == MAX_TIMESTAMP:
        work = partition.max_timestamp_offset()
    else:
        work = partition.offset_for_timestamp(timestamp)
    found = yield from while_it_is_there(broker, partition, work)
    if found is None or found[0] >= end:
        return NOTHING
    return found


def while_it_is_there(broker: Broker, partition: Replica, work: Generator[int | None, None, T]) -> Work[T]:
    """The result of the work, or KafkaError if the partition was deleted or failed between two slices."""
    stay = broker.unfolding.stay()
    try:
        while True:
            try:
                kept = next(work)
            except StopIteration as end:
                return cast("T", end.value)
            yield
            yield from stay.keep(kept or 0)
            if find(broker, partition.topic, partition.index) is not partition:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
    finally:
        stay.leave()
