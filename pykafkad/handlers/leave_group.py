"""LeaveGroup (key 13), versions 0 to 5: one member leaves, or since version 3 several at once (KIP-345)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.pieces import FEW, pieces
from pykafkad.messages import LeaveGroupRequest, LeaveGroupResponse
from pykafkad.pure.authorization import GROUP, READ, Need
from pykafkad.pure.groups.classic_answers import LEAVE_MANY_SINCE, leave_answer, left
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import OrWork, Work


MemberIdentity = LeaveGroupRequest.MemberIdentity


needs = (Need(READ, GROUP, "group_id"),)


def handle(
    broker: Broker, request: LeaveGroupRequest, context: Context
) -> OrWork[LeaveGroupResponse | Context]:
    if context.version < LEAVE_MANY_SINCE:
        request.members = [MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        return LeaveGroupResponse(error_code=errors.INVALID_GROUP_ID)
    if len(request.members) > FEW:
        return in_slices(broker, request, context)
    version = context.version
    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.leave(request, caller, broker.clock.now_ms()),
        lambda error: refused(request, version, error),
    )


def in_slices(broker: Broker, request: LeaveGroupRequest, context: Context) -> Work[LeaveGroupResponse]:
    """The same for very many members, a piece at a time, as if each piece were a request."""
    version = context.version
    asker = broker.group_coordinator.asker_in_slices(context, lambda error: refused(request, version, error))
    members = request.members
    answers: list[LeaveGroupResponse.MemberResponse] = []
    for piece in pieces(members, FEW):
        request.members = list(piece)
        try:
            answer: LeaveGroupResponse = broker.group_coordinator.perform(
                request.group_id,
                asker,
                lambda groups, caller: groups.leave(request, caller, broker.clock.now_ms()),
            )
        except KafkaError as error:
            answer = refused(request, version, error)
        if answer.error_code:
            return answer
        answers += answer.members
        yield GO_ON
    request.members = members
    return asker.answer(leave_answer(version, answers))


def refused(request: LeaveGroupRequest, version: int, error: KafkaError) -> LeaveGroupResponse:
    """A group that does not exist has no members, so every member of the request is unknown."""
    if error.code == errors.UNKNOWN_MEMBER_ID:
        return leave_answer(version, [left(leaving, error.code) for leaving in request.members])
    return LeaveGroupResponse(error_code=error.code)
