"""Loading: the log of a shard's partition is replayed into its machine, in slices between which the loop serves others.

The partitions of a topic are loaded one at a time, so that there is one buffer in memory (`load_buffer_bytes` of the
kind); those that a client asks for come first. A thread reads the file. Records of an unknown type or version, which a
newer Kafka or a client may have written, are logged and ignored. A batch whose checksum is wrong fails the load: the
partition then has no coordinator, as in Kafka.

Anybody may have written a record there, of any size: a large value is decoded by the thread, and replayed and freed in
slices. One of too many elements (ext/wire_budget.pxi), or in a record of more than LONGEST bytes, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pykafkad.hot import records as batches
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import LARGE_VALUE, NO_PRODUCER, UnknownRecord
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.coordinator.runtime.shard import Shard
    from pykafkad.slices import Work

NAMED = 10  # strange records that are named one by one
COMMIT_WAIT_MS = 10
LONGEST = 32 * 1024 * 1024
COMMIT_MARKER, ABORT_MARKER = 1, 0


class Load:
    """The loading of one shard. At its end `done(shard, error)` is called, unless it was cancelled."""

    def __init__(
        self,
        shard: Shard,
        done: Callable[[Shard, Exception | None], None],
    ) -> None:
        self.shard = shard
        self.cancelled = False
        self.count = 0
        self._partition = shard.partition
        self._machine = shard.machine
        self._kind = shard.runtime.kind
        self._loop = shard.runtime.loop
        self._done = done
        self._offset = self._partition.log_start_offset
        self._end_offset = self._partition.log_end_offset
        self._strange = 0

    def read(self) -> None:
        """Read the next part of the log."""
        partition = self._partition
        if self.cancelled:
            return
        self._offset = max(self._offset, partition.log_start_offset)  # retention may have been here
        try:
            found = partition.read(
                self._offset,
                self._kind.load_buffer_bytes,
                limit_offset=partition.high_watermark,
                at_least_one=True,
            )
        except Exception as error:
            self._done(self.shard, error)
            return
        if found is None or found.size == 0:
            if partition.high_watermark < min(self._end_offset, partition.log_end_offset):
                # What was appended before is part of the state when it is committed.
                self._loop.call_later(COMMIT_WAIT_MS, self.read)
            else:
                self._done(self.shard, None)
        else:
            self._loop.submit(found.read, self._on_read)

    def _on_read(self, data: Any) -> None:
        if self.cancelled:
            return
        if isinstance(data, BaseException):
            self._done(self.shard, data if isinstance(data, Exception) else OSError(str(data)))
            return
        self._loop.in_slices(self._replay(data), self._on_replayed, lambda: not self.cancelled)

    def _on_replayed(self, result: Exception | None) -> None:
        if self.cancelled:
            return
        if result is not None:
            self._done(self.shard, result)
        else:
            self.read()

    def _replay(self, data: bytes) -> Work:
        """Replay the batches that are whole in the buffer."""
        view = memoryview(data)
        found = batches.scan(data)
        if not found:
            raise ValueError(f"no batch can be read at offset {self._offset}")
        for batch in found:
            producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER[0]
            rows = view[batch.position : batch.position + batch.size]
            for record in batches.read_in_slices(rows, LONGEST, with_headers=False):
                if record is not None and record.offset >= self._offset:  # the log may start within a batch
                    work = self._replay_record(record, batch, producer_id)
                    if work is not None:
                        yield from work
                yield
            self._offset = batch.last_offset + 1

    def _replay_record(
        self, record: batches.Record, batch: batches.Batch, producer_id: int
    ) -> Iterator[Any] | None:
        """Replay it, or return the work that does it."""
        machine = self._machine
        if batch.is_control:
            if record.control_type in (COMMIT_MARKER, ABORT_MARKER):
                committed = record.control_type == COMMIT_MARKER
                machine.end_transaction(batch.producer_id, batch.producer_epoch, committed)
            return None
        if record.value is not None and len(record.value) >= LARGE_VALUE:
            return self._replay_large(record, batch, producer_id)
        try:
            key, value = machine.decode(record.key, record.value)
        except (UnknownRecord, WireError) as strange:
            self._left_alone(record.offset, strange)
            return None
        self.count += 1
        return machine.load(key, value, record.offset, producer_id, batch.producer_epoch)  # type: ignore[no-any-return]

    def _replay_large(self, record: batches.Record, batch: batches.Batch, producer_id: int) -> Work:
        from pykafkad.large import free

        wait = Wait()
        self._loop.submit(partial(self._machine.decode, record.key, record.value), wait.come)
        decoded = yield from wait.result()
        if isinstance(decoded, (UnknownRecord, WireError)):
            self._left_alone(record.offset, decoded)
            return
        if isinstance(decoded, BaseException):
            raise decoded
        self.count += 1
        work = self._machine.load(*decoded, record.offset, producer_id, batch.producer_epoch)
        if work is not None:
            yield from work
        freeing = free(decoded[1])
        del wait, work, decoded  # nobody else has it
        yield from freeing

    def _left_alone(self, offset: int, why: Exception) -> None:
        self._strange += 1
        log = self._kind.log
        if self._strange <= NAMED:
            log.warn(f"{self._partition.name}: the record at offset {offset} is left alone: {why}")
        elif self._strange == NAMED + 1:
            log.warn(f"{self._partition.name}: more records are left alone")
