"""RemoveRaftVoter (key 81), version 0: a controller less in the quorum (KIP-853).

Refused like AddRaftVoter: the quorum is this node alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, UNSUPPORTED_VERSION
from pykafkad.handlers.add_raft_voter import why_another_cluster
from pykafkad.messages import RemoveRaftVoterResponse
from pykafkad.uuids import ZERO

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    code, text = why_refused(broker, request)
    return RemoveRaftVoterResponse(error_code=code, error_message=text)


def why_refused(broker: Broker, request: Any) -> tuple[int, str]:
    other = why_another_cluster(broker, request.cluster_id)
    if other is not None:
        return INCONSISTENT_CLUSTER_ID, other
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    return UNSUPPORTED_VERSION, (
        "Cluster doesn't support removing voter because the kraft.version feature is 0"
    )
