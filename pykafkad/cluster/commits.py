"""Group commit for the metadata log: what one pass of the loop asks for shares one batch and one fsync.

`add(records, done)` queues; at the end of the pass (`soon`) everything queued becomes one batch, written on
a worker. While a write is under way the next batch gathers. After it, in the order of asking: the records
are applied to the image, and each `done(None)` is called, or `done(error)` for all of them where the write
failed. Invariants: a batch holds whole requests and is no larger than Kafka's controllers make them; `done` is
called exactly once; after an UnsafeLog nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pykafkad.cluster.handover import MAX_RECORDS_IN_BATCH
from pykafkad.cluster.metadata_log import MetadataLog, UnsafeLog
from pykafkad.errors import KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR, KafkaError
from pykafkad.logs import logger

if TYPE_CHECKING:
    from pykafkad.cluster.metadata_records import Record

Done = Callable[[KafkaError | None], None]
Submit = Callable[[Callable[[], Any], Callable[[Any], None]], None]
Soon = Callable[[Callable[[], None]], Any]

MAX_BATCH_BYTES = 8 << 20

log = logger("metadata")


def submit_inline(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    """No workers: the work is done here and now."""
    try:
        result = work()
    except Exception as error:
        result = error
    done(result)


def at_once(action: Callable[[], None]) -> None:
    action()


def nothing() -> None:
    """Nobody wants to know."""


class Commits:
    def __init__(self, metadata: MetadataLog, submit: Submit = submit_inline, soon: Soon = at_once) -> None:
        self._log = metadata
        self._submit = submit
        self._soon = soon
        self._queued: list[tuple[Sequence[Record], Done]] = []
        self._scheduled = False
        self._writing: list[tuple[Sequence[Record], Done]] = []
        self.failure: UnsafeLog | None = None
        self.on_appended: Callable[[], None] = nothing
        self.on_failed: Callable[[], None] = nothing
        self.has_failed = False

    @property
    def idle(self) -> bool:
        return not (self._queued or self._writing)

    def add(self, records: Sequence[Record], done: Done) -> None:
        """Without records: to be told when what was added before is done with."""
        self._queued.append((records, done))
        self._schedule()

    def settled(self, result: Any) -> None:
        """The start-up records are on the disk, or never will be."""
        if isinstance(result, BaseException):
            self._failed(result)

    def _failed(self, error: BaseException) -> None:
        log.error(f"the metadata log could not be written: {error}")
        self.has_failed = True
        if isinstance(error, UnsafeLog) and self.failure is None:
            self.failure = error
        self.on_failed()

    def _schedule(self) -> None:
        if self._queued and not self._writing and not self._scheduled:
            self._scheduled = True
            self._soon(self._write)

    def _write(self) -> None:
        self._scheduled = False
        if self._writing or not self._queued:
            return
        self._writing = self._take()
        if self.failure is not None:
            self._written(self.failure, b"", [])
            return
        batch, data = self._built()
        while len(data) > MAX_BATCH_BYTES and len(self._writing) > 1:
            half = len(self._writing) // 2
            self._writing, self._queued = self._writing[:half], self._writing[half:] + self._queued
            batch, data = self._built()
        if len(data) > MAX_BATCH_BYTES:
            log.error(f"a change of {len(data)} bytes is refused: {MAX_BATCH_BYTES} is the most")
            self._finish(KafkaError(UNKNOWN_SERVER_ERROR))
            return
        self._submit(lambda: self._log.write(data), lambda result: self._written(result, data, batch))

    def _built(self) -> tuple[list[Record], bytes]:
        batch = [record for records, _ in self._writing for record in records]
        return batch, self._log.build(batch)

    def _tell(self, done: Done, error: KafkaError | None) -> None:
        try:
            done(error)
        except Exception as problem:  # one request's mishap is not the next one's
            log.exception("a change of the metadata could not be answered", problem)

    def _take(self) -> list[tuple[Sequence[Record], Done]]:
        """The next requests that fit into one batch; the first always does."""
        room = MAX_RECORDS_IN_BATCH
        count = 0
        for records, _ in self._queued:
            room -= len(records)
            if room < 0 and count:
                break
            count += 1
        taken, self._queued = self._queued[:count], self._queued[count:]
        return taken

    def _written(self, result: Any, data: bytes, batch: Sequence[Record]) -> None:
        failed = None
        if isinstance(result, BaseException):
            failed = KafkaError(KAFKA_STORAGE_ERROR, f"The metadata log could not be written: {result}")
            self._failed(result)
        else:
            self._log.committed(data, batch)
            self.on_appended()
        self._finish(failed)

    def _finish(self, failed: KafkaError | None) -> None:
        finished, self._writing = self._writing, []
        for _, done in finished:
            self._tell(done, failed)
        self._schedule()
