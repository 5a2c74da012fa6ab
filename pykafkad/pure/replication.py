"""What the leader of a partition knows of its followers, and what follows from that: the ISR, and the high watermark.

The rules are those of Kafka 4.3.1 (Partition, Replica and PartitionState there; KIP-497 for changes of the ISR that the
controller has not confirmed yet). A single node is the case of an ISR of one.

Invariants: the leader is in the ISR; the ISR, and a change of it that is asked for, consist of replicas; only one
change is asked for at a time. No I/O and no clock: the caller passes the time.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    class Members(Protocol):
        """Who has a partition, as the metadata says."""

        @property
        def replicas(self) -> Sequence[int]: ...
        @property
        def isr(self) -> Sequence[int]: ...
        @property
        def partition_epoch(self) -> int: ...


UNKNOWN = -1
NEVER_MS = -(1 << 62)
NO_LIMIT = 1 << 63
NOWHERE = -1


class Follower:
    """Another replica, as its fetches show it to the leader."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetch_ms",
        "leader_end_offset",
        "start_offset",
    )

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = self.start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN  # in which it fetched last, as far as it says (KIP-903)
        self.caught_up_ms = caught_up_ms  # when it last had caught up
        self.fetch_ms = NEVER_MS  # the time of its last fetch,
        self.leader_end_offset = UNKNOWN  # and the leader's log end offset then

    def fetched(self, end_offset: int, start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """A fetch from `end_offset` on: the follower has everything before that. In a log that always grows it never
        has everything, so it counts as caught up if it has what there was at its last fetch."""
        if end_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif end_offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetch_ms)
        self.end_offset = end_offset
        self.start_offset = start_offset
        self.leader_end_offset = leader_end_offset
        self.fetch_ms = now_ms

    def fetched_again(self, now_ms: int) -> None:
        """As before, and as before it had everything."""
        self.fetched(self.end_offset, self.start_offset, self.end_offset, now_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms


@lru_cache(maxsize=1_000)
def members_of(*nodes: int) -> frozenset[int]:
    """Partitions by the thousand have the same ISR: they share it."""
    return frozenset(nodes)


@lru_cache(maxsize=1_000)
def others_of(node: int, *nodes: int) -> tuple[int, ...]:
    return tuple(each for each in nodes if each != node)


NO_FOLLOWERS: Mapping[int, Follower] = {}  # which partitions of a single replica share, too


class Leadership:
    """One leader epoch of a partition, on the node that leads in it."""

    __slots__ = (
        "asked_for",
        "epoch",
        "epoch_start",
        "followers",
        "isr",
        "limit",
        "max_lag_ms",
        "maximal_isr",
        "min_insync_replicas",
        "node_id",
        "partition_epoch",
    )

    def __init__(
        self,
        node_id: int,
        epoch: int,
        epoch_start: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        *,
        partition_epoch: int = 0,
        min_insync_replicas: int = 1,
        max_lag_ms: int = 30_000,
        now_ms: int = 0,
    ) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.epoch_start = epoch_start  # the log end offset when the epoch began
        self.partition_epoch = partition_epoch
        self.max_lag_ms = max_lag_ms
        self.isr = self.maximal_isr = members_of(*isr)
        self.asked_for: frozenset[int] | None = None  # an ISR that the controller has not confirmed yet
        # Members of the ISR get one replica.lag.time.max.ms to show that they are in sync.
        others = others_of(node_id, *replicas)
        self.followers = NO_FOLLOWERS
        if others:
            self.followers = {each: Follower(now_ms if each in self.isr else NEVER_MS) for each in others}
        self.reconfigure(min_insync_replicas, now_ms)

    def assigned(self, replicas: Iterable[int], now_ms: int) -> None:
        """Others are replicas now, in the same epoch: those that stay are known as they were."""
        others = others_of(self.node_id, *replicas)
        if set(others) != set(self.followers):
            known = self.followers
            self.followers = {each: known.get(each) or Follower(NEVER_MS) for each in others}
            self.look_again(now_ms)

    # -- the size of the ISR

    def reconfigure(self, min_insync_replicas: int, now_ms: int) -> None:
        """A min.insync.replicas above the number of replicas counts as that number (KAFKA-15583)."""
        self.min_insync_replicas = min(min_insync_replicas, len(self.followers) + 1)
        self.look_again(now_ms)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the ISR is smaller than a produce with acks=-1 requires."""
        return len(self.isr) < self.min_insync_replicas

    @property
    def is_short_after_append(self) -> bool:
        """The same for a produce that was appended and is below the high watermark by now."""
        return len(self.maximal_isr) < self.min_insync_replicas

    # -- the high watermark: min(the leader's log end, `limit`)

    def look_again(self, now_ms: int) -> None:
        """`limit` is the lowest log end offset of the followers that count: those in sync, and those about to be, since
        the high watermark might otherwise run away from them for ever. While the ISR is too small it does not advance."""
        self.limit = NOWHERE if self.is_under_min_isr else NO_LIMIT
        for replica, follower in self.followers.items():
            if follower.end_offset < self.limit and (
                replica in self.maximal_isr or now_ms - follower.caught_up_ms <= self.max_lag_ms
            ):
                self.limit = follower.end_offset

    def fetched(
        self, replica: int, end_offset: int, start_offset: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """A follower's fetch; KeyError if it is not a replica."""
        self.followers[replica].fetched(end_offset, start_offset, leader_end_offset, now_ms)
        self.look_again(now_ms)

    # -- changes of the ISR

    def out_of_sync(self, end_offset: int, now_ms: int) -> frozenset[int]:
        """Members of the ISR that have not caught up for longer than replica.lag.time.max.ms."""
        if self.asked_for is not None:
            return frozenset()
        return frozenset(
            replica
            for replica, follower in self.followers.items()
            if replica in self.isr and not follower.is_caught_up(end_offset, now_ms, self.max_lag_ms)
        )

    def may_join(self, replica: int, high_watermark: int) -> bool:
        """Whether a follower outside of the ISR has everything that may have been acknowledged: all below the high
        watermark, and all that there was when this epoch began, some of which the leader before may have acknowledged."""
        if self.asked_for is not None or replica in self.isr:
            return False
        return self.followers[replica].end_offset >= max(high_watermark, self.epoch_start)

    def ask_for(self, isr: Iterable[int], now_ms: int) -> None:
        """Ask the controller for this ISR. Until it answers, the members of both the old and the new one count."""
        asked_for = self.asked_for = frozenset(isr)
        self.maximal_isr = self.isr | asked_for
        self.look_again(now_ms)

    def confirmed(self, isr: Iterable[int], partition_epoch: int, now_ms: int) -> bool:
        """The controller's answer; returns False if it is older than what is known."""
        if partition_epoch < self.partition_epoch:
            return False
        self.isr = self.maximal_isr = members_of(*isr)
        self.asked_for = None
        self.partition_epoch = partition_epoch
        self.look_again(now_ms)
        return True

    def refused(self, now_ms: int) -> None:
        """The controller refused the change: return to the ISR that it confirmed last."""
        self.maximal_isr = self.isr
        self.asked_for = None
        self.look_again(now_ms)
