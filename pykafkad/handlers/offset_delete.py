"""OffsetDelete (key 47), version 0: committed offsets are taken out of a group (KIP-496).

Partitions that do not exist are refused here, before the group is asked; a topic that a member of the group is
subscribed to is refused by the group's machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import INVALID_GROUP_ID, UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.messages import OffsetDeleteResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.pure.groups.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.server import Broker


TopicResponse = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResponse = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if not request.group_id:
        return refused(KafkaError(INVALID_GROUP_ID))
    missing = [row for topic in request.topics if (row := keep_existing(broker, topic)).partitions]
    request.topics = [topic for topic in request.topics if topic.partitions]

    def delete(groups: Groups, caller: Caller) -> Effects:
        effects = groups.delete_offsets(request, caller)
        response = effects.replies[-1][1]
        response.topics = merged(missing, response.topics)
        return effects

    return broker.groups.ask(request.group_id, context, delete, refused)


def keep_existing(broker: Broker, topic: Any) -> Any:
    """Takes the partitions that do not exist out of the topic; the answer about them."""
    known = broker.image.topics.get(topic.name)
    count = 0 if known is None else len(known.partitions)
    gone = [item.partition_index for item in topic.partitions if not 0 <= item.partition_index < count]
    topic.partitions = [item for item in topic.partitions if 0 <= item.partition_index < count]
    rows = [PartitionResponse(partition_index=index, error_code=UNKNOWN_TOPIC_OR_PARTITION) for index in gone]
    return TopicResponse(name=topic.name, partitions=rows)


def merged(refused_topics: list[Any], topics: list[Any]) -> list[Any]:
    """One entry a topic; what was refused first."""
    by_name: dict[str, Any] = {}
    for topic in [*refused_topics, *topics]:
        known = by_name.setdefault(topic.name, topic)
        if known is not topic:
            known.partitions = [*known.partitions, *topic.partitions]
    return list(by_name.values())


def refused(error: KafkaError) -> Any:
    return OffsetDeleteResponse(error_code=error.code)
