"""UnregisterBroker (key 64), version 0: a broker that will not come back is forgotten (KIP-500).

What may be left to forget is a broker of the cluster that a data directory came from. This node does not
unregister itself: Kafka does as it is told, and is of no use to anybody until it is started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import UnregisterBrokerRecord, UnregisterBrokerResponse

if TYPE_CHECKING:
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    promise = context.defer()

    def done(error: KafkaError | None) -> None:
        code, text = (errors.NONE, "") if error is None else (error.code, error.text)
        promise.answer(UnregisterBrokerResponse(error_code=code, error_message=text))

    broker.controller.in_turn(lambda: plan(broker, request.broker_id), done)
    return promise


def plan(broker: Broker, broker_id: int) -> list[Record]:
    known = broker.image.brokers.get(broker_id)
    if known is None:
        raise KafkaError(
            errors.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    if broker_id == broker.node_id:
        raise KafkaError(
            errors.INVALID_REQUEST,
            f"Broker {broker_id} serves this request and is the only one of its cluster",
        )
    return [(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=known.epoch), 0)]
