"""ControlledShutdown (key 7), versions 0 to 3: a broker that is about to stop asks the controller to move what it leads.

Only in a cluster on ZooKeeper. The answer has the partitions that it still leads; the broker asks again then, or goes.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import ControlledShutdownResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import ControlledShutdown
from pykafkad.slices import Wait, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ControlledShutdownRequest
    from pykafkad.slices import Work

RemainingPartition = ControlledShutdownResponse.RemainingPartition

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(
    broker: Broker, request: ControlledShutdownRequest, context: Context
) -> Work[ControlledShutdownResponse]:
    assert broker.cluster is not None
    wait = Wait()
    broker.cluster.controlling.ask(ControlledShutdown, wait.come, request.broker_id, request.broker_epoch)
    answer = yield from wait.result()
    if answer == errors.NOT_CONTROLLER:
        answer = errors.STALE_CONTROLLER_EPOCH  # as Kafka says it here
    if isinstance(answer, int):
        return ControlledShutdownResponse(error_code=answer)
    response = ControlledShutdownResponse()
    for some in chunks(answer):
        response.remaining_partitions += [
            RemainingPartition(topic_name=name, partition_index=index) for name, index in some
        ]
        yield
    return response
