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
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError
from pykafkad.messages import ProduceResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker
    from pykafkad.storage.partition import Partition

API_KEY = 0
VERSIONS = (0, 13)
REQUEST = "ProduceRequest"

ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics, as in Kafka

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = ProduceResponse.PartitionProduceResponse
RecordError = ProduceResponse.BatchIndexAndErrorMessage


def handle(broker: Broker, request: Any, context: Context) -> Any:
    acks = request.acks
    version = context.version
    topics = []
    failed = 0
    broken = broken_framing(request, version)
    for topic in request.topic_data:
        name = topic.name
        if version >= 13:
            known = broker.image.topics_by_id.get(topic.topic_id)
            name = known.name if known is not None else None
        partitions = []
        for item in topic.partition_data:
            if broken is None:
                answer = produce(broker, name, item, acks, context)
            else:
                answer = refused_records(item.index, broken)
            failed = failed or answer.error_code
            partitions.append(answer)
        topics.append(TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions))
    if acks == 0:
        if failed:
            raise Unanswerable(f"produce with acks=0 failed: {errors.NAMES[failed]}")
        return None
    return ProduceResponse(responses=topics)


def broken_framing(request: Any, version: int) -> RecordsError | None:
    """Where one partition's batch is not even framed, Kafka refuses all the others with it, so that nothing of the
    request is stored. A request for one partition is left to `check`."""
    data = request.topic_data
    if len(data) == 1 and len(data[0].partition_data) == 1:
        return None
    for topic in data:
        for item in topic.partition_data:
            try:
                records.check_produce(item.records, version)
            except RecordsError as error:
                if error.whole_request:
                    return error
    return None


def produce(broker: Broker, topic: str | None, item: Any, acks: int, context: Context) -> Any:
    index = item.index
    try:
        if topic is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_ID)
        partition = broker.storage.partitions.get((topic, index))
        if partition is None:
            raise KafkaError(missing(broker, topic, index))
        check(partition, item.records, acks, context)
        appended = partition.append(item.records, broker.clock.now_ms())
    except RecordsError as error:
        return refused_records(index, error)
    except KafkaError as error:
        return PartitionResponse(
            index=index, error_code=error.code, base_offset=-1, error_message=error.message
        )
    answer = PartitionResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    broker.appends.append((partition, answer))
    return answer


def check(partition: Partition, data: Any, acks: int, context: Context) -> None:
    """What is refused before the batch is looked into."""
    records.check_produce(data, context.version)
    if acks == -1:
        if partition.settings.min_insync_replicas > 1:
            raise KafkaError(errors.NOT_ENOUGH_REPLICAS)
    elif acks not in (0, 1):
        raise KafkaError(errors.INVALID_REQUIRED_ACKS)
    if partition.is_internal and context.client_id != ADMIN_CLIENT:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)


def refused_records(index: int, error: RecordsError) -> Any:
    return PartitionResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        error_message=error.message,
        record_errors=[
            RecordError(batch_index=batch_index, batch_index_error_message=text)
            for batch_index, text in error.record_errors
        ],
    )


def append_failed(answer: Any) -> None:
    """The write of this partition's queue failed: nothing was stored, and the client is told so."""
    answer.error_code = errors.KAFKA_STORAGE_ERROR
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
