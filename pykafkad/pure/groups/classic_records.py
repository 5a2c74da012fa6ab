"""A classic group's record in `__consumer_offsets` (GroupMetadata, type 2), and the subscriptions in its metadata.

One record holds a whole generation. It is written when the leader sends the assignments, when a static member comes
back under a new member id, when the group becomes empty, and without a generation when the group is created.
"""

from __future__ import annotations

from pykafkad.hot.wire import WireError
from pykafkad.messages import ConsumerProtocolSubscription, GroupMetadataKey, GroupMetadataValue
from pykafkad.pure.effects import Record
from pykafkad.pure.groups.classic_member import NO_ASSIGNMENT
from pykafkad.pure.sharing import set_of_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.classic_state import ClassicState

MemberMetadata = GroupMetadataValue.MemberMetadata

CONSUMER_PROTOCOL = "consumer"  # the protocol type whose metadata the broker can read
NO_TIME = -1


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
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    if not group.roster.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    topics: set[str] = set()
    try:
        for member in group.roster.members.values():
            # Two bytes of version, then the fields of version 0, with which every version begins.
            read, _ = ConsumerProtocolSubscription.decode_prefix(member.metadata(group.protocol_name), 0, 2)
            topics.update(read.topics)
    except WireError as problem:
        group.settings.log(
            f"Failed to parse Consumer Protocol {CONSUMER_PROTOCOL}:{group.protocol_name} of group"
            f" {group.group_id}: {problem}. The topics it is subscribed to are not known."
        )
        return None
    return set_of_texts(topics)
