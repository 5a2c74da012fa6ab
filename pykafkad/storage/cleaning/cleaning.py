"""One cleaning of one log, as far as it is a thread's: index the keys, then rewrite one group of segments a time.

    index()               the dirty part's keys and their latest offsets; how far they reach, and the groups below
    rewrite(group, ...)   one group's records that are still the latest of their keys: its `.cleaned` files, synced

Owns the key map and everything it was told about the log; the log itself is the loop's, which goes on appending,
rolling, deleting meanwhile. Segments below the first uncleanable offset are closed: no byte of them changes. One
thread at a time works here, as the loop hands the steps out one after the other.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from pykafkad.hot.cleaner import AbortedTransactions, KeyMap, Rewriter, Round, Throttle, index_keys
from pykafkad.pure.cleaning import Source, group
from pykafkad.storage import files
from pykafkad.storage.log import transaction_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.pure.cleaning import Dirt
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.log.transaction_index import AbortedTransaction

    LastRecords = dict[int, tuple[int | None, int]]  # producer id -> last data offset, epoch

ENTRY_BYTES = 24  # of the key map
SPARSE = 2  # slots a key, where the memory allows it: a lookup then meets its key at once
LARGEST_MAP_BYTES = 0x7FFFFFFF  # Kafka's maps are no larger


class Limits:
    """What the broker's config gives one cleaning: its share of what all threads have."""

    __slots__ = ("buffer_bytes", "key_bytes", "load")

    def __init__(self, dedupe_bytes: int, buffer_bytes: int, load_factor: float, threads: int) -> None:
        self.key_bytes = min(dedupe_bytes // threads, LARGEST_MAP_BYTES)
        self.buffer_bytes = buffer_bytes // threads // 2  # one to read, one to write
        self.load = load_factor if 0 < load_factor < 1 else 1.0  # there are no more slots


class Cleaning:
    def __init__(
        self,
        partition: Log,
        dirt: Dirt,
        limits: Limits,
        throttle: Throttle,
        now_ms: int,
    ) -> None:
        config, settings = partition.config, partition.settings
        self.directory = partition.directory
        self.dirt = dirt
        self.now_ms = now_ms
        self.bases = list(partition.bases)  # with those above: a transaction's marker may lie there
        self.sources = [
            Source(segment.base_offset, segment.size)
            for segment in partition.segments
            if segment.base_offset < dirt.first_uncleanable_offset
        ]
        first = partition.segment_at(dirt.first_dirty_offset)
        self.first_position = first.offset_index.position_of(dirt.first_dirty_offset)
        self.delete_retention_ms: int = config["delete.retention.ms"]
        self.segment_bytes = settings.segment_bytes
        self.index_bytes = settings.index_bytes
        self.index_interval_bytes = settings.index_interval_bytes
        self.max_keys = max(1, int(limits.key_bytes // ENTRY_BYTES * limits.load))
        self.key_count = 0  # when it is over
        self.keys = KeyMap(self.map_bytes(limits.key_bytes))
        self.round = Round(throttle, limits.buffer_bytes)
        self.aborted = AbortedTransactions()
        self.bases_with_aborted: list[int] = []
        self.legacy_horizon_ms = 0
        self.end_offset = dirt.first_dirty_offset  # below it the log is clean, when all groups are rewritten

    def map_bytes(self, allowed: int) -> int:
        """There are no more keys than offsets, so a small log needs no large map."""
        offsets = self.dirt.first_uncleanable_offset - self.dirt.first_dirty_offset
        return min(allowed, max(offsets, 1) * SPARSE * ENTRY_BYTES)

    # -- the first pass

    def index(self) -> list[list[Source]]:
        """Map the keys, as far as they fit; the groups to rewrite after that."""
        start, end = self.dirt.first_dirty_offset, self.dirt.first_uncleanable_offset
        names = os.listdir(self.directory)
        self.bases_with_aborted = transaction_index.bases_of(names)
        aborted = AbortedTransactions()
        aborted.add(self.aborted_between(start, end))
        full = False
        for slot, source in enumerate(self.sources):
            next_base = self.sources[slot + 1].base_offset if slot + 1 < len(self.sources) else end
            if next_base <= start or full:
                continue
            position = self.first_position if source.base_offset <= start else 0
            path = self.path_of(source)
            self.end_offset, full = index_keys(
                path, position, source.size, start, next_base, self.keys, self.max_keys, aborted, self.round
            )
        self.look_at_files()
        below = [source for source in self.sources if source.base_offset < self.end_offset]
        return group(below, self.segment_bytes, self.index_bytes, end)

    def look_at_files(self) -> None:
        clean_ms = None
        for source in self.sources:
            stem = self.path_of(source).removesuffix(files.LOG)
            source.modified_ms = files.modified_ms(stem + files.LOG)
            source.index_bytes = os.stat(stem + files.INDEX).st_size
            source.time_index_bytes = os.stat(stem + files.TIME_INDEX).st_size
            if source.base_offset < self.dirt.first_dirty_offset:
                clean_ms = source.modified_ms
        # Tombstones of formats 0 and 1 know no horizon of their own: the last clean segment's age stands for it.
        self.legacy_horizon_ms = 0 if clean_ms is None else clean_ms - self.delete_retention_ms

    # -- the second pass

    def rewrite(self, sources: Sequence[Source], producers: LastRecords) -> Rewriter:
        """Clean these segments into one. `producers`: of each, the batch that must not go."""
        rewriter = Rewriter(
            self.directory,
            sources[0].base_offset,
            self.keys,
            self.aborted,
            self.round,
            last_records_of_producers=producers,
            now_ms=self.now_ms,
            delete_retention_ms=self.delete_retention_ms,
            end_of_round=self.dirt.first_uncleanable_offset,
            index_interval_bytes=self.index_interval_bytes,
        )
        try:
            for source in sources:
                self.aborted.add(self.aborted_between(source.base_offset, self.end_of(source)))
                keep_deletes = source.modified_ms > self.legacy_horizon_ms
                rewriter.add(self.path_of(source), source.size, keep_deletes)
            rewriter.finish(sources[-1].modified_ms)
        except BaseException:
            rewriter.discard()
            raise
        return rewriter

    def sync_directory(self) -> None:
        files.fsync_path(self.directory)

    def close(self) -> None:
        """Give the memory back."""
        self.key_count = self.keys.size
        self.keys.close()

    # -- what lies where

    def path_of(self, source: Source) -> str:
        return f"{self.directory}/{files.offset_name(source.base_offset, files.LOG)}"

    def end_of(self, source: Source) -> int:
        """The base of the segment after it: there is one, since the active one is not cleaned."""
        return self.bases[self.bases.index(source.base_offset) + 1]

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch these offsets. What was cleaned meanwhile lies below, what was appended
        since has not begun below the last stable offset."""
        lowest = self.bases[max(0, bisect_right(self.bases, start) - 1)]
        bases = self.bases_with_aborted
        return transaction_index.collect_from(self.directory, bases[bisect_left(bases, lowest) :], start, end)
