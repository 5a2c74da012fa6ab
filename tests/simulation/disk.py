"""A disk that loses its power: what was fsynced is there afterwards, and of the rest some.

    bytes     of a file are there if the file was synced; of those written later a part, pages of zeros, garbage
    names     are there if their directory was synced: files created, renamed, removed. A power failure undoes the last
              changes of names, in order, as journals have them

Files are identified by their inodes, which are kept open: a removed file may come back, with its bytes.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = 512

Names = dict[str, int]  # of one directory: name -> inode
Tree = dict[int, Names]  # of all: a directory's inode -> its names


class PowerGone(BaseException):
    """The process ends here."""


class Disk:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = str(root)
        self.synced: dict[int, bytes] = {}
        self.pins: dict[int, int] = {}  # inode -> descriptor
        self.history: list[Tree] = []
        self.durable: dict[int, int] = {}  # a directory's inode -> the moment of its last sync
        self.steps = 0
        self.last_step: int | None = None  # what comes after this moment does not happen
        root.mkdir(exist_ok=True)
        self.begin()
        monkeypatch.setattr(os, "fsync", self.watched(self.fsync))
        monkeypatch.setattr(os, "fdatasync", self.watched(self.fsync))
        for name in ("rename", "replace", "unlink", "mkdir", "rmdir"):
            monkeypatch.setattr(os, name, self.watched(getattr(os, name)))

    # -- what happens

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*arguments: Any, **options: Any) -> Any:
            if self.steps == self.last_step:
                raise PowerGone
            self.steps += 1
            try:
                return call(*arguments, **options)
            finally:
                self.look()

        return watching

    def fsync(self, fd: int) -> None:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            self.look()
            self.durable[status.st_ino] = len(self.history) - 1
        else:
            self.synced[self.pin(f"/proc/self/fd/{fd}", status.st_ino)] = read(fd)

    def look(self) -> None:
        """Note the present names."""
        tree: Tree = {}
        self.look_into(self.root, self.pin(self.root, os.stat(self.root).st_ino), tree)
        if not self.history or tree != self.history[-1]:
            self.history.append(tree)

    def look_into(self, path: str, inode: int, tree: Tree) -> None:
        names = tree[inode] = {}
        with os.scandir(path) as entries:
            for entry in entries:
                names[entry.name] = self.pin(entry.path, entry.inode())
                if entry.is_dir():
                    self.look_into(entry.path, entry.inode(), tree)

    def pin(self, path: str, inode: int) -> int:
        if inode not in self.pins:
            self.pins[inode] = os.open(path, os.O_PATH)
        return inode

    # -- the power failure

    def power_cut(self, chance: random.Random) -> None:
        self.last_step = None
        self.look()
        moment = chance.randrange(len(self.history))
        kept = self.kept(os.stat(self.root).st_ino, moment, chance)
        for name in os.listdir(self.root):
            path = f"{self.root}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        put(self.root, kept)
        self.begin()

    def kept(self, directory: int, moment: int, chance: random.Random) -> dict[str, Any]:
        """Name -> bytes, or the part of a directory that is kept, at that moment or when it was synced."""
        names = self.history[max(moment, self.durable.get(directory, 0))].get(directory, {})
        found: dict[str, Any] = {}
        for name, inode in sorted(names.items()):
            if stat.S_ISDIR(os.fstat(self.pins[inode]).st_mode):
                found[name] = self.kept(inode, moment, chance)
            else:
                found[name] = damaged(self.synced.get(inode, b""), read(self.pins[inode]), chance)
        return found

    def begin(self) -> None:
        """Everything that exists now is on the disk."""
        self.close()
        self.history.clear()
        self.durable.clear()
        self.look()
        self.synced = {
            inode: read(fd) for inode, fd in self.pins.items() if not stat.S_ISDIR(os.fstat(fd).st_mode)
        }

    def close(self) -> None:
        for fd in self.pins.values():
            os.close(fd)
        self.pins.clear()

    __del__ = close


def read(fd: int) -> bytes:
    """Read a file that may have no name any more, however it was opened."""
    with open(f"/proc/self/fd/{fd}", "rb") as file:
        return file.read()


def put(path: str, kept: dict[str, Any]) -> None:
    for name, what in kept.items():
        target = Path(path, name)
        if isinstance(what, dict):
            os.makedirs(target)
            put(str(target), what)
        else:
            target.write_bytes(what)


def damaged(durable: bytes, now: bytes, chance: random.Random) -> bytes:
    """What is left of a file of which these bytes were synced."""
    if not now.startswith(durable):
        return durable if chance.random() < 0.5 and durable else now
    tail = bytearray(now[len(durable) :])
    kind = chance.randrange(5)
    if not tail or kind == 0:
        return now
    start = chance.randrange(len(tail))
    if kind == 1:
        del tail[start:]
    elif kind == 2:
        tail[start : start + PAGE] = bytes(len(tail[start : start + PAGE]))
    elif kind == 3:
        tail[start : start + PAGE] = chance.randbytes(len(tail[start : start + PAGE]))
    else:
        tail += bytes(chance.randint(1, PAGE))
    return durable + bytes(tail)
