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
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.checkpoints.checkpointing import Checkpointing
from pykafkad.storage.cleaning.compaction import Compaction
from pykafkad.storage.deletions import Deletions
from pykafkad.storage.directories import LogDirectory, NewPartition, settle_identity
from pykafkad.storage.files import StorageError, TopicPartition
from pykafkad.storage.flushing import Flushing
from pykafkad.storage.log.context import LogContext
from pykafkad.storage.log.log import Log
from pykafkad.storage.log.settings import LogSettings
from pykafkad.storage.moves.moves import Moves
from pykafkad.storage.recovery import loading
from pykafkad.storage.recovery.unmarking import Unmarking
from pykafkad.storage.small_files import SmallFiles
from pykafkad.workers import submit_inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.periodic import Jobs
    from pykafkad.pure.replication import Members
    from pykafkad.storage.log.context import Done, LogListener, Step
    from pykafkad.storage.log.settings import TopicConfig
    from pykafkad.storage.log.truncations import Truncations
    from pykafkad.storage.moves.moves import Placement
    from pykafkad.storage.preparing import Preparation, Prepared
    from pykafkad.storage.recovery.scrubber import Scrubber
    from pykafkad.storage.retention import Retention
    from pykafkad.workers import Submit

    class LogObserver(Protocol):
        """Who has a replica for each log: told which logs there are."""

        def listener_of(self, log: Log) -> LogListener: ...
        def added(self, key: TopicPartition, log: Log) -> None: ...
        def removed(self, log: Log) -> None: ...


TIDY_INTERVAL_MS = SCRUB_INTERVAL_MS = 1_000
AGAIN_MS = 100  # before what found no descriptor is written again

log = logger("storage")


def at_once(delay_ms: int, action: Callable[[], Any]) -> None:
    """No loop: what should be done in several turns is done in one."""
    action()


def ignore(action: Callable[[], None]) -> None:
    """No loop: there is no end of a turn to come."""


def nothing() -> None:
    """What a timer does that only brings about a pass of the loop."""


def untold(directory: LogDirectory) -> None:
    """Nobody wants to know which directories fail."""


class LogManager:
    log_class = Log
    directory_class = LogDirectory

    def __init__(
        self,
        config: Any,
        clock: Clock,
        submit: Submit | None = None,
        *,
        replicas: LogObserver,
        call_later: Callable[[int, Callable[[], Any]], Any] = at_once,
        call_soon: Callable[[Callable[[], None]], Any] = ignore,
        on_directory_failed: Callable[[LogDirectory], None] = untold,
        on_all_failed: Callable[[], None] = nothing,
        cluster_id: str | None = None,
    ) -> None:
        """`cluster_id`: of the cluster that the directories must belong to; else the config may name one."""
        self.config = config
        self.clock = clock
        self.submit: Submit = submit or submit_inline
        self.has_threads = submit is not None
        self.call_later = call_later
        self.on_directory_failed = on_directory_failed
        self.on_all_failed = on_all_failed
        self._call_soon = call_soon
        self._replicas = replicas
        self._serving: list[LogDirectory] = []  # those that are not known to have failed
        self.dirty: list[Log] = []
        self.partitions: dict[TopicPartition, Log] = {}
        self.directories: list[LogDirectory] = []
        self.cluster_id = ""
        self.node_id: int = config["node.id"]
        self.loaded = False
        self._settings: dict[str, LogSettings] = {}
        self._last_settings: LogSettings | None = None
        self._prepared: Prepared | None = None
        self.unusable: dict[
            TopicPartition, bytes
        ] = {}  # topic ids of partitions that are there, and not served
        self._counts: dict[str, int] = {}  # of each topic's partitions
        self.checkpointing = Checkpointing(self)
        self.flushing = Flushing(self)
        self.small_files = SmallFiles(self, call_soon)
        self.moves = Moves(self)  # partitions on their way to another directory
        self.deletions = Deletions(self)
        self.context = LogContext(
            replicas.listener_of,
            dirty=self.dirty,
            flush_due=self.flushing.due,
            flush_soon=self.flushing.soon,
            unlink_soon=self.deletions.add,
            cut=self._cut,
            verify_transactions=config["transaction.partition.verification.enable"],
        )
        self.compaction = Compaction(self)
        self._truncations: Truncations | None = None
        self._unmarking = Unmarking(in_threads=self.has_threads)
        self._retention: Retention | None = None
        self._scrubber: Scrubber | None = None
        self._open_directories(cluster_id or config["pykafkad.cluster.id"])

    # -- start -----------------------------------------------------------------------------------------------

    def _open_directories(self, cluster_id: str | None) -> None:
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
            self.directories.append(self.directory_class(os.path.abspath(path), self._failed))
        try:
            for directory in self.directories:
                self.guard(directory, directory.lock)
            self.cluster_id = settle_identity(self.directories, self.node_id, self.guard, cluster_id)
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
            if files.is_shortage(error):
                log.warn(f"left for later: {error}")
            else:
                directory.fail(str(error))
            return None

    def open_all(
        self,
        known: Mapping[TopicPartition, bytes],
        config_of: Callable[[str], TopicConfig],
        placement: Placement | None = None,
    ) -> list[TopicPartition]:
        """Load the partitions the cluster knows, by topic id; those of them that are on no directory are
        returned.

        A directory of a partition that is not known (any more), or has another topic id, is set aside as
        stray.
        """
        if placement is not None:
            self.moves.placement = placement
        self.take_markers()
        missing = loading.Loading(self, known, config_of).run()
        if not self.online:
            raise self._none_left()
        self._serving = self.online
        for partition in self:
            if not partition.log_directory.is_online:
                self._take(partition.topic, partition.index)
        self.loaded = True
        self._unmarking.begin(self.online)
        return missing

    def settings(self, topic: str, config: TopicConfig) -> LogSettings:
        """Shared by the topic's partitions for as long as the configuration is the same object."""
        settings = self._settings.get(topic)
        if settings is None or settings.config is not config:
            # Topics without configs of their own have one TopicConfig, and share what it means.
            if self._last_settings is None or self._last_settings.config is not config:
                self._last_settings = LogSettings(config)
            settings = self._settings[topic] = self._last_settings
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
        self.context.verify_transactions = self.config["transaction.partition.verification.enable"]
        self.compaction.reconfigure()

    # -- partitions ------------------------------------------------------------------------------------------

    def get(self, topic: str, index: int) -> Log | None:
        """The partition; None when there is none, or when its log directory is offline."""
        return self.partitions.get((topic, index))

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self.partitions.values()))

    def add(self, partition: Log) -> None:
        """It is served from now on."""
        key = partition.topic, partition.index
        self.partitions[key] = partition
        self._counts[partition.topic] = self._counts.get(partition.topic, 0) + 1
        partition.log_directory.partition_count += 1
        self._replicas.added(key, partition)

    def _take(self, topic: str, index: int) -> Log:
        """It is not served any more; who waits for it is told."""
        partition = self.partitions.pop((topic, index))
        self.small_files.forget(partition)
        partition.log_directory.partition_count -= 1
        self._counts[topic] -= 1
        if not self._counts[topic]:
            del self._counts[topic]
            self._settings.pop(topic, None)
        self._replicas.removed(partition)
        partition.leave()
        return partition

    def placed(self) -> Iterator[tuple[TopicPartition, bytes]]:
        """Each partition with the id of its directory."""
        return ((key, each.log_directory.directory_id) for key, each in self.partitions.items())

    def place(self, count: int) -> list[bytes]:
        """The directory ids that `count` new partitions should go to: those with the fewest partitions."""
        candidates = self._usable()
        if len(candidates) < 2:
            return [candidates[0].directory_id if candidates else uuids.ZERO] * count
        loads = {directory.directory_id: directory.partition_count for directory in candidates}
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
        members: Members | None = None,
    ) -> Log:
        """A new empty partition (or the one that is there), led at that epoch; None: this node alone has it. OSError
        when the disk fails."""
        partition = self.partitions.get((topic, index))
        if partition is None:
            partition = self.make(topic, index, topic_id, config, directory_id)
        partition.listener.lead(leader_epoch, members)
        return partition

    def make(
        self, topic: str, index: int, topic_id: bytes, config: TopicConfig, directory_id: bytes = uuids.ZERO
    ) -> Log:
        """A new empty partition, which has no role yet. OSError when the disk fails."""
        partition = self._create(topic, index, topic_id, config, directory_id)
        self.add(partition)
        return partition

    def preparation(self, wanted: Iterable[NewPartition], *, small_files: bool = True) -> Preparation:
        """What a thread can make of new partitions before they are created; `small_files`: all of it. What is not
        created then must be taken back."""
        roots = {each.directory_id: each.path for each in self.online}
        made = (
            (f"{roots[new.directory_id]}/{files.partition_directory(*new.key)}", new)
            for new in wanted
            if new.directory_id in roots and new.key not in self.partitions
        )
        return self.prepared.begin(made, small_files=small_files)

    def prepare(self, wanted: Iterable[NewPartition], done: Callable[[], None]) -> Preparation:
        """Have a thread do that for many, whose small files come later; `done` is called when it is through."""
        preparation = self.preparation(wanted, small_files=False)

        def through(result: object) -> None:
            preparation.through()
            done()

        if preparation:
            self.submit(preparation.make, through)
        else:
            done()
        return preparation

    @property
    def prepared(self) -> Prepared:
        """Made for the first topic: a start has no use of it."""
        if self._prepared is None:
            from pykafkad.storage.preparing import Prepared

            self._prepared = Prepared(self._is_used, self._save_again)
        return self._prepared

    def _in(self, path: str) -> Log | None:
        """The partition that has this directory."""
        key = files.parse_partition_directory(os.path.basename(path))
        partition = self.partitions.get(key) if key is not None else None
        return partition if partition is not None and partition.directory == path else None

    def _is_used(self, path: str) -> bool:
        return self._in(path) is not None

    def _save_again(self, path: str) -> None:
        partition = self._in(path)
        if partition is not None:
            partition.save_again()
            self.small_files.add(partition)

    def follow(self, topic: str, index: int, leader_epoch: int, leader_id: int) -> None:
        """Another node leads the partition, or none (-1); there may be nothing of it here."""
        partition = self.partitions.get((topic, index))
        if partition is not None:
            partition.listener.become_follower(leader_epoch, leader_id)

    def _create(
        self, topic: str, index: int, topic_id: bytes, config: TopicConfig, directory_id: bytes
    ) -> Log:
        if directory_id == uuids.ZERO:
            directory_id = self.place(1)[0]
        directory = self._by_id(directory_id)
        if directory is None:
            raise StorageOffline(f"the log directory of {topic}-{index} is offline")
        if self.unusable and self.unusable.get((topic, index)) == topic_id:
            raise StorageOffline(f"the log of {topic}-{index} could not be loaded")
        settings = self.settings(topic, config)
        partition = self.log_class(topic, index, topic_id, directory, settings, self.context)
        try:
            path = partition.directory
            noted = self._prepared.take(path) if self._prepared is not None else None
            is_made = noted is not None and noted.is_made
            if not is_made:
                make_directory(path, is_noted=noted is not None)
            partition.add_segment(0, self.clock.now_ms(), made=is_made)
            if noted is not None and is_made and noted.has_small_files and noted.topic_id == topic_id:
                partition.stored_epochs = noted.epochs
            else:
                self.small_files.add(partition)
        except OSError as error:
            directory.fail(f"{partition.name} cannot be created: {error}")
            self.drop_offline()
            raise
        return partition

    def _by_id(self, directory_id: bytes) -> LogDirectory | None:
        for each in self.directories:
            if each.directory_id == directory_id and each.failure is None:
                return each
        return None

    def delete(self, topic: str, index: int) -> None:
        """The partition is gone at once, its files are after file.delete.delay.ms: who reads them may end. What it
        takes does not depend on how many others there are: topics are deleted by the thousand."""
        partition = self._take(topic, index)
        partition.discard()  # and so it is no more among those that have to be committed
        partition.high_watermark = partition.log_end_offset  # nobody waits for a flush any more
        self.moves.cancel(topic, index, "it is deleted")
        self.compaction.forget(partition)
        self.checkpointing.forget(partition)
        partition.close(clean=False)
        delay_ms = partition.settings.file_delete_delay_ms
        self.deletions.rename(partition.log_directory, partition.directory, delay_ms)

    # -- the end of a pass -----------------------------------------------------------------------------------

    def commit(self) -> list[tuple[Log, StorageError]]:
        """Write what the pass queued; the partitions that failed, with nothing of theirs acknowledged."""
        if self._unmarking.under_way:
            self._unmarking.wait()
        failures: list[tuple[Log, StorageError]] = []
        again: list[Log] = []
        dirty = self.dirty
        for partition in dirty:
            directory = partition.log_directory
            if not partition.is_dirty:
                continue  # it was deleted
            if directory.failure is not None:
                partition.discard()
                failures.append((partition, StorageError(f"{directory.path}: {directory.failure}")))
                continue
            try:
                partition.commit()
            except StorageError as error:
                failures.append((partition, error))
                if isinstance(error, files.NoDescriptors):
                    again.append(partition)
        dirty[:] = again
        if again:
            self.call_later(AGAIN_MS, nothing)  # a pass of the loop, which commits
        if failures:
            self.drop_offline()
        return failures

    def drop_offline(self) -> None:
        """Partitions of failed directories are not served; who waits for them is told."""
        failed = [directory for directory in self._serving if not directory.is_online]
        if not failed:
            return
        self._serving = self.online
        for partition in self:
            if not partition.log_directory.is_online:
                self._take(partition.topic, partition.index)
                self.compaction.abort(partition)
        self.moves.drop_offline()
        for directory in failed:
            self.on_directory_failed(directory)
        if not self._serving:
            self.on_all_failed()

    def _failed(self) -> None:
        """A directory did, whoever noticed: its partitions are dropped before long."""
        self._call_soon(self.drop_offline)

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
    def jobs(self) -> Jobs:
        """What is done again and again."""
        config = self.config
        return [
            (config["replica.high.watermark.checkpoint.interval.ms"], self.checkpoint_high_watermarks),
            (config["log.flush.offset.checkpoint.interval.ms"], self.checkpoint_recovery_points),
            (config["log.flush.start.offset.checkpoint.interval.ms"], self.checkpoint_log_starts),
            (config["producer.id.expiration.check.interval.ms"], self.expire_producers),
            (config["log.flush.scheduler.interval.ms"], self.flushing.aged),
            (TIDY_INTERVAL_MS, self.deletions.unlink_due),
            (SCRUB_INTERVAL_MS, self.scrub),
        ]

    @property
    def later_jobs(self) -> Jobs:
        """The same, for the first time after log.initial.task.delay.ms."""
        return [(self.config["log.retention.check.interval.ms"], self.check_retention)]

    def in_background(self, directory: LogDirectory, work: Callable[..., None], *arguments: Any) -> None:
        self.submit(lambda: work(*arguments), lambda result: self.background_done(directory, result))

    def checkpoint_high_watermarks(self) -> None:
        self.checkpointing.write(checkpoints.HIGH_WATERMARKS)

    def checkpoint_recovery_points(self) -> None:
        self.checkpointing.write(checkpoints.RECOVERY_POINTS)

    def checkpoint_log_starts(self) -> None:
        self.checkpointing.write(checkpoints.LOG_STARTS)

    def background_done(self, directory: LogDirectory, result: Any) -> None:
        if files.is_failure(result):
            directory.fail(str(result))
            self.drop_offline()
        elif isinstance(result, OSError):
            log.warn(f"left for later: {result}")
        elif isinstance(result, BaseException):
            raise result

    def _cut(
        self, partition: Log, step: Step, offset: int, is_wanted: Callable[[], bool], done: Done
    ) -> None:
        if self._truncations is None:  # most brokers have no follower
            from pykafkad.storage.log.truncations import Truncations

            self._truncations = Truncations(self)
        self._truncations.cut(partition, step, offset, is_wanted, done)

    @property
    def scrubber(self) -> Scrubber:
        """Made when it is wanted: most brokers have none."""
        if self._scrubber is None:
            from pykafkad.storage.recovery.scrubber import Scrubber

            self._scrubber = Scrubber(self)
        return self._scrubber

    def scrub(self) -> None:
        if self._scrubber is not None or self.config["pykafkad.scrub.max.bytes.per.second"]:
            self.scrubber.turn()

    def each(self, action: Callable[[Log], object]) -> None:
        """Of a job that looks at all partitions: a mistake with one of them is not the others'."""
        for partition in self:
            try:
                action(partition)
            except Exception as error:
                log.exception(partition.name, error)

    def expire_producers(self) -> None:
        now_ms, expiration_ms = self.clock.now_ms(), self.config["producer.id.expiration.ms"]
        self.each(lambda partition: partition.producers.remove_expired(now_ms, expiration_ms))

    # -- stop ------------------------------------------------------------------------------------------------

    def release_files(self) -> None:
        """Too many are open: they are opened again when somebody uses them, as those are that have batches queued."""
        for partition in self.partitions.values():
            for segment in partition.segments:
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


def make_directory(path: str, is_noted: bool) -> None:
    """`is_noted`: a thread has begun to prepare it, or may just be at it."""
    try:
        os.mkdir(path)
    except FileExistsError:
        from pykafkad.storage.preparing import is_as_made

        if not (is_noted and is_as_made(path)):  # whatever it is, it is no partition of this broker
            files.set_aside(path)
            os.mkdir(path)


class StorageOffline(OSError):
    """The log directory that a partition should be in is offline."""
