"""OffsetFetch (key 9), versions 1 to 10: the committed offsets of one group up to 7, of several groups since 8.

No topics (null, since 2) means all of them. require_stable (7, KIP-447) refuses partitions for which an open
transaction has an offset; member id and epoch (9, KIP-848) are checked; topic ids instead of names since 10. In a cluster
on ZooKeeper there is version 0, too (zookeeper_offsets.py).
"""

from __future__ import annotations

from pykafkad.errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    KafkaError,
)
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import are_few, pieces
from pykafkad.messages import OffsetFetchRequest, OffsetFetchResponse
from pykafkad.pure.authorization import DESCRIBE, GROUP, TOPIC, Need
from pykafkad.slices import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.cluster.image import Topic
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker, AskerInSlices
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import OrWork, Work


ERROR_SINCE = 2
GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1

GroupRequest = OffsetFetchRequest.OffsetFetchRequestGroup
TopicRequest = OffsetFetchRequest.OffsetFetchRequestTopics
GroupResponse = OffsetFetchResponse.OffsetFetchResponseGroup
TopicOfGroup = OffsetFetchResponse.OffsetFetchResponseTopics
PartitionOfGroup = OffsetFetchResponse.OffsetFetchResponsePartitions
TopicResponse = OffsetFetchResponse.OffsetFetchResponseTopic
PartitionResponse = OffsetFetchResponse.OffsetFetchResponsePartition


needs = (
    Need(DESCRIBE, GROUP, by_handler=True),
    Need(DESCRIBE, TOPIC, by_handler=True),
)


def handle(broker: Broker, request: OffsetFetchRequest, context: Context) -> OrWork[OffsetFetchResponse]:
    version = context.version
    if not version:
        from pykafkad.handlers import zookeeper_offsets

        return zookeeper_offsets.fetch(broker, request, context)
    groups = request.groups if version >= GROUPS_SINCE else [as_group(request)]

    def refuse(error: KafkaError) -> OffsetFetchResponse:
        return response_of([refused(group, error.code, version) for group in groups], version)

    few = len(groups) == 1 and groups[0].topics is not None and are_few(groups[0].topics, "partition_indexes")
    if not few or broker.authorizer is not None:
        permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
        return in_slices(
            broker,
            groups,
            request.require_stable,
            version,
            broker.group_coordinator.asker_in_slices(context, refuse),
            permits,
        )
    asker = broker.group_coordinator.asker(context, refuse)
    return response_of([fetch(broker, groups[0], request.require_stable, version, asker)], version)


def as_group(request: OffsetFetchRequest) -> GroupRequest:
    """The one group of an old request, in the form of the newer versions."""
    topics = None
    if request.topics is not None:
        topics = [
            TopicRequest(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return GroupRequest(group_id=request.group_id, topics=topics)


def fetch(
    broker: Broker, group: GroupRequest, require_stable: bool, version: int, asker: Asker
) -> GroupResponse:
    unknown: list[TopicRequest] = []
    if version >= TOPIC_IDS_SINCE:
        group.topics, unknown = named(broker, group.topics or [])
    try:
        answer = broker.group_coordinator.look(group.group_id, asker).fetch_offsets(group, require_stable)
    except KafkaError as error:
        return refused(group, error.code, version)
    if unknown:
        answer.topics = [*answer.topics, *(topic_refused(topic, UNKNOWN_TOPIC_ID) for topic in unknown)]
    return answer


# -- many groups, topics or partitions, or all offsets of a group


def in_slices(
    broker: Broker,
    groups: list[GroupRequest],
    require_stable: bool,
    version: int,
    asker: AskerInSlices,
    permits: Permits | None,
) -> Work[OffsetFetchResponse]:
    answers = []
    everything: dict[
        tuple[str, str | None, int], GroupResponse
    ] = {}  # answers for all topics of a group, which may be asked for repeatedly
    for group in groups:
        who = group.group_id, group.member_id, group.member_epoch
        if group.topics is None and who in everything:
            answers.append(everything[who])
            continue
        try:
            if permits is not None and not permits.allow(DESCRIBE, GROUP, group.group_id):
                raise KafkaError(GROUP_AUTHORIZATION_FAILED)
            answer = yield from fetch_in_slices(broker, group, require_stable, version, asker, permits)
        except KafkaError as error:
            answer = yield from refused_in_slices(group, error.code, version)
        if group.topics is None:
            everything[who] = answer
        answers.append(answer)
        yield
    if version >= GROUPS_SINCE:
        return asker.answer(response_of(answers, version))
    return asker.answer((yield from old_response_in_slices(answers[0])))


def fetch_in_slices(
    broker: Broker,
    group: GroupRequest,
    require_stable: bool,
    version: int,
    asker: AskerInSlices,
    permits: Permits | None,
) -> Generator[None, None, GroupResponse]:
    from pykafkad.pure.groups.offset_requests import check_fetch, fetched_topics, rows_of

    group_id = group.group_id
    by_id = version >= TOPIC_IDS_SINCE
    found = broker.group_coordinator.look(group_id, asker)
    check_fetch(found, group)
    topics = []
    refused: list[tuple[str, bytes, list[int], int]] = []
    for name, topic_id, indexes in fetched_topics(found, group):
        shown_id = topic_id
        if by_id:
            known = known_topic(broker, group, name, topic_id)
            if known is None:
                refused.append(("", topic_id, indexes, UNKNOWN_TOPIC_ID))
                yield
                continue
            name, shown_id = known.name, known.id
        if permits is not None and not permits.allow(DESCRIBE, TOPIC, name):
            refused.append((name, shown_id, indexes, TOPIC_AUTHORIZATION_FAILED))
            yield
            continue
        topic = TopicOfGroup(name=name, topic_id=shown_id, partitions=[])
        for piece in pieces(indexes):
            there = broker.group_coordinator.look(group_id, asker)  # again, since it may be gone by now
            topic.partitions += rows_of(there, group_id, name, topic_id, piece, require_stable)
            yield
        topics.append(topic)
    for each in refused if group.topics is not None else ():  # of all topics they are left out
        topics.append((yield from topic_refused_in_slices(*each)))
    return GroupResponse(group_id=group_id, topics=topics)


def known_topic(broker: Broker, group: GroupRequest, name: str, topic_id: bytes) -> Topic | None:
    """A topic that is named by its id, or, if all topics are asked for, by its name."""
    return broker.image.topics.get(name) if group.topics is None else broker.image.topics_by_id.get(topic_id)


def named(broker: Broker, topics: list[TopicRequest]) -> tuple[list[TopicRequest], list[TopicRequest]]:
    """The topics that exist, with their names, and those that do not."""
    known, unknown = [], []
    for topic in topics:
        found = broker.image.topics_by_id.get(topic.topic_id)
        if found is None:
            unknown.append(topic)
        else:
            topic.name = found.name
            known.append(topic)
    return known, unknown


# -- refusals


def refused(group: GroupRequest, code: int, version: int) -> GroupResponse:
    return finish(refused_in_slices(group, code, version))


def refused_in_slices(group: GroupRequest, code: int, version: int) -> Generator[None, None, GroupResponse]:
    """The error for everything in the request. Before version 2 only partitions have a field for it."""
    answer = GroupResponse(group_id=group.group_id, error_code=code)
    if version < ERROR_SINCE:
        answer.topics = []
        for topic in group.topics or ():
            work = topic_refused_in_slices(topic.name, topic.topic_id, topic.partition_indexes, code)
            answer.topics.append((yield from work))
    return answer


def topic_refused(topic: TopicRequest, code: int) -> TopicOfGroup:
    return finish(topic_refused_in_slices(topic.name, topic.topic_id, topic.partition_indexes, code))


def topic_refused_in_slices(
    name: str, topic_id: bytes, indexes: list[int], code: int
) -> Generator[None, None, TopicOfGroup]:
    rows: list[PartitionOfGroup] = []
    for piece in pieces(indexes):
        rows += [
            PartitionOfGroup(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code)
            for index in piece
        ]
        yield
    return TopicOfGroup(name=name, topic_id=topic_id, partitions=rows)


# -- the forms of the answer


def response_of(groups: list[GroupResponse], version: int) -> OffsetFetchResponse:
    if version >= GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    return finish(old_response_in_slices(groups[0]))


def old_response_in_slices(group: GroupResponse) -> Generator[None, None, OffsetFetchResponse]:
    topics = []
    for topic in group.topics:
        rows: list[PartitionResponse] = []
        for piece in pieces(topic.partitions):
            rows += map(in_old_form, piece)
            yield
        topics.append(TopicResponse(name=topic.name, partitions=rows))
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def in_old_form(row: PartitionOfGroup) -> PartitionResponse:
    return PartitionResponse(
        partition_index=row.partition_index,
        committed_offset=row.committed_offset,
        committed_leader_epoch=row.committed_leader_epoch,
        metadata=row.metadata,
        error_code=row.error_code,
    )
