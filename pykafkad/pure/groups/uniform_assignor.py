"""The `uniform` assignor: as even as possible and, among even assignments, one that moves few partitions.

There are two cases. All members subscribe to the same topics: each has a quota (one partition more for the first few
that can use it), keeps partitions up to its quota, and the rest is given to those below theirs. They subscribe to
different topics: each keeps what it still subscribes to, free partitions go to the subscriber with the fewest, and
then, topic by topic, partitions move from the fullest to the emptiest subscriber, in at most ROUNDS_MAX rounds.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from pykafkad.pure.groups.assignors import (
    A_TIME,
    PartitionCounts,
    Share,
    Shares,
    Steps,
    Subscriber,
    Subscribers,
    kept,
    owned_by_topic,
)

# Overlapping subscriptions may need many rounds until they are even; each about halves the difference.
ROUNDS_MAX = 16


def assign(members: Subscribers, counts: PartitionCounts, same_topics: bool) -> Steps[Shares]:
    if same_topics:
        return (yield from _assign_same(members, counts))
    return (yield from _Different(members, counts).assign())


# -- all members subscribe to the same topics


def _assign_same(members: Subscribers, counts: PartitionCounts) -> Steps[Shares]:
    topic_ids = next(iter(members.values())).topic_ids
    if not topic_ids:
        return {}
    quota, extra = divmod(sum(counts[topic_id] for topic_id in topic_ids), len(members))
    shares: Shares = {}
    free = yield from _unassigned(members, counts, topic_ids)
    below: list[tuple[str, int]] = []  # who can take how many more
    for position, (member_id, member) in enumerate(members.items()):
        if position % A_TIME == A_TIME - 1:
            yield
        room = quota + (extra > 0)
        shares[member_id], room = _retain(member, topic_ids, room, free)
        has_extra = extra > 0
        if room > 0 and has_extra and len(members) - position > extra:
            # It would need its extra partition, but those after it may have taken theirs already.
            room -= 1
            has_extra = False
        if room > 0:
            below.append((member_id, room))
        extra -= has_extra
    yield from _deal(shares, below, free)
    return shares


def _unassigned(
    members: Subscribers, counts: PartitionCounts, topic_ids: frozenset[bytes]
) -> Steps[list[tuple[bytes, int]]]:
    owned = yield from owned_by_topic(members)
    free: list[tuple[bytes, int]] = []
    for topic_id in sorted(topic_ids):
        left = frozenset(range(counts[topic_id])).difference(*owned.get(topic_id, ()))
        free += [(topic_id, partition) for partition in sorted(left)]
        yield
    return free


def _retain(
    member: Subscriber, topic_ids: frozenset[bytes], room: int, free: list[tuple[bytes, int]]
) -> tuple[Share, int]:
    """The partitions that the member keeps, and how many more it can take; those it does not keep become free."""
    had = member.share
    if had.keys() <= topic_ids and (size := sum(map(len, had.values()))) <= room:
        return had, room - size
    share: Share = {}
    for topic_id, partitions in had.items():
        if topic_id not in topic_ids:
            continue
        if len(partitions) <= room:
            share[topic_id] = partitions
            room -= len(partitions)
            continue
        ordered = sorted(partitions)
        if room:
            share[topic_id] = frozenset(ordered[:room])
        free += [(topic_id, partition) for partition in ordered[room:]]
        room = 0
    return kept(had, share), room


def _deal(shares: Shares, below: list[tuple[str, int]], free: list[tuple[bytes, int]]) -> Steps[None]:
    at = 0
    for number, (member_id, room) in enumerate(below, 1):
        if not number % A_TIME:
            yield
        given = free[at : at + room]
        at += len(given)
        if given:
            shares[member_id] = _with(shares[member_id], given)
    assert at == len(free), "partitions were left over"


def _with(share: Share, given: list[tuple[bytes, int]]) -> Share:
    added: dict[bytes, list[int]] = {}
    for topic_id, partition in given:
        added.setdefault(topic_id, []).append(partition)
    result = dict(share)
    for topic_id, partitions in added.items():
        result[topic_id] = result.get(topic_id, frozenset()).union(partitions)
    return result


# -- members subscribe to different topics


class _Different:
    """Members are numbers here: their position in the order in which they were given."""

    def __init__(self, members: Subscribers, counts: PartitionCounts) -> None:
        self.members = members
        self.counts = counts
        self.loads = [0] * len(members)  # partitions of each member
        self.subscribers: dict[bytes, list[int]] = {}
        self.owners: dict[bytes, list[int]] = {}
        self.order: list[bytes] = []

    def assign(self) -> Steps[Shares]:
        yield from self._list_subscribers()
        yield from self._retain()
        for topic_id in self.order:
            yield from self._fill(topic_id)
        yield from self._balance()
        return (yield from self._result())

    def _list_subscribers(self) -> Steps[None]:
        for number, member in enumerate(self.members.values()):
            for topic_id in member.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
            if number % A_TIME == A_TIME - 1:
                yield
        self.owners = {topic_id: [-1] * self.counts[topic_id] for topic_id in self.subscribers}
        self.order = sorted(self.subscribers, key=self._importance)

    def _importance(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """The order of topics: those with many partitions for each subscriber first, so that the others can even things
        out."""
        subscribers = len(self.subscribers[topic_id])
        return -len(self.owners[topic_id]) / subscribers, subscribers, topic_id

    def _retain(self) -> Steps[None]:
        for number, member in enumerate(self.members.values()):
            for topic_id, partitions in member.share.items():
                if topic_id not in member.topic_ids:
                    continue
                owners = self.owners[topic_id]
                for partition in partitions:
                    owners[partition] = number
                self.loads[number] += len(partitions)
            if number % A_TIME == A_TIME - 1:
                yield

    def _fill(self, topic_id: bytes) -> Steps[None]:
        """Each partition without an owner goes to the subscriber with the fewest."""
        owners = self.owners[topic_id]
        free = [partition for partition, owner in enumerate(owners) if owner < 0]
        if not free:
            return
        emptiest = [(self.loads[number], number) for number in self.subscribers[topic_id]]
        heapify(emptiest)
        yield
        for done, partition in enumerate(free, 1):
            if not done % A_TIME:
                yield
            load, number = emptiest[0]
            owners[partition] = number
            self.loads[number] = load + 1
            heapreplace(emptiest, (load + 1, number))

    def _balance(self) -> Steps[None]:
        topic_ids = [topic_id for topic_id in self.order if len(self.subscribers[topic_id]) > 1]
        for _ in range(ROUNDS_MAX):
            moved = 0
            for topic_id in topic_ids:
                moved += yield from self._balance_topic(topic_id)
            if not moved:
                return

    def _balance_topic(self, topic_id: bytes) -> Steps[int]:
        """Move partitions of the topic from the fullest to the emptiest of its subscribers; how many moved."""
        yield
        numbers = self.subscribers[topic_id]
        loads = self.loads
        least = min(loads[number] for number in numbers)
        if max(loads[number] for number in numbers) - least <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        fullest = [(-loads[number], -number) for number in owned]
        emptiest = [(loads[number], number) for number in numbers]
        heapify(fullest)
        heapify(emptiest)
        moved = 0
        while fullest:
            load, giver = -fullest[0][0], -fullest[0][1]
            if load - emptiest[0][0] <= 1:
                break
            if not owned[giver]:
                heappop(fullest)  # its other partitions are of other topics
                continue
            self._move(topic_id, giver, owned, emptiest)
            heapreplace(fullest, (1 - load, -giver))
            moved += 1
            if not moved % A_TIME:
                yield
        return moved

    def _move(
        self, topic_id: bytes, giver: int, owned: dict[int, list[int]], emptiest: list[tuple[int, int]]
    ) -> None:
        load, taker = heappop(emptiest)
        self.owners[topic_id][owned[giver].pop()] = taker
        self.loads[taker] += 1
        self.loads[giver] -= 1
        heappush(emptiest, (load + 1, taker))

    def _result(self) -> Steps[Shares]:
        found: list[dict[bytes, list[int]]] = [{} for _ in self.loads]
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                found[owner].setdefault(topic_id, []).append(partition)
            yield
        shares: Shares = {}
        for (member_id, member), lists in zip(self.members.items(), found, strict=True):
            if len(shares) % A_TIME == A_TIME - 1:
                yield
            share = {topic_id: frozenset(partitions) for topic_id, partitions in lists.items()}
            shares[member_id] = kept(member.share, share)
        return shares
