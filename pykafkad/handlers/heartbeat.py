"""Heartbeat (key 12), versions 0 to 4: keeps a member's session alive, and tells it of a rebalance."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import HeartbeatResponse
from pykafkad.pure.authorization import GROUP, READ, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.errors import KafkaError
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import HeartbeatRequest


needs = (Need(READ, GROUP, "group_id"),)


def handle(broker: Broker, request: HeartbeatRequest, context: Context) -> HeartbeatResponse | Context:
    if not request.group_id:
        return HeartbeatResponse(error_code=errors.INVALID_GROUP_ID)
    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.heartbeat(request, caller, broker.clock.now_ms()),
        refused,
    )


def refused(error: KafkaError) -> HeartbeatResponse:
    """While the groups are being loaded every heartbeat succeeds: after the load all members get a new session anyway."""
    is_loading = error.code == errors.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=errors.NONE if is_loading else error.code)
