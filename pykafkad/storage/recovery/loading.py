"""The start of all logs: which directory holds which partition, and the loading of each.

A directory that was stopped cleanly is loaded at once: there is next to nothing to read. In the others every byte that
may be torn is walked, by up to num.recovery.threads.per.data.dir threads a directory; only partitions with much to walk
go there, since the walk alone runs without Python's lock. A partition belongs to the thread that loads it until it is
handed back. A signal ends the waiting: the threads stop at the next turn of their walks, and the next start begins anew.

Only the disk takes a log directory offline. What else lies in it is left alone, or set aside where a file of ours is to
be; a partition that cannot be loaded for all that is not served, and stays as it is.
"""

from __future__ import annotations

import os
from _queue import Empty, SimpleQueue
from _thread import allocate_lock, start_new_thread
from bisect import bisect_right

from pykafkad.errors import StartupError
from pykafkad.logs import logger
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import METADATA_TOPIC, TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.log.settings import TopicConfig
    from pykafkad.storage.manager import LogManager
    from pykafkad.storage.recovery.recovery import Hints


LARGE_BYTES = 1 << 20  # to walk less than that takes no longer than to hand it to a thread
PROGRESS_MS = 5_000

log = logger("recovery")


class Stopped(Exception):
    """The start is given up."""


class Job:
    """One partition that is to be loaded."""

    __slots__ = ("bytes", "failed", "first_dirty_offset", "hints", "key", "partition", "walked")

    def __init__(self, partition: Log, hints: Hints, first_dirty_offset: int | None) -> None:
        self.partition = partition
        self.key: TopicPartition = (partition.topic, partition.index)
        self.hints = hints
        self.first_dirty_offset = first_dirty_offset
        hints.is_cleaned = first_dirty_offset is not None
        self.bytes = 0  # to walk
        self.walked = 0
        self.failed = False

    @property
    def directory(self) -> LogDirectory:
        return self.partition.log_directory

    def load(self) -> None:
        """OSError: the disk fails. A file that goes meanwhile, or that we may not touch: it is looked at once more."""
        try:
            self._load()
        except OSError as error:
            if files.is_of_disk(error):
                raise
            log.warn(f"{self.partition.directory} is looked at once more: {error}")
            from pykafkad.storage.recovery import leftovers

            leftovers.set_unreadable_aside(self.partition.directory)
            self.partition = self.partition.anew()
            self._load()

    def _load(self) -> None:
        from pykafkad.storage.recovery import recovery

        recovery.load(self.partition, self.hints)
        self.partition.first_dirty_offset = self.first_dirty_offset

    def try_to_load(self) -> None:
        """The same; where only this partition is to blame it is not served."""
        try:
            self.load()
        except (StartupError, Stopped):
            raise
        except Exception as error:
            if isinstance(error, OSError) and files.is_of_disk(error):
                raise
            log.exception(f"{self.partition.directory} cannot be loaded and is not served", error)
            self.failed = True


class Loading:
    """One start."""

    def __init__(
        self,
        manager: LogManager,
        known: Mapping[TopicPartition, bytes],
        config_of: Callable[[str], TopicConfig],
    ) -> None:
        self._manager = manager
        self._known = known
        self._config_of = config_of
        self._jobs: dict[TopicPartition, Job] = {}

    def run(self) -> list[TopicPartition]:
        """Load what the cluster knows; those of it that are on no directory are returned."""
        manager = self._manager
        for directory in manager.online:
            manager.guard(directory, self._find, directory)
        unclean: list[Job] = []
        for job in self._jobs.values():
            if not job.directory.was_clean:
                unclean.append(job)
            elif job.directory.is_online:
                manager.guard(job.directory, job.try_to_load)
        if unclean:
            Recovery(manager, unclean).run()
        for job in self._jobs.values():
            if job.failed:
                manager.unusable[job.key] = job.partition.topic_id
            elif job.directory.is_online:
                manager.add(job.partition)
        return [key for key in self._known if key not in self._jobs]

    # -- what is there

    def _find(self, directory: LogDirectory) -> None:
        """The partitions of one directory; a directory of one that is not known (any more), or has another topic id,
        is set aside as stray."""
        manager = self._manager
        offsets = Offsets(directory)
        for entry in sorted(os.scandir(directory.path), key=lambda each: each.name):
            if files.is_marked(entry.name, "delete"):
                manager.deletions.add(directory, [entry.path], 0)
            elif not is_directory(entry):
                continue
            elif files.is_marked(entry.name, "future"):
                manager.moves.found(entry.name, directory, entry.path)
            elif not files.is_marked(entry.name, "stray"):
                self._look_at(directory, entry.name, entry.path, offsets)

    def _look_at(self, directory: LogDirectory, name: str, path: str, offsets: Offsets) -> None:
        key = files.parse_partition_directory(name)
        if key is None:
            log.warn(f"{path} is no partition's directory and is left alone")
        elif key[0] != METADATA_TOPIC:
            try:
                self._partition(directory, key, path, offsets)
            except OSError as error:
                if files.is_of_disk(error):
                    raise
                log.error(f"{path} is not served: {error}")
                if key in self._known:
                    self._manager.unusable[key] = self._known[key]

    def _partition(self, directory: LogDirectory, key: TopicPartition, path: str, offsets: Offsets) -> None:
        from pykafkad.storage.recovery.recovery import Hints  # an empty broker has no use of it

        manager = self._manager
        topic_id = checkpoints.read_topic_id(path)
        expected = self._known.get(key)
        if expected is None or (topic_id is not None and topic_id != expected):
            log.warn(f"{path} is no partition of this broker (any more)")
            files.set_aside(path)
            return
        if key in self._jobs and not self._replaces(key, directory, path):
            return
        settings = manager.settings(key[0], self._config_of(key[0]))
        partition = manager.log_class(*key, expected, directory, settings, manager.context)
        if topic_id is None:
            checkpoints.write_topic_id(path, expected)
        hints = Hints(
            clean=directory.was_clean,
            now_ms=manager.clock.now_ms(),
            recovery_point=offsets.points.get(key, 0),
            log_start_offset=offsets.starts.get(key, 0),
            high_watermark=offsets.marks.get(key, 0),
            expiration_ms=manager.config["producer.id.expiration.ms"],
            lower=Lowering(offsets, key),
        )
        self._jobs[key] = Job(partition, hints, offsets.cleaned.get(key))

    def _replaces(self, key: TopicPartition, directory: LogDirectory, path: str) -> bool:
        """A crash left the original of a partition that had moved: which of the two goes, and is it the other one?"""
        manager = self._manager
        other = self._jobs[key].partition
        assigned = manager.moves.placement.directory_of(*key)
        if assigned == directory.directory_id:
            manager.deletions.rename(other.log_directory, other.directory, 0)
            return True
        if assigned != other.log_directory.directory_id:
            raise StartupError(f"{other.name} lies in two log directories")
        manager.deletions.rename(directory, path, 0)
        return False


def is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # of a link that leads nowhere
        if files.is_of_disk(error):
            raise
        log.warn(f"{entry.path} is left alone: {error.strerror}")
        return False


class Offsets:
    """What the checkpoints of one directory say."""

    __slots__ = ("cleaned", "lock", "marks", "path", "points", "starts")

    def __init__(self, directory: LogDirectory) -> None:
        self.path = directory.path
        self.points = directory.read_checkpoint(checkpoints.RECOVERY_POINTS)
        self.starts = directory.read_checkpoint(checkpoints.LOG_STARTS)
        self.marks = directory.read_checkpoint(checkpoints.HIGH_WATERMARKS)
        self.cleaned = directory.read_checkpoint(checkpoints.CLEANED)
        self.lock = (
            allocate_lock()
        )  # of the file with the recovery points: it is written by those who lower one


class Lowering:
    """Lowers one partition's entry in the recovery point checkpoint, and returns when that is on the disk."""

    __slots__ = ("key", "offsets")

    def __init__(self, offsets: Offsets, key: TopicPartition) -> None:
        self.offsets = offsets
        self.key = key

    def __call__(self, recovery_point: int) -> None:
        offsets = self.offsets
        with offsets.lock:
            offsets.points[self.key] = recovery_point
            checkpoints.write_offsets(f"{offsets.path}/{checkpoints.RECOVERY_POINTS}", offsets.points)


class Recovery:
    """The loading of partitions that nobody stopped cleanly."""

    def __init__(self, manager: LogManager, jobs: list[Job]) -> None:
        self._manager = manager
        self._jobs = jobs
        self._done: SimpleQueue[tuple[Job, BaseException | None] | None] = SimpleQueue()
        self._threads = 0  # that are running
        self._left = len(jobs)
        self._stopped = False
        self._began_ms = self._told_ms = manager.clock.monotonic_ms()

    def run(self) -> None:
        manager = self._manager
        for directory in manager.online:
            count = sum(job.directory is directory for job in self._jobs)
            if count:
                log.info(f"{directory.path} was not stopped cleanly: {count} partition(s) are recovered")
                manager.guard(directory, self._measure, directory)
        large = [job for job in self._jobs if job.bytes >= LARGE_BYTES and manager.has_threads]
        try:
            self._start_threads(large)
            for job in self._jobs:
                if job.bytes < LARGE_BYTES or not manager.has_threads:
                    if job.directory.is_online:
                        manager.guard(job.directory, job.try_to_load)
                    self._one_less()
                    self._take_results()
            while self._threads:
                self._take_results(wait=True)
        finally:
            self._stop_threads()
        taken_ms = manager.clock.monotonic_ms() - self._began_ms
        log.info(f"{len(self._jobs)} partition(s) recovered, {self._walked()} walked in {taken_ms} ms")

    def _measure(self, directory: LogDirectory) -> None:
        """How much of each partition has to be walked."""
        for job in self._jobs:
            if job.directory is directory:
                job.hints.walked = self._watch(job)
                try:
                    job.bytes = bytes_to_walk(job.partition.directory, job.hints.recovery_point)
                except OSError as error:
                    if files.is_of_disk(error):
                        raise  # else the loading comes upon it

    def _watch(self, job: Job) -> Callable[[int], None]:
        def walked(size: int) -> None:
            job.walked += size
            if self._stopped:
                raise Stopped

        return walked

    # -- threads

    def _start_threads(self, jobs: list[Job]) -> None:
        """The largest first: none of them is begun when the others are through."""
        limit = self._manager.config["num.recovery.threads.per.data.dir"]
        for directory in self._manager.online:
            queue: SimpleQueue[Job | None] = SimpleQueue()
            mine = sorted((job for job in jobs if job.directory is directory), key=lambda job: -job.bytes)
            for job in mine:
                queue.put(job)
            for _ in range(min(limit, len(mine))):
                queue.put(None)
                self._threads += 1
                start_new_thread(self._serve, (queue,))

    def _serve(self, queue: SimpleQueue[Job | None]) -> None:
        while (job := queue.get()) is not None and not self._stopped:
            problem: BaseException | None = None
            try:
                if job.directory.is_online:
                    job.try_to_load()
            except BaseException as error:
                problem = error
            self._done.put((job, problem))
        self._done.put(None)

    def _take_results(self, wait: bool = False) -> None:
        try:
            result = self._done.get(timeout=PROGRESS_MS / 1000) if wait else self._done.get_nowait()
        except Empty:
            self._tell()
            return
        if result is None:
            self._threads -= 1
            return
        job, problem = result
        if isinstance(problem, OSError):
            job.directory.fail(str(problem))
        elif problem is not None:
            raise problem
        self._one_less()

    def _stop_threads(self) -> None:
        """Nobody works on a partition when this returns."""
        self._stopped = True
        while self._threads:
            if self._done.get() is None:
                self._threads -= 1

    # -- progress

    def _one_less(self) -> None:
        self._left -= 1
        self._tell()

    def _tell(self) -> None:
        """Now and then a line that says how far it is."""
        now_ms = self._manager.clock.monotonic_ms()
        if now_ms - self._told_ms < PROGRESS_MS or not self._left:
            return
        self._told_ms = now_ms
        total = len(self._jobs)
        bytes_ = f"{self._walked()} of {mebibytes(sum(job.bytes for job in self._jobs))}"
        log.info(f"recovered {total - self._left} of {total} partitions, walked {bytes_}")

    def _walked(self) -> str:
        return mebibytes(sum(job.walked for job in self._jobs))


def bytes_to_walk(directory: str, recovery_point: int) -> int:
    """The logs from the segment on that the recovery point lies in."""
    from pykafkad.storage.recovery import leftovers

    sizes = {
        base: entry.stat().st_size
        for entry in os.scandir(directory)
        if (base := files.offset_of(entry.name, files.LOG)) is not None and leftovers.is_file(entry)
    }
    bases = sorted(sizes)
    return sum(sizes[base] for base in bases[max(0, bisect_right(bases, recovery_point) - 1) :])


def mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
