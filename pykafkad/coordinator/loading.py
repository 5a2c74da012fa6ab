"""Loading: what the log of a shard's partition says is replayed, in slices between which the loop serves others.

One partition at a time, so that memory holds one buffer (`offsets.load.buffer.size`); a partition that a client asks
about goes before those nobody asked about. The file is read by a thread. What a newer Kafka wrote, or a client
that may write to internal topics, is named in the log and left where it is; records that damage would have changed are
caught by their batch's checksum, and fail the load: the partition then has no coordinator, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pykafkad.hot import records as batches
from pykafkad.hot.wire import WireError
from pykafkad.logs import logger
from pykafkad.pure.groups.records import UnknownRecord, decode

if TYPE_CHECKING:
    from pykafkad.coordinator.shard import Shard

RECORDS_A_TURN = 300
NAMED = 10  # strange records that are named one by one
COMMIT_MARKER, ABORT_MARKER = 1, 0

log = logger("groups")


class Load:
    """One partition's way from the log into its groups; `done(shard, error)` ends it, unless it was cancelled."""

    def __init__(
        self,
        shard: Shard,
        buffer_bytes: int,
        submit: Callable[..., None],
        call_soon: Callable[..., Any],
        done: Callable[[Shard, Exception | None], None],
    ) -> None:
        self.shard = shard
        self.cancelled = False
        self.count = 0
        self._partition = shard.partition
        self._buffer_bytes = buffer_bytes
        self._submit = submit
        self._call_soon = call_soon
        self._done = done
        self._offset = self._partition.log_start_offset
        self._strange = 0

    def read(self) -> None:
        """The next buffer full."""
        partition = self._partition
        self._offset = max(self._offset, partition.log_start_offset)  # retention may have been here
        try:
            found = partition.read(
                self._offset,
                self._buffer_bytes,
                limit_offset=partition.high_watermark,
                at_least_one=True,
            )
        except Exception as error:
            self._done(self.shard, error)
            return
        if found is None or found.size == 0:
            self._done(self.shard, None)
        else:
            self._submit(found.read, self._on_read)

    def _on_read(self, data: Any) -> None:
        if self.cancelled:
            return
        if isinstance(data, BaseException):
            self._done(self.shard, data if isinstance(data, Exception) else OSError(str(data)))
            return
        self._turn(self._replay(data))

    def _turn(self, steps: Iterator[None]) -> None:
        if self.cancelled:
            return
        try:
            for _ in steps:
                self._call_soon(self._turn, steps)
                return
        except Exception as error:
            self._done(self.shard, error)
            return
        self.read()

    def _replay(self, data: bytes) -> Iterator[None]:
        """Replay the whole batches of a buffer; stops now and then, to be gone on with later."""
        view = memoryview(data)
        found = batches.scan(data)
        if not found:
            raise ValueError(f"no batch can be read at offset {self._offset}")
        since_turn = 0
        for batch in found:
            producer_id = batch.producer_id if batch.is_transactional else -1
            for record in batches.read(view[batch.position : batch.position + batch.size], False):
                if record.offset >= self._offset:  # the log may start within a batch
                    self._replay_record(record, batch, producer_id)
                since_turn += 1
                if since_turn == RECORDS_A_TURN:
                    since_turn = 0
                    yield
            self._offset = batch.last_offset + 1

    def _replay_record(self, record: batches.Record, batch: batches.Batch, producer_id: int) -> None:
        groups = self.shard.groups
        if batch.is_control:
            if record.control_type in (COMMIT_MARKER, ABORT_MARKER):
                groups.offsets.end_transaction(batch.producer_id, record.control_type == COMMIT_MARKER)
            return
        try:
            key, value = decode(record.key, record.value)
        except (UnknownRecord, WireError) as strange:
            self._left_alone(record.offset, strange)
            return
        self.count += 1
        groups.replay(key, value, record.offset, producer_id)

    def _left_alone(self, offset: int, why: Exception) -> None:
        self._strange += 1
        if self._strange <= NAMED:
            log.warn(f"{self._partition.name}: the record at offset {offset} is left alone: {why}")
        elif self._strange == NAMED + 1:
            log.warn(f"{self._partition.name}: more records are left alone")
