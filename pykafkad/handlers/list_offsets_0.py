"""ListOffsets, version 0: the offsets at which segments begin, and the end of the log, as a list.

From before records had timestamps: a segment is as old as its file. Asked for is what is as old as a time, or older, the
newest first, and at most so many.
"""

from __future__ import annotations

from itertools import dropwhile

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.list_offsets import (
    CONSUMER,
    EARLIEST,
    LATEST,
    PartitionResponse,
    TopicResponse,
    while_it_is_there,
)
from pykafkad.handlers.partitions import find, items_of
from pykafkad.messages import ListOffsetsResponse
from pykafkad.slices import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListOffsetsRequest


def answer(broker: Broker, request: ListOffsetsRequest) -> Generator[None, None, ListOffsetsResponse]:
    topics: list[TopicResponse] = []
    of: ListOffsetsRequest.ListOffsetsTopic | None = None
    for pause, (topic, item) in each(items_of(request.topics)):
        if pause:
            yield
        if topic is not of:
            of = topic
            topics.append(TopicResponse(name=topic.name))
        if item is None:
            continue
        found = PartitionResponse(partition_index=item.partition_index)
        topics[-1].partitions.append(found)
        try:
            found.old_style_offsets = yield from offsets_before(broker, request.replica_id, topic.name, item)
        except KafkaError as error:
            found.error_code = error.code
    return ListOffsetsResponse(topics=topics)


def offsets_before(
    broker: Broker, replica_id: int, topic: str, item: ListOffsetsRequest.ListOffsetsPartition
) -> Generator[None, None, list[int]]:
    if item.timestamp < 0 and item.timestamp not in (LATEST, EARLIEST):
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    partition = find(broker, topic, item.partition_index)
    if item.max_num_offsets < 0:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    times = yield from while_it_is_there(broker, partition, partition.times_of_segments())
    if partition.log_end_offset > times[-1][0]:
        times.append((partition.log_end_offset, broker.clock.now_ms()))
    offsets = sorted(chosen(times, item.timestamp)[: -item.max_num_offsets - 1 : -1], reverse=True)
    if replica_id == CONSUMER and offsets and offsets[0] > partition.high_watermark:
        committed = dropwhile(lambda offset: offset > partition.high_watermark, offsets)
        return [partition.high_watermark, *committed]
    return offsets


def chosen(times: list[tuple[int, int]], timestamp: int) -> list[int]:
    """What is as old as that, the newest last."""
    offsets = [offset for offset, _ in times]
    if timestamp == LATEST:
        return offsets
    if timestamp == EARLIEST:
        return offsets[:1]
    last = max((place for place, (_, time) in enumerate(times) if time <= timestamp), default=-1)
    return offsets[: last + 1]
