"""Members of a consumer group that use the classic protocol, as some do while their group's clients are being upgraded.

To such a member every step of its reconciliation looks like a rebalance: it gets REBALANCE_IN_PROGRESS, joins again
(which takes the step; its generation is its member epoch), and gets its partitions by SyncGroup. Timers make sure that
it does both within its rebalance timeout. KIP-848, "Supporting Online Consumer Group Upgrade".
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.wire import WireError
from pykafkad.messages import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from pykafkad.pure.effects import Caller, Effects, answered
from pykafkad.pure.groups.classic_answers import join_refusal, leave_answer, left
from pykafkad.pure.groups.consumer import JOIN, SESSION, SYNC, ConsumerGroup
from pykafkad.pure.groups.consumer_leaving import fence
from pykafkad.pure.groups.consumer_member import UNRELEASED, UNREVOKED, Classic, Member
from pykafkad.pure.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    assignment_bytes,
    read_subscription,
)
from pykafkad.pure.groups.consumer_reconciliation import Owned
from pykafkad.pure.groups.consumer_update import REGEX_KEPT, Update
from pykafkad.pure.sharing import own, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

MEMBER_ID_REQUIRED_SINCE = 4  # version of JoinGroup
DISABLED = "disabled"
NO_REASON = "not provided"
NO_TIMEOUT = -1


def join(group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
    try:
        return try_join(group, request, caller, now_ms)
    except KafkaError as error:
        # Unlike that of a classic group, this answer does not repeat the member id.
        return answered(caller, join_refusal(caller.version, error.code))


def try_join(group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
    settings = group.groups.settings
    if settings.consumer_migration_policy.lower() == DISABLED:
        raise KafkaError(
            errors.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration"
            " is disabled.",
        )
    effects = Effects()
    update = Update(group, effects, now_ms)
    is_unknown = not request.member_id
    member_id = request.member_id or settings.new_short_id()
    update.check_room(member_id)
    check_protocols(group, member_id, request)
    instance_id = request.group_instance_id
    if is_unknown and instance_id is None and caller.version >= MEMBER_ID_REQUIRED_SINCE:
        update.log(
            "Dynamic member with unknown member id joins the consumer group. Created a new member id"
            f" {member_id} and requesting the member to rejoin with this id."
        )
        return answered(caller, join_refusal(caller.version, errors.MEMBER_ID_REQUIRED, member_id))
    subscription = subscription_of(request)
    if instance_id is None:
        old = update.dynamic_member(member_id, -1, {}, True, classic=True)
    else:
        old = update.static_member(member_id, -1, instance_id, {}, is_unknown, classic=True)
    new, is_consumer = take_step(update, old, told(old, request, subscription, caller), subscription, caller)
    effects.cancel(group.group_id, JOIN, new.member_id)
    if is_consumer:  # else the group is a classic one now, which has its own timers
        effects.after(request.session_timeout_ms, group.group_id, SESSION, new.member_id)
        effects.after(max(rebalance_timeout_of(request, caller), 0), group.group_id, SYNC, new.member_id)
        group.late = without(group.late, new.member_id)
    assert new.classic is not None
    response = JoinGroupResponse(
        member_id=new.member_id,
        generation_id=new.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=new.classic.protocol_name,
    )
    effects.reply(caller, response)
    return effects


def check_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    """At least one protocol must be supported by all members that use the classic protocol."""
    supported = request.protocol_type == PROTOCOL_TYPE and any(
        group.protocol_counts.get(protocol.name, 0) == group.classic_count for protocol in request.protocols
    )
    if not supported:
        raise KafkaError(
            errors.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
        )


def subscription_of(request: JoinGroupRequest) -> Subscription:
    """The member's subscription, which is the same in all protocols of a consumer."""
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except WireError:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, "Malformed embedded consumer protocol.") from None


def told(old: Member, request: JoinGroupRequest, subscription: Subscription, caller: Caller) -> Member:
    protocols = tuple((each.name, bytes(each.metadata)) for each in request.protocols)
    changes: dict[str, Any] = {
        "topic_names": frozenset(subscription.topics),
        "regex": "",
        "client_id": caller.client_id,
        "client_host": caller.client_host,
        "classic": Classic(request.session_timeout_ms, protocols),
    }
    if request.group_instance_id is not None:
        changes["instance_id"] = request.group_instance_id
    if subscription.rack_id:
        changes["rack_id"] = subscription.rack_id
    timeout_ms = rebalance_timeout_of(request, caller)
    if timeout_ms != NO_TIMEOUT:
        changes["rebalance_timeout_ms"] = timeout_ms
    return old.but(**changes)


def rebalance_timeout_of(request: JoinGroupRequest, caller: Caller) -> int:
    """Version 0 has no rebalance timeout, so the session timeout is used."""
    timeout_ms = request.session_timeout_ms if caller.version == 0 else request.rebalance_timeout_ms
    return int(timeout_ms)


def take_step(
    update: Update, old: Member, new: Member, subscription: Subscription, caller: Caller
) -> tuple[Member, bool]:
    """Save the member, and take its next step towards the target assignment. The second value is False if this has
    converted the group to a classic one."""
    from pykafkad.pure.groups import consumer_conversion

    group = update.group
    replaced = group.static_member(new.instance_id)
    downgrades = replaced is not None and consumer_conversion.may_downgrade_with(update, replaced)
    names_changed = update.save(old, new)
    regex = update.save_regex(old, new, caller)
    changed = names_changed or regex != REGEX_KEPT
    if changed or update.has_stale_topics():
        update.refresh_topics(changed, old, new)
    owned = owned_partitions(group, subscription)
    if not downgrades:
        epoch, share = update.target(old, new)
        return update.reconcile(new, epoch, share, owned, changed), True
    is_behind = group.target_epoch < update.group_epoch
    if not is_behind:
        share = group.share_of(new.member_id, new.instance_id)
        new = update.reconcile(new, group.target_epoch, share, owned, changed)
    reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
    consumer_conversion.to_classic_group(update, {}, new, reason if is_behind else None)
    return new, False


def owned_partitions(group: ConsumerGroup, subscription: Subscription) -> Owned:
    topics = group.groups.settings.topics.topics
    return {topics[name].id: partitions for name, partitions in subscription.owned.items() if name in topics}


# -- SyncGroup, Heartbeat, LeaveGroup


def sync(group: ConsumerGroup, request: SyncGroupRequest, caller: Caller) -> Effects:
    member, classic = classic_member(group, request.member_id, request.group_instance_id)
    check_generation(member, request.generation_id)
    check_sync_protocol(member, classic, request)
    if group.target_epoch > member.epoch and member.state != UNREVOKED:
        effects = answered(caller, SyncGroupResponse(error_code=errors.REBALANCE_IN_PROGRESS))
        expect_join(group, member, effects)
        return effects
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_bytes(member.assigned, classic.metadata, group.groups.settings.topics),
    )
    effects = answered(caller, response)
    effects.cancel(group.group_id, SYNC, member.member_id)
    effects.after(classic.session_timeout_ms, group.group_id, SESSION, member.member_id)
    return effects


def classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[Member, Classic]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        there = group.static_member(instance_id)
        if there is None:
            raise KafkaError(
                errors.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        if there.member_id != member_id:
            raise KafkaError(errors.FENCED_INSTANCE_ID)
        member = there
    if member.classic is None:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    return member, member.classic


def check_generation(member: Member, generation_id: int) -> None:
    if member.epoch != generation_id:
        raise KafkaError(errors.ILLEGAL_GENERATION)


def check_sync_protocol(member: Member, classic: Classic, request: SyncGroupRequest) -> None:
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        classic.protocol_name,
    ):
        raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)


def expect_join(group: ConsumerGroup, member: Member, effects: Effects) -> None:
    """Begin the rebalance timeout of the member when it is first told to join again."""
    if member.member_id not in group.late:
        group.late = own(group.late)
        group.late[member.member_id] = None
        effects.after(max(member.rebalance_timeout_ms, 0), group.group_id, JOIN, member.member_id)


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Effects:
    member, classic = classic_member(group, request.member_id, request.group_instance_id)
    check_generation(member, request.generation_id)
    effects = Effects()
    effects.after(classic.session_timeout_ms, group.group_id, SESSION, member.member_id)
    code = errors.NONE
    if (
        member.epoch < group.target_epoch
        or member.state == UNREVOKED
        or (member.state == UNRELEASED and not waits_for_others(group, member))
        or lacks_target(group, now_ms)
    ):
        code = errors.REBALANCE_IN_PROGRESS
        expect_join(group, member, effects)
    effects.reply(caller, HeartbeatResponse(error_code=code))
    return effects


def lacks_target(group: ConsumerGroup, now_ms: int) -> bool:
    """Whether a member has to join again so that a new target assignment is computed. Normally a heartbeat of a
    consumer protocol member does that. Without such members Kafka's group keeps partitions unassigned until some member
    joins."""
    return (
        group.target_epoch < group.epoch
        and group.classic_count == len(group.members)
        and Update(group, Effects(), now_ms).may_assign()
    )


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Whether another member still has to revoke a partition of the member's target assignment."""
    for topic_id, partitions in group.shares.get(member.member_id, {}).items():
        assigned = member.assigned.get(topic_id, {})
        if not group.owners_of(topic_id).keys().isdisjoint(partitions - assigned.keys()):
            return True
    return False


def leave(group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Effects:
    effects = Effects()
    update = Update(group, effects, now_ms)
    going: dict[str, Member] = {}
    answers = []
    for leaving in request.members:
        try:
            member = who_leaves(update, leaving)
        except KafkaError as error:
            answers.append(left(leaving, error.code))
            continue
        going[member.member_id] = member
        answers.append(left(leaving))
    fence(update, going.values())
    effects.reply(caller, leave_answer(caller.version, answers))
    return effects


def who_leaves(update: Update, leaving: LeaveGroupRequest.MemberIdentity) -> Member:
    group = update.group
    instance_id = leaving.group_instance_id
    if instance_id is None:
        member = group.member(leaving.member_id)
        who = f"Dynamic member {member.member_id}"
    else:
        there = group.static_member(instance_id)
        # An administrator may name a static member by its instance id alone.
        member_id = leaving.member_id or (there.member_id if there is not None else "")
        member = update.known_static(there, instance_id, member_id)
        who = f"Static member {leaving.member_id} with instance id {instance_id}"
    reason = leaving.reason or NO_REASON
    update.log(f"{who} has left group through explicit `LeaveGroup` request; client reason: {reason}")
    return member
