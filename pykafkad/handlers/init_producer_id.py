"""InitProducerId (key 22), versions 0 to 5: a producer's id and epoch (KIP-98, KIP-360, KIP-730).

Every request without a transactional id gets a new id at epoch 0, whatever the producer had before, as in Kafka. The
answer is sent when the block that the id is taken from is durable. What a transactional id gets is up to the transaction
coordinator (pure/transactions/producers). Version 6, with two-phase commits, Kafka 4.3.1 does not serve yet.
"""

from __future__ import annotations

from pykafkad.errors import INVALID_PRODUCER_EPOCH, INVALID_REQUEST, PRODUCER_FENCED, KafkaError
from pykafkad.messages import InitProducerIdResponse
from pykafkad.pure.authorization import CLUSTER, IDEMPOTENT_WRITE, TRANSACTIONAL_ID, WRITE, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.coordinator.transaction_machine import TransactionMachine
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import InitProducerIdRequest
    from pykafkad.pure.effects import Effects


NONE = -1
FENCED_SINCE = 4


needs = (
    Need(WRITE, TRANSACTIONAL_ID, "transactional_id"),
    Need(
        IDEMPOTENT_WRITE,
        CLUSTER,
        or_on_some_topic=WRITE,
        when=lambda request: request.transactional_id is None,
    ),
)


def handle(
    broker: Broker, request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse | Context:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return refuse(INVALID_REQUEST)
    if request.transactional_id is not None:
        return of_transactional_id(broker, request, context)
    answers: list[int | KafkaError] = []
    promises: list[Context] = []

    def taken(result: int | KafkaError) -> None:
        if promises:
            promises[0].answer(respond(result))
        else:
            answers.append(result)

    broker.controller.take_producer_id(taken)
    if answers:
        return respond(answers[0])
    promises.append(context.defer())
    return promises[0]


def unauthorized(request: InitProducerIdRequest, version: int, code: int) -> InitProducerIdResponse:
    return refuse(code)


def of_transactional_id(
    broker: Broker, request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse | Context:
    transactional_id = request.transactional_id
    if not transactional_id:
        return refuse(INVALID_REQUEST)
    expected = None if request.producer_id == NONE else (request.producer_id, request.producer_epoch)

    def init(machine: TransactionMachine, asker: Asker, new_id: int) -> Effects:
        timeout_ms, now_ms = request.transaction_timeout_ms, broker.clock.now_ms()
        return machine.init_producer(transactional_id, timeout_ms, expected, asker, now_ms, new_id)

    version = context.version  # who refuses must not know the context, which knows it

    def told(error: KafkaError) -> InitProducerIdResponse:
        """Old clients know no other word for a producer that was fenced."""
        is_old = error.code == PRODUCER_FENCED and version < FENCED_SINCE
        return refuse(INVALID_PRODUCER_EPOCH if is_old else error.code)

    return broker.transaction_coordinator.ask_with_id(transactional_id, context, init, told)


def respond(result: int | KafkaError) -> InitProducerIdResponse:
    if isinstance(result, KafkaError):
        return refuse(result.code)
    return InitProducerIdResponse(producer_id=result, producer_epoch=0)


def refuse(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
