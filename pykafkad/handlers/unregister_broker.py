"""UnregisterBroker (key 64), version 0: removes a broker that will not come back from the metadata (KIP-500).

On a single node such brokers can only come from the cluster that the data directory was copied from. This node does not
unregister itself. Kafka would, and could not be used any more until it is started again.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import UnregisterBrokerRecord, UnregisterBrokerResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import UnregisterBrokerRequest


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: UnregisterBrokerRequest, context: Context) -> Context:
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
