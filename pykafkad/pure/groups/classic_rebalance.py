"""The generations of a classic group: how a rebalance begins, waits for its members, and ends.

Goes from one state of classic_state to the next. Owns the three kinds of timers: ("session", member), ("join",) and
("sync",) after the group's id.
Invariants: in PreparingRebalance there is a join timer; JoinGroup requests wait only there, SyncGroup requests only in
CompletingRebalance; the assignments of the present generation are in memory and, once it is Stable, in the log. The
rebalance of an Empty group is the initial one: it waits group.initial.rebalance.delay.ms for further members, and again
as long as new ones come, but never longer than the longest rebalance timeout (KIP-134).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.effects import Caller, Effects, TimerKey
from pykafkad.pure.groups.classic_answers import JoinMember, join_answer, join_refusal, sync_answer
from pykafkad.pure.groups.classic_member import NO_ASSIGNMENT, Member
from pykafkad.pure.groups.classic_records import metadata_record, read_subscriptions
from pykafkad.pure.groups.classic_state import COMPLETING, EMPTY, PREPARING, STABLE
from pykafkad.pure.sharing import NONE, own, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.messages import JoinGroupResponse
    from pykafkad.pure.groups.classic_state import ClassicState

SESSION, JOIN, SYNC = "session", "join", "sync"

# A member whose first JoinGroup is not answered within this time is removed; the client would send it again.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
# If no member has joined, the rebalance tries again after the rebalance timeout, which clients may have set to 0.
MIN_RETRY_MS = 10


# -- a rebalance begins


def rebalance(group: ClassicState, effects: Effects, reason: str, now_ms: int) -> None:
    """Begin a rebalance, or complete the present one if all members have joined."""
    if group.state_name == PREPARING:
        complete_join_if_all_came(group, effects, now_ms)
    else:
        prepare(group, effects, reason, now_ms)


def prepare(group: ClassicState, effects: Effects, reason: str, now_ms: int) -> None:
    roster = group.roster
    if group.state_name == COMPLETING:
        give_assignments(group, effects, {}, errors.REBALANCE_IN_PROGRESS)
    roster.unsynced = NONE
    effects.cancel(group.group_id, SYNC)
    is_initial = group.state_name == EMPTY
    if is_initial:
        group.initial_delay_ms = group.settings.initial_rebalance_delay_ms
        group.initial_remaining_ms = max(roster.rebalance_timeout_ms - group.initial_delay_ms, 0)
        group.new_member_added = False
        effects.after(group.initial_delay_ms, group.group_id, JOIN)
    group.move_to(PREPARING, now_ms)
    group.settings.log(
        f"Preparing to rebalance group {group.group_id} in state {PREPARING} with old generation"
        f" {group.generation_id} (reason: {reason})."
    )
    if is_initial:
        return
    if roster.have_all_joined:
        complete_join(group, effects, now_ms)
    else:
        effects.after(roster.rebalance_timeout_ms, group.group_id, JOIN)


# -- members have joined


def complete_join_if_all_came(group: ClassicState, effects: Effects, now_ms: int) -> None:
    """The initial rebalance is left out: it waits for members that are not known yet."""
    if group.state_name == PREPARING and group.previous_state != EMPTY and group.roster.have_all_joined:
        complete_join(group, effects, now_ms)


def on_join_timer(group: ClassicState, effects: Effects, now_ms: int) -> None:
    if group.state_name != PREPARING:
        return
    if group.initial_delay_ms is None or not group.new_member_added or group.initial_remaining_ms == 0:
        complete_join(group, effects, now_ms)
        return
    group.new_member_added = False
    delay_ms = min(group.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
    group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
    group.initial_delay_ms = delay_ms
    effects.after(delay_ms, group.group_id, JOIN)


def complete_join(group: ClassicState, effects: Effects, now_ms: int) -> None:
    """Continue with the members that have joined. Static members stay until their session ends, whether they have
    joined or not."""
    roster = group.roster
    effects.cancel(group.group_id, JOIN)
    group.initial_delay_ms = None
    remove_absent(group, effects)
    if not roster.members:
        become_empty(group, effects, now_ms)
    elif has_leader(group):
        begin_generation(group, effects, now_ms)
    else:
        group.settings.log(
            f"Group {group.group_id} could not complete rebalance because no members rejoined."
        )
        effects.after(max(roster.rebalance_timeout_ms, MIN_RETRY_MS), group.group_id, JOIN)


def remove_absent(group: ClassicState, effects: Effects) -> None:
    members = group.roster.members.values()
    absent = [each.member_id for each in members if each.join_caller is None and each.instance_id is None]
    for member_id in absent:
        group.roster.remove(member_id)
        effects.cancel(group.group_id, SESSION, member_id)
    if absent:
        group.settings.log(
            f"Group {group.group_id} removed dynamic members who haven't joined: {', '.join(absent)}"
        )


def has_leader(group: ClassicState) -> bool:
    before = group.roster.leader_id
    elected = group.roster.elect_joined_leader()
    if group.roster.leader_id != before:
        group.settings.log(
            f"Group leader {before} of group {group.group_id} failed to join before the rebalance timeout."
            f" Member {group.roster.leader_id} was elected as the new leader."
        )
    return elected


def become_empty(group: ClassicState, effects: Effects, now_ms: int) -> None:
    next_generation(group, None, EMPTY, now_ms)
    group.settings.log(f"Group {group.group_id} with generation {group.generation_id} is now empty.")
    effects.write(*metadata_record(group))
    refused = Effects()
    refused.replies, refused.timers = effects.replies, effects.timers

    def on_refused(error_code: int) -> Effects:
        # Nothing to undo: a restart would load the last generation in the log, whose members would then time out.
        group.settings.log(
            f"Failed to write empty metadata for group {group.group_id}: {errors.NAMES.get(error_code)}"
        )
        return refused

    effects.on_refused = on_refused


def begin_generation(group: ClassicState, effects: Effects, now_ms: int) -> None:
    roster = group.roster
    next_generation(group, roster.select_protocol(), COMPLETING, now_ms)
    group.settings.log(
        f"Stabilized group {group.group_id} generation {group.generation_id} with {len(roster.members)} members."
    )
    roster.unsynced = own(roster.unsynced)
    for member in roster.members.values():
        caller = member.join_caller
        if caller is not None:
            answer_join(group, effects, member, joined(group, caller, member))
        restart_session(group, effects, member)
        member.is_new = False
        roster.unsynced[member.member_id] = None
    effects.after(roster.rebalance_timeout_ms, group.group_id, SYNC)


def next_generation(group: ClassicState, protocol_name: str | None, state: str, now_ms: int) -> None:
    group.generation_id += 1
    group.protocol_name = protocol_name
    group.subscribed_topics = read_subscriptions(group)
    group.move_to(state, now_ms)
    group.roster.unsynced = NONE


# -- members have synced


def give_assignments(
    group: ClassicState, effects: Effects, assignments: dict[str, bytes], error_code: int = 0
) -> None:
    """Give each member its assignment (or none), and answer the SyncGroup requests that wait, with an error if
    there is one."""
    for member in group.roster.members.values():
        member.assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
        if member.sync_caller is not None:
            answer_sync(group, effects, member, error_code)
            # If its session timed out while it was waiting, it was excused and has no timer now.
            restart_session(group, effects, member)


def synced(group: ClassicState, effects: Effects, member: Member) -> None:
    roster = group.roster
    roster.unsynced = without(roster.unsynced, member.member_id)
    if not roster.unsynced:
        effects.cancel(group.group_id, SYNC)


def on_sync_timer(group: ClassicState, effects: Effects, now_ms: int) -> None:
    """Remove members that have joined and have not asked for their assignment since."""
    late = list(group.roster.unsynced)
    if group.state_name not in (COMPLETING, STABLE) or not late:
        return
    for member_id in late:
        remove(group, effects, member_id)
    prepare(group, effects, f"Removing {', '.join(late)} on pending sync request expiration", now_ms)


# -- members leave


def remove(
    group: ClassicState, effects: Effects, member_id: str, error_code: int = errors.UNKNOWN_MEMBER_ID
) -> None:
    """Remove a member, or a pending id that has not joined yet; its requests that wait are answered."""
    member = group.roster.members.get(member_id)
    if member is not None:
        refuse_join(group, effects, member, error_code)
        if member.sync_caller is not None:
            answer_sync(group, effects, member, error_code)
    group.roster.remove(member_id)
    effects.cancel(group.group_id, SESSION, member_id)


def on_session_timer(group: ClassicState, effects: Effects, member_id: str, now_ms: int) -> None:
    member = group.roster.members.get(member_id)
    if member is not None and member.is_excused:
        return  # it gets a new session with the answer
    if member is None and member_id not in group.roster.pending:
        return
    remove(group, effects, member_id)
    if member is None:
        group.settings.log(
            f"Pending member {member_id} in group {group.group_id} has been removed after session timeout"
            " expiration."
        )
    else:
        group.settings.log(
            f"Member {member_id} in group {group.group_id} has failed, removing it from the group."
        )
    if group.state_name == PREPARING:
        if group.roster.have_all_joined:
            complete_join(group, effects, now_ms)
    elif member is not None:
        prepare(group, effects, f"removing member {member_id} on heartbeat expiration.", now_ms)


def on_timer(group: ClassicState, key: TimerKey, now_ms: int) -> Effects:
    effects = Effects()
    if key[1] == SESSION:
        on_session_timer(group, effects, key[2], now_ms)
    elif key[1] == JOIN:
        on_join_timer(group, effects, now_ms)
    elif key[1] == SYNC:
        on_sync_timer(group, effects, now_ms)
    return effects


def restart_session(group: ClassicState, effects: Effects, member: Member) -> None:
    effects.timers.append(((group.group_id, SESSION, member.member_id), member.session_timeout_ms))


# -- answers


def joined(group: ClassicState, caller: Caller, member: Member) -> JoinGroupResponse:
    """JoinGroup's answer for the present generation. The leader's has all members, so that it can assign
    partitions."""
    members = []
    if group.roster.leader_id == member.member_id:
        members = [
            JoinMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata(group.protocol_name),
            )
            for each in group.roster.members.values()
        ]
    return join_answer(
        caller,
        member.member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.roster.leader_id,
        members,
    )


def answer_join(group: ClassicState, effects: Effects, member: Member, response: JoinGroupResponse) -> None:
    assert member.join_caller is not None
    effects.reply(member.join_caller, response)
    group.roster.wait_for_join(member, None)


def refuse_join(
    group: ClassicState, effects: Effects, member: Member, error_code: int, told_member_id: str = ""
) -> None:
    caller = member.join_caller
    if caller is not None:
        answer_join(group, effects, member, join_refusal(caller.version, error_code, told_member_id))


def answer_sync(group: ClassicState, effects: Effects, member: Member, error_code: int) -> None:
    assert member.sync_caller is not None
    if error_code:
        response = sync_answer(member.assignment)
        response.error_code = error_code
    else:
        response = sync_answer(member.assignment, group.protocol_type, group.protocol_name)
    effects.reply(member.sync_caller, response)
    member.sync_caller = None
