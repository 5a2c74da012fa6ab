"""One partition of `__consumer_offsets` with its groups: does what the machines want done.

An operation's records join the batch that the pass is collecting and are replayed at once, so the next operation
sees them; the batch is appended at the end of the pass, before any of its answers is encoded. Where the append or
the write fails, every answer the shard gave in the pass becomes NOT_COORDINATOR and the shard is gone: what was replayed
was never written.

Invariants: records are in the log in the order in which they were replayed; an operation's records are in one batch;
a timer that is set has one entry in `_timers`, and fires once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.records import build
from pykafkad.logs import logger
from pykafkad.pure.groups.effects import Caller, Effects, Record, TimerKey
from pykafkad.pure.groups.offsets import Held
from pykafkad.pure.groups.records import encode
from pykafkad.pure.groups.registry import Groups

if TYPE_CHECKING:
    from pykafkad.coordinator.groups import GroupCoordinator, Hold
    from pykafkad.storage.partition import Partition

BATCH_BYTES = 61  # the header of a batch
DELETED_A_TURN = 1_000  # offsets of a deleted topic
RECORD_BYTES = 26  # at most, around the key and the value of a record

Encoded = tuple[bytes, bytes | None, tuple[()], int]  # key, value, no headers, timestamp
Refuse = Callable[[KafkaError], Any]

log = logger("groups")


class Asker(Caller):
    """The caller of an operation: its request under way, and how its API refuses."""

    __slots__ = ("refuse",)

    def __init__(self, context: Any, refuse: Refuse) -> None:
        self.context = context
        self.refuse = refuse

    def write_failed(self) -> None:
        self.context.response = self.refuse(KafkaError(errors.NOT_COORDINATOR))

    @property
    def version(self) -> int:
        version: int = self.context.version
        return version

    @property
    def client_id(self) -> str:
        client_id: str = self.context.client_id
        return client_id

    @property
    def client_host(self) -> str:
        from pykafkad.coordinator.hosts import java_text

        return java_text(self.context.connection.peer[0])


class Timer:
    """One that is set again and again (a session's) only moves its deadline: the loop's timer follows when due."""

    __slots__ = ("deadline_ms", "due_ms", "handle")

    def __init__(self, deadline_ms: int, handle: Any) -> None:
        self.deadline_ms = self.due_ms = deadline_ms
        self.handle = handle


class Shard:
    def __init__(self, coordinator: GroupCoordinator, partition: Partition, groups: Groups) -> None:
        self.partition = partition
        self.groups = groups
        self.is_loaded = False
        self.has_failed = False  # loading did, or the log does not take what it should
        self.must_reload = False
        self._coordinator = coordinator
        self._clock = coordinator.clock
        self._batch: list[Encoded] = []
        self._batch_bytes = BATCH_BYTES
        self._promised: list[Asker] = []  # answered in this pass
        self._dirty = False
        self._timers: dict[TimerKey, Timer] = {}
        self._deleted_topics: list[str] = []  # while loading

    # -- operations

    def perform(self, effects: Effects, asker: Asker | None = None) -> Any:
        """Do it. The asker's response, its deferred context if it is not answered yet, or None without an asker."""
        if effects.records:
            refused = self._append(effects.records, effects.is_atomic)
            if refused is not None:
                if effects.on_refused is None:
                    raise refused
                effects = effects.on_refused(refused.code)
        if effects.timers:
            self._set_timers(effects.timers)
        response = None
        for caller, answer in effects.replies:
            assert isinstance(caller, Asker)
            if self._dirty:
                self._promised.append(caller)
            if caller is asker:
                response = answer
            else:
                caller.context.answer(answer)
        if response is None and asker is not None:
            return asker.context.defer()
        return response

    def _append(self, records: list[Record], is_atomic: bool) -> KafkaError | None:
        """Take the records into the pass's batch and replay them; or say why not."""
        if not self.is_loaded or not self.is_written:
            return KafkaError(errors.NOT_COORDINATOR)
        now_ms = self._clock.now_ms()
        limit = min(self.partition.rules.max_message_bytes, self.partition.settings.segment_bytes)
        taken: list[Encoded] = []
        size = 0
        for key, value in records:
            key_bytes, value_bytes = encode(key, value)
            bytes_more = RECORD_BYTES + len(key_bytes) + (0 if value_bytes is None else len(value_bytes))
            if not is_atomic and self._batch_bytes + size + bytes_more > limit:
                self._take(taken, size)
                self.flush()
                taken, size = [], 0
            size += bytes_more
            taken.append((key_bytes, value_bytes, (), now_ms))
        if self._batch_bytes + size > limit:
            if BATCH_BYTES + size > limit:
                return KafkaError(errors.MESSAGE_TOO_LARGE)
            self.flush()
        self._take(taken, size)
        replay = self.groups.replay
        offset = self.partition.log_end_offset + len(self._batch) - len(records)
        try:
            for key, value in records:
                replay(key, value, offset)
                offset += 1
        except Exception:
            # A mistake of ours. The log does not have it: the groups are loaded anew from there.
            del self._batch[-len(taken) :]
            self.must_reload = True
            raise
        return None

    def _take(self, records: list[Encoded], size: int) -> None:
        """They go into one batch, with what the pass has before them."""
        self._batch += records
        self._batch_bytes += size
        if not self._dirty:
            self._dirty = True
            self._coordinator.dirty.append(self)

    # -- the end of a pass

    def flush(self) -> None:
        """Append what the pass collected. A failure shows in the directory, which is offline then."""
        batch, self._batch = self._batch, []
        self._batch_bytes = BATCH_BYTES
        if not batch or not self.is_written:
            return
        data = build(batch, codec=self._coordinator.codec)
        try:
            self.partition.append_built(data, batch[0][3])
        except KafkaError as error:
            # The size was looked at, so this is an I/O error, and the directory is offline; or a mistake of ours.
            log.error(f"{self.partition.name} does not take records of groups: {error}")
            self.has_failed = True

    @property
    def is_written(self) -> bool:
        return self.partition.log_directory.is_online and not self.has_failed

    def promise(self, asker: Asker) -> None:
        """What this asker will be told stands on what the pass has yet to write."""
        if self._dirty:
            self._promised.append(asker)

    def written(self, hold: Hold) -> None:
        """The pass's batch is in the log: its answers may go, when it is on the disk if flush.messages says so. Until
        then the shard stays dirty, and who asks about its groups waits too."""
        promised, self._promised = self._promised, []
        self._dirty = self.partition.high_watermark < self.partition.log_end_offset
        if self._dirty:
            self._coordinator.dirty.append(self)
            for asker in promised:
                hold(self.partition, asker.context, asker.write_failed)

    def write_failed(self) -> None:
        """Nothing of the pass is stored: whoever was told otherwise is told now, before the answer is encoded."""
        self._dirty = False
        for asker in self._promised:
            asker.write_failed()
        self._promised.clear()

    # -- time

    def _set_timers(self, timers: list[tuple[TimerKey, int | None]]) -> None:
        now_ms = self._clock.monotonic_ms()
        for key, delay_ms in timers:
            timer = self._timers.get(key)
            if delay_ms is None:
                if timer is not None:
                    timer.handle.cancel()
                    del self._timers[key]
                continue
            deadline_ms = now_ms + delay_ms
            if timer is not None and timer.due_ms <= deadline_ms:
                timer.deadline_ms = deadline_ms
                continue
            if timer is not None:
                timer.handle.cancel()
            handle = self._coordinator.call_later(delay_ms, self._on_timer, key)
            self._timers[key] = Timer(deadline_ms, handle)

    def _on_timer(self, key: TimerKey) -> None:
        timer = self._timers[key]
        left_ms = timer.deadline_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            timer.due_ms = timer.deadline_ms
            timer.handle = self._coordinator.call_later(left_ms, self._on_timer, key)
            return
        del self._timers[key]
        self.do(lambda groups: groups.on_timer(key, self._clock.now_ms()))

    def do(self, operation: Callable[[Groups], Effects]) -> None:
        """An operation that nobody asked for; what refuses it is logged."""
        try:
            self.perform(operation(self.groups))
        except KafkaError as error:
            log.error(f"{self.partition.name}: {error}")

    # -- life

    def loaded(self) -> None:
        self.is_loaded = True
        self.do(lambda groups: groups.on_loaded(self._clock.now_ms()))
        names, self._deleted_topics = self._deleted_topics, []
        for name in names:
            self.delete_topic(name)

    def delete_topic(self, name: str) -> None:
        """Its offsets go; when it is known what they are, if that is not yet so."""
        if self.is_loaded:
            self._delete_some(self.groups.offsets.of_topic(name))
        else:
            self._deleted_topics.append(name)

    def _delete_some(self, doomed: list[Held]) -> None:
        """Not more in a pass than others can wait for. The topic may be there again when the last ones go."""
        if doomed and self.is_loaded:
            self.do(lambda groups: groups.forget(doomed[:DELETED_A_TURN]))
            self._coordinator.call_soon(self._delete_some, doomed[DELETED_A_TURN:])

    def unload(self) -> None:
        """Somebody else's partition, or nobody's: whoever waits is told, and nothing is written any more."""
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()
        self._batch.clear()
        self.write_failed()
        if self.is_loaded:
            self.is_loaded = False
            for caller, answer in self.groups.on_unloaded().replies:
                caller.context.answer(answer)
