"""DeleteRecords (key 21), versions 0 to 2: the start of a log moves up (KIP-107).

Answered at once, as this node has the only replica; the new start gets to its checkpoint right after. Segments
that lie below it are deleted by retention, as in Kafka. Kafka looks at neither the timeout nor a partition's
earlier mentions: of one that is named twice the last counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find
from pykafkad.messages import DeleteRecordsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
PartitionResult = DeleteRecordsResponse.DeleteRecordsPartitionResult

UNKNOWN_LOW_WATERMARK = -1


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        if topic.partitions:
            offsets = asked.setdefault(topic.name, {})
            offsets.update((item.partition_index, item.offset) for item in topic.partitions)
    topics = [
        TopicResult(
            name=name, partitions=[delete(broker, name, index, offset) for index, offset in offsets.items()]
        )
        for name, offsets in asked.items()
    ]
    if topics:
        broker.storage.checkpoint_log_starts()
    return DeleteRecordsResponse(topics=topics)


def delete(broker: Broker, topic: str, index: int, offset: int) -> Any:
    result = PartitionResult(partition_index=index, low_watermark=UNKNOWN_LOW_WATERMARK)
    try:
        partition = find(broker, topic, index)
        if partition.is_internal:
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
        result.low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        result.error_code = error.code
    return result
