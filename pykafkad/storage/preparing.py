"""The directories of new partitions with all the files that they begin with, made by a thread before their logs are.

To make a file takes a disk up to some milliseconds, and a request may ask for ten thousand partitions. A thread makes
them, without the interpreter's lock, so that the loop does not wait. This is best effort: what the thread could not
make is made with the log, where a failure is told.

Invariants: a partition is noted before the thread begins. Its directory is ours if it was the thread that made it, or if
there is nothing in it that a log has written; whatever else the thread finds there is left alone, and noted no more. The
note is forgotten when a log takes the directory, or with it, when none will. Both happen on the loop. What has another
file in it, or a record, is never removed here.
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache

from pykafkad.hot.segment import NewDirectories
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import (
    INDEX,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    TIME_INDEX,
    offset_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pykafkad.pure.leader_epochs import Entries
    from pykafkad.storage.directories import NewPartition

    Contents = tuple[tuple[bytes, bytes], ...]  # names of files, and what they say

EMPTY = tuple(offset_name(0, suffix) for suffix in (LOG, INDEX, TIME_INDEX))
FILES = (*EMPTY, PARTITION_METADATA, LEADER_EPOCHS)
NOTHING_DONE = -1


class Prepared:
    """`is_used(path)`: whether a partition has this directory. `save_again(path)`: its log is to write its small files
    once more, since the thread may have written them at the same time."""

    def __init__(self, is_used: Callable[[str], bool], save_again: Callable[[str], None]) -> None:
        self._is_used = is_used
        self._save_again = save_again
        self._noted: dict[str, NewPartition] = {}  # by the paths of their directories

    def begin(self, wanted: Iterable[tuple[str, NewPartition]]) -> Preparation:
        """What has to be made of these, each with the path of its directory."""
        noted = self._noted
        new = {path: partition for path, partition in wanted if path not in noted}
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
                partition.is_whole = not error
            elif self._is_used(path):
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
        self._directories = NewDirectories(zip(new, contents_of(new.values()), strict=True))
        self._errors: list[int] | None = None

    def __len__(self) -> int:
        return len(self._new)

    def make(self) -> None:
        self._errors = self._directories.make()

    def through(self) -> None:
        """After `make`, or instead of it."""
        self._prepared.through(self._new, self._errors or [NOTHING_DONE] * len(self._new))

    def take_back(self) -> None:
        """All logs are made that will be."""
        self._prepared.take_back(self._new)


LOG_AND_INDEXES: Contents = tuple((name.encode(), b"") for name in EMPTY)


@lru_cache(maxsize=16)
def epochs_file(epochs: Entries) -> tuple[bytes, bytes]:
    return LEADER_EPOCHS.encode(), checkpoints.epochs_text(epochs)


def contents_of(new: Iterable[NewPartition]) -> Iterator[Contents]:
    """The files of each, with what they say: most follow one of the same topic."""
    topic_id, leader_epoch, contents = b"", None, LOG_AND_INDEXES
    for each in new:
        if each.topic_id != topic_id or each.leader_epoch != leader_epoch:
            topic_id, leader_epoch = each.topic_id, each.leader_epoch
            metadata = PARTITION_METADATA.encode(), checkpoints.topic_id_text(topic_id)
            contents = (*LOG_AND_INDEXES, metadata, epochs_file(each.epochs))
        yield contents


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
