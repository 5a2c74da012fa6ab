"""What the machine wants done, yielded one by one. Only `Ask` has an answer; everything else is done and forgotten.

None among the intents is a place where the host may let others have the loop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.controller.events import Event, Ticket
    from pykafkad.pure.controller.facts import Assignment, Broker, Leadership, Partition

T = TypeVar("T")
Steps = Generator[Any, Any, T]
AT_ONCE = 64  # partitions or replicas; then others may have the loop


def paced(items: Iterable[T]) -> Iterator[tuple[bool, T]]:
    """Each item, with whether None should be yielded before it."""
    for place, item in enumerate(items, 1):
        yield place % AT_ONCE == 0, item


class Ask(NamedTuple):
    """Operations for ZooKeeper, in this order; the list of their results is sent back."""

    operations: Sequence[Any]


class ReplicaOrder(NamedTuple):
    """Of a LeaderAndIsr request: what one replica is to be."""

    partition: Partition
    topic_id: bytes
    leadership: Leadership
    assignment: Assignment
    is_new: bool


class PartitionNews(NamedTuple):
    """Of an UpdateMetadata request: what everybody is to know of a partition."""

    partition: Partition
    topic_id: bytes
    leadership: Leadership
    replicas: tuple[int, ...]
    offline: tuple[int, ...]


class ReplicaStop(NamedTuple):
    """Of a StopReplica request."""

    partition: Partition
    leader_epoch: int
    delete: bool


class LeaderAndIsr(NamedTuple):
    partitions: Sequence[ReplicaOrder]
    leaders: Sequence[Broker]  # those that the orders name


class UpdateMetadata(NamedTuple):
    partitions: Sequence[PartitionNews]
    brokers: Sequence[Broker]  # all of the cluster


class StopReplica(NamedTuple):
    partitions: Sequence[ReplicaStop]


class Send(NamedTuple):
    """A request for a broker, behind those that wait for it already."""

    broker_id: int
    broker_epoch: int
    controller_epoch: int
    request: LeaderAndIsr | UpdateMetadata | StopReplica


class Connect(NamedTuple):
    """A broker that requests may be sent to from now on."""

    broker: Broker


class Disconnect(NamedTuple):
    """What was to be sent to that broker is not sent any more."""

    broker_id: int


class Abandon(NamedTuple):
    """The same for one that refuses: whether it answers again is still to be told."""

    broker_id: int


class DisconnectAll(NamedTuple):
    """The end of a term."""


class Reply(NamedTuple):
    ticket: Ticket
    answer: Any


class After(NamedTuple):
    """An event for later, if this term lasts until then."""

    delay_ms: int
    event: Event


class Note(NamedTuple):
    """For the log."""

    text: str
    is_warning: bool = False
