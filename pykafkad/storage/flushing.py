"""fsync: who asks for it, and what counts when it is done. It runs in threads; nothing here waits for a disk.

    due     flush.messages (log.flush.interval.messages) is reached: the partition's high watermark, and with it the
            answers that promise the records, wait. Appends go on meanwhile, and share the next fsync.
    soon    a segment was rolled: it and what was made from it go to the disk, then the recovery point moves.
    aged    flush.ms (log.flush.interval.ms), looked at every log.flush.scheduler.interval.ms.

The first flush in a segment syncs all files from the recovery point on, and their directory; later ones only the
active `.log`, since a start after a crash walks that segment anyway. Invariants: one `due` flush a partition is under
way at a time; an offset is told only after the fsync that covers it came back, of the directory that the partition
lies in; a fsync that failed takes its directory offline and is not asked for again there.
"""

from __future__ import annotations

from pykafkad.storage import files, lookups
from pykafkad.storage.files import StorageError, sync_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.storage.manager import LogManager
    from pykafkad.storage.partition import Partition


class Flushing:
    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self.under_way: set[Partition] = set()  # flushes that are due

    def due(self, partition: Partition) -> int:
        """Begin the flush unless one is under way; what is on the disk already. When it is done the partition is
        committed again, at the end of that pass."""
        if partition not in self.under_way:
            self.under_way.add(partition)
            end = partition.log_end_offset
            if partition.flushed_offset > partition.active.base_offset:
                work: Callable[[], None] = active_log(partition)
                self._submit(partition, work, end, 0)
            else:
                self._submit(partition, all_files(partition), end, partition.active.base_offset)
            directory = partition.log_directory
            if directory.failure is not None:
                raise StorageError(f"{directory.path}: {directory.failure}")
        return partition.flushed_offset

    def _submit(
        self, partition: Partition, work: Callable[[], None], offset: int, recovery_point: int
    ) -> None:
        directory = partition.log_directory

        def done(result: Any) -> None:
            self.under_way.discard(partition)
            self._manager.background_done(directory, result)
            if self._manager.get(partition.topic, partition.index) is partition:
                if result is None and partition.log_directory is directory:
                    partition.note_flushed(offset, recovery_point)
                partition.commit_again()  # it may have moved to another directory meanwhile

        self._manager.submit(work, done)

    def soon(self, partition: Partition, start: int, end: int) -> None:
        """What lies between these offsets, of segments that were closed, or all there is."""
        directory = partition.log_directory
        recovery_point = min(end, partition.active.base_offset)
        work = all_files(partition, start)

        def done(result: Any) -> None:
            if result is None and directory.is_online and partition.log_directory is directory:
                partition.note_flushed(end, recovery_point)
            self._manager.background_done(directory, result)

        self._manager.submit(work, done)

    def aged(self) -> None:
        """flush.ms: what has been in memory for longer goes to the disk."""
        now_ms = self._manager.clock.monotonic_ms()
        for partition in self._manager:
            unflushed = partition.flushed_offset < partition.high_watermark
            if unflushed and now_ms - partition.last_flush_ms >= partition.settings.flush_ms:
                partition.last_flush_ms = now_ms
                self.soon(partition, partition.recovery_point, partition.high_watermark)


def active_log(partition: Partition) -> Callable[[], None]:
    """Sync what is written of the active segment's log."""
    file = partition.active.open_file()
    return lambda: sync_data(file.fd)


def all_files(partition: Partition, start: int | None = None) -> Callable[[], None]:
    """Sync every file from the recovery point on, or from `start` if that is less; of a partition that was never
    synced also that it has a directory."""
    directory, offsets = partition.directory, [*partition.bases, partition.active.end_offset]
    point = partition.recovery_point
    parent = partition.log_directory.path if point <= offsets[0] else None
    start = point if start is None else min(start, point)

    def work() -> None:
        lookups.sync_files(directory, start, offsets)
        if parent is not None:
            files.fsync_path(parent)

    return work
