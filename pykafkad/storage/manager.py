"""All logs of the broker: which directory holds which partition, what has to be written, flushed,
checkpointed.

Start: lock every directory, settle its identity (the constructor); take their clean-shutdown markers; load the
partitions that the cluster knows (open_all). Running: commit() at the end of each pass of the loop; the
periodic jobs in `jobs`. Stop: close(). What blocks (fsync, unlink) is handed to `submit(work, done)`, work in
a thread, done on the loop; without one it runs at once. A directory that fails goes offline with its
partitions; when none is left `on_all_failed` is called.
"""

from __future__ import annotations

import os

from pykafkad import uuids
from pykafkad.errors import StartupError
from pykafkad.logs import logger
from pykafkad.storage import checkpoints, files, loading
from pykafkad.storage.checkpointing import Checkpointing
from pykafkad.storage.compaction import Compaction
from pykafkad.storage.deletions import Deletions
from pykafkad.storage.directories import LogDirectory, settle_identity
from pykafkad.storage.files import StorageError
from pykafkad.storage.flushing import Flushing
from pykafkad.storage.moves import Moves
from pykafkad.storage.partition import Partition
from pykafkad.storage.settings import LogSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.storage.retention import Retention
    from pykafkad.storage.scrubber import Scrubber
    from pykafkad.storage.settings import TopicConfig

    Submit = Callable[[Callable[[], Any], Callable[[Any], None]], None]

TopicPartition = tuple[str, int]

TIDY_INTERVAL_MS = SCRUB_INTERVAL_MS = 1_000
SAVED_A_TURN = 20
LONGEST_INTERVAL_MS = 366 * 86_400_000  # beyond it an interval means never, as Kafka's 2^63-1 does

log = logger("storage")


def submit_inline(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    """No threads: the work is done before this returns."""
    try:
        result: Any = work()
    except Exception as error:
        result = error
    done(result)


def at_once(delay_ms: int, action: Callable[[], Any]) -> None:
    """No loop: what should be done in several turns is done in one."""
    action()


def nobody(partition: Partition) -> None:
    """Nobody waits for partitions to advance."""


class LogManager:
    partition_class = Partition

    def __init__(self, config: Any, clock: Clock, submit: Submit | None = None) -> None:
        self.config = config
        self.clock = clock
        self.submit: Submit = submit or submit_inline
        self.has_threads = submit is not None
        self.call_later: Callable[[int, Callable[[], Any]], Any] = at_once
        self.on_advance: Callable[[Partition], None] = nobody
        self.on_directory_failed: Callable[[LogDirectory], None] = lambda directory: None
        self.on_all_failed: Callable[[], None] = lambda: None
        self.soon: Callable[[Callable[[], None]], Any] = lambda action: None  # after this turn of the loop
        self._serving: list[LogDirectory] = []  # those that are not known to have failed
        self.dirty: list[Partition] = []
        self.partitions: dict[TopicPartition, Partition] = {}
        self.directories: list[LogDirectory] = []
        self.cluster_id = ""
        self.node_id: int = config["node.id"]
        self.loaded = False
        self._settings: dict[str, LogSettings] = {}
        self._unsaved: list[Partition] = []  # new ones without partition.metadata
        self.checkpointing = Checkpointing(self)
        self.flushing = Flushing(self)
        self.moves = Moves(self)  # partitions on their way to another directory
        self.deletions = Deletions(self)
        self.compaction = Compaction(self)
        self._retention: Retention | None = None
        self._scrubber: Scrubber | None = None
        self._open_directories()

    # -- start -----------------------------------------------------------------------------------------------

    def _open_directories(self) -> None:
        """Lock and identify every directory; one that cannot be used is offline, and one at least must be
        left."""
        paths = self.config["log.dirs"] or self.config["log.dir"]
        paths = [path.strip() for path in (paths.split(",") if isinstance(paths, str) else paths)]
        known: set[str] = set()
        for path in paths:
            real = os.path.realpath(path)
            if real in known:
                raise StartupError(f"Duplicate log directory found: {path}")
            known.add(real)
            directory = LogDirectory(os.path.abspath(path))
            directory.dirty = self.dirty
            directory.flush_due = self.flushing.due
            directory.flush_soon = self.flushing.soon
            directory.unlink_soon = self.deletions.add_files
            directory.on_fail = self._failed
            directory.verify_transactions = self.config["transaction.partition.verification.enable"]
            self.directories.append(directory)
        try:
            for directory in self.directories:
                self.guard(directory, directory.lock)
            self.cluster_id = settle_identity(self.directories, self.node_id, self.guard)
            for directory in self.online:
                self.guard(directory, directory.read_clean_marker)
        except BaseException:
            self._unlock()
            raise
        if not self.online:
            self._unlock()
            raise self._none_left()
        self._serving = self.online

    def _none_left(self) -> StartupError:
        reasons = "; ".join(f"{directory.path}: {directory.failure}" for directory in self.directories)
        return StartupError(f"No log directory can be used: {reasons}")

    def take_markers(self) -> None:
        """The start is going to change what is in the directories: until it is stopped they are not clean."""
        for directory in self.online:
            self.guard(directory, directory.take_clean_marker)

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    def capacity(self, directory: LogDirectory) -> tuple[int, int] | None:
        """Its bytes, all and free; None when it is offline."""
        if not directory.is_online:
            return None
        room: tuple[int, int] | None = self.guard(directory, directory.capacity)
        if room is None:
            self.drop_offline()
        return room

    def guard(self, directory: LogDirectory, step: Callable[..., Any], *arguments: Any) -> Any:
        """An I/O error takes the directory offline; None then."""
        try:
            return step(*arguments)
        except OSError as error:
            directory.fail(str(error))
            return None

    def open_all(
        self, known: Mapping[TopicPartition, bytes], config_of: Callable[[str], TopicConfig]
    ) -> list[TopicPartition]:
        """Load the partitions the cluster knows, by topic id; those of them that are on no directory are
        returned.

        A directory of a partition that is not known (any more), or has another topic id, is set aside as
        stray.
        """
        self.take_markers()
        missing = loading.Loading(self, known, config_of).run()
        if not self.online:
            raise self._none_left()
        self._serving = self.online
        self.partitions = {key: each for key, each in self.partitions.items() if each.log_directory.is_online}
        self.loaded = True
        for directory in self.online:
            # The clean-shutdown marker is gone, and must not come back with a power cut.
            self.in_background(directory, files.fsync_path, directory.path)
        return missing

    def settings(self, topic: str, config: TopicConfig) -> LogSettings:
        """Shared by the topic's partitions for as long as the configuration is the same object."""
        settings = self._settings.get(topic)
        if settings is None or settings.config is not config:
            settings = self._settings[topic] = LogSettings(config)
        return settings

    def configure(self, topic: str, count: int, config: TopicConfig) -> None:
        """The topic has another configuration: what is here of its `count` partitions follows it."""
        settings = self.settings(topic, config)
        for index in range(count):
            partition = self.partitions.get((topic, index))
            if partition is not None:
                self.guard(partition.log_directory, partition.update_settings, settings)
        if any(not directory.is_online for directory in self.directories):
            self.drop_offline()

    def reconfigure(self) -> None:
        """The broker's config changed: what is not asked for each time is asked for now."""
        verify: bool = self.config["transaction.partition.verification.enable"]
        for directory in self.directories:
            directory.verify_transactions = verify
        for partition in self.partitions.values():
            partition.verify_transactions = verify
        self.compaction.reconfigure()

    # -- partitions ------------------------------------------------------------------------------------------

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition; None when there is none, or when its log directory is offline."""
        return self.partitions.get((topic, index))

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self.partitions.values()))

    def placed(self) -> Iterator[tuple[TopicPartition, bytes]]:
        """Each partition with the id of its directory."""
        return ((key, each.log_directory.directory_id) for key, each in self.partitions.items())

    def place(self, count: int) -> list[bytes]:
        """The directory ids that `count` new partitions should go to: those with the fewest partitions."""
        candidates = self._usable()
        if len(candidates) < 2:
            return [candidates[0].directory_id if candidates else uuids.ZERO] * count
        loads = {directory.directory_id: 0 for directory in candidates}
        for partition in self.partitions.values():
            directory_id = partition.log_directory.directory_id
            if directory_id in loads:
                loads[directory_id] += 1
        chosen = []
        for _ in range(count):
            directory_id = min(loads, key=loads.__getitem__)
            loads[directory_id] += 1
            chosen.append(directory_id)
        return chosen

    def _usable(self) -> list[LogDirectory]:
        """Where new partitions may go (KIP-1066: not to a cordoned directory)."""
        return [each for each in self.online if not self.is_cordoned(each)] or self.online

    def is_cordoned(self, directory: LogDirectory) -> bool:
        return any(os.path.abspath(path) == directory.path for path in self.config["cordoned.log.dirs"] or ())

    def create(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        config: TopicConfig,
        leader_epoch: int,
        directory_id: bytes = uuids.ZERO,
    ) -> Partition:
        """A new empty partition (or the one that is there), led at that epoch. OSError when the disk
        fails."""
        partition = self.partitions.get((topic, index))
        if partition is None:
            partition = self._create(topic, index, topic_id, config, directory_id)
            self.partitions[topic, index] = partition
        partition.become_leader(leader_epoch)
        return partition

    def _create(
        self, topic: str, index: int, topic_id: bytes, config: TopicConfig, directory_id: bytes
    ) -> Partition:
        if directory_id == uuids.ZERO:
            directory_id = self.place(1)[0]
        directory = next((each for each in self.online if each.directory_id == directory_id), None)
        if directory is None:
            raise StorageOffline(f"the log directory of {topic}-{index} is offline")
        partition = self.partition_class(topic, index, topic_id, directory, self.settings(topic, config))
        try:
            os.mkdir(partition.directory)
            partition.add_segment(0, self.clock.now_ms())
            self._unsaved.append(partition)
        except FileExistsError:
            raise
        except OSError as error:
            directory.fail(f"{partition.name} cannot be created: {error}")
            self.drop_offline()
            raise
        return partition

    def delete(self, topic: str, index: int) -> None:
        """The partition is gone at once, its files are after file.delete.delay.ms: who reads them may end."""
        partition = self.partitions.pop((topic, index))
        if not any(key[0] == topic for key in self.partitions):
            self._settings.pop(topic, None)
        self.on_advance(partition)
        partition.discard()
        partition.high_watermark = partition.log_end_offset  # nobody waits for a flush any more
        if partition in self.dirty:
            self.dirty.remove(partition)
        self.moves.cancel(topic, index, "it is deleted")
        self.compaction.forget(partition)
        partition.close(clean=False)
        delay_ms = partition.settings.file_delete_delay_ms
        self.deletions.rename(partition.log_directory, partition.directory, delay_ms)

    # -- the end of a pass -----------------------------------------------------------------------------------

    def commit(self) -> list[tuple[Partition, StorageError]]:
        """Write what the pass queued; the partitions that failed, with nothing of theirs acknowledged."""
        failures: list[tuple[Partition, StorageError]] = []
        dirty = self.dirty
        for partition in dirty:
            directory = partition.log_directory
            if directory.failure is not None:
                partition.discard()
                failures.append((partition, StorageError(f"{directory.path}: {directory.failure}")))
                continue
            try:
                partition.commit()
            except StorageError as error:
                failures.append((partition, error))
                continue
            self.on_advance(partition)
        dirty.clear()
        if failures:
            self.drop_offline()
        return failures

    def drop_offline(self) -> None:
        """Partitions of failed directories are not served; who waits for them is told."""
        failed = [directory for directory in self._serving if not directory.is_online]
        self._serving = self.online
        for key, partition in list(self.partitions.items()):
            if not partition.log_directory.is_online:
                del self.partitions[key]
                self.compaction.abort(partition)
                self.on_advance(partition)
        self.moves.drop_offline()
        for directory in failed:
            self.on_directory_failed(directory)
        if failed and not self._serving:
            self.on_all_failed()

    def _failed(self) -> None:
        """A directory did, whoever noticed: its partitions are dropped before long."""
        self.soon(self.drop_offline)

    # -- periodic and background work ------------------------------------------------------------------------

    @property
    def retention(self) -> Retention:
        """Made for the first check: a start has no use of it."""
        if self._retention is None:
            from pykafkad.storage.retention import Retention

            self._retention = Retention(self)
        return self._retention

    def check_retention(self) -> None:
        self.retention.check()

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """(interval in ms, what to do): for the loop's timers."""
        config = self.config
        jobs: list[tuple[int, Callable[[], None]]] = [
            (config["replica.high.watermark.checkpoint.interval.ms"], self.checkpoint_high_watermarks),
            (config["log.flush.offset.checkpoint.interval.ms"], self.checkpoint_recovery_points),
            (config["log.flush.start.offset.checkpoint.interval.ms"], self.checkpoint_log_starts),
            (config["producer.id.expiration.check.interval.ms"], self.expire_producers),
            (config["log.flush.scheduler.interval.ms"], self.flushing.aged),
            (TIDY_INTERVAL_MS, self.deletions.unlink_due),
            (TIDY_INTERVAL_MS, self.save_new),
            (SCRUB_INTERVAL_MS, self.scrub),
        ]
        return [(interval_ms, job) for interval_ms, job in jobs if interval_ms <= LONGEST_INTERVAL_MS]

    @property
    def later_jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """The same, for the first time after log.initial.task.delay.ms."""
        interval_ms: int = self.config["log.retention.check.interval.ms"]
        return [(interval_ms, self.check_retention)] if interval_ms <= LONGEST_INTERVAL_MS else []

    def in_background(self, directory: LogDirectory, work: Callable[..., None], *arguments: Any) -> None:
        self.submit(lambda: work(*arguments), lambda result: self.background_done(directory, result))

    def checkpoint_high_watermarks(self) -> None:
        self.checkpointing.write(checkpoints.HIGH_WATERMARKS)

    def checkpoint_recovery_points(self) -> None:
        self.checkpointing.write(checkpoints.RECOVERY_POINTS)

    def checkpoint_log_starts(self) -> None:
        self.checkpointing.write(checkpoints.LOG_STARTS)

    def background_done(self, directory: LogDirectory, result: Any) -> None:
        if isinstance(result, OSError):
            directory.fail(str(result))
            self.drop_offline()
        elif isinstance(result, BaseException):
            raise result

    @property
    def scrubber(self) -> Scrubber:
        """Made when it is wanted: most brokers have none."""
        if self._scrubber is None:
            from pykafkad.storage.scrubber import Scrubber

            self._scrubber = Scrubber(self)
        return self._scrubber

    def scrub(self) -> None:
        if self._scrubber is not None or self.config["pykafkad.scrub.max.bytes.per.second"]:
            self.scrubber.turn()

    def expire_producers(self) -> None:
        now_ms = self.clock.now_ms()
        for partition in self.partitions.values():
            partition.producers.remove_expired(now_ms, self.config["producer.id.expiration.ms"])

    def save_new(self) -> None:
        """partition.metadata and the like of new partitions that nobody wrote to yet: a few at a time."""
        some, self._unsaved = self._unsaved[:SAVED_A_TURN], self._unsaved[SAVED_A_TURN:]
        for partition in some:
            if self.partitions.get((partition.topic, partition.index)) is partition:
                self.guard(partition.log_directory, partition.save_files)

    # -- stop ------------------------------------------------------------------------------------------------

    def release_files(self) -> None:
        """Too many are open: those that nobody is using now are opened again when somebody does."""
        for partition in self.partitions.values():
            for segment in partition.segments:
                if not segment.queued_batches:
                    segment.release()

    def close(self, clean: bool = True, broker_epoch: int = -1) -> None:
        """Flush, checkpoint, mark as clean, unlock. With clean=False only let go of the files."""
        if clean and self.loaded:
            self.commit()
            self.moves.close()
            for directory in self.online:
                self.guard(directory, self._close_directory, directory, broker_epoch)
        else:
            for partition in self:
                partition.discard()
                partition.close(clean=False)
        self._unlock()

    def _close_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        """In this order: data, then the checkpoints that speak of it, then the marker that vouches for
        all."""
        for partition in self:
            if partition.log_directory is directory:
                partition.close()
        self.checkpointing.write_now(directory)
        directory.write_clean_marker(broker_epoch)

    def _unlock(self) -> None:
        for directory in self.directories:
            directory.unlock()


class StorageOffline(OSError):
    """The log directory that a partition should be in is offline."""
