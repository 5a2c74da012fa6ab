"""ControlledShutdown (key 7), versions 1 to 3: a broker that is about to stop asks the controller to move what it leads
(KIP-143).

Only in a cluster on ZooKeeper. The answer names the partitions that it still leads though others have them too. Version
0, whose header has no client id, is not served: no broker of the last eight years sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.messages import ControlledShutdownResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import ControlledShutdown
from pykafkad.slices import begun, chunks

if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ControlledShutdownRequest
    from pykafkad.slices import Work

RemainingPartition = ControlledShutdownResponse.RemainingPartition

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: ControlledShutdownRequest, context: Context) -> Any:
    assert broker.cluster is not None
    context.defer()
    broker.cluster.controlling.ask(
        ControlledShutdown,
        lambda outcome: broker.dispatcher.give(context, begun(answer(outcome))),
        request.broker_id,
        request.broker_epoch,
    )
    return context


def answer(outcome: Any) -> Work:
    """`outcome`: an error code, or the partitions."""
    if isinstance(outcome, int):
        return ControlledShutdownResponse(error_code=outcome)
    rows: list[Any] = []
    for some in chunks(outcome):
        rows += [RemainingPartition(topic_name=topic, partition_index=index) for topic, index in some]
        yield
    return ControlledShutdownResponse(remaining_partitions=rows)
