"""What is deleted: renamed at once, unlinked by a thread after a delay, so that who still reads may finish.

    <topic>-<partition>.<32 hex>-delete             a partition's directory
    <topic>-<partition>/%020d.{log,…}.deleted       a segment's files

What a crash left half deleted goes with the next start (recovery/leftovers.py for segments). Whatever else lies in a
directory that is deleted goes with it, links without what they point to; what cannot be removed is told and left.
"""

from __future__ import annotations

import os

from pykafkad.logs import logger
from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.parts import Logs

    Due = tuple[int, LogDirectory, list[str]]  # when (monotonic), where, the paths

log = logger("storage")


class Deletions:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager
        self._pending: list[Due] = []

    def rename(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """A partition's directory, or a copy of one, has the name of none from now on."""
        name = os.path.basename(path)
        if files.is_marked(name, "future"):
            name = name.rpartition(".")[0]
        target = f"{directory.path}/{files.marked_directory(name, 'delete')}"
        try:
            os.rename(path, target)
        except OSError as error:
            if files.is_of_disk(error):
                directory.fail(str(error))
                self._manager.drop_offline()
            else:
                log.warn(f"{path} is deleted, and cannot be renamed to {target}: {error.strerror}")
            return
        self.add(directory, [target], delay_ms)

    def add(self, directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
        """Files and directories that have their new names."""
        self._pending.append((self._manager.clock.monotonic_ms() + delay_ms, directory, paths))

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
            paths = [path for _, where, some in due if where is directory for path in some]
            if paths:
                self._manager.in_background(directory, remove_all, paths)


def remove_all(paths: list[str]) -> None:
    """They may have gone before, or been renamed with the directory they were in."""
    for path in paths:
        try:
            files.remove(path)
        except (OSError, RecursionError) as error:
            if isinstance(error, OSError) and files.is_of_disk(error):
                raise
            log.warn(f"{path} is deleted, and cannot be removed before the next start: {error}")
