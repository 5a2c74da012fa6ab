"""A start takes the clean-shutdown markers away, for good, before anything that is appended is written.

Were a marker to come back with a power cut, the next start would believe logs that it has to walk. So the directory is
synced after its marker went (or was gone: who removed it may not have lived to sync that). A thread begins with it when
all is loaded, since it would hold up what a start writes; the first pass that writes waits for it, if it comes so soon.
"""

from __future__ import annotations

from _queue import SimpleQueue
from _thread import start_new_thread

from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.storage.directories import LogDirectory


class Unmarking:
    def __init__(self, *, in_threads: bool) -> None:
        self._in_threads = in_threads
        self._under_way: list[tuple[LogDirectory, SimpleQueue[BaseException | None]]] = []

    def begin(self, directories: list[LogDirectory]) -> None:
        """Their markers are removed; make that durable."""
        for directory in directories:
            result: SimpleQueue[BaseException | None] = SimpleQueue()
            self._under_way.append((directory, result))
            if self._in_threads:
                start_new_thread(sync, (directory.path, result))
            else:
                sync(directory.path, result)

    @property
    def under_way(self) -> bool:
        return bool(self._under_way)

    def wait(self) -> None:
        """No power cut brings the markers back when this returns, or their directories are offline."""
        for directory, result in self._under_way:
            problem = result.get()
            if problem is not None:
                directory.fail(str(problem))
        self._under_way.clear()


def sync(path: str, result: SimpleQueue[BaseException | None]) -> None:
    try:
        files.fsync_path(path)
        result.put(None)
    except BaseException as error:
        result.put(error)
