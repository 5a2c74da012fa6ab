"""DescribeTransactions (key 65), version 0: the state of transactional ids, and the partitions that have no end marker
yet (KIP-664)."""

from __future__ import annotations

from operator import attrgetter

from pykafkad.errors import INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import in_order
from pykafkad.messages import DescribeTransactionsResponse
from pykafkad.pure.authorization import DESCRIBE, IN_PLACE, TOPIC, TRANSACTIONAL_ID, Need
from pykafkad.slices import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeTransactionsRequest
    from pykafkad.slices import Work

TransactionState = DescribeTransactionsResponse.TransactionState
TopicData = DescribeTransactionsResponse.TopicData


needs = (
    Need(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", denied=IN_PLACE),
    Need(DESCRIBE, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: DescribeTransactionsRequest, context: Context
) -> Work[DescribeTransactionsResponse]:
    asker = broker.transaction_coordinator.asker_in_slices(context, lambda error: refused(request, error))
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    known: dict[str, TransactionState] = {}
    rows: list[TransactionState] = []
    for transactional_id in request.transactional_ids:
        row = known.get(transactional_id)
        if row is None:
            row = known[transactional_id] = yield from describe(broker, transactional_id, asker)
            if permits is not None:
                row.topics = yield from permits.only(DESCRIBE, TOPIC, row.topics, topic_of)
        rows.append(row)
        yield
    return asker.answer(DescribeTransactionsResponse(transaction_states=rows))


topic_of = attrgetter("topic")


def describe(broker: Broker, transactional_id: str, asker: Asker) -> Work[TransactionState]:
    if not transactional_id:
        return problem(transactional_id, INVALID_REQUEST)
    try:
        machine = broker.transaction_coordinator.look(transactional_id, asker)
    except KafkaError as error:
        return problem(transactional_id, error.code)
    transaction = machine.by_id.get(transactional_id)
    if transaction is None:
        return problem(transactional_id, TRANSACTIONAL_ID_NOT_FOUND)
    row = TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
    )
    row.topics = yield from by_topic(machine.unmarked(transactional_id))
    return row


def by_topic(partitions: Iterable[tuple[str, int]]) -> Work[list[TopicData]]:
    found: dict[str, list[int]] = {}
    for pause, (topic, index) in each(partitions):
        found.setdefault(topic, []).append(index)
        if pause:
            yield
    names = yield from in_order(list(found))
    return [TopicData(topic=name, partitions=sorted(found[name])) for name in names]


def problem(transactional_id: str, code: int) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=code)


def refused(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    rows = [problem(transactional_id, error.code) for transactional_id in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=rows)
