"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where a leader epoch ended (KIP-101, 279, 320)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find
from pykafkad.messages import OffsetForLeaderEpochResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(broker: Broker, request: Any, context: Context) -> Any:
    topics = []
    for topic in request.topics:
        answers = []
        for item in topic.partitions:
            answer = EpochEndOffset(partition=item.partition)
            try:
                partition = find(broker, topic.topic, item.partition, item.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(item.leader_epoch)
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(TopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)
