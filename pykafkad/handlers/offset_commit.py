"""OffsetCommit (key 8), versions 2 to 10: stores committed offsets of a group. Topic ids instead of names since 10.
In a cluster on ZooKeeper also 1, which says when an offset was committed, and 0 (zookeeper_offsets.py).

Partitions that do not exist are refused here; the rules of groups are in pure/groups/offset_requests.
"""

from __future__ import annotations

from pykafkad.errors import (
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
)
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import FEW, pieces
from pykafkad.messages import OffsetCommitRequest, OffsetCommitResponse
from pykafkad.pure.authorization import GROUP, READ, TOPIC, Need
from pykafkad.slices import begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import OrWork, Work


TOPIC_IDS_SINCE = 10

TopicRequest = OffsetCommitRequest.OffsetCommitRequestTopic
TopicResponse = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse = OffsetCommitResponse.OffsetCommitResponsePartition


needs = (
    Need(READ, GROUP, "group_id"),
    Need(READ, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: OffsetCommitRequest, context: Context
) -> OrWork[OffsetCommitResponse | Context]:
    if not context.version:
        from pykafkad.handlers import zookeeper_offsets

        return begun(zookeeper_offsets.commit(broker, request, context))
    topics = request.topics
    if broker.authorizer is not None or not few_that_exist(broker, topics, context.version):
        return begun(in_slices(broker, request, context))
    if not topics:
        return OffsetCommitResponse()
    now_ms = broker.pass_ms or broker.read_pass_ms()
    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.commit_offsets(request, caller, now_ms),
        lambda error: OffsetCommitResponse(topics=refused(topics, error)),
    )


def few_that_exist(broker: Broker, topics: list[TopicRequest], version: int) -> bool:
    """Whether there are few partitions, which all exist. Completes each topic: it then has both its name and its id."""
    image, by_id, left = broker.image, version >= TOPIC_IDS_SINCE, FEW
    for topic in topics:
        items = topic.partitions
        left -= len(items)
        known = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        if known is None or not items or left < 0:
            return False
        topic.name, topic.topic_id = known.name, known.id
        count = len(known.partitions)
        for item in items:
            if not 0 <= item.partition_index < count:
                return False
    return True


def in_slices(
    broker: Broker, request: OffsetCommitRequest, context: Context
) -> Work[OffsetCommitResponse | Context]:
    """The same for many partitions, or such as do not exist. Everything is prepared in slices and then done in one step,
    since a commit is in the log as a whole or not at all. Partitions that do not exist, or whose topic the client may not
    read, are refused here; their answers come first, as in Kafka."""
    from pykafkad.pure.groups.offset_requests import Commit

    by_id = context.version >= TOPIC_IDS_SINCE
    refusals = Answers(by_id)
    longest = broker.group_coordinator.settings.offset_metadata_max_bytes
    made = Commit(request, longest, broker.clock.now_ms())
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    for topic in request.topics:
        image = broker.image
        known = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        name, topic_id = (topic.name, topic.topic_id) if known is None else (known.name, known.id)
        count = 0 if known is None else len(known.partitions)
        code = UNKNOWN_TOPIC_ID if known is None and by_id else UNKNOWN_TOPIC_OR_PARTITION
        if permits is not None and code != UNKNOWN_TOPIC_ID and not permits.allow(READ, TOPIC, name):
            known, count, code = None, 0, TOPIC_AUTHORIZATION_FAILED
        is_begun = False
        for items in pieces(topic.partitions):
            missing = [item for item in items if not 0 <= item.partition_index < count]
            if missing or known is None:
                refusals.add(name, topic_id, [partition_refused(item, code) for item in missing])
            if len(missing) < len(items):
                if not is_begun:
                    made.begin_topic(name, topic_id)
                    is_begun = True
                made.add([item for item in items if 0 <= item.partition_index < count] if missing else items)
            yield
    response = OffsetCommitResponse(topics=made.answers)
    if refusals.topics:
        for answer in made.answers:
            refusals.add(answer.name, answer.topic_id, answer.partitions)
            yield
        response.topics = list(refusals.topics.values())
    if not made.answers:
        return response

    def refuse(error: KafkaError) -> OffsetCommitResponse:
        made.refuse(error.code)
        return response

    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: made.take_effect(groups, caller, response),
        refuse,
    )


class Answers:
    """One entry for each topic, in the order in which topics are first added."""

    def __init__(self, by_id: bool) -> None:
        self.by_id = by_id
        self.topics: dict[str | bytes, TopicResponse] = {}

    def add(self, name: str, topic_id: bytes, rows: list[PartitionResponse]) -> None:
        key = topic_id if self.by_id else name
        known = self.topics.get(key)
        if known is None:
            known = self.topics[key] = TopicResponse(name=name, topic_id=topic_id, partitions=[])
        known.partitions += rows


def refused(topics: list[TopicRequest], error: KafkaError) -> list[TopicResponse]:
    return [
        TopicResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[partition_refused(item, error.code) for item in topic.partitions],
        )
        for topic in topics
    ]


def partition_refused(item: OffsetCommitRequest.OffsetCommitRequestPartition, code: int) -> PartitionResponse:
    return PartitionResponse(partition_index=item.partition_index, error_code=code)
