"""The directories of new partitions with all the files that they begin with, made by a thread before their logs are.

To make a file takes a disk up to some milliseconds, and a request may ask for ten thousand partitions. A thread makes
them, without the interpreter's lock, so that the loop does not wait. This is best effort: what the thread could not
make is made with the log, where a failure is told.

Invariants: only what was not there is prepared, and it is noted before the thread begins, so a directory that is noted
is ours and has nothing in it that a log has written; it is forgotten when a log takes it, or removed when none will.
Both happen on the loop. What has another file in it, or a record, is never removed here.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from pykafkad.hot.segment import NewDirectories
from pykafkad.pure.leader_epochs import beginning
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import (
    INDEX,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    TIME_INDEX,
    TopicPartition,
    offset_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pykafkad.pure.leader_epochs import Entries

EMPTY = tuple(offset_name(0, suffix) for suffix in (LOG, INDEX, TIME_INDEX))
FILES = (*EMPTY, PARTITION_METADATA, LEADER_EPOCHS)


class NewPartition(NamedTuple):
    """One that this broker will lead in that epoch, or follow (None), in the log directory of that id."""

    key: TopicPartition
    topic_id: bytes
    leader_epoch: int | None
    directory_id: bytes

    @property
    def epochs(self) -> Entries:
        """And the offset at which each begins."""
        return () if self.leader_epoch is None else beginning(self.leader_epoch, 0)


class Noted:
    """A partition whose directory is prepared."""

    __slots__ = ("is_whole", "partition")

    def __init__(self, partition: NewPartition) -> None:
        self.partition = partition
        self.is_whole = False  # whether all files are there; else a thread may be about to make them


class Prepared:
    """`is_used(path)`: whether a partition has this directory. `save_again(path)`: its log is to write its small files
    once more, since the thread may have written them at the same time."""

    def __init__(self, is_used: Callable[[str], bool], save_again: Callable[[str], None]) -> None:
        self._is_used = is_used
        self._save_again = save_again
        self._noted: dict[str, Noted] = {}  # by their paths

    def begin(self, wanted: Iterable[tuple[str, NewPartition]]) -> Preparation:
        """What has to be made of these, each with the path of its directory."""
        new = {
            path: Noted(partition)
            for path, partition in wanted
            if path not in self._noted and not os.path.lexists(path)
        }
        self._noted.update(new)
        return Preparation(self, new)

    def take(self, path: str) -> Noted | None:
        """A log has this directory from now on; None: it is not prepared."""
        return self._noted.pop(path, None)

    def through(self, path: str, noted: Noted, error: int) -> None:
        """The thread has made it, or could not."""
        known = self._noted.get(path)
        if known is noted:
            noted.is_whole = not error
        elif self._is_used(path):
            self._save_again(path)
        elif known is None:  # of a partition that was made and deleted meanwhile
            remove(path)

    def take_back(self, path: str, noted: Noted) -> None:
        """No log will be made in it, unless one has been."""
        if self._noted.get(path) is noted:
            del self._noted[path]
            remove(path)


class Preparation:
    """Some that are prepared together: `make` is for a thread, the rest for the loop."""

    def __init__(self, prepared: Prepared, new: dict[str, Noted]) -> None:
        self._prepared = prepared
        self._new = new
        contents = contents_of(noted.partition for noted in new.values())
        self._directories = NewDirectories(zip(map(os.fsencode, new), contents, strict=True))
        self._errors: list[int] = []

    def __len__(self) -> int:
        return len(self._new)

    def make(self) -> None:
        self._errors = self._directories.make()

    def through(self) -> None:
        """After `make`, or instead of it."""
        errors = self._errors or [-1] * len(self._new)
        for (path, noted), error in zip(self._new.items(), errors, strict=True):
            self._prepared.through(path, noted, error)

    def take_back(self) -> None:
        """All logs are made that will be."""
        for path, noted in self._new.items():
            self._prepared.take_back(path, noted)


def contents_of(new: Iterable[NewPartition]) -> Iterator[tuple[tuple[bytes, bytes], ...]]:
    """The files of each, with what they say; most are of one topic."""
    said: dict[tuple[bytes, int | None], tuple[tuple[bytes, bytes], ...]] = {}
    for partition in new:
        key = partition.topic_id, partition.leader_epoch
        found = said.get(key)
        if found is None:
            texts = checkpoints.topic_id_text(partition.topic_id), checkpoints.epochs_text(partition.epochs)
            small = zip((PARTITION_METADATA.encode(), LEADER_EPOCHS.encode()), texts, strict=True)
            found = said[key] = (*((name.encode(), b"") for name in EMPTY), *small)
        yield found


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if is_as_made(path):
            for name in os.listdir(path):
                os.unlink(f"{path}/{name}")
            os.rmdir(path)


def is_as_made(path: str) -> bool:
    """Whether there is nothing in a directory but what it began with: else it is not for us to remove."""
    with os.scandir(path) as entries:
        return all(
            entry.name in FILES and (entry.name not in EMPTY or not entry.stat().st_size) for entry in entries
        )
