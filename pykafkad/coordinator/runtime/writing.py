"""Appends a shard's records to the log of its partition.

Records outside of transactions join the pending batch, which is appended at the end of the pass, or when it is full.
Records of a transaction, and the marker that ends it, are appended at once, after the pending batch: the log may refuse
them because of the producer's epoch, and must do so before they are replayed.

Invariants: the log has the records in the order in which the operations returned them; the records of an atomic
operation are in one batch; no batch is larger than the topic's configs allow.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.records import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.clock import Clock
    from pykafkad.cluster.replica import Replica
    from pykafkad.coordinator.runtime.kind import MachineKind

    Encoded = Iterable[tuple[bytes, bytes | None]]
    Row = tuple[bytes, bytes | None, tuple[()], int]  # key, value, no headers, timestamp

BATCH_BYTES = 61  # the header of a batch
RECORD_BYTES = 26  # at most, around the key and the value of a record


class PartitionWriter:
    __slots__ = (
        "_clock",
        "_kind",
        "_limit",
        "_now_ms",
        "_partition",
        "_pending",
        "_pending_bytes",
        "is_lost",
        "is_refused",
    )

    def __init__(self, partition: Replica, kind: MachineKind, clock: Clock) -> None:
        self.is_refused = False  # the log refused a batch that was replayed
        self.is_lost = False  # a batch that was replayed could not be built
        self._partition = partition
        self._kind = kind
        self._clock = clock
        self._pending: list[Row] = []
        self._pending_bytes = BATCH_BYTES
        self._limit = 0  # the bytes that the pending batch may have
        self._now_ms = 0  # the time of its records

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._partition.log.log_end_offset + len(self._pending)

    @property
    def is_writable(self) -> bool:
        """Whether everything that was replayed is in the log or pending."""
        return self._partition.is_writable and not self.is_refused and not self.is_lost

    # -- the pending batch

    def take(self, encoded: Encoded, is_atomic: bool) -> int:
        """Add the records of an operation to the pending batch. Returns an error code."""
        if not self._pending and not self._begin():
            return errors.NOT_COORDINATOR
        limit, now_ms = self._limit, self._now_ms
        taken: list[Row] = []
        size = 0
        for key, value in encoded:
            more = RECORD_BYTES + len(key) + (0 if value is None else len(value))
            if not is_atomic and self._pending_bytes + size + more > limit:
                self._pending += taken
                self.append_pending()
                if not self._begin():
                    return errors.NOT_COORDINATOR
                taken, size = [], 0
            size += more
            taken.append((key, value, (), now_ms))
        if self._pending_bytes + size > limit:
            if is_atomic and BATCH_BYTES + size > limit:
                return errors.MESSAGE_TOO_LARGE
            self.append_pending()
            if not self._begin():
                return errors.NOT_COORDINATOR
        self._pending += taken
        self._pending_bytes += size
        return errors.NONE

    def _begin(self) -> bool:
        """One look at the clock, the configs and the log serves all records of a batch. Returns whether there can be
        one. What is lost later in the pass is found at its end."""
        self._limit = self._partition.batch_bytes_max
        self._now_ms = self._clock.now_ms()
        return self.is_writable

    def give_back(self, count: int) -> None:
        """Remove the records of the last operation, of which there were so many, as far as they are pending."""
        del self._pending[-count:]

    def append_pending(self) -> None:
        """Append the pending batch. After a failure the log directory is offline, or `is_refused` or `is_lost` is set."""
        batch, self._pending = self._pending, []
        self._pending_bytes = BATCH_BYTES
        if not batch or not self.is_writable:
            return
        name, nouns, log = self._partition.name, self._kind.nouns, self._kind.log
        try:
            self._partition.append_built(build(batch, codec=self._kind.codec), batch[0][3])
        except KafkaError as error:
            # The size was checked, so this is an I/O error, and the directory is offline; or a bug.
            log.error(f"{name} does not take records of {nouns}: {error}")
            self.is_refused = True
        except Exception as error:
            log.exception(f"{name}: a batch of {nouns} is lost; they are loaded anew", error)
            self.is_lost = True

    def forget_pending(self) -> None:
        self._pending.clear()

    # -- transactions

    def append_transactional(self, encoded: Encoded, producer: tuple[int, int]) -> int:
        """Append the records of an operation as a batch of their own, as Kafka does. Returns an error code."""
        now_ms = self._clock.now_ms()
        rows: list[Row] = [(key, value, (), now_ms) for key, value in encoded]
        size = sum(RECORD_BYTES + len(key) + len(value or b"") for key, value, _, _ in rows)
        if BATCH_BYTES + size > self._partition.batch_bytes_max:
            return errors.MESSAGE_TOO_LARGE
        data = build(
            rows,
            codec=self._kind.codec,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            transactional=True,
        )
        return self._append_now(data, now_ms, 0)

    def append_marker(
        self, producer: tuple[int, int], coordinator_epoch: int, committed: bool, transaction_version: int
    ) -> int:
        """Append the marker that ends a transaction. Returns an error code."""
        from pykafkad.storage.log import markers

        now_ms = self._clock.now_ms()
        data = markers.build(producer, coordinator_epoch, committed, now_ms)
        return self._append_now(data, now_ms, transaction_version)

    def _append_now(self, data: bytes, now_ms: int, transaction_version: int) -> int:
        self.append_pending()
        if not self.is_writable:
            return errors.NOT_COORDINATOR
        try:
            self._partition.append_built(data, now_ms, transaction_version=transaction_version)
        except KafkaError as error:
            return error.code
        return errors.NONE
