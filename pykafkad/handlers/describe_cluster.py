"""DescribeCluster (key 60), versions 0 to 2 (KIP-700, KIP-919 for endpoint types, KIP-1073 for fenced
brokers).
"""

from __future__ import annotations

from pykafkad.errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from pykafkad.handlers.cluster_view import NOT_ASKED, cluster_operations, reachable_brokers
from pykafkad.messages import DescribeClusterResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeClusterRequest


BrokerResponse = DescribeClusterResponse.DescribeClusterBroker

BROKERS, CONTROLLERS = 1, 2


needs = (Need(DESCRIBE, CLUSTER, by_handler=True),)


def handle(broker: Broker, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    wanted = request.endpoint_type
    if wanted == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=MISMATCHED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to an endpoint of type BROKER, "
                "but we wanted an endpoint of type CONTROLLER"
            ),
        )
    if wanted != BROKERS:
        return DescribeClusterResponse(
            error_code=UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {wanted}"
        )
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.controller.controller_id,
        brokers=[
            BrokerResponse(
                broker_id=info.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=info.rack,
                is_fenced=info.fenced,
            )
            for info, endpoint in reachable_brokers(broker, context, fenced=request.include_fenced_brokers)
        ],
        cluster_authorized_operations=(
            cluster_operations(broker, context)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
