"""AllocateProducerIds (key 67), version 0: a broker asks the controller for a block of producer ids (KIP-730).

Only in a cluster on ZooKeeper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.messages import AllocateProducerIdsResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import AllocateProducerIds

if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AllocateProducerIdsRequest

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: AllocateProducerIdsRequest, context: Context) -> Any:
    assert broker.cluster is not None
    context.defer()
    broker.cluster.controlling.ask(
        AllocateProducerIds,
        lambda outcome: broker.dispatcher.give(context, answer(outcome)),
        request.broker_id,
        request.broker_epoch,
    )
    return context


def answer(outcome: Any) -> AllocateProducerIdsResponse:
    """`outcome`: an error code, or the first of the ids and how many they are."""
    if isinstance(outcome, int):
        return AllocateProducerIdsResponse(error_code=outcome)
    first, count = outcome
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
