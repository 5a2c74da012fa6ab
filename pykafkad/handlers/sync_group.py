"""SyncGroup (key 14), versions 0 to 5: the leader gives the assignments of a generation, the others get theirs.

The answer of whoever is not the leader waits for the leader. Since version 5 the protocol must be named (KIP-559).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import SyncGroupResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


PROTOCOL_NAMED_SINCE = 5


def handle(broker: Broker, request: Any, context: Context) -> Any:
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= PROTOCOL_NAMED_SINCE and not names_protocol:
        return SyncGroupResponse(error_code=errors.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return SyncGroupResponse(error_code=errors.INVALID_GROUP_ID)
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.sync(request, caller, broker.clock.now_ms()),
        lambda error: SyncGroupResponse(error_code=error.code),
    )
