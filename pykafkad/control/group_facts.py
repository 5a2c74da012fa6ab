"""What is to be seen of a group: its state and members of either protocol, whom it waits for, what it has committed."""

from __future__ import annotations

from itertools import islice

from pykafkad.hot.wire import WireError
from pykafkad.message_views import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.server import Broker

    Row = dict[str, Any]

CLASSIC = "classic"
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"
PARTITIONS_MAX = 1_000  # of a member that are told
TOPICS_MAX = 1_000


def groups(broker: Broker) -> Iterator[Any]:
    for shard in broker.group_coordinator.shards:
        if shard.is_active:
            yield from list(shard.machine.by_id.values())


def find(broker: Broker, group_id: str) -> Any:
    for shard in broker.group_coordinator.shards:
        if shard.is_active and group_id in shard.machine.by_id:
            return shard.machine.by_id[group_id]
    return None


def are_loading(broker: Broker) -> bool:
    return any(not shard.is_active and not shard.has_failed for shard in broker.group_coordinator.shards)


def members_of(group: Any) -> dict[str, Any]:
    members: dict[str, Any] = group.roster.members if group.TYPE == CLASSIC else group.members
    return members


def group_facts(group: Any) -> Row:
    is_classic = group.TYPE == CLASSIC
    return {
        "id": cut(group.group_id),
        "type": group.TYPE,
        "state": group.state_name,
        "generation": group.generation_id if is_classic else group.epoch,
        "protocol_type": group.protocol_type,
        "members": len(members_of(group)),
        "is_initial": bool(is_classic and group.is_initial_rebalance),
    }


# -- members


def member_facts(broker: Broker, group: Any, member: Any) -> Row:
    """`behind`: what the group waits for this member to do, or None."""
    is_classic = group.TYPE == CLASSIC
    assigned = classic_assigned(group, member) if is_classic else by_name(broker, member.assigned)
    topics = classic_topics(group, member) if is_classic else subscribed(group, member)
    return {
        "id": cut(member.member_id),
        "client_id": cut(member.client_id),
        "host": member.client_host.removeprefix("/"),
        "instance_id": member.instance_id,
        "assigned": assigned,
        "topics": topics,
        "behind": classic_behind(group, member) if is_classic else consumer_behind(group, member),
    }


def classic_assigned(group: Any, member: Any) -> dict[str, list[int]] | None:
    """By topic; None: it cannot be read, or is not known yet."""
    from pykafkad.pure.groups.consumer_protocol import PROTOCOL_TYPE, read_assignment

    if group.protocol_type != PROTOCOL_TYPE or group.state_name != STABLE:
        return None
    try:
        assigned = read_assignment(member.assignment)[0] if member.assignment else {}
    except WireError:
        return None
    return bounded(assigned)


def by_name(broker: Broker, epochs: Any) -> dict[str, list[int]]:
    known = broker.image.topics_by_id
    return bounded({known[each].name: partitions for each, partitions in epochs.items() if each in known})


def bounded(assigned: Any) -> dict[str, list[int]]:
    left, told = PARTITIONS_MAX, {}
    for topic in islice(sorted(each for each in assigned if assigned[each]), TOPICS_MAX):
        told[topic] = sorted(assigned[topic])[:left]
        left -= len(told[topic])
    return told


def classic_topics(group: Any, member: Any) -> list[str] | None:
    from pykafkad.pure.groups.consumer_protocol import PROTOCOL_TYPE, read_subscription

    if group.protocol_type != PROTOCOL_TYPE or not member.protocols:
        return None
    try:
        topics = read_subscription(member.protocols[0][1]).topics
    except WireError:
        return None
    return sorted(topics)[:TOPICS_MAX]


def subscribed(group: Any, member: Any) -> list[str]:
    resolved = group.regexes.get(member.regex)
    return sorted({*member.topic_names, *(resolved.topics if resolved is not None else ())})[:TOPICS_MAX]


def classic_behind(group: Any, member: Any) -> str | None:
    if group.state_name == PREPARING and not group.is_initial_rebalance and member.join_caller is None:
        return "rejoin"
    if group.state_name == COMPLETING:
        if member.member_id == group.roster.leader_id:
            return "assign"
        if member.member_id in group.roster.unsynced:
            return "sync"
    return None


def consumer_behind(group: Any, member: Any) -> str | None:
    """Who waits for partitions that others have not given up is not late."""
    from pykafkad.pure.groups.consumer_member import UNRELEASED

    if member.revoking:
        return "revoke"
    is_late = member.state != UNRELEASED and not member.is_reconciled_to(group.target_epoch)
    return "reconcile" if is_late else None


def waiting_members(group: Any) -> Iterator[Row]:
    """Members of classic groups whose JoinGroup or SyncGroup waits, and for whom."""
    if group.TYPE != CLASSIC or group.state_name not in (PREPARING, COMPLETING):
        return
    members = list(group.roster.members.values())
    late = [cut(each.member_id) for each in members if classic_behind(group, each) in ("rejoin", "assign")]
    reason = ", ".join(late[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
    for member in members:
        what = "JoinGroup" if member.join_caller else "SyncGroup" if member.sync_caller else None
        if what is not None:
            yield {
                "what": what,
                "group": cut(group.group_id),
                "member": cut(member.member_id),
                "client_id": cut(member.client_id),
                "address": member.client_host.removeprefix("/"),
                "for": reason
                or ("group.initial.rebalance.delay.ms" if group.is_initial_rebalance else "the group"),
            }


# -- offsets


def committed(broker: Broker, group: Any) -> Iterator[Row | None]:
    """Each committed offset, and how far it is from the end of its partition (None: that is not known)."""
    for shard in broker.group_coordinator.shards:
        if shard.is_active and shard.machine.by_id.get(group.group_id) is group:
            offsets = shard.machine.offsets
            for topic, index in list(offsets.partitions_of(group.group_id)):
                found = offsets.get(group.group_id, topic, index)
                if found is not None:
                    replica = broker.replicas.get((topic, index))
                    lag = None if replica is None else max(0, replica.high_watermark - found.offset)
                    yield {"topic": topic, "partition": index, "offset": found.offset, "lag": lag}
                yield None
