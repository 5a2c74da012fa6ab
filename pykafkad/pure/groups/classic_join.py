"""JoinGroup of a classic group: which member may join, under which id, and whether that causes a rebalance.

    no member id        a known instance id: that member continues under a new member id; else a new member, which since
                        version 4 has to send the request again with the id that it is given (KIP-394)
    a pending id        a member that was given this id: it is a member now
    a member's id       nothing changed: the present generation is the answer; if its protocols changed, or it is the
                        leader of a Stable group: a rebalance

A member is refused if its texts are too long to be written to the log or sent to the leader, which can also happen when
malformed UTF-8 is repaired, or when an id is made from such a text. Kafka answers UNKNOWN_SERVER_ERROR too, but may
have added the member.

KIP-345 and KIP-814 (static members), KIP-389 (group.max.size), KIP-800 (reasons).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects
from pykafkad.pure.groups.classic_answers import NOBODY, join_answer, join_refusal, sync_answer
from pykafkad.pure.groups.classic_member import Member, Protocols, names_of, protocols_of
from pykafkad.pure.groups.classic_rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    SESSION,
    joined,
    rebalance,
    refuse_join,
    remove,
    restart_session,
)
from pykafkad.pure.groups.classic_records import metadata_record
from pykafkad.pure.groups.classic_state import COMPLETING, EMPTY, PREPARING, STABLE
from pykafkad.pure.refusals import told_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.messages import (
        HeartbeatRequest,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupRequest,
        SyncGroupRequest,
    )
    from pykafkad.pure.groups.classic_state import ClassicState

    Asked = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest

# versions of JoinGroup
REBALANCE_TIMEOUT_SINCE = 1
MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9

LONGEST_TEXT = 32_767  # bytes in a message
SHORT_TEXT = LONGEST_TEXT // 4  # characters that fit in any encoding


def join(group: ClassicState, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
    effects = Effects()
    member_id = request.member_id
    if not has_room_for(group, member_id):
        remove(group, effects, member_id)
        effects.reply(caller, join_refusal(caller.version, errors.GROUP_MAX_SIZE_REACHED))
        return effects
    protocols = protocols_of(request)
    check_texts(
        request.group_id, member_id, request.group_instance_id, caller.client_id, request.protocol_type
    )
    names = names_of(protocols)
    if max(map(len, names), default=0) > SHORT_TEXT:
        check_texts(*names)
    if not goes_with(group, request.protocol_type, protocols):
        error = errors.INCONSISTENT_GROUP_PROTOCOL
        effects.reply(caller, join_refusal(caller.version, error, member_id))
    elif not member_id:
        join_unknown(group, effects, request, protocols, caller, now_ms)
    elif member_id in group.roster.pending:
        join_pending(group, effects, request, protocols, caller, now_ms)
    else:
        rejoin(group, effects, request, protocols, caller, now_ms)
    return effects


def has_room_for(group: ClassicState, member_id: str) -> bool:
    """During a rebalance the first members to join again have room, whoever else was in the group before."""
    roster, limit = group.roster, group.settings.max_size
    member = roster.members.get(member_id)
    if group.state_name == EMPTY:
        return True
    if group.state_name == PREPARING:
        return (member is not None and member.join_caller is not None) or roster.joining < limit
    return member is not None or len(roster.members) < limit


def goes_with(group: ClassicState, protocol_type: str, protocols: Protocols) -> bool:
    if group.state_name == EMPTY:
        return bool(protocol_type and protocols)
    return protocol_type == group.protocol_type and group.roster.knows_any(protocols)


def join_unknown(
    group: ClassicState,
    effects: Effects,
    request: JoinGroupRequest,
    protocols: Protocols,
    caller: Caller,
    now_ms: int,
) -> None:
    """A request without a member id: the member gets one, and may have to send the request again with it."""
    instance_id = request.group_instance_id
    stem = (caller.client_id or "") if instance_id is None else instance_id
    member_id = f"{stem}-{group.settings.new_id()}"
    check_texts(member_id)
    if instance_id is not None and instance_id in group.roster.instances:
        replace_static(group, effects, request, protocols, member_id, caller, now_ms)
    elif instance_id is None and caller.version >= MEMBER_ID_REQUIRED_SINCE:
        group.settings.log(
            f"Dynamic member with unknown member id joins group {group.group_id} in {group.state_name} state."
            f" Created a new member id {member_id} and requesting the member to rejoin with this id."
        )
        group.roster.expect(member_id)
        effects.after(request.session_timeout_ms, group.group_id, SESSION, member_id)
        effects.reply(caller, join_refusal(caller.version, errors.MEMBER_ID_REQUIRED, member_id))
    else:
        group.settings.log(
            f"{'Dynamic' if instance_id is None else 'Static'} member with unknown member id joins group"
            f" {group.group_id} in {group.state_name} state. Created a new member id {member_id} and added"
            " the member to the group."
        )
        add_member(group, effects, request, protocols, member_id, caller, now_ms)


def join_pending(
    group: ClassicState,
    effects: Effects,
    request: JoinGroupRequest,
    protocols: Protocols,
    caller: Caller,
    now_ms: int,
) -> None:
    if request.group_instance_id is not None:  # static members are never asked to send the request again
        effects.reply(caller, join_refusal(caller.version, errors.UNKNOWN_SERVER_ERROR))
        return
    group.settings.log(
        f"Pending dynamic member with id {request.member_id} joins group {group.group_id} in"
        f" {group.state_name} state. Adding to the group now."
    )
    add_member(group, effects, request, protocols, request.member_id, caller, now_ms)


def add_member(
    group: ClassicState,
    effects: Effects,
    request: JoinGroupRequest,
    protocols: Protocols,
    member_id: str,
    caller: Caller,
    now_ms: int,
) -> None:
    member = Member(
        member_id,
        request.group_instance_id,
        caller.client_id or "",
        caller.client_host,
        rebalance_timeout_of(request, caller),
        request.session_timeout_ms,
        protocols,
    )
    member.is_new = True
    if not group.roster.members:
        group.roster.protocol_type = request.protocol_type
    group.roster.add(member, caller)
    group.new_member_added = True
    effects.after(NEW_MEMBER_JOIN_TIMEOUT_MS, group.group_id, SESSION, member_id)
    instance = "null" if request.group_instance_id is None else request.group_instance_id
    reason = f"Adding new member {member_id} with group instance id {instance}; {client_reason(request)}"
    rebalance(group, effects, reason, now_ms)


def rejoin(
    group: ClassicState,
    effects: Effects,
    request: JoinGroupRequest,
    protocols: Protocols,
    caller: Caller,
    now_ms: int,
) -> None:
    """A member of the group joins again, with changed protocols or because it missed an answer."""
    member_id = request.member_id
    try:
        member = group.roster.check_member(member_id, request.group_instance_id)
    except KafkaError as error:
        log_fenced(group, error, request, "join-group")
        effects.reply(caller, join_refusal(caller.version, error.code, member_id))
        return
    why = client_reason(request)
    if group.state_name == PREPARING:
        reason = f"Member {member_id} is joining group during {PREPARING}; {why}"
    elif group.state_name == STABLE and group.roster.leader_id == member_id:
        # By this the leader shows that something outside of the group has changed, for example a topic.
        reason = f"Leader {member_id} re-joining group during {STABLE}; {why}"
    elif member.protocols != protocols:
        reason = f"Updating metadata for member {member_id} during {group.state_name}; {why}"
    elif group.state_name == COMPLETING:
        effects.reply(caller, joined(group, caller, member))
        return
    else:
        effects.reply(caller, joined_without_members(group, caller, member))
        return
    refuse_join(group, effects, member, errors.REBALANCE_IN_PROGRESS, member_id)
    update(group, member, request, protocols, caller)
    group.roster.wait_for_join(member, caller)
    rebalance(group, effects, reason, now_ms)


def update(
    group: ClassicState, member: Member, request: JoinGroupRequest, protocols: Protocols, caller: Caller
) -> None:
    timeout_ms = rebalance_timeout_of(request, caller)
    group.roster.update(member, protocols, timeout_ms, request.session_timeout_ms)


def joined_without_members(
    group: ClassicState, caller: Caller, member: Member, leader_id: str | None = None
) -> JoinGroupResponse:
    return join_answer(
        caller,
        member.member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.roster.leader_id if leader_id is None else leader_id,
    )


# -- a static member joins again without its member id


def replace_static(
    group: ClassicState,
    effects: Effects,
    request: JoinGroupRequest,
    protocols: Protocols,
    member_id: str,
    caller: Caller,
    now_ms: int,
) -> None:
    roster, instance_id = group.roster, request.group_instance_id
    assert instance_id is not None
    member = roster.members[roster.instances[instance_id]]
    old_id, old_leader = member.member_id, roster.leader_id
    group.settings.log(
        f"Static member with groupInstanceId={request.group_instance_id} and unknown member id joins group"
        f" {group.group_id} in {group.state_name} state. Replacing previously mapped member {old_id} with this"
        " groupInstanceId."
    )
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    fence(group, effects, member)
    roster.rename(member, member_id)
    member.is_new = False
    effects.cancel(group.group_id, SESSION, old_id)
    restart_session(group, effects, member)
    update(group, member, request, protocols, caller)
    if group.state_name == STABLE and roster.select_protocol() == group.protocol_name:
        go_on_as_before(group, effects, member, old_id, old_leader, before, caller)
        return
    roster.wait_for_join(member, caller)
    why = client_reason(request)
    if group.state_name == STABLE:
        reason = (
            f"Group's selectedProtocol will change because static member {member_id} with instance id"
            f" {member.instance_id} joined with change of protocol; {why}"
        )
    else:
        # In CompletingRebalance the leader may be assigning partitions to the old id, which would reach nobody.
        reason = (
            f"Updating metadata for static member {member_id} with instance id {member.instance_id}; {why}"
        )
    rebalance(group, effects, reason, now_ms)


def fence(group: ClassicState, effects: Effects, member: Member) -> None:
    """Requests that another client sent with this instance id are answered with FENCED_INSTANCE_ID."""
    refuse_join(group, effects, member, errors.FENCED_INSTANCE_ID, member.member_id)
    if member.sync_caller is not None:
        answer = sync_answer(b"")
        answer.error_code = errors.FENCED_INSTANCE_ID
        effects.reply(member.sync_caller, answer)
        member.sync_caller = None


def go_on_as_before(
    group: ClassicState,
    effects: Effects,
    member: Member,
    old_id: str,
    old_leader: str | None,
    before: tuple[Protocols, int, int],
    caller: Caller,
) -> None:
    """Only the member id changes: a record, but no rebalance. Since version 9 a leader is told that it is the
    leader and need not assign anything; before, the answer names the old id as the leader, so that it does not try
    (KIP-814)."""
    group.settings.log(
        "Static member which joins during Stable stage and doesn't affect the selected protocol will not"
        " trigger a rebalance."
    )
    if caller.version >= SKIP_ASSIGNMENT_SINCE:
        answer = joined(group, caller, member)
        answer.skip_assignment = group.roster.leader_id == member.member_id
    else:
        answer = joined_without_members(group, caller, member, old_leader)
    effects.write(*metadata_record(group))
    effects.reply(caller, answer)
    fenced = effects.replies[:-1]

    def on_refused(error_code: int) -> Effects:
        undone = Effects()
        undone.replies = fenced
        new_id = member.member_id
        group.settings.log(
            f"Failed to persist metadata for group {group.group_id} static member {new_id} with group instance"
            f" id {member.instance_id} due to {errors.NAMES.get(error_code)}. Reverting to old member id {old_id}."
        )
        group.roster.update(member, *before)
        group.roster.rename(member, old_id)
        restart_session(group, undone, member)
        refusal = joined_without_members(group, caller, member, old_leader)
        refusal.error_code, refusal.member_id = told_as(error_code), NOBODY
        undone.reply(caller, refusal)
        return undone

    effects.on_refused = on_refused


# -- checks


def check_member(group: ClassicState, request: Asked, operation: str) -> Member:
    try:
        return group.roster.check_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        log_fenced(group, error, request, operation)
        raise


def log_fenced(
    group: ClassicState, error: KafkaError, request: Asked | LeaveGroupRequest.MemberIdentity, operation: str
) -> None:
    if error.code == errors.FENCED_INSTANCE_ID and request.group_instance_id is not None:
        group.settings.log(
            f"Request memberId={request.member_id} for static member with"
            f" groupInstanceId={request.group_instance_id} is fenced by existing"
            f" memberId={group.roster.instances[request.group_instance_id]} during operation {operation}"
        )


def check_texts(*texts: str | None) -> None:
    for text in texts:
        if text and len(text) > SHORT_TEXT and len(text.encode()) > LONGEST_TEXT:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR)


def rebalance_timeout_of(request: JoinGroupRequest, caller: Caller) -> int:
    if caller.version >= REBALANCE_TIMEOUT_SINCE:
        return int(request.rebalance_timeout_ms)
    return int(request.session_timeout_ms)


def client_reason(request: JoinGroupRequest | LeaveGroupRequest.MemberIdentity) -> str:
    return f"client reason: {request.reason or 'not provided'}"
