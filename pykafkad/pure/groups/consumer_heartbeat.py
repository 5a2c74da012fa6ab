"""ConsumerGroupHeartbeat: a member joins, reports its subscription and partitions, gets its assignment, and leaves.

A group is created by its first member. If there is an empty classic group of that name, it is replaced; one with
members is converted (consumer_conversion). Versions 0 and 1 (KIP-848; KIP-1082: member ids that clients generate).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import ConsumerGroupHeartbeatResponse
from pykafkad.pure.effects import Caller, Effects
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.consumer import ConsumerGroup
from pykafkad.pure.groups.consumer_leaving import fence
from pykafkad.pure.groups.consumer_member import GONE, LEFT_FOR_A_WHILE, Epochs, Member, partitions_of
from pykafkad.pure.groups.consumer_target import assignor_names
from pykafkad.pure.groups.consumer_update import (
    JOINING_EPOCH,
    REGEX_CHANGED_AND_KNOWN,
    REGEX_KEPT,
    Update,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from pykafkad.messages import ConsumerGroupHeartbeatRequest
    from pykafkad.pure.groups.table import GroupTable

Assignment = ConsumerGroupHeartbeatResponse.Assignment
TopicPartitions = ConsumerGroupHeartbeatResponse.TopicPartitions

MEMBER_ID_BY_CLIENT_SINCE = 1  # version
NO_TIMEOUT = -1
NAMES_MAX = 300_000  # different names do not fit into a record batch


def heartbeat(
    groups: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
) -> Effects:
    if request.member_epoch in (GONE, LEFT_FOR_A_WHILE):
        return leave(groups, request, caller, now_ms)
    effects = Effects()
    joins = request.member_epoch == JOINING_EPOCH
    was = groups.by_id.get(request.group_id)
    group = find(groups, request.group_id, joins, effects)
    update = Update(group, effects, now_ms)
    old = the_member(update, request, joins)
    new = told(old, request, caller)
    names_changed = update.save(old, new, request.subscribed_topic_names)
    regex = update.save_regex(old, new, caller)
    is_upgrade = was is not None and not isinstance(was, ConsumerGroup) and not was.is_empty
    # An upgrade may interrupt a rebalance, so there must be a new target assignment. (Kafka forgets that if the new
    # member subscribes by a regular expression only, which has to be resolved first.)
    bump = names_changed or regex == REGEX_CHANGED_AND_KNOWN or is_upgrade
    if bump or update.has_stale_topics():
        update.refresh_topics(bump, old, new)
    target_epoch, share = update.target(old, new)
    owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
    changed = names_changed or regex != REGEX_KEPT
    new = update.reconcile(new, target_epoch, share, owned, changed)
    update.restart_session(new)
    effects.reply(caller, answer(group, request, old, new))
    if was is not None and not isinstance(was, ConsumerGroup) and not was.is_empty:
        from pykafkad.pure.groups.consumer_conversion import release_waiting

        release_waiting(was, effects)
    return effects


def find(groups: GroupTable, group_id: str, joins: bool, effects: Effects) -> ConsumerGroup:
    """The group as it is to be for this request: the existing one, a new one, or a converted classic one."""
    group = groups.by_id.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if not joins:
        text = f"Consumer group {group_id} not found." if group is None else not_a_consumer_group(group_id)
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, text)
    if group is None:
        return ConsumerGroup(groups, group_id)
    if group.is_empty:
        effects.records += group.tombstones()
        groups.settings.log(f"[GroupId {group_id}] Converted the empty classic group to a consumer group.")
        return ConsumerGroup(groups, group_id)
    from pykafkad.pure.groups.consumer_conversion import to_consumer_group

    return to_consumer_group(groups, group, effects)


def not_a_consumer_group(group_id: str) -> str:
    return f"Group {group_id} is not a consumer group."


def the_member(update: Update, request: ConsumerGroupHeartbeatRequest, joins: bool) -> Member:
    update.check_room(request.member_id)
    member_id = request.member_id or update.group.groups.settings.new_short_id()
    owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
    if request.instance_id is None:
        return update.dynamic_member(member_id, request.member_epoch, owned, joins, classic=False)
    return update.static_member(
        member_id, request.member_epoch, request.instance_id, owned, joins, classic=False
    )


def told(old: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """The member with what the request says; fields that are left out keep their values."""
    changes: dict[str, Any] = {
        "client_id": caller.client_id,
        "client_host": caller.client_host,
        "classic": None,
    }
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != NO_TIMEOUT:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        changes["assignor"] = request.server_assignor
    names = request.subscribed_topic_names
    if names is not None:
        if len(names) > NAMES_MAX:
            raise KafkaError(errors.MESSAGE_TOO_LARGE)
        changes["topic_names"] = frozenset(names)
    if request.subscribed_topic_regex is not None:
        changes["regex"] = request.subscribed_topic_regex
    return old.but(**changes)


def answer(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, old: Member, new: Member
) -> ConsumerGroupHeartbeatResponse:
    """The answer has the assignment only if it changed, or if the member has sent all its fields."""
    told_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    told_all = (
        request.rebalance_timeout_ms != NO_TIMEOUT and told_topics and request.topic_partitions is not None
    )
    shows = request.member_epoch == JOINING_EPOCH or told_all or old.assigned != new.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=new.member_id,
        member_epoch=new.epoch,
        heartbeat_interval_ms=group.heartbeat_interval_ms,
        assignment=assignment_of(new.assigned) if shows else None,
    )


def assignment_of(assigned: Epochs) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )


def leave(groups: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> Effects:
    group = groups.by_id.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        found = group is not None
        text = not_a_consumer_group(request.group_id) if found else f"Group {request.group_id} not found."
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, text)
    effects = Effects()
    update = Update(group, effects, now_ms)
    instance_id = request.instance_id
    if instance_id is None:
        member = group.member(request.member_id)
        update.log(f"Member {member.member_id} left the consumer group.")
        fence(update, [member])
    else:
        member = update.known_static(group.static_member(instance_id), instance_id, request.member_id)
        who = f"Static member {member.member_id} with instance id {instance_id}"
        if request.member_epoch == LEFT_FOR_A_WHILE:
            update.log(f"{who} temporarily left the consumer group.")
            effects.write(*records.assignment_record(group.group_id, away(member)))
        else:
            update.log(f"{who} left the consumer group.")
            fence(update, [member])
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    effects.reply(caller, response)
    return effects


def away(member: Member) -> Member:
    """The static member as it is while it is away: it keeps its partitions for its successor, at an epoch below all
    others."""
    assigned = {topic_id: dict.fromkeys(each, 0) for topic_id, each in member.assigned.items()}
    return member.but(epoch=LEFT_FOR_A_WHILE, assigned=assigned, revoking={})


# -- what is checked before the group is looked at


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises KafkaError for requests that are invalid for any group."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_BY_CLIENT_SINCE or epoch > 0 or epoch == GONE:
        check_not_blank(request.member_id, "MemberId")
    check_not_blank(request.group_id, "GroupId")
    check_not_blank(request.instance_id, "InstanceId")
    check_not_blank(request.rack_id, "RackId")
    if epoch == JOINING_EPOCH:
        check_join(request)
    elif epoch == LEFT_FOR_A_WHILE:
        if request.instance_id is None:
            raise invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise invalid("MemberEpoch is invalid.")
    supported = assignor_names(assignors)
    if request.server_assignor is not None and request.server_assignor not in supported:
        raise KafkaError(
            errors.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors:"
            f" {', '.join(supported)}.",
        )


def check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def check_not_blank(value: str | None, name: str) -> None:
    # Java's trim() removes all characters up to U+0020.
    if value is not None and not value.strip("".join(map(chr, range(33)))):
        raise invalid(f"{name} can't be empty.")


def invalid(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_REQUEST, text)
