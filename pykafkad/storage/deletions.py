"""Directories of partitions that are deleted: renamed at once, their files unlinked after a delay.

    <topic>-<partition>.<32 hex>-delete

Who still reads from the files may finish. What a crash left half deleted goes with the next start.
"""

from __future__ import annotations

import os

from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.manager import LogManager


class Deletions:
    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._pending: list[tuple[int, LogDirectory, str]] = []  # due at (monotonic), where, path

    def rename(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """A partition's directory, or a copy of one, has the name of none from now on."""
        name = os.path.basename(path)
        if files.is_marked(name, "future"):
            name = name.rpartition(".")[0]
        target = f"{directory.path}/{files.marked_directory(name, 'delete')}"
        self._manager.guard(directory, os.rename, path, target)
        if directory.is_online:
            self.add(directory, target, delay_ms)
        else:
            self._manager.drop_offline()

    def add(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        self._pending.append((self._manager.clock.monotonic_ms() + delay_ms, directory, path))

    def unlink_due(self) -> None:
        """The files of those whose delay is over."""
        now_ms = self._manager.clock.monotonic_ms()
        due = [each for each in self._pending if each[0] <= now_ms]
        self._pending = [each for each in self._pending if each[0] > now_ms]
        for _, directory, path in due:
            if directory.is_online:
                self._manager.in_background(directory, remove_directory, path)


def remove_directory(path: str) -> None:
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return
    for name in names:
        files.remove_if_there(f"{path}/{name}")
    os.rmdir(path)
