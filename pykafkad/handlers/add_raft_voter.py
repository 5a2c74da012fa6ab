"""AddRaftVoter (key 80), versions 0 and 1: adds a controller to the quorum (KIP-853).

The quorum is this node alone and stays so. Where the voters are configured statically (kraft.version 0) Kafka adds
none either. Where the metadata log names them (kraft.version 1) Kafka adds one that it can reach: here none ever can be.
"""

from __future__ import annotations

from pykafkad.errors import (
    DUPLICATE_VOTER,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    MESSAGES,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
    fits,
)
from pykafkad.messages import AddRaftVoterResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.uuids import ZERO, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AddRaftVoterRequest
    from pykafkad.slices import Work


A_TIME = 64  # endpoints between two looks at the clock
DEFAULT_LISTENER = "CONTROLLER"


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: AddRaftVoterRequest, context: Context) -> Work[AddRaftVoterResponse]:
    endpoints = {}
    for number, point in enumerate(request.listeners):
        endpoints[point.name.upper()] = f"{point.host}/<unresolved>:{point.port}"
        if number % A_TIME == 0:
            yield
    code, text = why_refused(broker, request, endpoints)
    if not fits(text):
        code, text = UNKNOWN_SERVER_ERROR, MESSAGES[UNKNOWN_SERVER_ERROR]
    return AddRaftVoterResponse(error_code=code, error_message=text)


def why_refused(broker: Broker, request: AddRaftVoterRequest, endpoints: dict[str, str]) -> tuple[int, str]:
    other = why_another_cluster(broker, request.cluster_id)
    if other is not None:
        return INCONSISTENT_CLUSTER_ID, other
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return INVALID_REQUEST, "Add voter request didn't include a valid voter"
    names = broker.config["controller.listener.names"]
    listener = (names[0] if names else DEFAULT_LISTENER).upper()
    if listener not in endpoints:
        shown = ", ".join(f"ListenerName({name})={address}" for name, address in endpoints.items())
        return INVALID_REQUEST, (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for the default "
            f"listener ListenerName({listener})"
        )
    voters = voters_of(broker)
    if not voters:
        return UNSUPPORTED_VERSION, (
            "Cluster doesn't support adding voter because the kraft.version feature is 0"
        )
    key = voter_key(request.voter_id, request.voter_directory_id)
    if request.voter_id == broker.node_id:
        return DUPLICATE_VOTER, f"The voter id for {key} is already part of the set of voters {voters}."
    return REQUEST_TIMED_OUT, f"New voter {key} is not ready to receive requests"


def voters_of(broker: Broker) -> str:
    """The set of voters as Kafka writes it; empty where the metadata log does not name them (kraft.version 0)."""
    directory_id = broker.controller.quorum.voter_directory_id
    return "" if directory_id == ZERO else f"[{voter_key(broker.node_id, directory_id)}]"


def voter_key(voter_id: int, directory_id: bytes) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={to_text(directory_id)})"


def why_another_cluster(broker: Broker, cluster_id: str | None) -> str | None:
    """Kafka's text for a request that is meant for another cluster. A null cluster id is accepted by every cluster."""
    if cluster_id is None or cluster_id == broker.cluster_id:
        return None
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{broker.cluster_id}"'
