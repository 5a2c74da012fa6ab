"""DescribeCluster (key 60), versions 0 to 2 (KIP-700, KIP-919 for endpoint types, KIP-1073 for fenced
brokers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from pykafkad.handlers.cluster_view import CLUSTER_OPERATIONS, NOT_ASKED, reachable_brokers
from pykafkad.messages import DescribeClusterResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


BrokerResponse = DescribeClusterResponse.DescribeClusterBroker

BROKERS, CONTROLLERS = 1, 2


def handle(broker: Broker, request: Any, context: Context) -> Any:
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
        controller_id=broker.node_id,
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
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
