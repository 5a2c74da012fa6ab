"""Produce (key 0), versions 3 to 13; ApiVersions lists it from 0, as Kafka does for old librdkafka (KIP-896). In a
cluster on ZooKeeper 0 to 2 are served, too: whatever formats their records have (legacy_records.py).

Each partition's batch is checked and queued here. The loop writes all that a pass has queued for a partition with one
call, and encodes the answers only then. If that write fails, the answers are changed first (`append_failed`). Batches
that expand to much when they are decompressed, and requests with many partitions, are checked in slices. The client's
next request waits for them, so the order of its batches is kept. What belongs to a transaction is appended when the
transaction coordinator has verified it (taking_part.py). With acks=-1 an answer waits until the followers in the ISR have
the batch, for as long as the request's timeout allows (promises.py).
"""

from __future__ import annotations

from types import GeneratorType

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import Unanswerable
from pykafkad.handlers.partitions import missing
from pykafkad.hot.records import (
    Batches,
    RecordsError,
    begin_validation,
    check_framing,
    check_produce,
)
from pykafkad.messages import ProduceResponse
from pykafkad.pure.authorization import LAST, TOPIC, TRANSACTIONAL_ID, WRITE, Need
from pykafkad.short_forms import LoneProduceRequest, LoneProduceResponse
from pykafkad.slices import GO_ON, begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import Any, TypeVar

    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.permits import Permits
    from pykafkad.handlers.taking_part import Batch, Verified
    from pykafkad.messages import ProduceRequest
    from pykafkad.promises import Promise
    from pykafkad.slices import OrWork, Work

    Item = ProduceRequest.PartitionProduceData
    LoneAnswer = LoneProduceResponse | ProduceResponse | None  # None: with acks=0
    Accepted = TypeVar("Accepted", ProduceResponse.PartitionProduceResponse, LoneProduceResponse)


short_form = LoneProduceRequest

BATCHES_SINCE = 3  # of format 2 alone
TOPIC_IDS_SINCE = 13
ACKS = (-1, 1, 0)
ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics, as in Kafka
RECORD_ERRORS_MAX = 20_000  # in one answer; Kafka has no bound
FEW_RECORD_ERRORS = 64
FEW = 64  # of things that cost next to nothing
APPENDS_AT_ONCE = 8
STEPS_AT_ONCE = 2  # a first append to a partition creates its files, which may take a millisecond

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = ProduceResponse.PartitionProduceResponse
RecordError = ProduceResponse.BatchIndexAndErrorMessage


# Errors of an append for which Kafka leaves out the log start offset.
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


needs = (
    Need(WRITE, TRANSACTIONAL_ID, by_handler=True),
    Need(WRITE, TOPIC, "topic_data.name", denied=LAST, ids_since=TOPIC_IDS_SINCE),
)


def said_first(
    broker: Broker, request: ProduceRequest, context: Context, permits: Permits
) -> Work[ProduceResponse | None]:
    """Who may write to a transaction is asked if there is a batch that is part of one, and only then, as in Kafka."""
    from pykafkad.handlers.taking_part import is_transactional

    steps = 0
    for topic in request.topic_data:
        for item in topic.partition_data:
            if is_transactional(item.records):
                return (yield from check_transactional_id(request, permits))
            steps += 1
            if not steps % FEW:
                yield GO_ON
    return None


def check_transactional_id(request: ProduceRequest, permits: Permits) -> Work[ProduceResponse | None]:
    asked = request.transactional_id
    if asked is not None and permits.allow(WRITE, TRANSACTIONAL_ID, asked):
        return None
    error = KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.acks == 0:
        unanswered(error.code)
    topics = []
    for topic in request.topic_data:
        rows = []
        for item in topic.partition_data:
            rows.append(refused(item.index, error))
            if not len(rows) % FEW:
                yield
        topics.append(TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
        yield
    return ProduceResponse(responses=topics)


def handle(
    broker: Broker, request: ProduceRequest | LoneProduceRequest, context: Context
) -> OrWork[ProduceResponse | LoneProduceResponse | None]:
    if type(request) is LoneProduceRequest:
        return handle_lone(broker, request, context)
    return begun(answer(broker, request, context), STEPS_AT_ONCE)


def answer(broker: Broker, request: ProduceRequest, context: Context) -> Work[ProduceResponse | None]:
    """Append each partition's batch, and answer with the results. The batches may be written over several passes of the
    loop. The last of them promises the whole answer, since it is given then."""
    topics = []
    promises: list[Promise] = []
    told = failed = steps = 0
    by_id = context.version >= TOPIC_IDS_SINCE
    verified: Verified | None = None
    refusal: KafkaError | None = yield from refusal_of_all(request)
    if request.transactional_id is not None and refusal is None:
        try:
            batches = batches_of(broker, request.topic_data, by_id)
            verified = yield from of_transaction(broker, request, batches, context.version)
        except KafkaError as error:
            refusal = error
    for topic in request.topic_data:
        name = name_of(broker, topic.topic_id) if by_id else topic.name
        partitions = []
        for item in (yield from last_of_each(topic.partition_data)):
            here = refusal if verified is None or name is None else verified.refusals.get((name, item.index))
            if here is None:
                result: Any = produce(
                    broker, name, item, request, context, promises, PartitionResponse, told, verified
                )
                if type(result) is GeneratorType:
                    result = yield from result
            else:
                result = refused(item.index, here)
            told += len(result.record_errors)
            failed = result.error_code or failed
            partitions.append(result)
            steps += 1
            if not steps % APPENDS_AT_ONCE:
                yield GO_ON
        if partitions:
            topics.append(
                TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
            )
        steps += 1
        if not steps % APPENDS_AT_ONCE:
            yield GO_ON
    broker.promises.made += promises
    if request.acks == 0:
        unanswered(failed)
        return None
    return ProduceResponse(responses=topics)


def last_of_each(items: list[Item]) -> Generator[bool, None, Iterable[Item]]:
    """The partitions of a topic; if one is named twice, its last entry counts."""
    if len(items) <= FEW:
        return {item.index: item for item in items}.values() if len(items) > 1 else items
    by_index = {}
    for place, item in enumerate(items):
        by_index[item.index] = item
        if not place % FEW:
            yield GO_ON
    return by_index.values()


def handle_lone(broker: Broker, request: LoneProduceRequest, context: Context) -> OrWork[LoneAnswer]:
    """The same for one batch of one partition, without the objects of a whole message."""
    by_id = context.version >= TOPIC_IDS_SINCE
    name = name_of(broker, request.topic_id) if by_id else request.name
    if request.transactional_id is not None:
        return begun(lone_of_transaction(broker, name, request, context))
    try:
        check_framing(request.records, False)
    except RecordsError as error:
        return lone_answer(request, refused(request.index, error))
    made = broker.promises.made
    result: Any = produce(broker, name, request, request, context, made, LoneProduceResponse)
    if type(result) is GeneratorType:
        return begun(lone_in_slices(request, result))
    return lone_answer(request, result)


def lone_in_slices(request: LoneProduceRequest, work: Work) -> Work[LoneAnswer]:
    return lone_answer(request, (yield from work))


def lone_of_transaction(
    broker: Broker, name: str | None, request: LoneProduceRequest, context: Context
) -> Work[LoneAnswer]:
    try:
        check_framing(request.records, True)
        verified = yield from of_transaction(broker, request, ((name, request),), context.version)
        here = verified.refusals.get((name, request.index)) if name is not None else None
    except KafkaError as error:
        here = error
    if here is not None:
        return lone_answer(request, refused(request.index, here))
    made = broker.promises.made
    result: Any = produce(
        broker, name, request, request, context, made, LoneProduceResponse, verified=verified
    )
    if type(result) is GeneratorType:
        result = yield from result
    return lone_answer(request, result)


def batches_of(
    broker: Broker, topics: list[ProduceRequest.TopicProduceData], by_id: bool
) -> Iterator[tuple[str | None, Batch]]:
    for topic in topics:
        name = name_of(broker, topic.topic_id) if by_id else topic.name
        for item in topic.partition_data:
            yield name, item


def of_transaction(
    broker: Broker,
    request: ProduceRequest | LoneProduceRequest,
    batches: Iterable[tuple[str | None, Batch]],
    version: int,
) -> Work[Verified]:
    """What the coordinator says of the partitions of a request that is part of a transaction. Imported with the first
    one: most producers have none."""
    from pykafkad.handlers.taking_part import of_produce

    return of_produce(broker, request.transactional_id, batches, version)


def lone_answer(request: LoneProduceRequest, answer: Any) -> LoneAnswer:
    """Of what is a LoneProduceResponse already, or the PartitionResponse of a refusal."""
    if request.acks == 0:
        unanswered(answer.error_code)
        return None
    if answer.error_code:
        topic = TopicResponse(name=request.name, topic_id=request.topic_id, partition_responses=[answer])
        return ProduceResponse(responses=[topic])
    answer.name = request.name
    answer.topic_id = request.topic_id
    told: LoneProduceResponse = answer
    return told


def name_of(broker: Broker, topic_id: bytes) -> str | None:
    known = broker.image.topics_by_id.get(topic_id)
    return known.name if known is not None else None


def unanswered(error_code: int) -> None:
    """With acks=0 there is no answer, and an error closes the connection, as in Kafka."""
    if error_code:
        raise Unanswerable(f"produce with acks=0 failed: {errors.NAMES[error_code]}")


def refusal_of_all(request: ProduceRequest) -> Generator[bool, None, RecordsError | None]:
    """An error in the batch of one partition because of which the whole request is refused and nothing is stored."""
    transactional = request.transactional_id is not None
    steps = 0
    try:
        for topic in request.topic_data:
            for item in topic.partition_data:
                check_framing(item.records, transactional)
                steps += 1
                if not steps % FEW:
                    yield GO_ON
            steps += 1
            if not steps % FEW:
                yield GO_ON
    except RecordsError as error:
        return error
    return None


def produce(
    broker: Broker,
    topic: str | None,
    item: Batch,
    request: ProduceRequest | LoneProduceRequest,
    context: Context,
    promises: list[Promise],
    accepted: Callable[..., Accepted],
    told: int = 0,
    verified: Verified | None = None,
) -> OrWork[Accepted | PartitionResponse]:
    """The answer for one partition, or a generator that returns it, if the checks of its batch take long or many
    records are refused. `told` is how many record errors the answer has already; `verified`, what the coordinator of the
    request's transaction says."""
    index, acks = item.index, request.acks
    data: Any = item.records  # not null, says check_produce
    tried: Replica | None = None
    try:
        if topic is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_ID)
        partition = broker.replicas.table.get((topic, index))
        if partition is None:
            raise KafkaError(missing(broker, topic, index))
        if context.version >= BATCHES_SINCE:
            check_produce(data, context.version)
        if partition.may_refuse or acks not in ACKS:
            check(partition, acks, context)
        tried = partition
        now_ms = broker.pass_ms or broker.read_pass_ms()
        batches: Any
        if context.version >= BATCHES_SINCE:
            batches = begin_validation(data, partition.rules, now_ms, partition.name)
        else:
            batches = begin_old(data, partition, now_ms)
            if batches is None:
                return accepted(index=index, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1)
        if type(batches) is not Batches:
            return checked_in_slices(
                broker, partition, batches, index, request, context, promises, accepted, told, verified
            )
        append = partition.append
        if verified is None:
            appended = append(batches, now_ms)
        else:
            appended = append(batches, now_ms, verified=verified.holds(partition, batches.producer_id))
    except KafkaError as error:
        return refused_at(index, error, -1 if tried is None else tried.log_start_offset, told)
    answer = accepted(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    promises.append((partition, acks, request.timeout_ms, context, append_failed, answer))
    return answer


def checked_in_slices(
    broker: Broker,
    partition: Replica,
    validation: Any,
    index: int,
    request: ProduceRequest | LoneProduceRequest,
    context: Context,
    promises: list[Promise],
    accepted: Callable[..., Accepted],
    told: int,
    verified: Verified | None,
) -> Work[Accepted | PartitionResponse]:
    """Check a batch in slices, and append it as soon as that is done. Nothing may wait in between: with acks=0 the
    client may have disconnected by then."""
    start = -1
    stay = broker.unfolding.stay()
    try:
        yield GO_ON
        while not validation.advance():
            yield GO_ON
            yield from stay.keep(validation.kept)
        if broker.replicas.get((partition.topic, index)) is not partition:
            raise KafkaError(missing(broker, partition.topic, index))
        start = partition.log_start_offset
        now_ms = broker.pass_ms or broker.read_pass_ms()
        batches = validation.finish(now_ms)
        holds = verified is not None and verified.holds(partition, batches.producer_id)
        appended = partition.append(batches, now_ms, verified=holds)
    except KafkaError as error:
        result: Any = refused_at(index, error, start, told)
        refusal: PartitionResponse = (yield from result) if type(result) is GeneratorType else result
        return refusal
    finally:
        stay.leave()
    answer = accepted(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=start,
    )
    promises.append((partition, request.acks, request.timeout_ms, context, append_failed, answer))
    return answer


def begin_old(data: Any, partition: Replica, now_ms: int) -> Any:
    """Of a version that may have messages of formats 0 and 1, which are converted in slices, and nothing at all: None."""
    from pykafkad.legacy_records import Conversion, has_batch, is_legacy

    if data is None:
        raise RecordsError(errors.INVALID_RECORD)
    if not has_batch(data):
        return None
    if is_legacy(data):
        return Conversion(data, partition.rules, now_ms, partition.name)
    return begin_validation(data, partition.rules, now_ms, partition.name)


def check(partition: Replica, acks: int, context: Context) -> None:
    """What is refused before the batch is looked at."""
    if acks not in ACKS:
        raise KafkaError(errors.INVALID_REQUIRED_ACKS)
    if partition.is_internal and context.client_id != ADMIN_CLIENT:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    partition.check_append(acks)


def refused_at(index: int, error: KafkaError, start: int, told: int) -> OrWork[PartitionResponse]:
    """The result of `refused`, or a generator that returns it if there are many record errors."""
    if isinstance(error, RecordsError) and len(error.record_errors) > FEW_RECORD_ERRORS:
        return refused_in_slices(index, error, start, RECORD_ERRORS_MAX - told)
    return refused(index, error, start)


def refused_in_slices(index: int, error: RecordsError, start: int, most: int) -> Work[PartitionResponse]:
    texts = error.record_errors
    answer = refused(index, KafkaError(error.code, error.message), start)
    for place in range(0, min(len(texts), most), FEW_RECORD_ERRORS):
        answer.record_errors += record_errors(texts[place : min(place + FEW_RECORD_ERRORS, most)])
        yield GO_ON
    return answer


def refused(index: int, error: KafkaError, log_start_offset: int = -1) -> PartitionResponse:
    answer = PartitionResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=error.message
    )
    if error.code not in START_NOT_SAID:
        answer.log_start_offset = log_start_offset
    if isinstance(error, RecordsError):
        answer.record_errors = record_errors(error.record_errors)
    return answer


def record_errors(texts: Iterable[tuple[int, str]]) -> list[RecordError]:
    return [
        RecordError(batch_index=batch_index, batch_index_error_message=text) for batch_index, text in texts
    ]


def append_failed(answer: PartitionResponse | LoneProduceResponse, context: Context, code: int) -> None:
    """What was appended is not kept as acks asks for: the client gets an error, or with acks=0 its connection is closed,
    as in Kafka."""
    if context.response is None:
        context.connection.finish(f"produce with acks=0 failed: {errors.NAMES[code]}")
    if code == errors.KAFKA_STORAGE_ERROR:  # the write or the flush of this partition's queue failed
        take_back(answer)
    else:  # it has its offset, and may stay
        answer.error_code = code
    context.changed()


def take_back(answer: PartitionResponse | LoneProduceResponse) -> None:
    answer.error_code = errors.KAFKA_STORAGE_ERROR
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
