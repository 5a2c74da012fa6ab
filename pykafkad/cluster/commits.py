"""Group commit for the metadata log: what one pass of the loop asks for shares one batch and one fsync.

`add(records, done)` queues; at the end of the pass (`soon`) everything queued becomes one batch, written on
a worker. Then its records are applied to the image, all of them in one turn of the loop, the delta that this gives is
published (in slices), and each `done(None)` is called, in the order of asking. Meanwhile the next batch gathers; it is
written when the delta is published, or at once where that takes its time and matters to nobody else (new partitions).

Where a write fails, `done(error)` is called for all in the batch, and for all that were queued meanwhile: they were
planned for an image that never came. What is still being planned is refused by `check`.

Invariants: a batch holds whole requests and is no larger than Kafka's controllers make them; `done` is called exactly
once, whatever raises; after an UnsafeLog nothing is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from pykafkad.cluster import metadata_records
from pykafkad.cluster.handover import MAX_RECORDS_IN_BATCH
from pykafkad.cluster.metadata_log import MetadataLog, UnsafeLog
from pykafkad.errors import KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR, KafkaError
from pykafkad.logs import logger
from pykafkad.slices import GO_ON, chunks, run_at_once
from pykafkad.workers import submit_inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.publishing import Preparation, Publishers
    from pykafkad.slices import Run, Work
    from pykafkad.workers import Submit

    Done = Callable[[KafkaError | None], Any]
    Soon = Callable[[Callable[[], None]], Any]

MAX_BATCH_BYTES = 8 << 20
ENCODED_AT_ONCE = 32  # records
LARGE = 64  # records of a change that has a batch of its own, so that no other is answered with it

log = logger("metadata")


def at_once(action: Callable[[], None]) -> None:
    action()


def nothing() -> None:
    """Nobody wants to know."""


class Change:
    """What one request asks for, see `add`; `encoded` as soon as it is."""

    __slots__ = ("applied", "done", "encoded", "ends_batch", "records")

    def __init__(
        self,
        records: Sequence[Record],
        done: Done,
        encoded: list[bytes] | None,
        applied: Done | None,
        ends_batch: bool,
    ) -> None:
        self.records = records
        self.done = done
        self.encoded = encoded
        self.applied = applied
        self.ends_batch = ends_batch


class Commits:
    def __init__(
        self,
        metadata: MetadataLog,
        publishers: Publishers,
        submit: Submit = submit_inline,
        soon: Soon = at_once,
        run: Run = run_at_once,
    ) -> None:
        self._log = metadata
        self._publishers = publishers
        self._submit = submit
        self._soon = soon
        self._run = run
        self._queued: deque[Change] = deque()
        self._scheduled = False
        self._busy = False
        self._batch: list[Change] = []  # under way
        self._preparation: Preparation | None = None  # of what follows from it
        self.failure: UnsafeLog | None = None
        self.on_appended: Callable[[], None] = nothing
        self.on_failed: Callable[[], None] = nothing
        self.has_failed = False
        self.failures = 0  # of batches, all of whose changes are forgotten

    @property
    def idle(self) -> bool:
        return not (self._queued or self._busy)

    def add(
        self,
        records: Sequence[Record],
        done: Done,
        encoded: list[bytes] | None = None,
        *,
        applied: Done | None = None,
        ends_batch: bool = False,
    ) -> None:
        """Without records: to be told when what was added before is in the image. `encoded`: what `encode` made of the
        records, of a change that others may be planned on before it is written. `applied`: called before `done`, as soon
        as the image has the records, or never will. `ends_batch`: where it must be published before anything else is
        applied."""
        self._queued.append(Change(records, done, encoded, applied, ends_batch))
        self._schedule()

    def check(self, failures: int) -> None:
        """KafkaError where a write has failed since there were so many failures: what was planned since then may go by
        what never came to be."""
        if self.failures != failures:
            raise KafkaError(KAFKA_STORAGE_ERROR, "The metadata log could not be written")

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
        if self._queued and not self._busy and not self._scheduled:
            self._scheduled = True
            self._soon(self._begin)

    # -- a batch

    def _begin(self) -> None:
        self._scheduled = False
        if self._queued and not self._busy:
            self._busy = True
            self._run(self._gather(), self._gathered)

    def _gather(self) -> Work:
        """Take the next requests that fit into one batch, and encode their records."""
        values: list[bytes] = []
        size = 0
        while self._queued and self.failure is None:
            change = self._queued.popleft()
            if change.encoded is None:
                try:
                    change.encoded = yield from self.encode(change.records)
                except KafkaError as error:
                    yield from self._tell_applied([change], error)
                    yield from self._tell([change.done], error)
                    continue
            more = sum(map(len, change.encoded))
            is_large = len(change.encoded) > LARGE
            too_many = len(values) + len(change.encoded) > MAX_RECORDS_IN_BATCH
            if self._batch and (is_large or too_many or size + more > MAX_BATCH_BYTES):
                self._queued.appendleft(change)
                break
            self._batch.append(change)
            values += change.encoded
            size += more
            if change.ends_batch or is_large:
                break
        return values

    def encode(self, records: Sequence[Record]) -> Work:
        """The values of these records; KafkaError where they cannot be written."""
        values: list[bytes] = []
        try:
            for some in chunks(records, ENCODED_AT_ONCE):
                values += metadata_records.encode_all(some)
                yield GO_ON
        except Exception as error:
            log.exception("a change of the metadata could not be encoded", error)
            raise KafkaError(UNKNOWN_SERVER_ERROR) from None
        size = sum(map(len, values))
        if size > MAX_BATCH_BYTES:
            log.error(f"a change of {size} bytes is refused: {MAX_BATCH_BYTES} is the most")
            raise KafkaError(UNKNOWN_SERVER_ERROR)
        return values

    def _gathered(self, result: Any) -> None:
        if self.failure is not None:
            self._written(self.failure, b"", [])
            return
        try:
            if isinstance(result, Exception):
                raise result
            if not result:
                self._finish(None)
                return
            data = self._log.framed(result)
            batch = [record for change in self._batch for record in change.records]
            self._write(data, batch, self._publishers.prepare(batch))
        except Exception as error:
            log.exception("a batch of metadata could not be made", error)
            self._finish(KafkaError(UNKNOWN_SERVER_ERROR), with_queued=True)

    def _write(self, data: bytes, batch: Sequence[Record], preparation: Preparation | None) -> None:
        def work() -> None:
            self._log.write(data)
            if preparation is not None:
                preparation.make()

        self._preparation = preparation
        self._submit(work, lambda result: self._written(result, data, batch))

    def _written(self, result: Any, data: bytes, batch: Sequence[Record]) -> None:
        error = None
        try:
            if self._preparation is not None:
                self._preparation.through()
            if isinstance(result, BaseException):
                error = KafkaError(KAFKA_STORAGE_ERROR, f"The metadata log could not be written: {result}")
                self._failed(result)
            else:
                self._log.committed(data, batch)
                self.on_appended()
        except Exception as problem:
            log.exception("what was written to the metadata log could not be made true", problem)
            error = error or KafkaError(UNKNOWN_SERVER_ERROR)
        self._finish(error, with_queued=error is not None)

    def _finish(self, error: KafkaError | None, *, with_queued: bool = False) -> None:
        batch, self._batch = self._batch, []
        preparation, self._preparation = self._preparation, None
        self._run(self._applied(batch, error, preparation, with_queued=with_queued), self._finished)

    def _applied(
        self,
        batch: list[Change],
        error: KafkaError | None,
        preparation: Preparation | None,
        *,
        with_queued: bool,
    ) -> Work:
        """What the image has by now is published, also where a part of the batch could not be applied."""
        delta = self._log.image.take_delta()
        yield from self._tell_applied(batch, error)
        if with_queued:
            while self._queued:
                change = self._queued.popleft()
                batch.append(change)
                yield from self._tell_applied([change], error)
            self.failures += 1
        publishing = self._publish(delta, batch, error, preparation)
        if delta.only_adds:
            self._run(publishing, lambda result: None)
        else:
            yield from publishing

    def _publish(
        self, delta: Delta, batch: list[Change], error: KafkaError | None, preparation: Preparation | None
    ) -> Work:
        yield from self._publishers.publish(delta)
        if preparation is not None:
            preparation.take_back()
        yield from self._tell([change.done for change in batch], error)

    def _tell_applied(self, batch: list[Change], error: KafkaError | None) -> Work:
        return self._tell([change.applied for change in batch if change.applied is not None], error)

    def _tell(self, whom: Sequence[Done], error: KafkaError | None) -> Work:
        for done in whom:
            try:
                done(error)
            except Exception as problem:  # one request's mishap is not the next one's
                log.exception("a change of the metadata could not be answered", problem)
            yield GO_ON

    def _finished(self, result: Any) -> None:
        self._busy = False
        self._schedule()
