"""OffsetCommit (key 8), versions 2 to 10: a group's positions are stored. Topic ids instead of names since 10.

Partitions that do not exist are refused here; the rest goes to the group's machine (pure/groups/offset_requests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.messages import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.pure.groups.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.server import Broker


FIRST_VERSION_WITH_TOPIC_IDS = 10

TopicRequest = OffsetCommitRequest.OffsetCommitRequestTopic
TopicResponse = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if not all_exist(broker, request.topics, context.version):
        return commit_what_exists(broker, request, context)
    if not request.topics:
        return OffsetCommitResponse()
    now_ms = broker.clock.now_ms()
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.commit_offsets(request, caller, now_ms),
        lambda error: OffsetCommitResponse(topics=refused(request.topics, error)),
    )


def all_exist(broker: Broker, topics: list[Any], version: int) -> bool:
    """Whether there is nothing to refuse; gives every topic both its name and its id."""
    by_name = broker.image.topics
    for topic in topics:
        if version < FIRST_VERSION_WITH_TOPIC_IDS:
            known = by_name.get(topic.name)
        else:
            known = broker.image.topics_by_id.get(topic.topic_id)
        if known is None or not topic.partitions:
            return False
        topic.name, topic.topic_id = known.name, known.id
        count = len(known.partitions)
        for item in topic.partitions:
            if not 0 <= item.partition_index < count:
                return False
    return True


def commit_what_exists(broker: Broker, request: Any, context: Context) -> Any:
    """Some is refused here and not shown to the group; its answers come first, as in Kafka."""
    answers: dict[Any, Any] = {}
    request.topics = [
        topic for topic in request.topics if keep_existing(broker, topic, context.version, answers)
    ]
    if not request.topics:
        return OffsetCommitResponse(topics=list(answers.values()))
    now_ms = broker.clock.now_ms()

    def commit(groups: Groups, caller: Caller) -> Effects:
        effects = groups.commit_offsets(request, caller, now_ms)
        response = effects.replies[-1][1]
        response.topics = merged(answers, response.topics, context.version)
        return effects

    def refuse(error: KafkaError) -> Any:
        return OffsetCommitResponse(topics=merged(answers, refused(request.topics, error), context.version))

    return broker.groups.ask(request.group_id, context, commit, refuse)


def keep_existing(broker: Broker, topic: Any, version: int, answers: dict[Any, Any]) -> bool:
    """Takes out of the topic what does not exist, with its answer; whether something is left."""
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    image = broker.image
    known = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
    count = 0 if known is None else len(known.partitions)
    code = UNKNOWN_TOPIC_ID if known is None and by_id else UNKNOWN_TOPIC_OR_PARTITION
    if known is not None:
        topic.name, topic.topic_id = known.name, known.id
    missing = [item for item in topic.partitions if not 0 <= item.partition_index < count]
    if missing or known is None:
        key = topic.topic_id if by_id else topic.name
        answer = answers.get(key)
        if answer is None:
            answer = answers[key] = TopicResponse(name=topic.name, topic_id=topic.topic_id)
        answer.partitions = [*answer.partitions, *(partition_refused(item, code) for item in missing)]
    topic.partitions = [item for item in topic.partitions if 0 <= item.partition_index < count]
    return bool(topic.partitions)


def merged(answers: dict[Any, Any], topics: list[Any], version: int) -> list[Any]:
    """What was refused here, then what the group answered; one entry a topic if something was refused here."""
    if not answers:
        return topics
    result = dict(answers)
    for topic in topics:
        key = topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.name
        known = result.setdefault(key, topic)
        if known is not topic:
            known.partitions = [*known.partitions, *topic.partitions]
    return list(result.values())


def refused(topics: list[Any], error: KafkaError) -> list[Any]:
    return [
        TopicResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[partition_refused(item, error.code) for item in topic.partitions],
        )
        for topic in topics
    ]


def partition_refused(item: Any, code: int) -> Any:
    return PartitionResponse(partition_index=item.partition_index, error_code=code)
