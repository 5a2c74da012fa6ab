"""DescribeProducers (key 61), version 0: the state of the producers of a partition (KIP-664)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.errors import KafkaError
from pykafkad.handlers import Unanswerable
from pykafkad.handlers.partitions import find
from pykafkad.messages import DescribeProducersResponse
from pykafkad.pure.authorization import IN_PLACE, READ, TOPIC, Need
from pykafkad.slices import ELEMENTS_AT_ONCE, begun, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeProducersRequest
    from pykafkad.pure.producer_state import ProducerEntry
    from pykafkad.slices import OrWork

# Kafka describes a partition as often as it is named, and repeats an error as often, however large the answer gets.
# Here each partition that exists is described once in any case; repetitions and errors share this many bytes.
EXTRA_MAX = 16 * 1024 * 1024
BYTES_OF_PRODUCER = 43

TopicResponse = DescribeProducersResponse.TopicResponse
PartitionResponse = DescribeProducersResponse.PartitionResponse
ProducerState = DescribeProducersResponse.ProducerState


def has_a_name(topic: DescribeProducersRequest.TopicRequest) -> bool:
    """Kafka looks at names before it asks who asks."""
    return topic_names.why_invalid(topic.name) is None


needs = (Need(READ, TOPIC, "topics.name", of=has_a_name, denied=IN_PLACE),)


def handle(
    broker: Broker, request: DescribeProducersRequest, context: Context
) -> OrWork[DescribeProducersResponse]:
    return begun(answer(broker, request))


def answer(
    broker: Broker, request: DescribeProducersRequest
) -> Generator[None, None, DescribeProducersResponse]:
    topics = []
    known: set[tuple[str, int]] = set()
    extra = steps = 0
    for topic in request.topics:
        result = TopicResponse(name=topic.name)
        topics.append(result)
        problem = topic_names.why_invalid(topic.name)
        for index in topic.partition_indexes:
            if problem is None:
                described = yield from describe(broker, topic.name, index)
            else:
                described = refused(index, errors.INVALID_TOPIC_EXCEPTION, problem)
            result.partitions.append(described)
            extra += len(described.error_message or "")
            if described.active_producers:
                if (topic.name, index) in known:
                    extra += BYTES_OF_PRODUCER * len(described.active_producers)
                known.add((topic.name, index))
            if extra > EXTRA_MAX:
                raise Unanswerable(
                    f"producers described again and again, or problems: {EXTRA_MAX} bytes of them"
                )
            steps += 1
            if not steps % ELEMENTS_AT_ONCE:
                yield
        steps += 1
        if not steps % ELEMENTS_AT_ONCE:
            yield
    return DescribeProducersResponse(topics=topics)


def describe(broker: Broker, topic: str, index: int) -> Generator[None, None, PartitionResponse]:
    if topic not in broker.image.topics:
        code = errors.UNKNOWN_TOPIC_OR_PARTITION
        return refused(index, code, errors.MESSAGES[code])
    try:
        partition = find(broker, topic, index)
    except KafkaError as error:
        return refused(index, error.code)
    answer = PartitionResponse(partition_index=index)
    for pause, entry in each(list(partition.producers)):
        if pause:
            yield
        answer.active_producers.append(state(entry))
    return answer


def refused(index: int, code: int, text: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=text)


def state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_start,
    )
