"""The fsyncs of a log directory: after one that failed there is no other.

What a failed fsync left on the disk is unknown, and the next one would say that all is well. The loop hears of a
failure only when the thread comes back, and other threads have their fsyncs in hand meanwhile: so they ask here.
Invariant: a file is synced by one thread at a time.
"""

from __future__ import annotations

import errno
from _thread import allocate_lock

from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TURNS = 16  # locks that the files share


class Syncs:
    __slots__ = ("_turns", "failure")

    def __init__(self) -> None:
        self._turns = [allocate_lock() for _ in range(TURNS)]
        self.failure: OSError | None = None

    def path(self, path: str) -> None:
        """A file or directory, which is opened for it."""
        self._run(path, files.fsync_path, path)

    def data(self, path: str, fd: int) -> None:
        """What was written to a file that is open."""
        self._run(path, files.sync_data, fd)

    def _run(self, path: str, sync: Callable[[Any], None], argument: Any) -> None:
        with self._turns[hash(path) % TURNS]:
            if self.failure is not None:
                raise OSError(errno.EIO, f"not synced, since a sync failed before: {self.failure}", path)
            try:
                sync(argument)
            except OSError as error:
                if not files.is_shortage(error):  # then it was not asked yet
                    self.failure = error
                raise
