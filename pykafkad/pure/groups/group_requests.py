"""Requests about whole groups: list and delete groups, and their expiry with their offsets (KIP-211, KIP-518, KIP-848).

An offset expires when the retention has passed since its commit, or since its group became empty; never while a member
is subscribed to its topic or an open transaction has an offset for the partition. A group without members is deleted
with its last offset, unless a transaction is open.
"""

from __future__ import annotations

from pykafkad.errors import NONE, KafkaError
from pykafkad.messages import ListGroupsResponse
from pykafkad.pure.effects import Effects
from pykafkad.pure.groups.offsets import Offset, tombstone
from pykafkad.pure.timeline import bits_for, in_order, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator

    from pykafkad.pure.groups.table import Group, GroupTable

ListedGroup = ListGroupsResponse.ListedGroup
LISTED_AT_ONCE = 16
EXPIRED_AT_ONCE = 500  # offsets


def listed(
    groups: GroupTable, states: Collection[str], types: Collection[str]
) -> Generator[None, None, list[ListedGroup]]:
    """The groups that match, in Kafka's order. Empty filters match everything; states and types are in lower case."""
    groups.most = max(groups.most, len(groups.by_id))
    bits = bits_for(groups.most)
    rows: list[ListedGroup] = []
    places: list[int] = []
    for number, group_id in enumerate(list(groups.by_id)):
        if number % LISTED_AT_ONCE == LISTED_AT_ONCE - 1:
            yield
        group = groups.by_id.get(group_id)
        if group is None or (types and group.TYPE not in types):
            continue
        state = group.state_name
        if states and state.lower() not in states:
            continue
        kind = group.protocol_type or ""
        rows.append(
            ListedGroup(group_id=group_id, protocol_type=kind, group_state=state, group_type=group.TYPE)
        )
        places.append(place_of(group_id, bits))
    return in_order(rows, places)


def delete(groups: GroupTable, group_ids: Iterable[str], effects: Effects) -> dict[str, int]:
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


def expire(groups: GroupTable, group_id: str, now_ms: int) -> Iterator[Effects]:
    offsets = groups.offsets
    held = list(offsets.partitions_of(group_id))
    for at in range(0, len(held), EXPIRED_AT_ONCE):
        yield expire_some(groups, group_id, held[at : at + EXPIRED_AT_ONCE], now_ms)
    effects = Effects()
    group = groups.by_id.get(group_id)
    has_offsets = group_id in offsets.by_group or group_id in offsets.open_transactions
    if group is not None and group.is_empty and not has_offsets:
        effects.records += group.tombstones()
    yield effects


def expire_some(groups: GroupTable, group_id: str, held: Iterable[tuple[str, int]], now_ms: int) -> Effects:
    effects = Effects()
    effects.is_atomic = False
    group = groups.by_id.get(group_id)
    if group is None:
        return effects
    offsets, retention_ms = groups.offsets, groups.settings.offsets_retention_ms
    in_use: dict[str, bool] = {}
    for topic, partition in held:
        if topic not in in_use:
            in_use[topic] = group.is_subscribed_to(topic)
        offset = offsets.get(group_id, topic, partition)
        if in_use[topic] or offset is None or not is_expired(group, offset, now_ms, retention_ms):
            continue
        if not offsets.is_pending(group_id, topic, partition):
            effects.write(*tombstone(group_id, topic, partition))
    return effects


def is_expired(group: Group, offset: Offset, now_ms: int, retention_ms: int) -> bool:
    base_ms = group.offset_expiry_base_ms(offset.commit_ms)
    if base_ms is None:
        return False
    if offset.expire_ms != -1:  # an old client has set the expiry time
        return now_ms >= offset.expire_ms
    return now_ms - base_ms >= retention_ms
