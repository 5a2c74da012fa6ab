"""Which leader epoch began at which offset of a partition's log (KIP-101, KIP-279, KIP-320).

Invariants: epochs and start offsets both strictly increase; an epoch keeps its start offset until it is truncated. No
I/O: the caller writes `entries` to leader-epoch-checkpoint when a method returns that they changed.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Entries = tuple[tuple[int, int], ...]  # (epoch, start offset) of each

UNDEFINED = (-1, -1)
_ANY_OFFSET = 1 << 63


@lru_cache(maxsize=1_000)
def beginning(epoch: int, start_offset: int) -> Entries:
    """The history of a log with one epoch: partitions by the thousand have the same, and share it."""
    return ((epoch, start_offset),)


def shared(entries: list[tuple[int, int]]) -> Entries:
    return beginning(*entries[0]) if len(entries) == 1 else tuple(entries)


def put(entries: list[tuple[int, int]], epoch: int, start_offset: int) -> bool:
    """See LeaderEpochs.assign."""
    if epoch < 0 or start_offset < 0:
        raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
    if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
        return False
    while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
        entries.pop()
    entries.append((epoch, start_offset))
    return True


class LeaderEpochs:
    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        known: list[tuple[int, int]] = []
        for epoch, start_offset in entries:
            put(known, epoch, start_offset)
        self.entries = shared(known)

    @property
    def latest(self) -> int:
        """The latest epoch, or -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` begins at `start_offset`; whether anything changed. Entries that contradict this are
        dropped."""
        known = list(self.entries)
        if not put(known, epoch, start_offset):
            return False
        self.entries = shared(known)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch that is at most the one asked for, and its end offset, as OffsetForLeaderEpoch answers;
        UNDEFINED if there is none.

        An epoch before the first known one ends where that one starts.
        """
        entries = self.entries
        if epoch == UNDEFINED[0] or not entries:
            return UNDEFINED
        if entries[-1][0] == epoch:
            return epoch, log_end_offset
        above = bisect_right(entries, (epoch, _ANY_OFFSET))
        if above == len(entries):
            return UNDEFINED
        floor = entries[above - 1][0] if above else epoch
        return floor, entries[above][1]

    def truncation(self, leader_epoch: int, leader_end: int, log_end_offset: int) -> tuple[int, bool]:
        """Where a follower cuts its log that ends there, when its leader says that the largest epoch it knows up to the
        one asked for is `leader_epoch`, which ended at `leader_end` there (KIP-101, KIP-279). False: the two have no
        such epoch in common, and the leader is to be asked again about the latest one that is left."""
        own_epoch, own_end = self.end_offset_for(leader_epoch, log_end_offset)
        if own_epoch < 0:
            return min(leader_end, log_end_offset), True
        if own_epoch != leader_epoch:
            return min(own_end, log_end_offset), False
        return min(own_end, leader_end, log_end_offset), True

    def epoch_at(self, offset: int) -> int:
        """The epoch that an offset belongs to, or -1 if it lies before all of them."""
        for epoch, start_offset in reversed(self.entries):
            if start_offset <= offset:
                return epoch
        return -1

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log was truncated to `end_offset`: epochs that start there or later are dropped."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        changed = len(kept) != len(self.entries)
        self.entries = shared(kept)
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log starts at `start_offset` now: the epoch of that offset starts there, and older ones are dropped."""
        entries = self.entries
        covering = -1
        for slot, entry in enumerate(entries):
            if entry[1] > start_offset:
                break
            covering = slot
        if covering < 0 or (entries[covering][1] == start_offset and covering == 0):
            return False
        self.entries = (entries[covering][0], start_offset), *entries[covering + 1 :]
        return True
