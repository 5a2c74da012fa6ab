"""Overlays: log directories of our own that show copied ones, of which not a byte is changed (`pykafkad open`).

    <overlay>/<topic>-<n>/%020d.log                 a symbolic link to the source's, and so are the indexes
    <overlay>/<topic>-<n>/<the last segment's>      of its indexes copies without the room for entries to come
    everything small beside them                    copied: epochs, snapshots, transaction indexes, topic ids
    <overlay>/<topic>-<n>/*, what is written to     copied whole, `__consumer_offsets`
    <overlay>/*-checkpoint, .kafka_cleanshutdown    copied
    <overlay>/meta.properties                       new: of this node, with a directory id of its own

An overlay starts as any log directory does, by ordinary recovery. Invariants: sources are opened for reading only;
what a link points to is never opened for writing (ext/segment.pyx, ext/c/index.c), only the link goes.
"""

from __future__ import annotations

import fcntl
import os

from pykafkad.errors import StartupError
from pykafkad.logs import logger
from pykafkad.properties import parse
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import CLEAN_SHUTDOWN, LOCK, META_PROPERTIES
from pykafkad.storage.files import METADATA_TOPIC, TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Rank = tuple[int, int, int]


COPIED = (files.TRANSACTION_INDEX, files.SNAPSHOT)
INDEX_WIDTHS = {files.INDEX: 8, files.TIME_INDEX: 12}
STATES = (files.DELETED, files.CLEANED, files.SWAP)  # what is under way with a file: the start tidies up
COPY_BYTES = 1 << 20

log = logger("open")


class Source:
    """A copied log directory: whose it was, and the partitions in it."""

    __slots__ = ("cluster_id", "metadata", "node_id", "partitions", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.cluster_id: str | None = None
        self.node_id: int | None = None
        self.metadata: str | None = None  # the directory of the metadata log, if it is here
        self.partitions: dict[TopicPartition, str] = {}


def read_source(path: str) -> Source:
    """Look at a directory; StartupError for one that cannot be opened."""
    source = Source(os.path.abspath(path))
    try:
        if is_in_use(source.path):
            raise StartupError(f"{source.path} is used by a running broker: open a copy of it")
        read_identity(source)
        with os.scandir(source.path) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir():
                    _sort_in(source, entry.name, entry.path)
    except OSError as error:
        raise StartupError(f"{error.filename or source.path} cannot be read: {error.strerror}") from error
    return source


def _sort_in(source: Source, name: str, path: str) -> None:
    key = files.parse_partition_directory(name)
    if key is None:
        if files.is_marked(name, "stray"):
            log.info(f"{path} is stray and is not shown")
    elif key[0] == METADATA_TOPIC:
        source.metadata = path
    else:
        source.partitions[key] = path


def is_in_use(path: str) -> bool:
    """Whether a broker holds the directory's lock: it would change the files under our feet."""
    try:
        fd = os.open(f"{path}/{LOCK}", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    finally:
        os.close(fd)
    return False


def read_identity(source: Source) -> None:
    """Cluster and node, where meta.properties says them: KRaft's node.id, or the broker.id of ZooKeeper's times."""
    try:
        fields = parse(files.read_file(f"{source.path}/{META_PROPERTIES}").decode("latin-1"))
    except FileNotFoundError:
        return
    source.cluster_id = fields.get("cluster.id")
    number = fields.get("node.id", fields.get("broker.id", ""))
    source.node_id = int(number) if number.isdecimal() else None


def shown(sources: Iterable[Source]) -> dict[TopicPartition, Source]:
    """Where each partition is taken from: of several replicas from the one that is furthest."""
    chosen: dict[TopicPartition, Source] = {}
    for source in sources:
        for key, path in source.partitions.items():
            other = chosen.get(key)
            if other is None:
                chosen[key] = source
                continue
            if rank(path) > rank(other.partitions[key]):
                chosen[key] = source
            log.info(f"{key[0]}-{key[1]} is in several directories and is shown from {chosen[key].path}")
    return chosen


def rank(path: str) -> Rank:
    """How far a replica is: its last leader epoch, where its last segment begins, how much is in there."""
    bases = [base for name in os.listdir(path) if (base := files.offset_of(name, files.LOG)) is not None]
    if not bases:
        return -1, -1, 0
    last = max(bases)
    size = os.stat(f"{path}/{files.offset_name(last, files.LOG)}").st_size
    return last_epoch(path), last, size


def last_epoch(path: str) -> int:
    """The newest leader epoch that a partition's directory tells of; -1: it tells of none."""
    try:
        entries = checkpoints.read_epochs(path)
    except checkpoints.CheckpointError:
        return -1
    return entries[-1][0] if entries else -1


# -- building one


def build(source: Source, target: str, keys: Iterable[TopicPartition], written_to: Iterable[str]) -> None:
    """Make the log directory `target`, which shows these partitions of the source; the topics `written_to` are
    copied whole. OSError when something cannot be read, or there is no room."""
    os.mkdir(target)
    for name in (
        checkpoints.RECOVERY_POINTS,
        checkpoints.LOG_STARTS,
        checkpoints.HIGH_WATERMARKS,
        CLEAN_SHUTDOWN,
    ):
        if os.path.exists(f"{source.path}/{name}"):
            copy(f"{source.path}/{name}", f"{target}/{name}")
    whole = frozenset(written_to)
    for key in keys:
        path = source.partitions[key]
        mirror(path, f"{target}/{files.partition_directory(*key)}", whole=key[0] in whole)


def mirror(source: str, target: str, *, whole: bool) -> None:
    """One partition's directory."""
    os.mkdir(target)
    names = os.listdir(source)
    last = max((name for name in names if files.offset_of(name, files.LOG) is not None), default="")[:20]
    for name in names:
        before, after = f"{source}/{name}", f"{target}/{name}"
        suffix = suffix_of(name)
        if suffix == files.LOG and not whole:
            os.symlink(before, after)
        elif suffix in INDEX_WIDTHS:
            if whole or name.startswith(last):
                copy_index(before, after, INDEX_WIDTHS[suffix])
            else:
                os.symlink(before, after)
        elif suffix in (files.LOG, *COPIED) or name in (files.LEADER_EPOCHS, files.PARTITION_METADATA):
            copy(before, after)


def suffix_of(name: str) -> str:
    """`.log` of `<offset>.log`, and of `<offset>.log.swap`; empty for what is no file of a segment."""
    for state in STATES:
        name = name.removesuffix(state)
    stem, suffix = os.path.splitext(name)
    return suffix if len(stem) == 20 and stem.isdecimal() else ""


def copy(source: str, target: str) -> None:
    with open(source, "rb", buffering=0) as before, open(target, "wb", buffering=0) as after:
        while chunk := before.read(COPY_BYTES):
            after.write(chunk)


def copy_index(source: str, target: str, width: int) -> None:
    """An index as a clean stop leaves it: after a crash it has zeroes where entries were to come, 10 MiB of them."""
    end = position = 0
    with open(source, "rb", buffering=0) as before, open(target, "wb", buffering=0) as after:
        while chunk := before.read(COPY_BYTES):
            filled = len(chunk.rstrip(b"\0"))
            if filled:
                end = position + filled
                after.seek(position)
                after.write(chunk)
            position += len(chunk)
        after.truncate(min(position, -(-end // width) * width))
