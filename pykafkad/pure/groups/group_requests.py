"""Groups as a whole: listed, deleted by a client, or expired with their offsets (KIP-211, KIP-518, KIP-848).

An offset expires when the retention has passed since its commit, or since its group became empty; never while a member
is subscribed to its topic or a transaction has an offset for the partition. A group without members goes with its
last offset, where no transaction is open.
"""

from __future__ import annotations

from typing import Any

from pykafkad.errors import NONE, KafkaError
from pykafkad.messages import ListGroupsResponse
from pykafkad.pure.groups.effects import Effects
from pykafkad.pure.groups.offsets import Offset, tombstone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pykafkad.pure.groups.registry import Group, Groups

ListedGroup = ListGroupsResponse.ListedGroup


def listed(groups: Groups, states: Collection[str], types: Collection[str]) -> list[Any]:
    """Empty filters let everything through; states and types are in lower case."""
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state_name,
            group_type=group.TYPE,
        )
        for group in groups.by_id.values()
        if (not states or group.state_name.lower() in states) and (not types or group.TYPE in types)
    ]


def delete(groups: Groups, group_ids: Iterable[str], effects: Effects) -> dict[str, int]:
    codes = {}
    for group_id in group_ids:
        try:
            group = groups.group(group_id)
            group.check_delete()
        except KafkaError as error:
            codes[group_id] = error.code
            continue
        effects.records += groups.offsets.tombstones(group_id)
        effects.records += group.tombstones()
        codes[group_id] = NONE
    return codes


def expire(groups: Groups, group_ids: Iterable[str], now_ms: int) -> Effects:
    effects = Effects()
    effects.is_atomic = False
    for group_id in group_ids:
        group = groups.by_id.get(group_id)
        if group is not None and expire_offsets(groups, group, now_ms, effects) and group.is_empty:
            effects.records += group.tombstones()
    return effects


def expire_offsets(groups: Groups, group: Group, now_ms: int, effects: Effects) -> bool:
    """Whether the group has no offset left, nor one on its way in a transaction."""
    offsets = groups.offsets
    topics = offsets.by_group.get(group.group_id, {})
    retention_ms = groups.settings.offsets_retention_ms
    all_expired = True
    for topic, partitions in topics.items():
        if group.is_subscribed_to(topic):
            all_expired = False
            continue
        for partition, offset in partitions.items():
            expired = is_expired(group, offset, now_ms, retention_ms)
            if expired and not offsets.is_pending(group.group_id, topic, partition):
                effects.write(*tombstone(group.group_id, topic, partition))
            else:
                all_expired = False
    return all_expired and group.group_id not in offsets.open_transactions


def is_expired(group: Group, offset: Offset, now_ms: int, retention_ms: int) -> bool:
    base_ms = group.offset_expiry_base_ms(offset.commit_ms)
    if base_ms is None:
        return False
    if offset.expire_ms != -1:  # an old client said when
        return now_ms >= offset.expire_ms
    return now_ms - base_ms >= retention_ms
