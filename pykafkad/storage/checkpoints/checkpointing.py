"""When the offset checkpoints of the log directories are written: each of the four kinds one writing at a time.

A checkpoint is replaced in a thread, by way of a file with one name: two writings of it at once would take each
other's half. What is asked for meanwhile is done once more afterwards, with the offsets of then. A partition that
moves to another directory stands in both checkpoints until it is there.
"""

from __future__ import annotations

from pykafkad.logs import logger
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs


log = logger("storage")


class Checkpointing:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager
        self._under_way: dict[str, bool] = {}  # name -> whether it is wanted once more
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def write(self, name: str, done: Callable[[], None] | None = None) -> None:
        """Write this checkpoint of every directory in the background; `done` once it has what is true now."""
        if done is not None:
            self._waiting.setdefault(name, []).append(done)
        if name in self._under_way:
            self._under_way[name] = True
            return
        manager = self._manager
        work = [(each, self.offsets_of(each, name)) for each in manager.online]
        left = len(work)
        waiting = self._waiting.pop(name, [])
        self._under_way[name] = False

        def written(directory: LogDirectory, result: Any) -> None:
            nonlocal left
            left -= 1
            try:
                manager.background_done(directory, result)
            finally:
                if left == 0:
                    self._over(name, waiting)

        for directory, offsets in work:
            self._write_one(directory, name, offsets, written)
        if not work:
            self._over(name, waiting)

    def _write_one(
        self,
        directory: LogDirectory,
        name: str,
        offsets: dict[TopicPartition, int],
        written: Callable[[LogDirectory, Any], None],
    ) -> None:
        path = f"{directory.path}/{name}"
        self._manager.submit(
            lambda: checkpoints.write_offsets(path, offsets), lambda result: written(directory, result)
        )

    def _over(self, name: str, waiting: list[Callable[[], None]]) -> None:
        again = self._under_way.pop(name)
        for told in waiting:
            try:
                told()
            except Exception as error:  # of one of those who wait; the others are told all the same
                log.exception(f"after {name} was written", error)
        if again:
            self.write(name)

    def forget(self, partition: Log) -> None:
        """It is deleted: what is said of it must not be taken for another's of that name, which would
        begin where this one did, or be believed as far as this one was on the disk. Kafka does so as well."""
        if log_start_of(partition) is not None:
            self.write(checkpoints.LOG_STARTS)
        if partition.recovery_point > 0:
            self.write(checkpoints.RECOVERY_POINTS)

    def write_now(self, directory: LogDirectory) -> None:
        """All four, at the end, when nothing else writes any more."""
        for name in VALUES:
            checkpoints.write_offsets(f"{directory.path}/{name}", self.offsets_of(directory, name))

    def offsets_of(self, directory: LogDirectory, name: str) -> dict[TopicPartition, int]:
        value_of = VALUES[name]
        found = {
            key: value
            for key, partition in self._manager.partitions.items()
            if partition.log_directory is directory and (value := value_of(partition)) is not None
        }
        for move in self._manager.moves:
            value = value_of(move.partition) if move.target is directory else None
            if value is not None:
                found[move.partition.topic, move.partition.index] = (
                    0 if name == checkpoints.RECOVERY_POINTS else value
                )
        return found


def high_watermark_of(partition: Log) -> int:
    return partition.high_watermark


def recovery_point_of(partition: Log) -> int:
    return partition.recovery_point


def log_start_of(partition: Log) -> int | None:
    """Only those above the first segment's base offset need saying; and those that were said before, since a power
    cut may bring segments back that were below."""
    needed = partition.log_start_offset > partition.bases[0] or partition.start_is_stated
    return partition.log_start_offset if needed else None


def first_dirty_offset_of(partition: Log) -> int | None:
    return partition.first_dirty_offset


VALUES: dict[str, Callable[[Log], int | None]] = {
    checkpoints.RECOVERY_POINTS: recovery_point_of,
    checkpoints.LOG_STARTS: log_start_of,
    checkpoints.HIGH_WATERMARKS: high_watermark_of,
    checkpoints.CLEANED: first_dirty_offset_of,
}
