"""A member of a consumer group: its subscription, its partitions, and its epoch.

Immutable: `but()` gives a changed copy, which takes effect when its record is replayed. A member uses the consumer
protocol or, if the group was or will be a classic one, the classic protocol (`classic`). Partitions are kept with the
member epoch in which they were assigned: topic id -> partition -> epoch. KIP-848, 1251.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.messages import ConsumerGroupHeartbeatRequest

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = 0, 1, 2, 127
STATES = (STABLE, UNREVOKED, UNRELEASED)

LEFT_FOR_A_WHILE = -2  # the epoch of a static member that is expected back
GONE = -1

Epochs = dict[bytes, dict[int, int]]  # topic id -> partition -> the epoch of its assignment
Protocols = tuple[tuple[str, bytes], ...]  # name, metadata

FIELDS = (
    "member_id",
    "epoch",
    "previous_epoch",
    "state",
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "client_id",
    "client_host",
    "topic_names",
    "regex",
    "assignor",
    "assigned",
    "revoking",
    "classic",
)
NO_EPOCHS: Epochs = {}
NO_TOPICS: frozenset[str] = frozenset()


class Classic:
    """What a member that uses the classic protocol sent when it joined."""

    __slots__ = ("protocols", "session_timeout_ms")

    def __init__(self, session_timeout_ms: int, protocols: Protocols) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Classic) and (
            (self.session_timeout_ms, self.protocols) == (other.session_timeout_ms, other.protocols)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def protocol_name(self) -> str:
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        """All its protocols have the same subscription."""
        return self.protocols[0][1]


class Member:
    __slots__ = FIELDS

    member_id: str
    epoch: int
    previous_epoch: int
    state: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topic_names: frozenset[str]
    regex: str  # "": none
    assignor: str | None
    assigned: Epochs
    revoking: Epochs  # no longer assigned, and not yet revoked
    classic: Classic | None

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch, self.previous_epoch, self.state = 0, -1, STABLE
        self.instance_id = self.rack_id = self.assignor = None
        self.rebalance_timeout_ms = -1
        self.client_id = self.client_host = self.regex = ""
        self.topic_names = NO_TOPICS
        self.assigned = self.revoking = NO_EPOCHS
        self.classic = None

    def but(self, **changes: Any) -> Member:
        copy = object.__new__(Member)
        for field in FIELDS:
            setattr(copy, field, changes[field] if field in changes else getattr(self, field))
        return copy

    def at_epoch(self, epoch: int, **changes: Any) -> Member:
        """The member at this epoch. The previous epoch is kept, since the answer with the new one may get lost."""
        return self.but(epoch=epoch, previous_epoch=self.epoch, **changes)

    def is_like(self, other: Member) -> bool:
        return all(getattr(self, field) == getattr(other, field) for field in FIELDS)

    def tells_the_same(self, other: Member) -> bool:
        """Whether nothing that a group counts has changed: a changed copy then has the very same objects."""
        return (
            self.topic_names is other.topic_names
            and self.regex is other.regex
            and self.assignor is other.assignor
            and self.classic is other.classic
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state == STABLE and self.epoch == epoch


def partitions_of(topics: Iterable[ConsumerGroupHeartbeatRequest.TopicPartitions]) -> dict[bytes, set[int]]:
    """Topics with partitions, from the list in a request."""
    found: dict[bytes, set[int]] = {}
    for topic in topics:
        found.setdefault(topic.topic_id, set()).update(topic.partitions)
    return found


def has_only(owned: dict[bytes, set[int]] | None, assigned: Epochs) -> bool:
    """Whether the member has reported the partitions it owns, and all of them are assigned to it."""
    if owned is None:
        return False
    return all(
        topic_id in assigned and assigned[topic_id].keys() >= partitions
        for topic_id, partitions in owned.items()
    )
