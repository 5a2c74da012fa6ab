"""One partition of an internal topic with its machine: does what the machine wants done.

The records of an operation join the pending batch of the pass and are replayed at once, so the next operation sees them.
The batch is appended at the end of the pass, before any answer is encoded, and the answers wait until it is below the
high watermark (pykafkad/promises.py). If the append or the write fails, all answers of the shard in this pass become
NOT_COORDINATOR and the shard is closed, since its machine has replayed what was never written. The same happens if
another broker becomes the leader of the partition.

Unexpected errors do no further harm, and are logged: if a batch cannot be built, the machine is loaded from the log
again; if a timer fails, it is tried again after RETRY_MS.

Invariants: records are in the log in the order in which they were replayed; an answer is sent when everything that the
shard had replayed by then is below the high watermark; a closed shard writes nothing, and none of its timers fires.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import starmap

from pykafkad import errors
from pykafkad.coordinator.runtime.timers import Timers
from pykafkad.coordinator.runtime.writing import PartitionWriter
from pykafkad.errors import KafkaError
from pykafkad.hot.wire import WireError
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.cluster.replica import Replica
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.coordinator.runtime.machine import Machine
    from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime
    from pykafkad.promises import Promise
    from pykafkad.pure.effects import Effects
    from pykafkad.slices import Work

    Job = Callable[[], Iterable[Effects]]

RETRY_MS = 60_000  # until a timer that failed is tried again


class Shard:
    log = None  # a write of it that failed may still be made: closing the shard is what breaks its promises

    def __init__(
        self, runtime: CoordinatorRuntime[Any], partition: Replica, machine: Machine, leader_epoch: int
    ) -> None:
        self.runtime = runtime
        self.partition = partition
        self.machine: Any = machine
        self.leader_epoch = leader_epoch
        self.is_active = False  # loaded, and served
        self.has_failed = False  # it could not be loaded, or the log refused its records
        self.must_reload = False
        self.is_uncommitted = False  # whether records were replayed that are not below the high watermark yet
        self.made: list[Promise] = (
            runtime.loop.promises.made
        )  # whose answers of this pass depend on such records
        self.writer = PartitionWriter(partition, runtime.kind, runtime.loop.clock)
        self.timers = Timers(runtime.loop, self._timer_is_due)
        self._loop = runtime.loop
        self._log = runtime.kind.log
        self._is_closed = False
        # High watermarks, what to do when they are reached, and whom to tell that they never will be.
        self._on_committed: deque[tuple[int, Callable[[int], Effects | None], Callable[[], None] | None]] = (
            deque()
        )
        self._jobs: dict[str, Job] = {}  # to be started when the shard becomes active
        self._working: set[str] = set()  # names of what is being done in slices

    # -- operations

    def perform(self, effects: Effects, asker: Asker | None = None) -> Any:
        """Do what the effects say. Returns the asker's response, or its deferred context if it is not answered yet."""
        if effects.records:
            refused = self._append(effects)
            if refused:
                if effects.on_refused is None:
                    raise KafkaError(refused)
                effects = effects.on_refused(refused)
        if effects.timers:
            self.timers.set(effects.timers)
        if effects.on_committed is not None:
            self._when_committed(effects.on_committed)
        response = None
        replies: Any = effects.replies  # to Askers
        for caller, answer in replies:
            if self.is_uncommitted:
                caller.rests_on(self)
            if caller is asker:
                response = answer
            else:
                caller.context.answer(answer)
        if effects.work is not None:
            self.runtime.do_long_work(self, effects.work)
        if response is None and asker is not None:
            return asker.context.defer()
        return response

    def do(self, effects: Effects) -> None:
        """Do what the effects say if no request is waiting for it: a refusal is logged."""
        try:
            self.perform(effects)
        except KafkaError as error:
            self._refused(error)

    def _refused(self, error: KafkaError) -> None:
        """Nobody waits for the answer. That the partition has just gone is no error: what it had to do goes with it."""
        if error.code != errors.NOT_COORDINATOR:
            self._log.error(f"{self.partition.name}: {error}")

    def _append(self, effects: Effects) -> int:
        """Hand the records to the writer and replay them. Returns an error code."""
        if not self.is_active:
            return errors.NOT_COORDINATOR
        writer, machine = self.writer, self.machine
        producer_id, producer_epoch = producer = effects.producer
        records = effects.records
        if not self.is_uncommitted:
            self._expect_commit()
        try:
            encoded = effects.encoded or starmap(machine.encode, records)
            if producer_id < 0:
                refused = writer.take(encoded, effects.is_atomic)
            else:
                refused = writer.append_transactional(encoded, producer)
        except WireError as problem:
            # A client's string is too long. Nothing was taken yet, since only tombstones are not atomic.
            nouns = self.runtime.kind.nouns
            self._log.info(f"a request about {nouns} is refused, since no record holds its texts: {problem}")
            return errors.UNKNOWN_SERVER_ERROR
        if refused:
            return refused
        offset = writer.next_offset - len(records)
        replay = machine.replay
        try:
            for key, value in records:
                replay(key, value, offset, producer_id, producer_epoch)
                offset += 1
        except Exception:
            # A bug. The machine is loaded again, so that its state is what the log says.
            if producer_id < 0:
                writer.give_back(len(records))
            self.must_reload = True
            raise
        return errors.NONE

    def end_transaction(
        self,
        producer: tuple[int, int],
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int,
    ) -> None:
        """Write the marker that ends a producer's transaction in this partition. Raises KafkaError if it is refused."""
        if not self.is_active:
            raise KafkaError(errors.NOT_COORDINATOR)
        if not self.is_uncommitted:
            self._expect_commit()
        refused = self.writer.append_marker(producer, coordinator_epoch, committed, transaction_version)
        if refused:
            raise KafkaError(refused)
        try:
            self.machine.end_transaction(*producer, committed)
        except Exception:
            self.must_reload = True
            raise

    # -- commit

    def _expect_commit(self) -> None:
        """Have the end of the pass look at this shard."""
        self.is_uncommitted = True
        self._loop.uncommitted.append(self)

    def promise(self, asker: Asker) -> None:
        """The asker will be told what the machine says now, so its answer waits for the commit of that."""
        if self.is_uncommitted:
            asker.rests_on(self)

    @property
    def name(self) -> str:
        return self.partition.name

    @property
    def log_end_offset(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def has_followers(self) -> bool:
        return self.partition.has_followers

    def check_appended(self, end_offset: int, acks: int) -> bool:
        """Whether what was replayed up to this offset is committed. KafkaError: it never will be."""
        return self.partition.has_committed(end_offset)

    def written(self) -> None:
        """The records of the pass are in the log. Until they are below the high watermark the shard stays uncommitted,
        and new answers wait as well."""
        self.is_uncommitted = False
        if self.partition.high_watermark < self.partition.log_end_offset:
            self._expect_commit()
        if self._on_committed and self._on_committed[0][0] <= self.partition.high_watermark:
            self._loop.call_soon(self._commit_came)

    def after_commit(self, kept: Callable[[], None], lost: Callable[[], None]) -> None:
        """Calls one of the two, once: `kept` when everything that was replayed until now is committed, at once if it is
        already, or `lost` if this broker cannot know that any more."""
        if self.is_uncommitted:
            self._when_committed(lambda now_ms: kept(), lost)
        else:
            kept()

    def _when_committed(
        self, then: Callable[[int], Effects | None], lost: Callable[[], None] | None = None
    ) -> None:
        self._on_committed.append((self.writer.next_offset, then, lost))
        if not self.is_uncommitted:
            self._loop.call_soon(self._commit_came)

    def _commit_came(self) -> None:
        """This is called in a pass of its own, since what follows a commit may write records too."""
        self._in_slices("commits", self._follow_commits)

    def _follow_commits(self) -> Work:
        """Do what was to be done after the commit of records that are committed now."""
        waiting = self._on_committed
        while waiting and self.is_active and waiting[0][0] <= self.partition.high_watermark:
            _, then, _ = waiting.popleft()
            try:
                effects = then(self._loop.clock.now_ms())
                if effects is not None:
                    self.do(effects)
            except Exception as error:
                nouns = self.runtime.kind.nouns
                self._log.exception(f"{self.partition.name}: what follows a commit of {nouns} failed", error)
            yield GO_ON

    # -- in slices

    def run(self, what: str, job: Job) -> None:
        """Perform the effects that the job yields, in slices, as soon as the shard is active. A job that is running is
        not started a second time: before it ends it looks whether there is more to do."""
        if self.is_active:
            self._in_slices(what, lambda: self._do_all(job()))
        else:
            self._jobs[what] = job

    def _do_all(self, all_effects: Iterable[Effects]) -> Work:
        for effects in all_effects:
            if not self.is_active:
                return
            self.do(effects)
            yield GO_ON

    def _in_slices(self, what: str, work: Callable[[], Work]) -> None:
        if what not in self._working:
            self._working.add(what)
            self._loop.in_slices(work(), partial(self._worked, what))

    def _worked(self, what: str, result: Any) -> None:
        self._working.discard(what)
        if isinstance(result, Exception):
            name, nouns = self.partition.name, self.runtime.kind.nouns
            self._log.exception(f"{name}: {what} of {nouns} failed", result)

    def _timer_is_due(self) -> None:
        self._in_slices("timers", self._fire)

    def _fire(self) -> Work:
        """Let the machine handle the timers that are due."""
        timers = self.timers
        while timers.due and self.is_active:
            key = timers.take_due()
            try:
                self.perform(self.machine.on_timer(key, self._loop.clock.now_ms()))
            except KafkaError as error:
                self._refused(error)
            except Exception as error:
                noun = self.runtime.kind.noun
                self._log.exception(f"{self.partition.name}: a timer of {noun} {key[0]} failed", error)
                timers.set([(key, RETRY_MS)])
            yield GO_ON

    # -- life

    def loaded(self) -> int:
        """The log was replayed: let the machine begin, then serve it. Returns how many names it has."""
        names = list(self.machine.replayed())
        if names:
            self._in_slices("the beginning", lambda: self._begin(names))
        else:
            self._serve()
        return len(names)

    def _begin(self, names: list[str]) -> Work:
        for name in names:
            yield from self._begin_one(name)
            if self._is_closed:
                return
        self._serve()

    def _begin_one(self, name: str) -> Work:
        try:
            for effects in self.machine.on_loaded(name, self._loop.clock.now_ms()):
                self.perform(effects)
                yield GO_ON
                if self._is_closed:
                    return
        except Exception as error:
            noun = self.runtime.kind.noun
            self._log.exception(f"{self.partition.name}: {noun} {name} was loaded and cannot begin", error)

    def _serve(self) -> None:
        self.is_active = True
        jobs, self._jobs = self._jobs, {}
        for what, job in jobs.items():
            self.run(what, job)
        if self.timers.due:
            self._timer_is_due()

    def close(self) -> None:
        """This broker is no longer the coordinator: refuse the requests that wait, and write nothing any more."""
        self.timers.cancel_all()
        self.writer.forget_pending()
        waiting, self._on_committed = self._on_committed, deque()
        self._is_closed = True
        was_active, self.is_active = self.is_active, False
        self.is_uncommitted = False
        if was_active:
            for caller, answer in self.machine.on_unloaded().replies:
                caller.context.answer(answer)
        for _, _, lost in waiting:
            if lost is not None:
                lost()
