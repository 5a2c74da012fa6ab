"""RemoveRaftVoter (key 81), version 0: removes a controller from the quorum (KIP-853).

It is refused like AddRaftVoter: the quorum is this node alone, and Kafka does not remove the last voter either.
"""

from __future__ import annotations

from pykafkad.errors import (
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    MESSAGES,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
    fits,
)
from pykafkad.handlers.add_raft_voter import voter_key, voters_of, why_another_cluster
from pykafkad.messages import RemoveRaftVoterResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import RemoveRaftVoterRequest


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: RemoveRaftVoterRequest, context: Context) -> RemoveRaftVoterResponse:
    code, text = why_refused(broker, request)
    if not fits(text):
        code, text = UNKNOWN_SERVER_ERROR, MESSAGES[UNKNOWN_SERVER_ERROR]
    return RemoveRaftVoterResponse(error_code=code, error_message=text)


def why_refused(broker: Broker, request: RemoveRaftVoterRequest) -> tuple[int, str]:
    other = why_another_cluster(broker, request.cluster_id)
    if other is not None:
        return INCONSISTENT_CLUSTER_ID, other
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    voters = voters_of(broker)
    if not voters:
        return UNSUPPORTED_VERSION, (
            "Cluster doesn't support removing voter because the kraft.version feature is 0"
        )
    key = voter_key(request.voter_id, request.voter_directory_id)
    return VOTER_NOT_FOUND, f"Cannot remove voter {key} from the set of voters {voters}"
