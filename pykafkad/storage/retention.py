"""Old segments go: those below the log's start, and with cleanup.policy=delete those beyond retention.bytes and
retention.ms.

Every log.retention.check.interval.ms all partitions are looked at, a few in a turn of the loop, each under the
configuration it has then. From the oldest segment on, as long as the rule holds, and only what lies wholly below
the high watermark; an active segment with records is replaced by an empty one when it is due itself. A segment is
as old as its largest timestamp, or as its file where no record has one.

Invariants: a partition that a cleaner works on is left alone and looked at next time; the log always
has a segment and starts no later than its high watermark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from pykafkad.logs import logger
from pykafkad.storage.log import lookups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.hot.segment import Segment
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs

# How much is done before the loop serves others, in units of some 20 us: the first look at a partition. A deleted
# segment is five renames; a new active one is three new files and two that are cut.
WORK_A_TURN = 100
SEGMENT_WORK = 3
ROLL_WORK = 40
SEGMENTS_AT_ONCE = 25  # of one partition, in one turn
PAUSE_MS = 1
WARNED_MAX = 10_000

log = logger("storage")


class Retention:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager
        self._queue: deque[Log] = deque()  # in the round that is under way
        self._queued: set[Log] = set()  # the same
        self._warned: set[tuple[str, int]] = set()  # segments with timestamps in the future, as told

    def check(self) -> None:
        """Look at all partitions."""
        self.look_at(self._manager)

    def look_at(self, partitions: Iterable[Log]) -> None:
        """These too, in the round that is under way, or in a new one."""
        under_way = bool(self._queue)
        for partition in partitions:
            if partition not in self._queued:
                self._queued.add(partition)
                self._queue.append(partition)
        if not under_way:
            self._turn()

    def _turn(self) -> None:
        now_ms = self._manager.clock.now_ms()
        room = WORK_A_TURN
        try:
            while self._queue and room > 0:
                room -= self._look_at_next(now_ms)
        finally:  # one partition's mishap is not the next one's
            if self._queue:
                self._manager.call_later(PAUSE_MS, self._turn)

    def _look_at_next(self, now_ms: int) -> int:
        """Deletes what is to be deleted of one partition; how much work that was."""
        partition = self._queue.popleft()
        self._queued.discard(partition)
        if not self._may_look_at(partition):
            return 0
        deleted: int | None = self._manager.guard(partition.log_directory, self.apply, partition, now_ms)
        if deleted is None:
            self._manager.drop_offline()
            return 1
        if deleted >= SEGMENTS_AT_ONCE:
            self._queued.add(partition)
            self._queue.append(partition)
        return 1 + SEGMENT_WORK * deleted + (ROLL_WORK if deleted and partition.size == 0 else 0)

    def _may_look_at(self, partition: Log) -> bool:
        """Is it still there, on a directory that works, with nobody rewriting its segments?"""
        if partition.settings.compacts and not self._manager.config["log.cleaner.enable"]:
            return False  # only a cleaner deletes from such a log, in Kafka, whatever else its policy says
        known = self._manager.get(partition.topic, partition.index)
        return known is partition and partition.is_online and not self._manager.compaction.is_busy(partition)

    def apply(self, partition: Log, now_ms: int) -> int:
        """Delete what the rules say, at most SEGMENTS_AT_ONCE; how many. OSError when the disk fails."""
        settings = partition.settings
        deleted = self._retire(partition, below_log_start(partition), now_ms, "it lies below the log's start")
        if not settings.deletes or deleted >= SEGMENTS_AT_ONCE:
            return deleted
        limit = settings.retention_bytes
        count = beyond_size(partition, limit)
        deleted += self._retire(partition, count, now_ms, f"the log is larger than retention.bytes={limit}")
        limit = settings.retention_ms
        count = beyond_age(partition, limit, now_ms)
        deleted += self._retire(partition, count, now_ms, f"its records are older than retention.ms={limit}")
        if not count and limit >= 0:
            self._warn_of_future(partition, now_ms)
        return deleted

    def _retire(self, partition: Log, count: int, now_ms: int, why: str) -> int:
        count = min(count, SEGMENTS_AT_ONCE)
        if count:
            going = partition.segments[:count]
            partition.retire(count, now_ms)
            for segment in going:
                log.info(f"{partition.name}: {described(segment)} is deleted, since {why}")
            log.info(f"{partition.name}: the log starts at {partition.log_start_offset}")
        return count

    def _warn_of_future(self, partition: Log, now_ms: int) -> None:
        """Once a segment: nothing behind it goes until that time has come."""
        oldest = partition.segments[0]
        key = partition.name, oldest.base_offset
        if oldest.max_timestamp > now_ms and key not in self._warned:
            if len(self._warned) >= WARNED_MAX:
                self._warned.clear()
            self._warned.add(key)
            log.warn(f"{partition.name}: {described(oldest)} has timestamps in the future and cannot expire")


def below_log_start(partition: Log) -> int:
    """How many segments have nothing that may still be read; never the last one."""
    return max(0, bisect_right(partition.bases, partition.log_start_offset) - 1)


def beyond_size(partition: Log, retention_bytes: int) -> int:
    """How many can go so that what is left is not smaller than retention.bytes."""
    over = partition.size - retention_bytes
    if retention_bytes < 0 or over < 0:
        return 0
    count = 0
    for slot, segment in enumerate(partition.segments):
        over -= segment.size
        if over < 0 or not may_go(partition, slot):
            break
        count += 1
    return count


def beyond_age(partition: Log, retention_ms: int, now_ms: int) -> int:
    """How many are so old that no record in them is to be kept."""
    if retention_ms < 0:
        return 0
    count = 0
    for slot, segment in enumerate(partition.segments):
        if not may_go(partition, slot) or now_ms - newest_ms(segment) <= retention_ms:
            break
        count += 1
    return count


def may_go(partition: Log, slot: int) -> bool:
    """Wholly below the high watermark; and of the last one there must be something that can go."""
    if slot + 1 < len(partition.bases):
        return partition.high_watermark >= partition.bases[slot + 1]
    return partition.high_watermark >= partition.log_end_offset and partition.segments[slot].size > 0


def newest_ms(segment: Segment) -> int:
    """As lookups.segment_timestamp; a closed segment's index does not stay mapped for it."""
    if segment.max_timestamp == -2:
        lookups.load_maxima(segment)
        segment.time_index.unmap()
    return lookups.segment_timestamp(segment)


def described(segment: Segment) -> str:
    newest = segment.max_timestamp
    age = f", newest timestamp {newest}" if newest >= 0 else ""
    return f"segment {segment.base_offset} ({segment.size} bytes{age})"
