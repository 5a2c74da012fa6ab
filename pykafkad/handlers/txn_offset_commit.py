"""TxnOffsetCommit (key 28), versions 0 to 5: offsets that count when a transaction is committed.

Member, generation and instance since 3 (KIP-447): whoever is no member of the group any more is fenced. The partition of
the group's offsets must be part of the transaction: up to 4 the producer has added it (AddOffsetsToTxn), since 5 it is
added here (KIP-890). Partitions that do not exist are refused here; the rules of groups are in
pure/groups/offset_requests.
"""

from __future__ import annotations

from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_GROUP_ID,
    NOT_COORDINATOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
)
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.handlers.taking_part import of_offsets
from pykafkad.messages import OffsetCommitRequest, TxnOffsetCommitResponse
from pykafkad.pure.authorization import GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE, Need
from pykafkad.pure.groups.offset_requests import Commit, commit_in_transaction
from pykafkad.slices import GO_ON, begun
from pykafkad.uuids import ZERO as NO_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import TxnOffsetCommitRequest
    from pykafkad.pure.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.slices import OrWork, Work

LOADING_SINCE = 2  # older clients do not know that a coordinator loads

TopicResponse = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResponse = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition

needs = (
    Need(WRITE, TRANSACTIONAL_ID, "transactional_id"),
    Need(READ, GROUP, "group_id"),
    Need(READ, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> OrWork[TxnOffsetCommitResponse | Context]:
    return begun(answer(broker, request, context))


def answer(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> Work[TxnOffsetCommitResponse | Context]:
    longest = broker.group_coordinator.settings.offset_metadata_max_bytes
    made = Commit(as_commit(request), longest, broker.clock.now_ms())
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    topics = yield from prepare(broker, request.topics, made, permits)
    rows = yield from rows_of(made, topics)
    response = TxnOffsetCommitResponse(topics=list(topics.values()))
    if not rows:
        return response
    producer = request.producer_id, request.producer_epoch
    version = context.version  # who refuses must not know the context, which knows it

    def refuse(error: KafkaError) -> TxnOffsetCommitResponse:
        code = told(error.code, version)
        for each in rows:
            each.error_code = code
        return response

    try:
        replica = offsets_of(broker, request.group_id)
        verified = yield from of_offsets(broker, request.transactional_id, producer, replica, version)
    except KafkaError as error:
        return refuse(error)

    def commit(groups: Groups, caller: Caller) -> Effects:
        if verified is not None:
            verified.check(replica, producer)
        return commit_in_transaction(groups, made, caller, producer, response)

    return broker.group_coordinator.ask(request.group_id, context, commit, refuse)


def as_commit(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    """What it has in common with a commit outside of transactions."""
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )


def prepare(
    broker: Broker,
    asked: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic],
    made: Commit,
    permits: Permits | None,
) -> Generator[bool, None, dict[str, TopicResponse]]:
    """Prepare what is committed of partitions that exist; returns the topics of those that do not, or that the client may
    not read, refused."""
    refused: dict[str, TopicResponse] = {}
    for topic in asked:
        known = broker.image.topics.get(topic.name)
        count, code = 0 if known is None else len(known.partitions), UNKNOWN_TOPIC_OR_PARTITION
        if permits is not None and not permits.allow(READ, TOPIC, topic.name):
            known, count, code = None, 0, TOPIC_AUTHORIZATION_FAILED
        is_begun = False
        for items in pieces(topic.partitions):
            missing = [item for item in items if not 0 <= item.partition_index < count]
            if missing or known is None:
                rows = refused.setdefault(topic.name, TopicResponse(name=topic.name)).partitions
                rows += [row(item.partition_index, code) for item in missing]
            if len(missing) < len(items):
                if not is_begun:
                    made.begin_topic(topic.name, NO_TOPIC_ID)
                    is_begun = True
                made.add([item for item in items if 0 <= item.partition_index < count] if missing else items)
            yield GO_ON
    return refused


def rows_of(made: Commit, topics: dict[str, TopicResponse]) -> Generator[bool, None, list[PartitionResponse]]:
    """Add what is committed to the topics of the answer, behind what is refused, as in Kafka; returns what was added."""
    rows: list[PartitionResponse] = []
    for topic in made.answers:
        answered = topics.setdefault(topic.name, TopicResponse(name=topic.name)).partitions
        for some in pieces(topic.partitions):
            more = [row(each.partition_index, each.error_code) for each in some]
            answered += more
            rows += more
            yield GO_ON
    return rows


def row(index: int, code: int) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code)


def offsets_of(broker: Broker, group_id: str) -> Replica:
    """The replica that has the offsets of this group."""
    if not group_id:
        raise KafkaError(INVALID_GROUP_ID)
    replica = broker.replicas.get((CONSUMER_OFFSETS, broker.group_coordinator.partition_of(group_id)))
    if replica is None or replica.leadership is None:
        raise KafkaError(NOT_COORDINATOR)
    return replica


def told(code: int, version: int) -> int:
    if code == COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return COORDINATOR_NOT_AVAILABLE
    return code
