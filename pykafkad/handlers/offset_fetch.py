"""OffsetFetch (key 9), versions 1 to 10: what groups have committed; of one group up to 7, of several since 8.

No topics (null, since 2) means all. require_stable (7, KIP-447) refuses partitions that an open transaction has an
offset for; member id and epoch (9, KIP-848) are checked; topic ids instead of names since 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import UNKNOWN_TOPIC_ID, KafkaError
from pykafkad.messages import OffsetFetchRequest, OffsetFetchResponse

if TYPE_CHECKING:
    from pykafkad.coordinator.shard import Asker
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


FIRST_VERSION_WITH_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10
NO_OFFSET = -1

GroupRequest = OffsetFetchRequest.OffsetFetchRequestGroup
TopicRequest = OffsetFetchRequest.OffsetFetchRequestTopics
GroupResponse = OffsetFetchResponse.OffsetFetchResponseGroup
TopicOfGroup = OffsetFetchResponse.OffsetFetchResponseTopics
PartitionOfGroup = OffsetFetchResponse.OffsetFetchResponsePartitions
TopicResponse = OffsetFetchResponse.OffsetFetchResponseTopic
PartitionResponse = OffsetFetchResponse.OffsetFetchResponsePartition


def handle(broker: Broker, request: Any, context: Context) -> Any:
    version = context.version
    groups = request.groups if version >= FIRST_VERSION_WITH_GROUPS else [as_group(request)]

    def refuse(error: KafkaError) -> Any:
        return response_of([refused(group, error.code, version) for group in groups], version)

    asker = broker.groups.asker(context, refuse)
    answers = [fetch(broker, group, request.require_stable, version, asker) for group in groups]
    return response_of(answers, version)


def as_group(request: Any) -> Any:
    """The one group of an old request, in the form of the new ones."""
    topics = request.topics
    if topics is not None:
        topics = [
            TopicRequest(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics
        ]
    return GroupRequest(group_id=request.group_id, topics=topics)


def fetch(broker: Broker, group: Any, require_stable: bool, version: int, asker: Asker) -> Any:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    unknown: list[Any] = []
    if by_id and group.topics is not None:
        group.topics, unknown = named(broker, group.topics)
    try:
        answer = broker.groups.look(group.group_id, asker).fetch_offsets(group, require_stable)
    except KafkaError as error:
        return refused(group, error.code, version)
    if by_id and group.topics is None:
        answer.topics = identified(broker, answer.topics)
    if unknown:
        answer.topics = [*answer.topics, *(topic_refused(topic, UNKNOWN_TOPIC_ID) for topic in unknown)]
    return answer


def named(broker: Broker, topics: list[Any]) -> tuple[list[Any], list[Any]]:
    """Topics that exist, with their names, and those that do not."""
    known, unknown = [], []
    for topic in topics:
        found = broker.image.topics_by_id.get(topic.topic_id)
        if found is None:
            unknown.append(topic)
        else:
            topic.name = found.name
            known.append(topic)
    return known, unknown


def identified(broker: Broker, topics: list[Any]) -> list[Any]:
    """The topics that still have an id, with it."""
    result = []
    for topic in topics:
        known = broker.image.topics.get(topic.name)
        if known is not None:
            topic.topic_id = known.id
            result.append(topic)
    return result


def refused(group: Any, code: int, version: int) -> Any:
    answer = GroupResponse(group_id=group.group_id, error_code=code)
    if version < FIRST_VERSION_WITH_ERROR:
        answer.topics = [topic_refused(topic, code) for topic in group.topics]
    return answer


def topic_refused(topic: Any, code: int) -> Any:
    rows = [
        PartitionOfGroup(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code)
        for index in topic.partition_indexes
    ]
    return TopicOfGroup(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def response_of(groups: list[Any], version: int) -> Any:
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=groups)
    group = groups[0]
    topics = [TopicResponse(name=topic.name, partitions=in_old_form(topic)) for topic in group.topics]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def in_old_form(topic: Any) -> list[Any]:
    return [
        PartitionResponse(
            partition_index=row.partition_index,
            committed_offset=row.committed_offset,
            committed_leader_epoch=row.committed_leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code,
        )
        for row in topic.partitions
    ]
