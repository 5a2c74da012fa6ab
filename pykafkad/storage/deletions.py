"""What is deleted: renamed at once, unlinked by a thread after a delay, so that who still reads may finish.

    <topic>-<partition>.<32 hex>-delete             a partition's directory
    <topic>-<partition>/%020d.{log,…}.deleted       a segment's files

What a crash left half deleted goes with the next start (storage/leftovers.py for segments).
"""

from __future__ import annotations

import os

from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.segment import Segment
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.manager import LogManager

    Due = tuple[int, LogDirectory, Callable[[Any], None], Any]  # when (monotonic), where, how, what

# The log is renamed first: without it the others belong to nothing, whenever a crash comes.
OF_SEGMENT = (files.LOG, files.INDEX, files.TIME_INDEX, files.TRANSACTION_INDEX)


class Deletions:
    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._pending: list[Due] = []

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
        """A directory that has its new name."""
        self._later(directory, remove_directory, path, delay_ms)

    def add_files(self, directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
        """Files that have their new names."""
        self._later(directory, remove_files, paths, delay_ms)

    def _later(
        self, directory: LogDirectory, remove: Callable[[Any], None], what: Any, delay_ms: int
    ) -> None:
        self._pending.append((self._manager.clock.monotonic_ms() + delay_ms, directory, remove, what))

    def unlink_due(self) -> None:
        """What had its delay; one thread's work for each log directory."""
        if not self._pending:
            return
        now_ms = self._manager.clock.monotonic_ms()
        due = [each for each in self._pending if each[0] <= now_ms]
        if not due:
            return
        self._pending = [each for each in self._pending if each[0] > now_ms]
        for directory in self._manager.online:
            work = [(remove, what) for _, where, remove, what in due if where is directory]
            if work:
                self._manager.in_background(directory, remove_all, work)


def mark_deleted(directory: str, base_offset: int, *, snapshot: bool) -> list[str]:
    """Rename a segment's files, and the producers' snapshot at its base: the new names of those that were there."""
    renamed = []
    for suffix in (*OF_SEGMENT, files.SNAPSHOT) if snapshot else OF_SEGMENT:
        path = f"{directory}/{files.offset_name(base_offset, suffix)}"
        try:
            os.rename(path, path + files.DELETED)
        except FileNotFoundError:
            continue
        renamed.append(path + files.DELETED)
    return renamed


def mark_all_deleted(directory: str, segments: list[Segment]) -> list[str]:
    paths = []
    for segment in segments:
        segment.release()
        paths += mark_deleted(directory, segment.base_offset, snapshot=True)
    return paths


def remove_all(work: list[tuple[Callable[[Any], None], Any]]) -> None:
    for remove, what in work:
        remove(what)


def remove_files(paths: list[str]) -> None:
    """The directory may have gone before, or been renamed with the files in it."""
    for path in paths:
        files.remove_if_there(path)


def remove_directory(path: str) -> None:
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return
    for name in names:
        files.remove_if_there(f"{path}/{name}")
    os.rmdir(path)
