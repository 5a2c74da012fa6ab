"""AllocateProducerIds (key 67), version 0: the controller gives a broker a block of producer ids (KIP-730).

Only in a cluster on ZooKeeper; a single node takes them from its own metadata log.
"""

from __future__ import annotations

from pykafkad.messages import AllocateProducerIdsResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import AllocateProducerIds
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AllocateProducerIdsRequest
    from pykafkad.slices import Work

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(
    broker: Broker, request: AllocateProducerIdsRequest, context: Context
) -> Work[AllocateProducerIdsResponse]:
    assert broker.cluster is not None
    wait = Wait()
    broker.cluster.controlling.ask(AllocateProducerIds, wait.come, request.broker_id, request.broker_epoch)
    answer = yield from wait.result()
    if isinstance(answer, int):
        return AllocateProducerIdsResponse(error_code=answer)
    first, count = answer
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
