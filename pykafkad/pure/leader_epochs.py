"""Which leader epoch began at which offset of a partition's log (KIP-101, KIP-279, KIP-320).

Invariants: epochs and start offsets both strictly rise; an epoch once assigned keeps its start until it is
cut off. No I/O: the caller writes `entries` to leader-epoch-checkpoint when a method says that they changed.
"""

from __future__ import annotations

from bisect import bisect_right

UNDEFINED = (-1, -1)
_ANY_OFFSET = 1 << 63


class LeaderEpochs:
    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries: list[tuple[int, int]] = []  # (epoch, start offset)
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 when there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins at `start_offset`; whether anything changed. Entries that contradict it are
        dropped."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
        entries = self.entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch <= the asked one, where it ended), as OffsetForLeaderEpoch answers; UNDEFINED if
        unknown.

        An epoch before all known ones ends where the first known one starts.
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

    def epoch_at(self, offset: int) -> int:
        """The epoch that covers an offset, -1 when it lies before all of them."""
        for epoch, start_offset in reversed(self.entries):
            if start_offset <= offset:
                return epoch
        return -1

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log ends at `end_offset` now: epochs that start there or later never happened."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        changed = len(kept) != len(self.entries)
        self.entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log starts at `start_offset` now: the epoch that covers it starts there, older ones are
        gone."""
        entries = self.entries
        covering = -1
        for slot, entry in enumerate(entries):
            if entry[1] > start_offset:
                break
            covering = slot
        if covering < 0 or (entries[covering][1] == start_offset and covering == 0):
            return False
        self.entries = [(entries[covering][0], start_offset), *entries[covering + 1 :]]
        return True
