"""Server-side assignors of consumer groups: which member should own which partitions.

Owns the table of assignors and `range`; `uniform` is in uniform_assignor. Invariants: every partition of a subscribed
topic goes to exactly one of the topic's subscribers, and to nobody else. A member's share that does not change is
the same object afterwards. Members and topics are taken in the order in which they are given. KIP-848.

Assigning is work that yields every A_TIME members or partitions, since there may be very many.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
Share = dict[bytes, frozenset[int]]  # topic id -> partitions
Shares = dict[str, Share]  # by member id


class Subscriber:
    """What an assignor knows of a member: the topics that it subscribes to and that exist, and its previous
    assignment."""

    __slots__ = ("instance_id", "share", "topic_ids")

    def __init__(self, topic_ids: Iterable[bytes], share: Share, instance_id: str | None = None) -> None:
        self.topic_ids = topic_ids if isinstance(topic_ids, frozenset) else frozenset(topic_ids)
        self.share = share
        self.instance_id = instance_id


Subscribers = Mapping[str, Subscriber]  # by member id
PartitionCounts = Mapping[bytes, int]  # by topic id
Assignor = Callable[[Subscribers, PartitionCounts, bool], Steps[Shares]]

A_TIME = 256  # members, or partitions, between two yields
NOBODYS: frozenset[int] = frozenset()


def at_once(steps: Steps[T]) -> T:
    """What the work comes to, all of it done now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def assign(name: str, members: Subscribers, counts: PartitionCounts, same_topics: bool) -> Steps[Shares]:
    """The shares of all members; `same_topics`: all of them want the same topics."""
    if not members:
        return {}
    yield from _drop_impossible(members, counts)
    return (yield from ASSIGNORS[name](members, counts, same_topics))


def _drop_impossible(members: Subscribers, counts: PartitionCounts) -> Steps[None]:
    """What classic members say that they own comes from a client: no partition twice, none that is not there."""
    owned_of = yield from owned_by_topic(members)
    for topic_id, owned in owned_of.items():
        yield
        count = counts.get(topic_id)
        if count is None:
            continue
        union = NOBODYS.union(*owned)
        if len(union) < sum(map(len, owned)) or max(union, default=0) >= count:
            _drop_of_topic(members, topic_id, count)


def owned_by_topic(members: Subscribers) -> Steps[dict[bytes, list[frozenset[int]]]]:
    found: dict[bytes, list[frozenset[int]]] = {}
    for number, member in enumerate(members.values(), 1):
        if not number % A_TIME:
            yield
        for topic_id, partitions in member.share.items():
            if topic_id in found:
                found[topic_id].append(partitions)
            else:
                found[topic_id] = [partitions]
    return found


def _drop_of_topic(members: Subscribers, topic_id: bytes, count: int) -> None:
    left = frozenset(range(count))
    for member in members.values():
        partitions = member.share.get(topic_id)
        if partitions is not None:
            if not partitions <= left:
                member.share = {**member.share, topic_id: partitions & left}
            left -= partitions


def assign_range(members: Subscribers, counts: PartitionCounts, same_topics: bool) -> Steps[Shares]:
    """Each topic is cut into one range for each subscriber, in the members' order: those with an instance id first,
    by it, then by member id. So partitions of one number in equally large topics go to one member."""
    order = sorted(members, key=lambda member_id: _range_order(member_id, members[member_id]))
    yield
    subscribers: dict[bytes, int] = {}
    for number, member in enumerate(members.values(), 1):
        if not number % A_TIME:
            yield
        for topic_id in member.topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
    taken = dict.fromkeys(subscribers, 0)
    shares: Shares = {}
    for number, member_id in enumerate(order, 1):
        if not number % A_TIME:
            yield
        share: Share = {}
        for topic_id in members[member_id].topic_ids:
            count = counts[topic_id]
            turn = taken[topic_id]
            taken[topic_id] = turn + 1
            start = _range_start(count, subscribers[topic_id], turn)
            end = _range_start(count, subscribers[topic_id], turn + 1)
            if end > start:
                share[topic_id] = frozenset(range(start, end))
        shares[member_id] = kept(members[member_id].share, share)
    return shares


def _range_order(member_id: str, member: Subscriber) -> tuple[bool, bytes]:
    instance_id = member.instance_id
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")  # in the order of Java's strings


def _range_start(count: int, subscribers: int, turn: int) -> int:
    """Where the range of the subscriber at this position begins: the first few get one partition more than the others."""
    each, more = divmod(count, subscribers)
    return each * turn + min(turn, more)


def kept(old: Share, new: Share) -> Share:
    return old if old == new else new


def assign_uniform(members: Subscribers, counts: PartitionCounts, same_topics: bool) -> Steps[Shares]:
    from pykafkad.pure.groups import uniform_assignor

    return uniform_assignor.assign(members, counts, same_topics)


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
