"""A classic group's record in `__consumer_offsets` (GroupMetadata, type 2), and the subscriptions in its metadata.

One record holds a whole generation. It is written when the leader sends the assignments, when a static member comes
back under a new member id, when the group becomes empty, and without a generation when the group is created.
"""

from __future__ import annotations

from pykafkad.hot.wire import LargeMessage, WireError
from pykafkad.messages import ConsumerProtocolSubscription, GroupMetadataKey, GroupMetadataValue
from pykafkad.pure.effects import Record
from pykafkad.pure.groups.classic_member import NO_ASSIGNMENT
from pykafkad.pure.sharing import set_of_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.pure.groups.classic_state import ClassicState

MemberMetadata = GroupMetadataValue.MemberMetadata

CONSUMER_PROTOCOL = "consumer"  # the protocol type whose metadata the broker can read
NO_TIME = -1

# What the members of a group may have told of their topics for these to be looked for.
SUBSCRIBED_TOPICS_MAX = 100_000
SUBSCRIPTION_BYTES_MAX = 1 << 20
SUBSCRIPTIONS_MAX = 10_000  # different ones


def metadata_record(group: ClassicState, assignments: dict[str, bytes] | None = None) -> Record:
    """The record of the present generation, with these assignments or else with the members' own."""
    members = []
    for each in group.roster.members.values():
        given = each.assignment if assignments is None else assignments.get(each.member_id, NO_ASSIGNMENT)
        members.append(
            MemberMetadata(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                rebalance_timeout=each.rebalance_timeout_ms,
                session_timeout=each.session_timeout_ms,
                subscription=each.metadata(group.protocol_name),
                assignment=given,
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.roster.leader_id,
        current_state_timestamp=NO_TIME if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )
    return GroupMetadataKey(group=group.group_id), value


def new_group_record(group: ClassicState) -> Record:
    """The record of a group that is new and has no generation yet."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=NO_TIME if group.state_since_ms is None else group.state_since_ms,
    )
    return GroupMetadataKey(group=group.group_id), value


def tombstone(group_id: str) -> Record:
    return GroupMetadataKey(group=group_id), None


def read_subscriptions(group: ClassicState) -> frozenset[str] | None:
    """The topics that all members subscribe to, if they are consumers whose metadata can be read."""
    reading = subscriptions(group)
    try:
        while True:
            next(reading)
    except StopIteration as end:
        topics: frozenset[str] | None = end.value
        return topics


def subscriptions(group: ClassicState) -> Generator[None, None, frozenset[str] | None]:
    """The same, one member at a time. Most have the same metadata, which is read once. What takes long to read is not:
    of a group with such metadata all topics are kept."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    if not group.roster.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    topics: set[str] = set()
    was_read: set[bytes] = set()
    left = SUBSCRIBED_TOPICS_MAX
    try:
        for member in group.roster.members.values():
            metadata = member.metadata(group.protocol_name)
            if len(metadata) > SUBSCRIPTION_BYTES_MAX or len(was_read) == SUBSCRIPTIONS_MAX:
                raise LargeMessage
            if metadata not in was_read:
                was_read.add(metadata)
                # Two bytes of version, then the fields of version 0, with which every version begins.
                read, _ = ConsumerProtocolSubscription.decode_prefix(metadata, 0, 2, most=left)
                topics.update(read.topics)
                left -= len(read.topics)
            yield
    except LargeMessage:
        group.settings.log(
            f"The topics that group {group.group_id} is subscribed to are not looked for: its members have too many."
        )
        return None
    except WireError as problem:
        group.settings.log(
            f"Failed to parse Consumer Protocol {CONSUMER_PROTOCOL}:{group.protocol_name} of group"
            f" {group.group_id}: {problem}. The topics it is subscribed to are not known."
        )
        return None
    return set_of_texts(topics)
