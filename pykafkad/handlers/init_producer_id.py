"""InitProducerId (key 22), versions 0 to 5: a producer id for an idempotent producer (KIP-98, KIP-360, KIP-730).

Every request without a transactional id gets a new id at epoch 0, whatever the producer had before, as in Kafka. The
answer is sent when the block that the id is taken from is durable. Missing: transactional ids, which are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import unserved
from pykafkad.errors import INVALID_REQUEST, KafkaError
from pykafkad.messages import InitProducerIdResponse
from pykafkad.pure.authorization import CLUSTER, IDEMPOTENT_WRITE, TRANSACTIONAL_ID, WRITE, Need

if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import InitProducerIdRequest


NONE = -1


needs = (
    Need(WRITE, TRANSACTIONAL_ID, "transactional_id"),
    Need(
        IDEMPOTENT_WRITE,
        CLUSTER,
        or_on_some_topic=WRITE,
        when=lambda request: request.transactional_id is None,
    ),
)


def handle(broker: Broker, request: InitProducerIdRequest, context: Context) -> Any:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return refuse(INVALID_REQUEST)
    if request.transactional_id is not None:
        if request.transactional_id:
            unserved.say(broker.quiet, context, "transactional ids are refused: transactions are not served")
        return refuse(INVALID_REQUEST)
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


def respond(result: int | KafkaError) -> Any:
    if isinstance(result, KafkaError):
        return refuse(result.code)
    return InitProducerIdResponse(producer_id=result, producer_epoch=0)


def refuse(code: int) -> Any:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
