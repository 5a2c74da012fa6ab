"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where a leader epoch ended (KIP-101, 279, 320)."""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find, items_of
from pykafkad.messages import OffsetForLeaderEpochResponse
from pykafkad.pure.authorization import CLUSTER_ACTION, DESCRIBE, LAST, TOPIC, Need
from pykafkad.slices import begun, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import OffsetForLeaderEpochRequest
    from pykafkad.slices import OrWork


TopicResult = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


needs = (Need(DESCRIBE, TOPIC, "topics.topic", or_on_cluster=CLUSTER_ACTION, denied=LAST),)


def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: Context
) -> OrWork[OffsetForLeaderEpochResponse]:
    return begun(answer(broker, request))


def answer(
    broker: Broker, request: OffsetForLeaderEpochRequest
) -> Generator[None, None, OffsetForLeaderEpochResponse]:
    topics: list[TopicResult] = []
    of: Any = None
    for pause, (topic, item) in each(items_of(request.topics)):
        if pause:
            yield
        if topic is not of:
            of = topic
            topics.append(TopicResult(topic=topic.topic))
        if item is not None:
            topics[-1].partitions.append(end_of_epoch(broker, topic.topic, item))
    return OffsetForLeaderEpochResponse(topics=topics)


def end_of_epoch(
    broker: Broker, topic: str, item: OffsetForLeaderEpochRequest.OffsetForLeaderPartition
) -> EpochEndOffset:
    answer = EpochEndOffset(partition=item.partition)
    try:
        partition = find(broker, topic, item.partition, item.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(item.leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
    return answer
