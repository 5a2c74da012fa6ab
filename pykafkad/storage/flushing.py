"""fsync: who asks for it, and what counts when it is done. It runs in threads; nothing here waits for a disk.

    due     flush.messages (log.flush.interval.messages) is reached: the partition's high watermark, and with it the
            answers that promise the records, wait. Appends go on meanwhile, and share the next fsync.
    soon    a segment was rolled: it and what was made from it go to the disk, then the recovery point moves.
    aged    flush.ms (log.flush.interval.ms), looked at every log.flush.scheduler.interval.ms.

The first flush in a segment syncs all files from the recovery point on, and their directory; later ones only the
active `.log`, since a start after a crash walks that segment anyway. Invariants: one `due` flush a partition is under
way at a time, and one `aged` one; an offset is told only after the fsync that covers it came back, of the directory
that the partition lies in; a fsync that failed takes its directory offline and is not asked for again there. What went
wrong otherwise says nothing of the disk: a flush that is due is tried again a little later.
"""

from __future__ import annotations

from pykafkad.storage import files
from pykafkad.storage.files import StorageError
from pykafkad.storage.log import lookups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs

RETRY_MS = 1_000


class Flushing:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager
        self.under_way: set[Log] = set()  # flushes that are due
        self._aging: set[Log] = set()  # the same of those that are aged

    def due(self, partition: Log) -> int:
        """Begin the flush unless one is under way; what is on the disk already. When it is done the partition is
        committed again, at the end of that pass."""
        if partition not in self.under_way:
            end = partition.log_end_offset
            if partition.flushed_offset > partition.active.base_offset:
                work, recovery_point = active_log(partition), 0
            else:
                work, recovery_point = all_files(partition), partition.active.base_offset
            self.under_way.add(partition)
            self._submit(partition, work, end, recovery_point)
            directory = partition.log_directory
            if directory.failure is not None:
                raise StorageError(f"{directory.path}: {directory.failure}")
        return partition.flushed_offset

    def _submit(self, partition: Log, work: Callable[[], None], offset: int, recovery_point: int) -> None:
        directory, cuts = partition.log_directory, partition.cuts

        def done(result: Any) -> None:
            self.under_way.discard(partition)
            again = result is not None and directory.is_online and not files.is_failure(result)
            if again:
                self._manager.call_later(RETRY_MS, lambda: self._commit_again(partition))
            self._manager.background_done(directory, result)
            if again:
                return
            if result is None and partition.log_directory is directory and partition.cuts == cuts:
                partition.note_flushed(offset, recovery_point)
            self._commit_again(partition)  # it may have moved to another directory meanwhile

        self._manager.submit(lambda: files.patiently(work), done)

    def _commit_again(self, partition: Log) -> None:
        if self._manager.get(partition.topic, partition.index) is partition:
            partition.commit_again()

    def soon(self, partition: Log, start: int, end: int, over: Callable[[], None] = lambda: None) -> None:
        """What lies between these offsets, of segments that were closed, or all there is; `over` when it was tried."""
        directory, cuts = partition.log_directory, partition.cuts
        recovery_point = min(end, partition.active.base_offset)
        work = all_files(partition, start)

        def done(result: Any) -> None:
            over()
            is_told = directory.is_online and partition.log_directory is directory and partition.cuts == cuts
            if result is None and is_told:
                partition.note_flushed(end, recovery_point)
            self._manager.background_done(directory, result)

        self._manager.submit(lambda: files.patiently(work), done)

    def aged(self) -> None:
        """flush.ms: what has been in memory for longer goes to the disk."""
        self._manager.each(self._look_at)

    def _look_at(self, partition: Log) -> None:
        if partition.flushed_offset >= partition.high_watermark or partition in self._aging:
            return
        now_ms = self._manager.clock.monotonic_ms()
        if now_ms - partition.last_flush_ms >= partition.settings.flush_ms:
            partition.last_flush_ms = now_ms
            self._aging.add(partition)
            self.soon(
                partition,
                partition.recovery_point,
                partition.high_watermark,
                lambda: self._aging.discard(partition),
            )


def active_log(partition: Log) -> Callable[[], None]:
    """Sync what is written of the active segment's log."""
    file = partition.active.open_file()
    syncs = partition.log_directory.syncs
    return lambda: syncs.data(file.path, file.fd)


def all_files(partition: Log, start: int | None = None) -> Callable[[], None]:
    """Sync every file from the recovery point on, or from `start` if that is less; of a partition that was never
    synced also that it has a directory."""
    directory, offsets = partition.directory, [*partition.bases, partition.active.end_offset]
    point = partition.recovery_point
    parent, syncs = partition.log_directory.path, partition.log_directory.syncs
    is_new = point <= offsets[0]
    start = point if start is None else min(start, point)

    def work() -> None:
        lookups.sync_files(syncs, directory, start, offsets)
        if is_new:
            syncs.path(parent)

    return work
