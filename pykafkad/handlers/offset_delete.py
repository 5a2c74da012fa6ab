"""OffsetDelete (key 47), version 0: deletes committed offsets of a group (KIP-496).

Partitions that do not exist are refused here, before the group is asked. Topics that a member of the group is
subscribed to are refused by the group (pure/groups).
"""

from __future__ import annotations

from pykafkad.errors import (
    INVALID_GROUP_ID,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
)
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.messages import OffsetDeleteRequest, OffsetDeleteResponse
from pykafkad.pure.authorization import DELETE, GROUP, READ, TOPIC, Need
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import OrWork, Work

    PartitionRequest = OffsetDeleteRequest.OffsetDeleteRequestPartition


AT_ONCE = 1_000  # partitions

TopicRequest = OffsetDeleteRequest.OffsetDeleteRequestTopic
TopicResponse = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResponse = OffsetDeleteResponse.OffsetDeleteResponsePartition


needs = (
    Need(DELETE, GROUP, "group_id"),
    Need(READ, TOPIC, by_handler=True),
)


def handle(broker: Broker, request: OffsetDeleteRequest, context: Context) -> OrWork[OffsetDeleteResponse]:
    if not request.group_id:
        return refused(KafkaError(INVALID_GROUP_ID))
    return delete(broker, request, context)


def delete(broker: Broker, request: OffsetDeleteRequest, context: Context) -> Work[OffsetDeleteResponse]:
    """Partitions that do not exist, or whose topic the client may not read, are answered first, then one entry for each
    topic, as in Kafka. If there are very many partitions, they are deleted in several steps."""
    asker = broker.group_coordinator.asker_in_slices(context, refused)
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    answers: dict[str, TopicResponse] = {}
    asked: list[tuple[str, PartitionRequest]] = []
    for topic in request.topics:
        known = broker.image.topics.get(topic.name)
        count, code = 0 if known is None else len(known.partitions), UNKNOWN_TOPIC_OR_PARTITION
        if permits is not None and not permits.allow(READ, TOPIC, topic.name):
            count, code = 0, TOPIC_AUTHORIZATION_FAILED
        for items in pieces(topic.partitions):
            gone = [item for item in items if not 0 <= item.partition_index < count]
            if gone:
                rows_of(answers, topic.name).extend(
                    PartitionResponse(partition_index=item.partition_index, error_code=code) for item in gone
                )
            asked += [(topic.name, item) for item in items if 0 <= item.partition_index < count]
            yield
    try:
        for piece in pieces(asked, AT_ONCE):
            request.topics = by_topic(piece)
            answer = broker.group_coordinator.perform(
                request.group_id, asker, lambda groups, caller: groups.delete_offsets(request, caller)
            )
            for answered in answer.topics:
                rows_of(answers, answered.name).extend(answered.partitions)
            yield GO_ON
    except KafkaError as error:
        return refused(error)
    return asker.answer(OffsetDeleteResponse(topics=list(answers.values())))


def by_topic(asked: Sequence[tuple[str, PartitionRequest]]) -> list[TopicRequest]:
    topics: dict[str, TopicRequest] = {}
    for name, item in asked:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicRequest(name=name, partitions=[])
        topic.partitions.append(item)
    return list(topics.values())


def rows_of(answers: dict[str, TopicResponse], name: str) -> list[PartitionResponse]:
    topic = answers.get(name)
    if topic is None:
        topic = answers[name] = TopicResponse(name=name, partitions=[])
    return topic.partitions


def refused(error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
