"""AddRaftVoter (key 80), versions 0 and 1: another controller for the quorum (KIP-853).

The quorum is this node alone and stays so (kraft.version 0), as Kafka's is that was given its voters by
configuration: what makes sense is refused for that, and what makes none for what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, UNSUPPORTED_VERSION
from pykafkad.messages import AddRaftVoterResponse
from pykafkad.uuids import ZERO

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


DEFAULT_LISTENER = "CONTROLLER"


def handle(broker: Broker, request: Any, context: Context) -> Any:
    code, text = why_refused(broker, request)
    return AddRaftVoterResponse(error_code=code, error_message=text)


def why_refused(broker: Broker, request: Any) -> tuple[int, str]:
    other = why_another_cluster(broker, request.cluster_id)
    if other is not None:
        return INCONSISTENT_CLUSTER_ID, other
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return INVALID_REQUEST, "Add voter request didn't include a valid voter"
    names = broker.config["controller.listener.names"]
    listener = (names[0] if names else DEFAULT_LISTENER).upper()
    endpoints = {point.name.upper(): f"{point.host}/<unresolved>:{point.port}" for point in request.listeners}
    if listener not in endpoints:
        shown = ", ".join(f"ListenerName({name})={address}" for name, address in endpoints.items())
        return INVALID_REQUEST, (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for the default "
            f"listener ListenerName({listener})"
        )
    return UNSUPPORTED_VERSION, (
        "Cluster doesn't support adding voter because the kraft.version feature is 0"
    )


def why_another_cluster(broker: Broker, cluster_id: str | None) -> str | None:
    """Kafka's text for a request that is meant for another cluster; null is meant for any."""
    if cluster_id is None or cluster_id == broker.cluster_id:
        return None
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{broker.cluster_id}"'
