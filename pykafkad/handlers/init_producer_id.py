"""InitProducerId (key 22), versions 0 to 5: an id for an idempotent producer (KIP-98, KIP-360, KIP-730).

Every request without a transactional id gets a new id at epoch 0, whatever it had before, as in Kafka. It is
answered when the block that the id is from is durable. Missing: transactional ids, which are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import INVALID_REQUEST, KafkaError
from pykafkad.logs import logger
from pykafkad.messages import InitProducerIdResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


NONE = -1

log = logger("producer-ids")


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return refuse(INVALID_REQUEST)
    if request.transactional_id is not None:
        if request.transactional_id:
            log.warn(f"transactional id {request.transactional_id} refused: transactions are not served")
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
