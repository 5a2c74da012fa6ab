"""SyncGroup (key 14), versions 0 to 5: the leader sends the assignments of a generation, the other members get theirs.

The answer to a follower waits for the leader's request. Since version 5 the protocol must be named (KIP-559).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.pieces import FEW, pieces
from pykafkad.messages import SyncGroupResponse
from pykafkad.pure.authorization import GROUP, READ, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.permits import Permits
    from pykafkad.messages import SyncGroupRequest
    from pykafkad.slices import OrWork, Work


PROTOCOL_NAMED_SINCE = 5


needs = (Need(READ, GROUP, "group_id"),)


def handle(
    broker: Broker, request: SyncGroupRequest, context: Context
) -> OrWork[SyncGroupResponse | Context]:
    if not names_protocol(request, context):
        return refused(KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL))
    if not request.group_id:
        return SyncGroupResponse(error_code=errors.INVALID_GROUP_ID)
    if len(request.assignments) > FEW:
        return in_slices(broker, request, context)
    return sync(broker, request, context)


def names_protocol(request: SyncGroupRequest, context: Context) -> bool:
    if context.version < PROTOCOL_NAMED_SINCE:
        return True
    return request.protocol_type is not None and request.protocol_name is not None


def said_first(
    broker: Broker, request: SyncGroupRequest, context: Context, permits: Permits
) -> Work[SyncGroupResponse | None]:
    yield
    if names_protocol(request, context):
        return None
    return refused(KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL))


def in_slices(
    broker: Broker, request: SyncGroupRequest, context: Context
) -> Work[SyncGroupResponse | Context]:
    """The same for very many assignments: those for unknown members are dropped first."""
    asker = broker.group_coordinator.asker_in_slices(context, refused)
    assignments: dict[str, SyncGroupRequest.SyncGroupRequestAssignment] = {}
    for piece in pieces(request.assignments):
        try:
            groups = broker.group_coordinator.look(request.group_id, asker)
        except KafkaError as error:
            return refused(error)
        for each in piece:
            if groups.has_member(request.group_id, each.member_id):
                assignments[each.member_id] = each
        yield
    request.assignments = list(assignments.values())
    return sync(broker, request, context)


def sync(broker: Broker, request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Context:
    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.sync(request, caller, broker.clock.now_ms()),
        refused,
    )


def refused(error: KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)
