"""UpdateMetadata (key 6), versions 0 to 8: the controller says which brokers live and where partitions are.

Only in a cluster on ZooKeeper; see leader_and_isr. Answered when all who go by the metadata know it.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import UpdateMetadataResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import UpdateMetadataRequest
    from pykafkad.slices import Work

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: UpdateMetadataRequest, context: Context) -> Context:
    assert broker.cluster is not None
    context.defer()
    broker.cluster.control.obey(work(broker, request), lambda answer: broker.dispatcher.give(context, answer))
    return context


def work(broker: Broker, request: UpdateMetadataRequest) -> Work[UpdateMetadataResponse]:
    assert broker.cluster is not None
    control = broker.cluster.control
    code = control.admit(request)
    if code == errors.NONE:
        yield from control.update(request)
    return UpdateMetadataResponse(error_code=code)
