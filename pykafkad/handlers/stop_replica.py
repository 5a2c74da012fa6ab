"""StopReplica (key 5), versions 0 to 4: the controller says which partitions this broker no longer fetches, and which
it deletes.

Only in a cluster on ZooKeeper; see leader_and_isr.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import StopReplicaResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.control_requests import stops_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.zookeeper.roles import Codes
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import StopReplicaRequest
    from pykafkad.slices import Work

PartitionError = StopReplicaResponse.StopReplicaPartitionError

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: StopReplicaRequest, context: Context) -> Context:
    assert broker.cluster is not None
    context.defer()
    broker.cluster.control.obey(work(broker, request), lambda answer: broker.dispatcher.give(context, answer))
    return context


def work(broker: Broker, request: StopReplicaRequest) -> Work[StopReplicaResponse]:
    assert broker.cluster is not None
    control = broker.cluster.control
    code = control.admit(request)
    if code != errors.NONE:
        return StopReplicaResponse(error_code=code)
    return answer(errors.NONE, (yield from control.roles.stop(request)))


def unauthorized(request: StopReplicaRequest, version: int, code: int) -> StopReplicaResponse:
    return answer(code, {(name, index): code for name, index, _, _ in stops_of(request)})


def answer(code: int, codes: Codes) -> StopReplicaResponse:
    return StopReplicaResponse(
        error_code=code,
        partition_errors=[
            PartitionError(topic_name=name, partition_index=index, error_code=each)
            for (name, index), each in codes.items()
        ],
    )
