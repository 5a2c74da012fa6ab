"""OffsetCommit (key 8), versions 2 to 10: stores committed offsets of a group. Topic ids instead of names since 10.

Partitions that do not exist are refused here; the rules of groups are in pure/groups/offset_requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.handlers.pieces import are_few, pieces
from pykafkad.messages import OffsetCommitRequest, OffsetCommitResponse
from pykafkad.pure.authorization import GROUP, READ, TOPIC, Need
from pykafkad.slices import finish

if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import Work


TOPIC_IDS_SINCE = 10

TopicRequest = OffsetCommitRequest.OffsetCommitRequestTopic
TopicResponse = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse = OffsetCommitResponse.OffsetCommitResponsePartition


needs = (
    Need(READ, GROUP, "group_id"),
    Need(READ, TOPIC, "topics.name"),
)


def handle(broker: Broker, request: OffsetCommitRequest, context: Context) -> Any:
    if not are_few(request.topics, "partitions"):
        return in_slices(broker, request, context, encode=True)
    if not all_exist(broker, request.topics, context.version):
        return finish(in_slices(broker, request, context, encode=False))
    if not request.topics:
        return OffsetCommitResponse()
    now_ms = broker.clock.now_ms()
    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.commit_offsets(request, caller, now_ms),
        lambda error: OffsetCommitResponse(topics=refused(request.topics, error)),
    )


def all_exist(broker: Broker, topics: list[Any], version: int) -> bool:
    """Whether all topics and partitions exist. Completes each topic, so that it has both its name and its id."""
    for topic in topics:
        known = find(broker, topic, version)
        if known is None or not topic.partitions:
            return False
        topic.name, topic.topic_id = known.name, known.id
        count = len(known.partitions)
        for item in topic.partitions:
            if not 0 <= item.partition_index < count:
                return False
    return True


def find(broker: Broker, topic: Any, version: int) -> Any:
    if version < TOPIC_IDS_SINCE:
        return broker.image.topics.get(topic.name)
    return broker.image.topics_by_id.get(topic.topic_id)


def in_slices(broker: Broker, request: OffsetCommitRequest, context: Context, encode: bool) -> Work:
    """The same for many partitions. Everything is prepared in slices and then done in one step, since a commit is in
    the log as a whole or not at all. Partitions that do not exist are refused here; their answers come first, as in
    Kafka."""
    from pykafkad.pure.groups.offset_requests import Commit

    version = context.version
    refusals = Answers(version)
    longest = broker.group_coordinator.settings.offset_metadata_max_bytes
    made = Commit(request, longest, broker.clock.now_ms(), encode)
    for topic in request.topics:
        known = find(broker, topic, version)
        name, topic_id = (topic.name, topic.topic_id) if known is None else (known.name, known.id)
        count = 0 if known is None else len(known.partitions)
        code = UNKNOWN_TOPIC_ID if known is None and refusals.by_id else UNKNOWN_TOPIC_OR_PARTITION
        begun = False
        for items in pieces(topic.partitions):
            missing = [item for item in items if not 0 <= item.partition_index < count]
            if missing or known is None:
                refusals.add(name, topic_id, [partition_refused(item, code) for item in missing])
            if len(missing) < len(items):
                if not begun:
                    made.begin_topic(name, topic_id)
                    begun = True
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

    def refuse(error: KafkaError) -> Any:
        made.refuse(error.code)
        return response

    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.commit_worked_out(request, caller, made, response),
        refuse,
    )


class Answers:
    """One entry for each topic, in the order in which topics are first added."""

    def __init__(self, version: int) -> None:
        self.by_id = version >= TOPIC_IDS_SINCE
        self.topics: dict[Any, Any] = {}

    def add(self, name: str, topic_id: bytes, rows: list[Any]) -> None:
        key = topic_id if self.by_id else name
        known = self.topics.get(key)
        if known is None:
            known = self.topics[key] = TopicResponse(name=name, topic_id=topic_id, partitions=[])
        known.partitions += rows


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
