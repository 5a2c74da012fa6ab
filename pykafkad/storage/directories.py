"""A log directory: its lock, its identity, its clean-shutdown marker, whether it still works.

meta.properties (version 1) names cluster, node and directory; a directory of another cluster or node is
refused. The marker is deleted before anything is loaded, so that a crash while loading counts as unclean
(KAFKA-10471). Invariant: a directory that failed once is not touched again until the next start.
"""

from __future__ import annotations

import fcntl
import os
import time

from pykafkad import uuids
from pykafkad.errors import StartupError
from pykafkad.logs import logger
from pykafkad.properties import parse
from pykafkad.pure.leader_epochs import beginning
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import StorageError
from pykafkad.storage.syncs import Syncs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.pure.leader_epochs import Entries
    from pykafkad.storage.files import TopicPartition

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

# The system's locks keep other processes out; a second broker in this one (a test's) would not notice.
_locked_here: set[str] = set()

log = logger("storage")


def nobody() -> None:
    """Whom a directory tells that it failed when it is nobody's."""


class NewPartition:
    """One that this broker will lead in that epoch, or follow (None), in the log directory of that id."""

    __slots__ = ("directory_id", "has_small_files", "is_made", "key", "leader_epoch", "topic_id")

    def __init__(
        self, key: TopicPartition, topic_id: bytes, leader_epoch: int | None, directory_id: bytes
    ) -> None:
        self.key = key
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.directory_id = directory_id
        self.is_made = False  # whether its log may begin there; else a thread may be about to make it
        self.has_small_files = False  # with partition.metadata and leader-epoch-checkpoint

    @property
    def epochs(self) -> Entries:
        """And the offset at which each begins."""
        return () if self.leader_epoch is None else beginning(self.leader_epoch, 0)


class LogDirectory:
    version = "1"
    __slots__ = (
        "_lock_fd",
        "broker_epoch",
        "cluster_id",
        "directory_id",
        "failure",
        "node_id",
        "on_fail",
        "partition_count",
        "path",
        "syncs",
        "was_clean",
    )

    def __init__(self, path: str, on_fail: Callable[[], None] = nobody) -> None:
        self.path = path
        self.directory_id = uuids.ZERO
        self.cluster_id: str | None = None
        self.node_id: int | None = None
        self.was_clean = False
        self.broker_epoch = -1  # the one before the last clean stop
        self.failure: str | None = None
        self.on_fail = on_fail
        self.partition_count = 0  # that are served from here; the manager's
        self.syncs = Syncs()
        self._lock_fd = -1

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def fail(self, why: str) -> StorageError:
        """An I/O error: nothing here is to be trusted any more."""
        if self.failure is None:
            self.failure = why
            log.error(f"log directory {self.path} is offline: {why}")
            self.on_fail()
        return StorageError(f"{self.path}: {why}")

    def capacity(self) -> tuple[int, int]:
        """Bytes of the file system it lies on: all, and those that may still be written. OSError if it is gone."""
        found = os.statvfs(self.path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    # -- start -----------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Make the directory and keep everybody else out of it; OSError when the disk does not let us."""
        if not os.path.isdir(self.path):
            os.makedirs(self.path, exist_ok=True)
            files.fsync_path(os.path.dirname(os.path.abspath(self.path)))
        if os.path.realpath(self.path) in _locked_here:
            raise self._taken()
        fd = os.open(f"{self.path}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # Kafka locks with fcntl, and so do we: each keeps the other out.
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if isinstance(error, BlockingIOError | PermissionError):
                raise self._taken() from error
            raise
        self._lock_fd = fd
        _locked_here.add(os.path.realpath(self.path))

    def _taken(self) -> StartupError:
        return StartupError(
            f"Failed to acquire lock on file {LOCK} in {self.path}. A Kafka instance in another process or"
            " thread is using this directory. --data DIR names another one, --ephemeral makes one that is gone at exit."
        )

    def read_identity(self) -> bool:
        """Read meta.properties; whether there was one. StartupError for one that is not ours to use."""
        try:
            text = files.read_file(f"{self.path}/{META_PROPERTIES}").decode("latin-1")
        except FileNotFoundError:
            return False
        fields = parse(text)
        if fields.get("version") != self.version:
            raise StartupError(
                f"{self.path}/{META_PROPERTIES}: version {fields.get('version')} is not {self.version}"
            )
        try:
            self._take_identity(fields)
        except (KeyError, ValueError) as error:
            raise StartupError(f"{self.path}/{META_PROPERTIES}: {error} is missing or damaged") from error
        return True

    def _take_identity(self, fields: Mapping[str, str]) -> None:
        self.cluster_id = fields["cluster.id"]
        self.node_id = int(fields["node.id"])
        self.directory_id = (
            uuids.from_text(fields["directory.id"]) if "directory.id" in fields else uuids.ZERO
        )

    def write_identity(self, cluster_id: str, node_id: int) -> None:
        """A new directory, or one from before directories had ids."""
        self.cluster_id = cluster_id
        self.node_id = node_id
        if self.directory_id == uuids.ZERO:
            self.directory_id = uuids.random_uuid()
        now = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())
        text = f"#\n#{now}\n{self._own_lines(node_id)}version={self.version}\ncluster.id={cluster_id}\n"
        files.replace_file(f"{self.path}/{META_PROPERTIES}", text.encode())

    def _own_lines(self, node_id: int) -> str:
        return f"node.id={node_id}\ndirectory.id={uuids.to_text(self.directory_id)}\n"

    def read_clean_marker(self) -> None:
        """Remember whether the last stop was clean."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        try:
            text = files.read_file(path).decode("ascii", "replace")
        except FileNotFoundError:
            return
        self.was_clean = True
        digits = text.partition('"brokerEpoch":')[2].strip(" }")
        self.broker_epoch = int(digits) if digits.removeprefix("-").isdecimal() else -1

    def take_clean_marker(self) -> None:
        """From now on a stop that does not end is no clean one."""
        files.remove(f"{self.path}/{CLEAN_SHUTDOWN}")

    def holds_logs(self) -> bool:
        """Whether there are partitions in it: then it was in use, and had an identity."""
        return any(
            os.path.exists(f"{self.path}/{name}/{files.PARTITION_METADATA}") for name in os.listdir(self.path)
        )

    def read_checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """A checkpoint that cannot be read says nothing, and is no reason to stay down."""
        try:
            return checkpoints.read_offsets(f"{self.path}/{name}")
        except checkpoints.CheckpointError as error:
            log.warn(f"{error}; going on without it")
            return {}

    # -- stop ------------------------------------------------------------------------------------------------

    def write_clean_marker(self, broker_epoch: int) -> None:
        files.replace_file(
            f"{self.path}/{CLEAN_SHUTDOWN}", f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()
        )

    def unlock(self) -> None:
        if self._lock_fd < 0:
            return
        if self.is_online:
            files.remove(f"{self.path}/{LOCK}")
        os.close(self._lock_fd)
        self._lock_fd = -1
        _locked_here.discard(os.path.realpath(self.path))


def settle_identity(
    directories: list[LogDirectory], node_id: int, guard: Callable[..., object], wanted: str | None = None
) -> str:
    """All directories belong to one cluster (`wanted`: to which one) and to this node; new ones join them. The
    cluster's id."""
    fresh = [each for each in directories if not guard(each, each.read_identity)]
    for directory in fresh:
        if directory.is_online and guard(directory, directory.holds_logs):
            raise StartupError(
                f"{directory.path} holds partitions and no {META_PROPERTIES}: which cluster and node they belong to"
                " stands nowhere else. Bring it back, or start with an empty directory"
            )
    known = [each for each in directories if each.is_online and each.cluster_id is not None]
    for directory in known:
        if directory.node_id != node_id:
            raise StartupError(
                f"Stored node id {directory.node_id} doesn't match configured node id {node_id} in"
                f" {directory.path}: change node.id, or remove the data"
            )
        if directory.cluster_id != known[0].cluster_id:
            raise StartupError(
                f"{directory.path} belongs to cluster {directory.cluster_id} and {known[0].path} to"
                f" {known[0].cluster_id}"
            )
    ids = [each.directory_id for each in known if each.directory_id != uuids.ZERO]
    if len(set(ids)) != len(ids):
        raise StartupError(f"two of the log directories have the same directory.id {uuids.to_text(ids[0])}")
    known_id = known[0].cluster_id if known else None
    if wanted and known_id and known_id != wanted:
        file = f"{known[0].path}/{META_PROPERTIES}"
        raise StartupError(f"Invalid cluster.id in: {file}. Expected {wanted}, but read {known_id}")
    cluster_id = known_id or wanted or uuids.to_text(uuids.random_uuid())
    for directory in directories:
        if directory.is_online and (directory in fresh or directory.directory_id == uuids.ZERO):
            guard(directory, directory.write_identity, cluster_id, node_id)
    return cluster_id
