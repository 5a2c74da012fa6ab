"""A member of a classic group: what it sent when it joined, and its requests that wait.

Invariants: at most one JoinGroup and one SyncGroup of a member wait; `protocols` names each protocol once, in the
member's order of preference. KIP-345 (`instance_id`: a static member).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from pykafkad.messages import DescribeGroupsResponse
from pykafkad.pure.effects import Caller
from pykafkad.pure.java import map_order
from pykafkad.pure.sharing import pairs_of, tuple_of_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.messages import JoinGroupRequest

DescribedMember = DescribeGroupsResponse.DescribedGroupMember

NO_ASSIGNMENT = b""

Protocols = tuple[tuple[str, bytes], ...]  # name, metadata


class Protocol(NamedTuple):
    """A protocol of a request that has very many: the handler makes these of them in slices, each name once."""

    name: str
    metadata: bytes


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The protocols of a request. If one is named twice, its first entry counts. (Kafka counts both, and may then find
    no protocol that all members have.)"""
    if isinstance(request.protocols, tuple):
        return request.protocols
    named = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    if len(named) < len(request.protocols):
        for protocol in reversed(request.protocols):
            named[protocol.name] = bytes(protocol.metadata)
    return pairs_of(named.items())


def names_of(protocols: Protocols) -> tuple[str, ...]:
    return tuple_of_texts([name for name, _ in protocols])


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
        self.is_new = False  # its first JoinGroup was not answered yet, so it cannot send heartbeats
        self.join_caller: Caller | None = None
        self.sync_caller: Caller | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"member {self.member_id} does not know protocol {protocol_name}")

    def vote(self, candidates: Container[str]) -> str:
        """Its most preferred protocol among those that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def is_excused(self) -> bool:
        """Whether its session need not be kept alive by heartbeats, since one of its requests waits for an answer. A
        new member is not excused for ever: if it is gone, nothing but its session shows it."""
        return not self.is_new and (self.join_caller is not None or self.sync_caller is not None)

    def describe(self, protocol_name: str | None) -> DescribedMember:
        """The member as DescribeGroups shows it. Its metadata is shown only if the group is stable and has a protocol."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.metadata(protocol_name),
            member_assignment=self.assignment,
        )


def most_voted(votes: Iterable[str]) -> str:
    """The name with the most votes. Among several, the first one in the order of Kafka's hash map of votes."""
    counts: dict[str, int] = {}
    for name in votes:
        counts[name] = counts.get(name, 0) + 1
    most = max(counts.values())
    return next(name for name in map_order(counts) if counts[name] == most)
