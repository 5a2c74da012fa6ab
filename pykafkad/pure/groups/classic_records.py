"""A classic group's record in `__consumer_offsets` (GroupMetadata, type 2), and what its metadata says of topics.

One record holds a whole generation: it is written when the leader gives the assignments, when a static member comes
back under a new id, when the group becomes empty, and without a generation when the group appears.
"""

from __future__ import annotations

from pykafkad.hot.wire import WireError
from pykafkad.messages import ConsumerProtocolSubscription, GroupMetadataKey, GroupMetadataValue
from pykafkad.pure.groups.classic_member import NO_ASSIGNMENT
from pykafkad.pure.groups.effects import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.classic_rebalance import Generations

MemberMetadata = GroupMetadataValue.MemberMetadata

CONSUMER_PROTOCOL = "consumer"  # the protocol type whose metadata the broker can read
NO_TIME = -1


def metadata_record(group: Generations, assignments: dict[str, bytes] | None = None) -> Record:
    """The generation as it goes into the log: with these assignments, or with those that hold."""
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


def new_group_record(group: Generations) -> Record:
    """Says that the group is there, when there is no generation to write yet."""
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


def read_subscriptions(group: Generations) -> frozenset[str] | None:
    """The topics of all members, where they are consumers and what they say can be read."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    if not group.roster.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    topics: set[str] = set()
    try:
        for member in group.roster.members.values():
            # Two bytes of version, then what each version begins with: the fields of version 0.
            read, _ = ConsumerProtocolSubscription.decode_prefix(member.metadata(group.protocol_name), 0, 2)
            topics.update(read.topics)
    except WireError as problem:
        group.settings.log(
            f"Failed to parse Consumer Protocol {CONSUMER_PROTOCOL}:{group.protocol_name} of group"
            f" {group.group_id}: {problem}. The topics it is subscribed to are not known."
        )
        return None
    return frozenset(topics)
