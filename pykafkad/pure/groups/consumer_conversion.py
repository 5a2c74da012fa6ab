"""Converts groups: a classic group becomes a consumer group when a member joins with the consumer protocol, and a
consumer group becomes a classic one when its last member of that protocol leaves or is replaced. KIP-848;
group.consumer.migration.policy.

Upgrade: each classic member continues as a member that uses the classic protocol, with its last assignment, in the
epoch of its generation; members that wait for a rebalance are told to join again. Downgrade: members take their target
assignments as their assignments, and rebalance unless only a static member was replaced. Invariant: the converted group
takes effect with its records, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import Effects, Record
from pykafkad.pure.groups import classic_member, classic_rebalance
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.assignors import Share
from pykafkad.pure.groups.classic import ClassicGroup
from pykafkad.pure.groups.classic_records import metadata_record, read_subscriptions
from pykafkad.pure.groups.classic_state import STABLE
from pykafkad.pure.groups.consumer import FIRST_EPOCH, SESSION, ConsumerGroup, apply
from pykafkad.pure.groups.consumer_leaving import cancel_timers
from pykafkad.pure.groups.consumer_member import Classic, Epochs, Member
from pykafkad.pure.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    assignment_bytes,
    read_assignment,
    read_subscription,
)
from pykafkad.pure.groups.consumer_update import Update
from pykafkad.pure.groups.topic_watch import watch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.table import Group, GroupTable

UPGRADES = ("upgrade", "bidirectional")
DOWNGRADES = ("downgrade", "bidirectional")


# -- classic to consumer


def to_consumer_group(groups: GroupTable, classic: Group, effects: Effects) -> ConsumerGroup:
    """The converted group, not yet in effect; its records are added to the effects."""
    assert isinstance(classic, ClassicGroup)
    check_upgrade(groups, classic)
    made = ConsumerGroup(groups, classic.group_id)
    creation = upgrade_records(groups, classic)
    for key, value in creation:
        for _ in apply(made, key, value):
            pass
    group_id = classic.group_id
    effects.records += classic.tombstones()
    effects.records += creation
    effects.cancel(group_id, classic_rebalance.JOIN)
    effects.cancel(group_id, classic_rebalance.SYNC)
    for member in made.members.values():
        assert member.classic is not None
        effects.after(member.classic.session_timeout_ms, group_id, SESSION, member.member_id)
    groups.settings.log(f"[GroupId {group_id}] Converted the classic group to a consumer group.")
    return made


def check_upgrade(groups: GroupTable, classic: ClassicGroup) -> None:
    settings = groups.settings
    if settings.consumer_migration_policy.lower() not in UPGRADES:
        raise cannot_upgrade(classic, "online upgrade is disabled.")
    if classic.protocol_type != PROTOCOL_TYPE:
        raise cannot_upgrade(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.roster.members) > settings.consumer_max_size:
        raise cannot_upgrade(classic, "the group size exceeds the consumer group maximum size.")


def cannot_upgrade(classic: ClassicGroup, reason: str) -> KafkaError:
    text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}"
    return KafkaError(errors.GROUP_ID_NOT_FOUND, text)


def upgrade_records(groups: GroupTable, classic: ClassicGroup) -> list[Record]:
    members = [upgraded(groups, classic, member) for member in classic.roster.members.values()]
    keep_apart(groups, members)
    group_id, generation = classic.group_id, classic.generation_id
    names = frozenset[str]().union(*(member.topic_names for member in members))
    metadata_hash = watch_of(groups.settings).hash_of(names)
    # Before the first generation there is no target assignment; the epoch after it gives one. (Kafka cannot upgrade
    # then.)
    epoch = max(generation, FIRST_EPOCH)
    return [
        *(records.member_record(group_id, each) for each in members),
        records.group_record(group_id, epoch, metadata_hash),
        *(records.share_record(group_id, each.member_id, share_of(each)) for each in members),
        records.target_record(group_id, generation, 0),
        *(records.assignment_record(group_id, each) for each in members),
    ]


def share_of(member: Member) -> Share:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}


def upgraded(groups: GroupTable, classic: ClassicGroup, member: classic_member.Member) -> Member:
    try:
        # Before the first generation no protocol is chosen, but all protocols of a consumer have the same subscription.
        name = classic.protocol_name
        metadata = member.metadata(name) if name is not None else member.protocols[0][1]
        subscription = read_subscription(metadata)
        assigned, user_data = read_assignment(member.assignment) if member.assignment else ({}, b"")
    except WireError as problem:
        groups.settings.log(
            f"Cannot upgrade classic group {classic.group_id} to consumer group because the embedded consumer"
            f" protocol is malformed: {problem}."
        )
        raise cannot_upgrade(classic, "the embedded consumer protocol is malformed.") from None
    if user_data:
        raise cannot_upgrade(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default"
            " assignor before re-attempting the upgrade.",
        )
    topics = groups.settings.topics.topics
    epochs: Epochs = {
        topics[topic].id: dict.fromkeys(partitions, classic.generation_id)
        for topic, partitions in assigned.items()
        if topic in topics
    }
    return Member(member.member_id).but(
        epoch=classic.generation_id,
        previous_epoch=classic.generation_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        assigned=epochs,
        classic=Classic(member.session_timeout_ms, member.protocols),
    )


def keep_apart(groups: GroupTable, members: list[Member]) -> None:
    """Make sure that each partition has one owner. A group's leader may have assigned a partition to two members, of
    which the first keeps it, or one that does not exist, which is dropped. (In Kafka the upgrade then fails each time
    with UNKNOWN_SERVER_ERROR.)"""
    by_id = groups.settings.topics.topics_by_id
    taken: set[tuple[bytes, int]] = set()
    for index, member in enumerate(members):
        assigned: Epochs = {}
        for topic_id, partitions in member.assigned.items():
            count = len(by_id[topic_id].partitions)
            own = {
                partition: epoch
                for partition, epoch in partitions.items()
                if 0 <= partition < count and (topic_id, partition) not in taken
            }
            taken.update((topic_id, partition) for partition in own)
            if own:
                assigned[topic_id] = own
        if assigned != member.assigned:
            members[index] = member.but(assigned=assigned)


def release_waiting(classic: Group, effects: Effects) -> None:
    """Tell members that wait in the classic group to join again; called when nothing can fail any more."""
    assert isinstance(classic, ClassicGroup)
    effects.replies += classic.dissolve(errors.REBALANCE_IN_PROGRESS).replies


# -- consumer to classic


def may_downgrade_without(update: Update, gone: Iterable[Member]) -> bool:
    group = update.group
    leaving = list(gone)
    remaining = len(group.members) - len(leaving)
    classic_remaining = group.classic_count - sum(each.classic is not None for each in leaving)
    return remaining > 0 and classic_remaining == remaining and is_downgrade_allowed(update, remaining)


def may_downgrade_with(update: Update, replaced: Member) -> bool:
    """Whether a static member, the last one of the consumer protocol, is being replaced by one of the classic
    protocol."""
    group = update.group
    is_last = replaced.classic is None and group.classic_count == len(group.members) - 1
    return is_last and is_downgrade_allowed(update, len(group.members))


def is_downgrade_allowed(update: Update, size: int) -> bool:
    settings = update.group.groups.settings
    cannot = f"Cannot downgrade consumer group {update.group.group_id} to classic group because"
    if settings.consumer_migration_policy.lower() not in DOWNGRADES:
        settings.log(f"{cannot} the online downgrade is disabled.")
        return False
    if size > settings.max_size:
        settings.log(f"{cannot} its group size is greater than classic group max size.")
        return False
    return True


def to_classic_group(
    update: Update, gone: Mapping[str, Member], joining: Member | None, rebalance_reason: str | None
) -> None:
    """Put the classic group in the consumer group's place at once, since its members and timers are in memory from now
    on. If its records cannot be written, the consumer group is put back."""
    group, effects = update.group, update.effects
    groups = group.groups
    replaced = group.static_member(joining.instance_id) if joining is not None else None
    member_ids = list(group.members)
    if replaced is not None and joining is not None:
        # The records so far have replaced the static member by the joining one.
        member_ids = [joining.member_id if each == replaced.member_id else each for each in member_ids]
    effects.records += group.tombstones_of(member_ids)
    for member_id in group.members:
        cancel_timers(effects, group.group_id, member_id)
    members = [each for each in group.members.values() if each.member_id not in gone and each is not replaced]
    if joining is not None:
        members.append(joining)
    classic = downgraded(update, members, joining, replaced)
    effects.write(*metadata_record(classic))
    groups.by_id[group.group_id] = classic
    made = Effects()
    for member in classic.roster.members.values():
        classic_rebalance.restart_session(classic, made, member)
    if rebalance_reason is not None:
        classic_rebalance.prepare(classic, made, rebalance_reason, update.now_ms)
    effects.timers += made.timers
    groups.settings.log(f"[GroupId {group.group_id}] Converted the consumer group to a classic group.")

    def on_refused(error_code: int) -> Effects:
        groups.by_id[group.group_id] = group
        raise KafkaError(error_code)

    effects.on_refused = on_refused


def downgraded(
    update: Update, members: list[Member], joining: Member | None, replaced: Member | None
) -> ClassicGroup:
    group = update.group
    groups = group.groups
    classic = ClassicGroup(groups, group.group_id, update.now_ms)
    classic.state_name = STABLE
    classic.state_since_ms = update.now_ms
    classic.generation_id = group.epoch
    classic.roster.protocol_type = PROTOCOL_TYPE
    for member in members:
        assert member.classic is not None
        source = replaced.member_id if member is joining and replaced is not None else member.member_id
        share = group.shares.get(source, {})
        classic.roster.add(
            classic_member.Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                member.classic.protocols,
                assignment_bytes(share, member.classic.metadata, groups.settings.topics),
            )
        )
    classic.protocol_name = classic.roster.select_protocol()
    classic.subscribed_topics = read_subscriptions(classic)
    return classic
