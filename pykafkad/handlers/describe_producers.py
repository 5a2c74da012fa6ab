"""DescribeProducers (key 61), version 0: what a partition remembers about its producers (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find
from pykafkad.messages import DescribeProducersResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.pure.producer_state import ProducerEntry
    from pykafkad.server import Broker


TopicResponse = DescribeProducersResponse.TopicResponse
PartitionResponse = DescribeProducersResponse.PartitionResponse
ProducerState = DescribeProducersResponse.ProducerState


def handle(broker: Broker, request: Any, context: Context) -> Any:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[describe(broker, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def describe(broker: Broker, topic: str, index: int) -> Any:
    problem = topic_names.why_invalid(topic)
    if problem is not None:
        code = errors.INVALID_TOPIC_EXCEPTION
        return PartitionResponse(partition_index=index, error_code=code, error_message=problem)
    if topic not in broker.image.topics:
        code = errors.UNKNOWN_TOPIC_OR_PARTITION
        text = errors.MESSAGES[code]
        return PartitionResponse(partition_index=index, error_code=code, error_message=text)
    try:
        partition = find(broker, topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    return PartitionResponse(partition_index=index, active_producers=list(map(state, partition.producers)))


def state(entry: ProducerEntry) -> Any:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_start,
    )
