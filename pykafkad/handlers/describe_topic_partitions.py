"""DescribeTopicPartitions (key 75), version 0: topics page by page, with their eligible leader replicas
(KIP-966).

Topics come in the order of their names, and no more partitions than the limit; the cursor of an answer is
where the next request goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.handlers.cluster_view import TOPIC_OPERATIONS, partition_views, why_missing
from pykafkad.messages import DescribeTopicPartitionsResponse

if TYPE_CHECKING:
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def handle(broker: Broker, request: Any, context: Context) -> Any:
    cursor = request.cursor
    all_topics = not request.topics
    asked = broker.image.topics if all_topics else [topic.name for topic in request.topics]
    first = cursor.topic_name if cursor is not None else ""
    names = sorted({name for name in asked if name >= first}, key=java_order)
    if cursor is not None and (cursor.partition_index < 0 or not (all_topics or cursor.topic_name in names)):
        return refuse(request, errors.INVALID_REQUEST)
    if "" in names:
        return refuse(request, errors.UNKNOWN_SERVER_ERROR)  # Kafka stumbles over an empty name
    most = broker.config["max.request.partition.size.limit"]
    return describe(broker, names, cursor, max(1, min(most, request.response_partition_limit)))


def java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def refuse(request: Any, code: int) -> Any:
    return DescribeTopicPartitionsResponse(
        topics=[TopicResponse(error_code=code, name=topic.name) for topic in request.topics]
    )


def describe(broker: Broker, names: list[str], cursor: Any, room: int) -> Any:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.image.topics.get(name)
        if topic is None:
            response.topics.append(
                TopicResponse(
                    error_code=why_missing(name), name=name, topic_authorized_operations=TOPIC_OPERATIONS
                )
            )
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        partitions = views(broker.image, topic)[first : first + room]
        response.topics.append(
            TopicResponse(
                name=name,
                topic_id=topic.id,
                is_internal=topic.is_internal,
                partitions=partitions,
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if first + room < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + room)
            break
        room -= len(partitions)
    return response


def views(image: Image, topic: Topic) -> list[Any]:
    found: list[Any] | None = topic.cache.get("describe")
    if found is None:
        found = topic.cache["describe"] = partition_views(
            image, topic, PartitionResponse, errors.NONE, "eligible_leader_replicas", "last_known_elr"
        )
    return found
