"""Who is in a classic group: members, those that were only given an id, static names, the leader, the protocols.

Owns the bookkeeping only: no state, no timers, no records. Invariants: a group with members has a leader, which is
one of them; `instances` names each static member once; `protocol_counts` says how many members know a protocol;
`joining` is how many members wait for the answer to JoinGroup; `unsynced` and `pending` are apart from each other,
and `pending` (ids given with MEMBER_ID_REQUIRED, KIP-394) from `members`. KIP-345.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups.classic_member import Member, Protocols, most_voted
from pykafkad.pure.groups.effects import Caller


class Roster:
    __slots__ = (
        "instances",
        "joining",
        "leader_id",
        "members",
        "pending",
        "protocol_counts",
        "protocol_type",
        "unsynced",
    )

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}  # group.instance.id -> member id
        # dicts used as sets: an empty one is a third of an empty set
        self.pending: dict[str, None] = {}
        self.unsynced: dict[str, None] = {}
        self.protocol_counts: dict[str, int] = {}
        self.protocol_type: str | None = None
        self.leader_id: str | None = None
        self.joining = 0

    # -- members come and go

    def add(self, member: Member, join_caller: Caller | None = None) -> None:
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.instances
            self.instances[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending.pop(member.member_id, None)
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.wait_for_join(member, join_caller)

    def remove(self, member_id: str) -> Member | None:
        """Whatever has this id is gone; gives the member if it was one. Its requests must have been answered."""
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.protocols, -1)
            assert member.join_caller is None
            if member.instance_id is not None:
                del self.instances[member.instance_id]
            if self.leader_id == member_id:
                self.leader_id = next(iter(self.members), None)
        return member

    def update(
        self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back: the same member goes on under a new id."""
        assert member.instance_id is not None
        old_id = member.member_id
        del self.members[old_id]
        self.members[member_id] = member
        self.instances[member.instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.unsynced:
            del self.unsynced[old_id]
            self.unsynced[member_id] = None
        member.member_id = member_id

    def wait_for_join(self, member: Member, caller: Caller | None) -> None:
        """From here on this JoinGroup of the member waits, or none does."""
        self.joining += (caller is not None) - (member.join_caller is not None)
        member.join_caller = caller

    # -- what they have in common

    def _count(self, protocols: Protocols, change: int) -> None:
        counts = self.protocol_counts
        for name, _ in protocols:
            count = counts.get(name, 0) + change
            if count:
                counts[name] = count
            else:
                del counts[name]

    def knows_any(self, protocols: Protocols) -> bool:
        """Is one of these protocols known to all members?"""
        wanted = len(self.members)
        return any(self.protocol_counts.get(name, 0) == wanted for name, _ in protocols)

    def select_protocol(self) -> str:
        everyone = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == everyone}
        return most_voted(member.vote(candidates) for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- the leader, and whether somebody is who it says

    def elect_joined_leader(self) -> bool:
        """Makes somebody who joined the leader, the present one if it did. False where nobody joined."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_caller is not None:
            return True
        for member in self.members.values():
            if member.join_caller is not None:
                self.leader_id = member.member_id
                return True
        return False

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member, if it is one; fences whoever has lost its static name to another (KIP-345)."""
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is None:
                raise KafkaError(errors.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(errors.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return member
