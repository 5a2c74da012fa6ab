"""LeaveGroup (key 13), versions 0 to 5: members leave; one, or since version 3 many at once (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import LeaveGroupRequest, LeaveGroupResponse
from pykafkad.pure.groups.classic_answers import LEAVE_MANY_SINCE, leave_answer, left

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.errors import KafkaError
    from pykafkad.server import Broker


MemberIdentity = LeaveGroupRequest.MemberIdentity


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if context.version < LEAVE_MANY_SINCE:
        request.members = [MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        return LeaveGroupResponse(error_code=errors.INVALID_GROUP_ID)
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.leave(request, caller, broker.clock.now_ms()),
        lambda error: refused(request, context.version, error),
    )


def refused(request: Any, version: int, error: KafkaError) -> Any:
    """Of a group that is not there nobody is a member."""
    if error.code == errors.UNKNOWN_MEMBER_ID:
        return leave_answer(version, [left(leaving, error.code) for leaving in request.members])
    return LeaveGroupResponse(error_code=error.code)
