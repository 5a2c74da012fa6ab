"""Names of the files of a log directory, and how a file is replaced safely.

<dir>/meta.properties  .lock  .kafka_cleanshutdown  *-checkpoint
<dir>/<topic>-<partition>/%020d.{log,index,timeindex,txnindex,snapshot}  leader-epoch-checkpoint
partition.metadata <dir>/<topic>-<partition>.<32 hex>-{delete,stray,future}
"""

from __future__ import annotations

import os

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP, CORRUPT = ".deleted", ".cleaned", ".swap", ".corrupt"
PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_NAME_MAX = 255
_MARK_SIZE = 1 + 32  # a dot and 32 hex digits


class StorageError(Exception):
    """A log directory failed: its partitions are offline, the others serve on."""


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset a file is named after, None when it is no such file."""
    if len(name) != 20 + len(suffix) or not name.endswith(suffix):
        return None
    return int(name[:20]) if name[:20].isdecimal() else None


def partition_directory(topic: str, index: int) -> str:
    return f"{topic}-{index}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """topic and partition of a directory's name; None when it is none."""
    topic, dash, index = name.rpartition("-")
    if not dash or not topic or not index.isdecimal() or not index.isascii():
        return None
    return topic, int(index)


def marked_directory(name: str, mark: str) -> str:
    """What a directory is renamed to: `delete` (cut so that it fits a file name) or `stray`."""
    unique = os.urandom(16).hex()
    room = _NAME_MAX - _MARK_SIZE - 1 - len(mark)
    return f"{name[:room]}.{unique}-{mark}"


def is_marked(name: str, mark: str) -> bool:
    stem, dot, tail = name.rpartition(".")
    return bool(dot and stem) and tail.endswith(f"-{mark}") and len(tail) == 32 + 1 + len(mark)


def fsync_path(path: str) -> None:
    """A file's or directory's bytes reach the disk; one that is gone meanwhile needs none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_data(fd: int) -> None:
    """fdatasync, where there is one: it syncs the file's new length too, and leaves out its times."""
    getattr(os, "fdatasync", os.fsync)(fd)


def write_file(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def replace_file(path: str, data: bytes, *, sync: bool = True) -> None:
    """The file is the old one or the new one, never half of either. Without sync the disk may see it
    later."""
    temporary = path + ".tmp"
    write_file(temporary, data)
    if sync:
        fsync_path(temporary)
    os.replace(temporary, path)
    if sync:
        fsync_path(os.path.dirname(path))


def remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def read_file(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def last_bytes(path: str, size: int) -> bytes:
    """At most `size` bytes from a file's end; of one that is not there nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, size, max(0, os.fstat(fd).st_size - size))
    finally:
        os.close(fd)


def modified_ms(path: str) -> int:
    return os.stat(path).st_mtime_ns // 1_000_000
