"""The directories of new partitions with the files that they begin with, made by a thread before their logs are.

To make a file takes a disk up to some milliseconds, and a request may ask for ten thousand partitions. A thread makes
them, without the interpreter's lock, so that the loop does not wait. This is best effort: what the thread could not
make is made with the log, where a failure is told. Of many the small files come later (small_files.py).

Invariants: a partition is noted before the thread begins. Its directory is ours if it was the thread that made it, or if
there is nothing in it that a log has written; whatever else the thread finds there is left alone, and noted no more. The
note is forgotten when a log takes the directory, or with it, when none will. Both happen on the loop. What has another
file in it, or a record, is never removed here.
"""

from __future__ import annotations

import contextlib
import os

from pykafkad.hot.segment import NewFiles
from pykafkad.storage.files import (
    INDEX,
    LOG,
    TIME_INDEX,
    WHOLE,
    offset_name,
)
from pykafkad.storage.small_files import contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafkad.storage.directories import NewPartition
    from pykafkad.storage.small_files import Contents

EMPTY = tuple(offset_name(0, suffix) for suffix in (LOG, INDEX, TIME_INDEX))
FILES = (*EMPTY, *WHOLE)
NOTHING_DONE = -1


class Prepared:
    """`is_used(path)`: whether a partition has this directory. `save_again(path)`: its log is to write its small files
    once more, since the thread may have written them at the same time."""

    def __init__(self, is_used: Callable[[str], bool], save_again: Callable[[str], None]) -> None:
        self._is_used = is_used
        self._save_again = save_again
        self._noted: dict[str, NewPartition] = {}  # by the paths of their directories

    def begin(self, wanted: Iterable[tuple[str, NewPartition]], *, small_files: bool) -> Preparation:
        """What has to be made of these, each with the path of its directory, and whether with the small files."""
        noted = self._noted
        new = {path: partition for path, partition in wanted if path not in noted}
        for partition in new.values():
            partition.has_small_files = small_files
        noted.update(new)
        return Preparation(self, new)

    def take(self, path: str) -> NewPartition | None:
        """A log has this directory from now on; None: it is not prepared."""
        return self._noted.pop(path, None)

    def through(self, new: dict[str, NewPartition], errors: Iterable[int]) -> None:
        """The thread has made them, or could not."""
        noted = self._noted
        for (path, partition), error in zip(new.items(), errors, strict=True):
            known = noted.get(path)
            if error < 0:
                if known is partition:
                    del noted[path]
            elif known is partition:
                partition.is_made = not error
            elif self._is_used(path):
                if partition.has_small_files:
                    self._save_again(path)
            elif known is None:  # of a partition that was made and deleted meanwhile
                remove(path)

    def take_back(self, new: dict[str, NewPartition]) -> None:
        """No logs will be made in these, but where one has been."""
        noted = self._noted
        for path, partition in new.items():
            if noted.get(path) is partition:
                del noted[path]
                remove(path)


class Preparation:
    """Some that are prepared together: `make` is for a thread, the rest for the loop."""

    def __init__(self, prepared: Prepared, new: dict[str, NewPartition]) -> None:
        self._prepared = prepared
        self._new = new
        self._files = NewFiles((path, contents_of(partition)) for path, partition in new.items())
        self._errors: list[int] | None = None

    def __len__(self) -> int:
        return len(self._new)

    def make(self) -> None:
        self._errors = self._files.make_with_directories()

    def through(self) -> None:
        """After `make`, or instead of it."""
        self._prepared.through(self._new, self._errors or [NOTHING_DONE] * len(self._new))

    def take_back(self) -> None:
        """All logs are made that will be."""
        self._prepared.take_back(self._new)


LOG_AND_INDEXES: Contents = tuple((name.encode(), b"") for name in EMPTY)


def contents_of(new: NewPartition) -> Contents:
    """The files that the thread makes, with what they say."""
    if new.has_small_files:
        return *LOG_AND_INDEXES, *contents(new.topic_id, new.epochs)
    return LOG_AND_INDEXES


def remove(path: str) -> None:
    if is_as_made(path):
        with contextlib.suppress(OSError):
            for name in os.listdir(path):
                os.unlink(f"{path}/{name}")
            os.rmdir(path)


def is_as_made(path: str) -> bool:
    """Whether it is a directory with nothing in it but what one begins with: else it is not for us to remove."""
    try:
        with os.scandir(path) as entries:
            return not os.path.islink(path) and all(
                entry.name in FILES and (entry.name not in EMPTY or not entry.stat().st_size)
                for entry in entries
            )
    except OSError:
        return False
