"""Heartbeat (key 12), versions 0 to 4: a member says that it is there, and learns of rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import HeartbeatResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.errors import KafkaError
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if not request.group_id:
        return HeartbeatResponse(error_code=errors.INVALID_GROUP_ID)
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.heartbeat(request, caller, broker.clock.now_ms()),
        refused,
    )


def refused(error: KafkaError) -> Any:
    """While the groups are loaded every member is taken to be one: it gets a whole session afterwards."""
    is_loading = error.code == errors.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=errors.NONE if is_loading else error.code)
