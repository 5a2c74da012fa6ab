"""A member of a classic group: what it told when it joined, and the requests of it that wait.

Invariants: at most one JoinGroup and one SyncGroup of a member wait; `protocols` names each protocol once, in the
order in which the member prefers them. KIP-345 (`instance_id`: a static member).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from pykafkad.messages import DescribeGroupsResponse
from pykafkad.pure.groups.effects import Caller

DescribedMember = DescribeGroupsResponse.DescribedGroupMember

NO_ASSIGNMENT = b""

Protocols = tuple[tuple[str, bytes], ...]  # name, metadata


def protocols_of(request: Any) -> Protocols:
    """A protocol that is named twice counts once, with what was said first. (Kafka counts it twice, and can then
    find none that all members have.)"""
    named: dict[str, bytes] = {}
    for protocol in request.protocols:
        named.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(named.items())


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_caller",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_caller",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False  # its first JoinGroup was not answered yet: it cannot send heartbeats
        self.join_caller: Caller | None = None
        self.sync_caller: Caller | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"member {self.member_id} does not know protocol {protocol_name}")

    def vote(self, candidates: Container[str]) -> str:
        """The one it likes best of those that all members know."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def is_excused(self) -> bool:
        """Whoever waits for an answer cannot send heartbeats, and need not. But a new member that waits too long may
        have gone: nothing but its silence would tell."""
        return not self.is_new and (self.join_caller is not None or self.sync_caller is not None)

    def describe(self, protocol_name: str | None) -> DescribedMember:
        """Metadata is told only of a stable group's protocol."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.metadata(protocol_name),
            member_assignment=self.assignment,
        )


def most_voted(votes: Iterable[str]) -> str:
    """The name with the most votes. Of several, the one that Kafka's hash map of votes comes upon first."""
    counts: dict[str, int] = {}
    for name in votes:
        counts[name] = counts.get(name, 0) + 1
    buckets = 16
    while len(counts) > buckets * 3 // 4:
        buckets *= 2
    return max(counts, key=lambda name: (counts[name], -_bucket(name, buckets)))


def _bucket(name: str, buckets: int) -> int:
    """Where java.util.HashMap puts a String."""
    code = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (code * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    return (code ^ code >> 16) & (buckets - 1)
