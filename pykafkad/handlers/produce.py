"""Produce (key 0), versions 3 to 13; ApiVersions lists it from 0, as Kafka does for old librdkafka (KIP-896).

Each partition's batch is checked and queued here; the loop writes what a pass queued with one call a partition,
and only then encodes the answers. Where that write fails the answers are changed first (`append_failed`).
Missing: transactional batches (the transaction coordinator comes with transactions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import Unanswerable
from pykafkad.handlers.partitions import missing
from pykafkad.hot.records import RecordsError, check_framing, check_produce
from pykafkad.messages import ProduceResponse
from pykafkad.short_forms import LoneProduceRequest, LoneProduceResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker
    from pykafkad.storage.partition import Partition


short_form = LoneProduceRequest

FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics, as in Kafka

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = ProduceResponse.PartitionProduceResponse
RecordError = ProduceResponse.BatchIndexAndErrorMessage


# Errors of an append with which Kafka does not say where the log starts.
START_NOT_SAID = frozenset(
    (
        errors.CORRUPT_MESSAGE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.MESSAGE_TOO_LARGE,
        errors.RECORD_LIST_TOO_LARGE,
        errors.KAFKA_STORAGE_ERROR,
    )
)


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if type(request) is LoneProduceRequest:
        return handle_lone(broker, request, context)
    acks = request.acks
    topics = []
    failed = 0
    refusal = refusal_of_all(request)
    by_id = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.topic_data:
        name = name_of(broker, topic.topic_id) if by_id else topic.name
        items = topic.partition_data
        if len(items) > 1:  # of one that is named twice the last counts
            items = {item.index: item for item in items}.values()
        partitions = []
        for item in items:
            if refusal is None:
                answer = produce(broker, name, item, acks, context)
            else:
                answer = refused(item.index, refusal)
            if answer.error_code:
                failed = answer.error_code
            partitions.append(answer)
        if partitions:
            topics.append(
                TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
            )
    if acks == 0:
        return unanswered(failed)
    return ProduceResponse(responses=topics)


def handle_lone(broker: Broker, request: Any, context: Context) -> Any:
    """The same for one batch of one partition, without the objects of whole messages."""
    acks = request.acks
    by_id = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
    name = name_of(broker, request.topic_id) if by_id else request.name
    try:
        check_framing(request.records, request.transactional_id is not None)
    except RecordsError as error:
        answer = refused(request.index, error)
    else:
        answer = produce(broker, name, request, acks, context, LoneProduceResponse)
    if acks == 0:
        return unanswered(answer.error_code)
    if answer.error_code:
        topic = TopicResponse(name=request.name, topic_id=request.topic_id, partition_responses=[answer])
        return ProduceResponse(responses=[topic])
    answer.name = request.name
    answer.topic_id = request.topic_id
    return answer


def name_of(broker: Broker, topic_id: bytes) -> str | None:
    known = broker.image.topics_by_id.get(topic_id)
    return known.name if known is not None else None


def unanswered(error_code: int) -> None:
    """With acks=0 there is no answer; an error ends the connection, as in Kafka."""
    if error_code:
        raise Unanswerable(f"produce with acks=0 failed: {errors.NAMES[error_code]}")


def refusal_of_all(request: Any) -> RecordsError | None:
    """What is wrong with one partition's batch and refuses them all with it, so that nothing is stored."""
    transactional = request.transactional_id is not None
    try:
        for topic in request.topic_data:
            for item in topic.partition_data:
                check_framing(item.records, transactional)
    except RecordsError as error:
        return error
    return None


def produce(
    broker: Broker,
    topic: str | None,
    item: Any,
    acks: int,
    context: Context,
    accepted: Any = PartitionResponse,
) -> Any:
    index = item.index
    data = item.records
    start = -1
    try:
        if topic is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_ID)
        partition = broker.storage.partitions.get((topic, index))
        if partition is None:
            raise KafkaError(missing(broker, topic, index))
        check_produce(data, context.version)
        check(partition, acks, context)
        start = partition.log_start_offset
        appended = partition.append(data, broker.pass_ms or broker.read_pass_ms())
    except KafkaError as error:
        return refused(index, error, start)
    answer = accepted(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=start,
    )
    broker.appends.append((partition, answer, context))
    return answer


def check(partition: Partition, acks: int, context: Context) -> None:
    """What is refused before an append is tried."""
    if acks not in (-1, 1, 0):
        raise KafkaError(errors.INVALID_REQUIRED_ACKS)
    if partition.is_internal and context.client_id != ADMIN_CLIENT:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    if acks == -1 and partition.settings.min_insync_replicas > 1:
        raise KafkaError(errors.NOT_ENOUGH_REPLICAS)


def refused(index: int, error: KafkaError, log_start_offset: int = -1) -> Any:
    answer = PartitionResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=error.message
    )
    if error.code not in START_NOT_SAID:
        answer.log_start_offset = log_start_offset
    if isinstance(error, RecordsError):
        answer.record_errors = [
            RecordError(batch_index=batch_index, batch_index_error_message=text)
            for batch_index, text in error.record_errors
        ]
    return answer


def append_failed(answer: Any, context: Context) -> None:
    """The write or the flush of this partition's queue failed: nothing is promised, and the client is told so; one
    that wants no answer by the end of its connection, as in Kafka."""
    if context.response is None:
        context.connection.finish(f"produce with acks=0 failed: {errors.NAMES[errors.KAFKA_STORAGE_ERROR]}")
    answer.error_code = errors.KAFKA_STORAGE_ERROR
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
