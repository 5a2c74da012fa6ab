"""The directories of the test kit's brokers: where they are, and that none is left by a run that was cut off.

    pykafkad-test-XXXXXXXX/
        lock          locked (flock) by whoever made the directory, as long as it lives
        broker.log    what the broker logged, over all its starts
        data/         its data, unless that is kept elsewhere

A broker whose starter is gone removes its directory. It cannot where it was killed as well, with its starter or before
it: then the next run removes the directory, which nobody has locked. Invariant: a locked directory is left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile

PREFIX = "pykafkad-test-"
LOCK = "lock"

_swept: set[str] = set()  # by this process, and once is enough


class Directory:
    """A new one; `close()` removes it."""

    def __init__(self) -> None:
        sweep(tempfile.gettempdir())
        self.path, self._lock = _make()

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _make() -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        if os.fstat(lock).st_nlink:
            return path, lock
        os.close(lock)  # somebody who sweeps was faster with the lock


def sweep(parent: str) -> None:
    """Remove the directories that are there and locked by nobody."""
    if parent in _swept:
        return
    _swept.add(parent)
    for name in os.listdir(parent):
        if name.startswith(PREFIX):
            _remove_if_left(os.path.join(parent, name))


def _remove_if_left(path: str) -> None:
    try:
        if not _is_ours(path):
            return
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return  # just made, or gone meanwhile
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(os.path.join(path, LOCK))
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass  # in use
    finally:
        os.close(lock)


def _is_ours(path: str) -> bool:
    """Others may put links and directories of that name there."""
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
