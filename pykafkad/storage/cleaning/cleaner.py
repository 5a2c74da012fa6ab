"""The log cleaner: which logs are compacted when, by how many threads, and which are not any more.

Every log.cleaner.backoff.ms, and whenever a cleaning is over, the logs are measured (pure/cleaning.py) and the dirtiest
ones that are due are taken on, at most log.cleaner.threads at a time; each is a Run (cleaner_run.py). How far a
log is clean is in its directory's cleaner-offset-checkpoint.

Invariants: one run a partition, and none while it moves to another directory. A run that fails for another reason than
I/O marks its partition as uncleanable until the next start (KIP-346); an I/O error takes the log directory offline.
"""

from __future__ import annotations

from errno import ENOMEM
from weakref import WeakSet

from pykafkad.hot.cleaner import Throttle
from pykafkad.logs import logger
from pykafkad.pure import cleaning as rules
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.cleaning.cleaner_run import Run, tell
from pykafkad.storage.cleaning.cleaning import Cleaning, Limits
from pykafkad.storage.files import is_shortage
from pykafkad.storage.log import lookups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.hot.segment import Segment
    from pykafkad.pure.cleaning import Dirt
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.files import TopicPartition
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs
    from pykafkad.workers import Submit

WORK_A_TURN = 500  # logs looked at before the loop serves others; one that is measured counts as ten
MEASURE_WORK = 10
PAUSE_MS = 1

log = logger("cleaner")


class LogCleaner:
    def __init__(self, manager: Logs, submit: Submit) -> None:
        self._manager = manager
        self._submit = submit  # to threads of its own: a cleaning takes long
        self._runs: dict[TopicPartition, Run] = {}
        self._due: list[Log] = []  # the dirtiest one last
        self._survey: Iterator[None] | None = None
        self._stopped = False
        self._throttle = Throttle()
        self.uncleanable: WeakSet[Log] = WeakSet()
        self.reconfigure()

    # -- what others ask and tell

    def is_busy(self, partition: Log) -> bool:
        """Whether its segments are being rewritten: nobody else may change them now."""
        return (partition.topic, partition.index) in self._runs

    @property
    def running(self) -> int:
        return len(self._runs)

    def reconfigure(self) -> None:
        """The rate holds at once, the rest from the next cleaning on."""
        self._throttle.bytes_per_second = self._manager.config["log.cleaner.io.max.bytes.per.second"]

    def abort(self, partition: Log) -> None:
        """What is being made of it is thrown away: it is deleted, goes offline, or moves to another directory."""
        run = self._runs.get((partition.topic, partition.index))
        if run is not None:
            run.abort()

    def stop(self) -> None:
        """No more cleanings; those under way come back soon, without effect."""
        self._stopped = True
        for run in self._runs.values():
            run.abort()

    def is_uncleanable(self, partition: Log) -> bool:
        return partition in self.uncleanable

    # -- which log

    def turn(self) -> None:
        """Measure all logs, then clean those that are due."""
        if self._survey is None and not self._stopped:
            self._survey = self._surveyed()
            self._go_on()

    def _go_on(self) -> None:
        survey, self._survey = self._survey, None
        if survey is None or self._stopped:
            return
        for _ in survey:
            self._survey = survey
            self._manager.call_later(PAUSE_MS, self._go_on)
            return
        self._begin_due()

    def _surveyed(self) -> Iterator[None]:
        """Collect the logs that are due, with a pause for others now and then."""
        due: list[tuple[float, int, Log]] = []
        room = WORK_A_TURN
        for partition in self._manager:
            room -= 1
            if room <= 0:
                room = WORK_A_TURN
                yield
            if not self._may_clean(partition):
                continue
            room -= MEASURE_WORK
            dirt = self._measured(partition)
            if dirt is not None and dirt.is_due(partition.config["min.cleanable.dirty.ratio"]):
                due.append((dirt.ratio, -len(due), partition))
        due.sort()
        self._due = [partition for _, _, partition in due]

    def _may_clean(self, partition: Log) -> bool:
        if not partition.rules.compacted or len(partition.segments) < 2:
            return False
        first_dirty = partition.first_dirty_offset
        if first_dirty is not None and partition.log_start_offset <= first_dirty == partition.bases[-1]:
            return False  # there is nothing dirty but in the active segment
        manager = self._manager
        key = partition.topic, partition.index
        return (
            manager.partitions.get(key) is partition
            and partition.log_directory.is_online
            and key not in self._runs
            and manager.moves.get(*key) is None
            and not self.is_uncleanable(partition)
        )

    def _measured(self, partition: Log) -> Dirt | None:
        """None: it could not be."""
        try:
            return self.measure(partition)
        except Exception as error:
            self._blame(partition, partition.log_directory, error)
            return None

    def measure(self, partition: Log) -> Dirt:
        config = partition.config
        now_ms = self._manager.clock.now_ms()
        first_dirty, why = rules.first_dirty_offset(partition, partition.first_dirty_offset)
        if why is not None:
            # With retention as well it happens all the time, and nobody needs to know.
            if not partition.settings.deletes:
                log.warn(
                    f"{partition.name}: the checkpoint says that it is clean up to {partition.first_dirty_offset},"
                    f" but {why}; it is cleaned from {first_dirty} on"
                )
            self._note_clean(partition, first_dirty)
        first_uncleanable = rules.first_uncleanable_offset(
            partition, first_dirty, config["min.compaction.lag.ms"], now_ms, lookups.segment_timestamp
        )
        dirt = rules.dirt_of(partition, first_dirty, first_uncleanable)
        max_lag_ms = config["max.compaction.lag.ms"]
        dirt.delay_ms = rules.overdue_ms(partition, first_dirty, max_lag_ms, now_ms, first_timestamp)
        return dirt

    def _note_clean(self, partition: Log, offset: int) -> None:
        partition.first_dirty_offset = offset
        self._manager.checkpointing.write(checkpoints.CLEANED)

    # -- one after the other

    def _begin_due(self) -> None:
        while self._due and len(self._runs) < self._manager.config["log.cleaner.threads"]:
            partition = self._due.pop()
            dirt = self._measured(partition) if self._may_clean(partition) else None
            # What was measured may have changed since.
            if dirt is not None and dirt.is_due(partition.config["min.cleanable.dirty.ratio"]):
                self._begin(partition, dirt)

    def _begin(self, partition: Log, dirt: Dirt) -> None:
        config, now_ms = self._manager.config, self._manager.clock.now_ms()
        limits = Limits(
            config["log.cleaner.dedupe.buffer.size"],
            config["log.cleaner.io.buffer.size"],
            config["log.cleaner.io.buffer.load.factor"],
            config["log.cleaner.threads"],
        )
        try:
            cleaning = Cleaning(partition, dirt, limits, self._throttle, now_ms)
        except Exception as error:
            self._blame(partition, partition.log_directory, error)
            return
        run = Run(self._manager, partition, cleaning, self._submit, self._over)
        self._runs[partition.topic, partition.index] = run
        run.begin()

    def _over(self, run: Run, error: BaseException | None) -> None:
        del self._runs[run.partition.topic, run.partition.index]
        try:
            if error is not None:
                self._blame(run.partition, run.directory, error)
            elif run.finished:
                self._note_clean(run.partition, run.cleaning.end_offset)
                tell(run, self._manager.clock.monotonic_ms())
        finally:
            self._go_on_cleaning()

    def _go_on_cleaning(self) -> None:
        if self._stopped:
            return
        if self._due:
            self._begin_due()
        else:
            self.turn()

    def _blame(self, partition: Log, directory: LogDirectory, error: BaseException) -> None:
        """An I/O error is the directory's; anything else is the partition's, and no memory for its keys as well."""
        if isinstance(error, OSError) and error.errno != ENOMEM:
            if is_shortage(error):
                log.warn(f"{partition.name} is cleaned later: {error}")
            else:
                directory.fail(f"{partition.name} could not be cleaned: {error}")
                self._manager.drop_offline()
            return
        why = str(error) or type(error).__name__
        log.warn(f"{partition.name} is marked as uncleanable and grows from now on: {why}")
        self.uncleanable.add(partition)


def first_timestamp(segment: Segment) -> int:
    """Of the first batch, the largest one; -1: there is no batch, or a damaged one, which the cleaning comes upon."""
    if segment.first_timestamp == -2:
        segment.load_first_timestamp()
    return segment.first_timestamp
