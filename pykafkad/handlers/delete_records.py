"""DeleteRecords (key 21), versions 0 to 2: raises the log start offset (KIP-107).

A single node answers at once; in a cluster the answer waits for followers (cluster_deletions.py), up to the request's
timeout. The new offset is checkpointed right after. Segments below it are deleted by retention, as in Kafka. If a
partition is named twice its last offset is the one that counts, as in Kafka.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find, items_of
from pykafkad.messages import DeleteRecordsResponse
from pykafkad.pure.authorization import DELETE, LAST, TOPIC, Need
from pykafkad.slices import GO_ON, begun, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DeleteRecordsRequest
    from pykafkad.slices import OrWork, Work


TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
PartitionResult = DeleteRecordsResponse.DeleteRecordsPartitionResult

UNKNOWN_LOW_WATERMARK = -1


needs = (Need(DELETE, TOPIC, "topics.name", denied=LAST),)


def handle(
    broker: Broker, request: DeleteRecordsRequest, context: Context
) -> OrWork[DeleteRecordsResponse | Context]:
    if broker.cluster is None:
        return begun(answer(broker, request))
    from pykafkad.handlers.cluster_deletions import answer_in_cluster

    return answer_in_cluster(broker, request, context)


def answer(broker: Broker, request: DeleteRecordsRequest) -> Work[DeleteRecordsResponse]:
    asked: dict[tuple[str, int], int] = {}
    for pause, (topic, item) in each(items_of(request.topics)):
        if pause:
            yield GO_ON
        if item is not None:
            asked[topic.name, item.partition_index] = item.offset
    topics: dict[str, list[PartitionResult]] = {}
    for pause, ((name, index), offset) in each(asked.items()):
        if pause:
            yield GO_ON
        topics.setdefault(name, []).append(delete(broker, name, index, offset))
    if topics:
        broker.storage.checkpoint_log_starts()
    return DeleteRecordsResponse(
        topics=[TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def delete(broker: Broker, topic: str, index: int, offset: int) -> PartitionResult:
    result = PartitionResult(partition_index=index, low_watermark=UNKNOWN_LOW_WATERMARK)
    try:
        partition = find(broker, topic, index)
        if partition.is_internal:
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
        result.low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        result.error_code = error.code
    return result
