"""Members of groups as bytes on raw sockets: the requests by which a client library gets partitions, without its
timers.

The runner sends a member's `request()`, passes it the `answer()`, and asks whether it is `settled`. ClassicMember is a
classic consumer with a range assignor for one topic; ConsumerMember uses KIP-848. `settle` runs many at once, each on a
connection of its own, until together they own every partition once.
"""

from __future__ import annotations

import selectors
import time
import uuid
from abc import ABC, abstractmethod
from typing import Any

from bench.sides import Side
from compat_tests.raw import RawClient, decode_answer
from pykafkad import errors
from pykafkad.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

HEARTBEAT_SECONDS = 0.02  # a real one's is 3 or 5 s: this measures how fast the broker gets there
SETTLE_SECONDS = 120
SESSION_TIMEOUT_MS = 300_000
VERSIONS = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    ConsumerGroupHeartbeatRequest: 1,
}
RETRIED = frozenset(
    {
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.NOT_COORDINATOR,
    }
)


class Member(ABC):
    """One member: `partitions` are those it owns, `generation` is its generation or epoch."""

    def __init__(self, group: str, topic: str, topic_id: bytes, partition_count: int) -> None:
        self.group = group
        self.topic = topic
        self.topic_id = topic_id
        self.partition_count = partition_count
        self.partitions: list[int] = []
        self.generation = 0
        self.settled = False

    @abstractmethod
    def request(self) -> Any:
        """The next request to send."""

    @abstractmethod
    def answer(self, answer: Any) -> None: ...

    @abstractmethod
    def leave(self) -> Any:
        """The request by which it leaves."""


def _prefixed(message: Any, version: int = 0) -> bytes:
    """An embedded message of the consumer protocol: its version, then its bytes."""
    return version.to_bytes(2, "big") + bytes(message.encode(version))


class ClassicMember(Member):
    """Joins (twice: the first answer gives it an id), syncs, sends heartbeats; joins again when a heartbeat tells it
    to.
    """

    def __init__(self, group: str, topic: str, topic_id: bytes, partition_count: int) -> None:
        super().__init__(group, topic, topic_id, partition_count)
        self.member_id = ""
        self._next: type = JoinGroupRequest
        self._assignments: list[Any] = []
        self._metadata = _prefixed(ConsumerProtocolSubscription(topics=[topic], user_data=None))

    def request(self) -> Any:
        if self._next is JoinGroupRequest:
            protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=self._metadata)
            return JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=SESSION_TIMEOUT_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[protocol],
            )
        if self._next is SyncGroupRequest:
            return SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=self._assignments,
            )
        return HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)

    def answer(self, answer: Any) -> None:
        if answer.error_code in RETRIED:
            return
        if isinstance(answer, JoinGroupResponse):
            self._joined(answer)
        elif answer.error_code == errors.REBALANCE_IN_PROGRESS:
            self.settled, self._next = False, JoinGroupRequest
        elif answer.error_code:
            raise RuntimeError(f"a member of {self.group}: {answer}")
        elif isinstance(answer, SyncGroupResponse):
            assignment = ConsumerProtocolAssignment.decode(bytes(answer.assignment), 0, 2)
            parts = assignment.assigned_partitions
            self.partitions = [number for topic in parts for number in topic.partitions]
            self._next = HeartbeatRequest
        elif isinstance(answer, HeartbeatResponse):
            self.settled = True

    def _joined(self, answer: Any) -> None:
        if answer.error_code == errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return
        if answer.error_code:
            raise RuntimeError(f"a member of {self.group}: {answer}")
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self._next = SyncGroupRequest
        self._assignments = []
        if answer.leader == self.member_id:
            self._assignments = self._assign([member.member_id for member in answer.members])

    def _assign(self, members: list[str]) -> list[Any]:
        """Range: the first members get one partition more if the division leaves a remainder."""
        assignments, at = [], 0
        share, over = divmod(self.partition_count, len(members))
        for number, member_id in enumerate(sorted(members)):
            count = share + (number < over)
            topic = ConsumerProtocolAssignment.TopicPartition(
                topic=self.topic, partitions=list(range(at, at + count))
            )
            at += count
            message = ConsumerProtocolAssignment(assigned_partitions=[topic] if count else [], user_data=None)
            entry = SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member_id, assignment=_prefixed(message)
            )
            assignments.append(entry)
        return assignments

    def leave(self) -> Any:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        return LeaveGroupRequest(group_id=self.group, members=[identity])


class ConsumerMember(Member):
    """Sends heartbeats; takes over at once the partitions that it is assigned, and reports them."""

    def __init__(self, group: str, topic: str, topic_id: bytes, partition_count: int) -> None:
        super().__init__(group, topic, topic_id, partition_count)
        self.member_id = str(uuid.uuid4())
        self._told = True  # the broker knows that it owns them

    def request(self) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.generation
        )
        if self.generation == 0:
            request.rebalance_timeout_ms = SESSION_TIMEOUT_MS
            request.subscribed_topic_names = [self.topic]
            request.topic_partitions = []
        elif not self._told:
            owned = ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.topic_id, partitions=self.partitions
            )
            request.topic_partitions = [owned] if self.partitions else []
            self._told = True
        return request

    def answer(self, answer: Any) -> None:
        if answer.error_code in RETRIED:
            return
        if answer.error_code:
            raise RuntimeError(f"a member of {self.group}: {answer}")
        self.settled = self._told and answer.assignment is None and answer.member_epoch == self.generation
        self.generation = answer.member_epoch
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            self.partitions = [number for topic in parts for number in topic.partitions]
            self._told = False

    def leave(self) -> Any:
        return ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=-1)


PROTOCOLS: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}


def together(members: list[Member]) -> bool:
    """Every partition is owned once, by members of the same latest generation, and each has its share."""
    share = members[0].partition_count // len(members)
    if not all(member.settled and len(member.partitions) >= share for member in members):
        return False
    owned = sorted(number for member in members for number in member.partitions)
    same = len({member.generation for member in members}) == 1
    return same and owned == list(range(members[0].partition_count))


class Seat:
    """A member on its connection: one request in flight, the next one when its time has come."""

    __slots__ = ("client", "due", "member", "received", "request")

    def __init__(self, side: Side, member: Member) -> None:
        self.client = side.client()
        self.member = member
        self.received = bytearray()
        self.request: Any = None
        self.due = 0.0

    def speak(self) -> None:
        self.request = self.member.request()
        self.client.send(self.client.frame(self.request, VERSIONS[type(self.request)]))

    def hear(self) -> bool:
        """Receive what has arrived; True once that is an answer, which the member has got."""
        self.received += self.client.socket.recv(1 << 16)
        if len(self.received) < 4 or len(self.received) < 4 + int.from_bytes(self.received[:4], "big"):
            return False
        answer = decode_answer(self.request, VERSIONS[type(self.request)], bytes(self.received[4:]))
        self.received.clear()
        self.member.answer(answer)
        calm = isinstance(answer, HeartbeatResponse) or (
            isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.assignment is None
        )
        self.due = time.monotonic() + (HEARTBEAT_SECONDS if calm or answer.error_code in RETRIED else 0.0)
        return True


def settle(seats: list[Seat]) -> float:
    """Seconds until all members own all partitions; each sends its next request when it has got an answer."""
    members = [seat.member for seat in seats]
    began = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for seat in seats:
            selector.register(seat.client.socket, selectors.EVENT_READ, seat)
            seat.speak()
        idle: list[Seat] = []
        while not together(members):
            if time.monotonic() - began > SETTLE_SECONDS:
                raise RuntimeError(f"{len(seats)} members are not settled after {SETTLE_SECONDS} s")
            for key, _ in selector.select(HEARTBEAT_SECONDS / 20):
                if key.data.hear():
                    idle.append(key.data)
            now = time.monotonic()
            for seat in [seat for seat in idle if seat.due <= now]:
                idle.remove(seat)
                seat.speak()
        seconds = time.monotonic() - began
    return seconds


def join(client: RawClient, member: Member) -> None:
    """One member alone joins, on a connection that it may share, until it owns its partitions."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not member.settled:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no member of {member.group} after {SETTLE_SECONDS} s")
        request = member.request()
        answer = client.ask(request, VERSIONS[type(request)])
        if answer.error_code in RETRIED:
            time.sleep(0.01)
        member.answer(answer)


def leave(client: RawClient, member: Member) -> None:
    request = member.leave()
    client.ask(request, VERSIONS[type(request)])
