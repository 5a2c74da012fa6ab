"""Which log is compacted next, and which of its segments together: the cleaner's rules, without I/O and clock.

    clean bytes | cleanable bytes | uncleanable bytes
                ^                 ^
     first dirty offset    first uncleanable offset: active segment, last stable offset, min.compaction.lag.ms

Below the first dirty offset no key occurs twice. A log is due when its cleanable bytes are more than
min.cleanable.dirty.ratio of its clean and cleanable bytes together, or when a segment is older than
max.compaction.lag.ms (KIP-354). The rules are those of Kafka 4.3.1's LogCleanerManager and Cleaner.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypeVar

    class Sized(Protocol):
        """What the rules need to know of a segment."""

        @property
        def base_offset(self) -> int: ...
        @property
        def size(self) -> int: ...

    S = TypeVar("S", bound=Sized)

    class Log(Protocol[S]):
        """What the rules need to know of a log. The last segment is the active one."""

        log_start_offset: int
        log_end_offset: int
        last_stable_offset: int
        segments: list[S]
        bases: list[int]


MAX_RELATIVE_OFFSET = 0x7FFFFFFF  # an index entry stores it in four bytes


class Dirt:
    """How dirty a log is."""

    __slots__ = (
        "clean_bytes",
        "cleanable_bytes",
        "delay_ms",
        "first_dirty_offset",
        "first_uncleanable_offset",
    )

    def __init__(self, first_dirty_offset: int, first_uncleanable_offset: int) -> None:
        self.first_dirty_offset = first_dirty_offset
        self.first_uncleanable_offset = first_uncleanable_offset
        self.clean_bytes = 0
        self.cleanable_bytes = 0
        self.delay_ms = 0  # by how much max.compaction.lag.ms has been exceeded

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_ratio: float) -> bool:
        return (self.delay_ms > 0 and self.cleanable_bytes > 0) or self.ratio > min_ratio


class Source:
    """A segment that is to be cleaned, with the sizes of its files."""

    __slots__ = ("base_offset", "index_bytes", "modified_ms", "size", "time_index_bytes")

    def __init__(
        self,
        base_offset: int,
        size: int,
        index_bytes: int = 0,
        time_index_bytes: int = 0,
        modified_ms: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.size = size
        self.index_bytes = index_bytes
        self.time_index_bytes = time_index_bytes
        self.modified_ms = modified_ms


def first_dirty_offset(log: Log[S], checkpoint: int | None) -> tuple[int, str | None]:
    """Where the last cleaning ended according to the checkpoint. The second value says why a cleaning cannot begin
    there, if so."""
    start, end = log.log_start_offset, log.log_end_offset
    if checkpoint is None:
        return start, None
    if checkpoint < start:
        return start, f"it is below the log's start {start}"
    if checkpoint > end:
        return start, f"it is beyond the log's end {end}"
    return min(checkpoint, max(start, log.bases[-1])), None


def first_uncleanable_offset(
    log: Log[S], first_dirty: int, min_lag_ms: int, now_ms: int, largest_timestamp: Callable[[S], int]
) -> int:
    """The base offset of the first segment that must stay as it is."""
    limit = min(log.last_stable_offset, log.bases[-1])
    if min_lag_ms > 0:
        for segment in segments_between(log, first_dirty, log.bases[-1]):
            if largest_timestamp(segment) > now_ms - min_lag_ms:
                limit = min(limit, segment.base_offset)
                break
    limit = max(limit, first_dirty)
    return log.bases[max(0, bisect_right(log.bases, limit) - 1)]


def overdue_ms(
    log: Log[S], first_dirty: int, max_lag_ms: int, now_ms: int, first_timestamp: Callable[[S], int]
) -> int:
    """For how long the oldest dirty segment has been due for cleaning; 0 if none is."""
    clean_until = now_ms - max_lag_ms
    if clean_until <= 0:
        return 0
    known = [first_timestamp(segment) for segment in segments_between(log, first_dirty, log.bases[-1])]
    oldest = min((each for each in known if each > 0), default=clean_until)
    return max(0, clean_until - oldest)


def dirt_of(log: Log[S], first_dirty: int, first_uncleanable: int) -> Dirt:
    dirt = Dirt(first_dirty, first_uncleanable)
    clean = segments_between(log, -1, first_dirty)
    cleanable = segments_between(log, min(first_dirty, first_uncleanable), first_uncleanable)
    dirt.clean_bytes = sum(segment.size for segment in clean)
    dirt.cleanable_bytes = sum(segment.size for segment in cleanable)
    return dirt


def segments_between(log: Log[S], start: int, end: int) -> Sequence[S]:
    """The segments that have offsets from `start` on and begin below `end`."""
    if start >= end:
        return ()
    return log.segments[max(0, bisect_right(log.bases, start) - 1) : bisect_left(log.bases, end)]


def group(
    sources: Sequence[Source], max_bytes: int, max_index_bytes: int, first_uncleanable: int
) -> list[list[Source]]:
    """Groups of neighbouring segments, each of which is cleaned into one segment, so that segments do not become ever
    smaller."""
    groups: list[list[Source]] = []
    size = index_bytes = time_index_bytes = 0
    for slot, source in enumerate(sources):
        # The next segment's base offset bounds the offsets of this one. If the next is empty, it may be far away.
        end = sources[slot + 1].base_offset if slot + 1 < len(sources) else first_uncleanable
        if (
            groups
            and size + source.size <= max_bytes
            and index_bytes + source.index_bytes <= max_index_bytes
            and time_index_bytes + source.time_index_bytes <= max_index_bytes
            and (source.size == 0 or end - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(source)
        else:
            groups.append([source])
            size = index_bytes = time_index_bytes = 0
        size += source.size
        index_bytes += source.index_bytes
        time_index_bytes += source.time_index_bytes
    return groups
