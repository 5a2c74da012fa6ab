"""Who is in a classic group: members, pending member ids, instance ids, the leader, the protocols.

Owns the bookkeeping only: no state, no timers, no records. Invariants: a group with members has a leader, which is one
of them; `instances` has each static member once; `protocol_names` says how many members support just these protocols;
`joining` is how many members wait for an answer to JoinGroup; an id is in at most one of `unsynced` and `pending`, and
an id in `pending` (given with MEMBER_ID_REQUIRED, KIP-394) is not in `members`. KIP-345.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller
from pykafkad.pure.groups.classic_member import Member, Protocols, most_voted, names_of
from pykafkad.pure.sharing import NONE, own, without


class Roster:
    __slots__ = (
        "instances",
        "joining",
        "leader_id",
        "members",
        "most",
        "pending",
        "protocol_names",
        "protocol_type",
        "unsynced",
    )

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.most = 0  # the largest number of members there ever was
        self.instances: dict[str, str] = NONE  # group.instance.id -> member id
        # dicts used as sets: an empty one is a third of an empty set
        self.pending: dict[str, None] = NONE
        self.unsynced: dict[str, None] = NONE
        self.protocol_names: dict[tuple[str, ...], int] = {}
        self.protocol_type: str | None = None
        self.leader_id: str | None = None
        self.joining = 0

    # -- members come and go

    def add(self, member: Member, join_caller: Caller | None = None) -> None:
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.instances
            self.instances = own(self.instances)
            self.instances[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending = without(self.pending, member.member_id)
        self.members[member.member_id] = member
        self.most = max(self.most, len(self.members))
        self._count(member.protocols, 1)
        self.wait_for_join(member, join_caller)

    def expect(self, member_id: str) -> None:
        """It was given to somebody who is to join with it."""
        self.pending = own(self.pending)
        self.pending[member_id] = None

    def remove(self, member_id: str) -> None:
        """Whether it has joined or is only expected. Its requests must have been answered."""
        self.pending = without(self.pending, member_id)
        self.unsynced = without(self.unsynced, member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.protocols, -1)
            assert member.join_caller is None
            if member.instance_id is not None:
                del self.instances[member.instance_id]
            if self.leader_id == member_id:
                self.leader_id = next(iter(self.members), None)

    def update(
        self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        if protocols != member.protocols:
            self._count(member.protocols, -1)
            self._count(protocols, 1)
            member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back: the same member continues under a new member id."""
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
        """From now on this JoinGroup request of the member waits, or none does."""
        self.joining += (caller is not None) - (member.join_caller is not None)
        member.join_caller = caller

    # -- protocols

    def _count(self, protocols: Protocols, change: int) -> None:
        names = names_of(protocols)
        count = self.protocol_names.get(names, 0) + change
        if count:
            self.protocol_names[names] = count
        else:
            del self.protocol_names[names]

    def knows_any(self, protocols: Protocols) -> bool:
        """Whether all members support at least one of these protocols."""
        if not self.members:
            return bool(protocols)
        names = names_of(protocols)
        if len(self.protocol_names) == 1 and names in self.protocol_names:
            return bool(names)
        return not self._common().isdisjoint(names)

    def select_protocol(self) -> str:
        candidates = self._common() if len(self.protocol_names) > 1 else next(iter(self.protocol_names))
        return most_voted(member.vote(candidates) for member in self.members.values())

    def _common(self) -> set[str]:
        """The protocols that all members support. Mostly all members have the same, and nobody need ask."""
        first, *others = sorted(self.protocol_names, key=len)
        return set(first).intersection(*others)

    @property
    def have_all_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- the leader, and the identity of members

    def elect_joined_leader(self) -> bool:
        """Elect a leader among the members that have joined, the present one if possible. False if none has joined."""
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
        """The member with this id. A member whose instance id belongs to another one by now is fenced (KIP-345)."""
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
