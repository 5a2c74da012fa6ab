"""The directories of new partitions, with the empty files of a first segment, made by a thread before their logs are.

To make a file takes a disk up to some milliseconds, and a request may ask for ten thousand partitions. Whoever makes
many logs has their directories prepared first, and waits for that without holding the loop. This is best effort: what
the thread could not make is made with the log, where a failure is told.

Invariants: only what was not there is prepared, and it is noted before the thread begins, so a directory that is noted
is ours and empty; it is forgotten when a log takes it, or removed when none will. Both happen on the loop. What has a
byte or another file in it is never removed here.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

from pykafkad.storage.files import INDEX, LOG, TIME_INDEX, offset_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafkad.workers import Submit

FILES = tuple(offset_name(0, suffix) for suffix in (LOG, INDEX, TIME_INDEX))
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Prepared:
    """`is_used(path)`: whether a partition has this directory."""

    def __init__(self, is_used: Callable[[str], bool]) -> None:
        self._is_used = is_used
        self._paths: set[str] = set()

    def begin(self, paths: Iterable[str], submit: Submit, done: Callable[[], None]) -> None:
        """Have these directories made; `done` is called when the thread is through."""
        new = [path for path in paths if path not in self._paths and not os.path.lexists(path)]
        self._paths.update(new)

        def through(result: object) -> None:
            # Of a partition that was made and deleted meanwhile the thread may have made another directory.
            self._remove(path for path in new if path not in self._paths and not self._is_used(path))
            done()

        submit(partial(make_all, new), through)

    def take(self, path: str) -> bool:
        """Whether this directory is prepared, or about to be: a log has it from now on."""
        if path not in self._paths:
            return False
        self._paths.remove(path)
        return True

    def take_back(self, paths: Iterable[str]) -> None:
        """No log will be made in those of these directories that none has taken."""
        left = self._paths.intersection(paths)
        self._paths -= left
        self._remove(left)

    @staticmethod
    def _remove(paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                if is_as_made(path):
                    for name in os.listdir(path):
                        os.unlink(f"{path}/{name}")
                    os.rmdir(path)


def is_as_made(path: str) -> bool:
    """Whether there is nothing in a directory but what `make_all` puts there: else it is not for us to remove."""
    with os.scandir(path) as entries:
        return all(entry.name in FILES and not entry.stat().st_size for entry in entries)


def make_all(paths: Iterable[str]) -> None:
    """For a thread. The loop may make the same ones meanwhile: then there is nothing to do."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.mkdir(path)
            for name in FILES:
                os.close(os.open(f"{path}/{name}", FLAGS, 0o644))
