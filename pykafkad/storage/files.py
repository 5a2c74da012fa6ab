"""Names of the files of a log directory, and how a file is replaced safely.

<dir>/meta.properties  .lock  .kafka_cleanshutdown  *-checkpoint
<dir>/<topic>-<partition>/%020d.{log,index,timeindex,txnindex,snapshot}  leader-epoch-checkpoint
partition.metadata <dir>/<topic>-<partition>.<32 hex>-{delete,stray,future}
"""

from __future__ import annotations

import errno
import os
import time

from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP, CORRUPT = ".deleted", ".cleaned", ".swap", ".corrupt"
PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
OF_SEGMENT = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)
WHOLE = (PARTITION_METADATA, LEADER_EPOCHS)
TEMPORARY = ".tmp"
METADATA_TOPIC = "__cluster_metadata"  # its directory belongs to the metadata log, and to no Log
TopicPartition = tuple[str, int]  # a topic's name, a partition's index
OFFSET_MAX = (
    (1 << 63) - 1 - (1 << 32)
)  # what the C behind us reckons with: an index entry more is a number still

ATTEMPTS, PAUSE_S = 100, 0.1  # of an fsync that waits for a descriptor
_NAME_MAX = 255
_MARK_SIZE = 1 + 32  # a dot and 32 hex digits
_INDEX_MAX = (1 << 31) - 1

# What goes wrong with a name, since something else is there, or nothing, or nobody may touch it. The disk works.
_OF_NAMES = frozenset(
    (
        errno.EACCES,
        errno.EBUSY,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.ENXIO,
        errno.EPERM,
        errno.ETXTBSY,
    )
)

# What this process has too little of just now: it may go better in a moment.
_OF_PROCESS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))

log = logger("storage")


class StorageError(Exception):
    """A log directory failed: its partitions are offline, the others serve on."""


class NoDescriptors(StorageError):
    """The process or the system had none left to open a file with: the directory is as good as before."""


def is_shortage(error: BaseException) -> bool:
    """Descriptors or memory have run out."""
    return isinstance(error, OSError) and error.errno in _OF_PROCESS


def is_failure(result: object) -> bool:
    """What came of a thread's work takes its log directory offline."""
    return isinstance(result, OSError) and not is_shortage(result)


def patiently(work: Callable[[], None]) -> None:
    """For a thread, and work that may not be left out: it waits for a descriptor, ATTEMPTS times. In vain, the work is
    tried again when there is a next occasion."""
    for _ in range(ATTEMPTS):
        try:
            return work()
        except OSError as error:
            if not is_shortage(error):
                raise
        time.sleep(PAUSE_S)
    return work()


def is_of_disk(error: OSError) -> bool:
    """Whether an error speaks of the disk, and so of its log directory; not of what somebody left there."""
    return error.errno not in _OF_NAMES and error.errno not in _OF_PROCESS


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset a file is named after, None when it is no such file."""
    if len(name) != 20 + len(suffix) or not name.endswith(suffix):
        return None
    digits = name[:20]
    if not digits.isdecimal() or not digits.isascii():
        return None
    offset = int(digits)
    return offset if offset <= OFFSET_MAX else None


def partition_directory(topic: str, index: int) -> str:
    return f"{topic}-{index}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """topic and partition of a directory's name; None when it is none."""
    topic, dash, index = name.rpartition("-")
    if not dash or not topic or not index.isdecimal() or not index.isascii():
        return None
    number = int(index)
    return (topic, number) if index == str(number) and number <= _INDEX_MAX else None


def marked_directory(name: str, mark: str) -> str:
    """What a directory is renamed to: `delete` (cut so that it fits a file name) or `stray`."""
    unique = os.urandom(16).hex()
    room = _NAME_MAX - _MARK_SIZE - 1 - len(mark)
    return f"{os.fsdecode(os.fsencode(name)[:room])}.{unique}-{mark}"


def is_marked(name: str, mark: str) -> bool:
    stem, dot, tail = name.rpartition(".")
    return bool(dot and stem) and tail.endswith(f"-{mark}") and len(tail) == 32 + 1 + len(mark)


def fsync_path(path: str) -> None:
    """A file's or directory's bytes reach the disk; one that is gone meanwhile needs none."""
    try:
        fd = os.open(path, os.O_RDONLY)
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
    fd = open_new(path)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def open_new(path: str) -> int:
    """A descriptor of a file to be written anew, never through a link; what nobody can write to is set aside."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags, 0o644)
    except OSError as error:
        if is_of_disk(error) or not os.path.lexists(path):
            raise
    set_aside(path)
    return os.open(path, flags, 0o644)


def replace_file(path: str, data: bytes, *, sync: bool = True) -> None:
    """The file is the old one or the new one, never half of either. Without sync the disk may see it
    later."""
    temporary = path + TEMPORARY
    write_file(temporary, data)
    if sync:
        fsync_path(temporary)
    rename(temporary, path)
    if sync:
        fsync_path(os.path.dirname(path))


def rename(source: str, target: str) -> None:
    """In place of a file of that name; what is none is set aside."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise
        set_aside(target)
        os.rename(source, target)


def set_aside(path: str) -> None:
    """Something else is where a file of ours is to be: it gets the name of a stray one, and nothing in it is touched."""
    directory, name = os.path.split(path)
    stray = marked_directory(name, "stray")
    os.rename(path, f"{directory}/{stray}")
    log.warn(f"{path} is not what it should be, and is renamed to {stray}")


def remove(path: str) -> None:
    """Whatever is there, a directory with all that is in it, as Kafka does; links are removed and not followed. What
    cannot be removed is left, and the error says so afterwards."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        _remove_directory(path, None)


def _remove_directory(name: str, parent: int | None) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    fd = os.open(name, flags, dir_fd=parent)
    try:
        problem = _empty(fd)
    finally:
        os.close(fd)
    if problem is not None:
        raise problem
    os.rmdir(name, dir_fd=parent)


def _empty(fd: int) -> OSError | None:
    """Remove what is in a directory; the first problem, which kept none of the others."""
    problem = None
    for name in os.listdir(fd):
        try:
            try:
                os.unlink(name, dir_fd=fd)
            except FileNotFoundError:
                pass
            except (IsADirectoryError, PermissionError):
                _remove_directory(name, fd)
        except OSError as error:
            problem = problem or error
    return problem


def read_file(path: str) -> bytes:
    """All of it; what is no file has nothing, and nobody waits for it."""
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        return file.readall() or b""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def last_bytes(path: str, size: int) -> bytes:
    """At most `size` bytes from a file's end; of one that is not there nothing."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, size, max(0, os.fstat(fd).st_size - size))
    finally:
        os.close(fd)


def modified_ms(path: str) -> int:
    return os.stat(path).st_mtime_ns // 1_000_000
