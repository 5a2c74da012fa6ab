"""Answers to the APIs of the classic protocol, in the form that each version needs, for both types of groups."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import (
    DescribeGroupsResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from pykafkad.pure.effects import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.messages import LeaveGroupRequest

JoinMember = JoinGroupResponse.JoinGroupResponseMember
LeftMember = LeaveGroupResponse.MemberResponse
DescribedGroup = DescribeGroupsResponse.DescribedGroup

NOBODY = ""  # a member id that means none
NO_PROTOCOL_IS_NULL_SINCE = 7  # version of JoinGroup
LEAVE_MANY_SINCE = 3  # version of LeaveGroup
NOT_FOUND_IS_AN_ERROR_SINCE = 6  # version of DescribeGroups


def join_answer(
    caller: Caller,
    member_id: str,
    generation_id: int,
    protocol_type: str | None,
    protocol_name: str | None,
    leader_id: str | None,
    members: list[JoinMember] | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name or no_protocol(caller.version),
        leader=leader_id or NOBODY,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members or [],
    )


def join_refusal(version: int, error_code: int, member_id: str = NOBODY) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error_code, member_id=member_id, generation_id=-1, protocol_name=no_protocol(version)
    )


def no_protocol(version: int) -> str | None:
    return None if version >= NO_PROTOCOL_IS_NULL_SINCE else ""


def sync_answer(
    assignment: bytes, protocol_type: str | None = None, protocol_name: str | None = None
) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment, protocol_type=protocol_type, protocol_name=protocol_name)


def left(leaving: LeaveGroupRequest.MemberIdentity, error_code: int = 0) -> LeftMember:
    """The result for one member of a LeaveGroup request."""
    return LeftMember(
        member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error_code
    )


def leave_answer(version: int, members: list[LeftMember]) -> LeaveGroupResponse:
    """Before version 3 a request has one member, whose error is that of the whole answer."""
    if version >= LEAVE_MANY_SINCE:
        return LeaveGroupResponse(members=members)
    return LeaveGroupResponse(error_code=members[0].error_code)


def describe_missing(group_id: str, version: int, message: str) -> DescribedGroup:
    """A group that does not exist, or that is of the other type: an error since version 6, before that a Dead group."""
    described = DescribedGroup(group_id=group_id, group_state="Dead")
    if version >= NOT_FOUND_IS_AN_ERROR_SINCE:
        described.error_code, described.error_message = errors.GROUP_ID_NOT_FOUND, message
    return described
