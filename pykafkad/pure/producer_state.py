"""What a partition remembers about its producers: epochs, the last five batches, open transactions.

KIP-98 (idempotence, transactions), KIP-360 (epoch bumps), KIP-447 and KIP-890 (verified transactions). The rules, and
the order in which they are checked, are those of Kafka 4.3.1's ProducerStateManager and ProducerAppendInfo.

Invariants: an entry's batches are in the order of their appends, at most RETAINED_BATCHES; `ongoing` and `_held_back` are
ordered by first offset, `unreplicated` by end marker; `end_offset` is the offset up to which the log has been taken into
account. No I/O and no clock: a snapshot's entries are passed in and out (storage knows the file's format).
"""

from __future__ import annotations

from bisect import insort
from itertools import takewhile

from pykafkad.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    KafkaError,
)

NEWER_EPOCHS_SINCE = 2  # of transaction.version: a marker has a higher epoch than its transaction
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    class Batch(Protocol):
        """What is needed of a batch's header."""

        @property
        def producer_id(self) -> int: ...
        @property
        def producer_epoch(self) -> int: ...
        @property
        def base_sequence(self) -> int: ...
        @property
        def last_sequence(self) -> int: ...
        @property
        def is_transactional(self) -> bool: ...
        @property
        def max_timestamp(self) -> int: ...


RETAINED_BATCHES = 5
NO_EPOCH = -1
MAX_SEQUENCE = 0x7FFFFFFF
ABORT, COMMIT = 0, 1

# (first sequence, last sequence, last offset, offset delta, max timestamp) of an appended batch
BatchMetadata = tuple[int, int, int, int, int]


class ProducerError(KafkaError):
    """A producer's mistake. Kafka's answer has the code alone; `detail` is for the log."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(code)
        self.detail = detail

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.detail}"


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_start",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_start = -1  # first offset of its open transaction
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1][2] if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1][3] if self.batches else 0

    def set_epoch(self, epoch: int) -> None:
        """Begin a new epoch, which has no batches yet."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"ProducerEntry({fields})"


class Verification:
    """What is known of a producer while its transaction coordinator is asked whether this partition is part of its
    transaction. It is the same one until a batch of the transaction is appended, or an end marker: only who began it
    before that may append."""

    __slots__ = ("adds", "begun_ms", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, adds: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence  # that was seen: nothing may overtake it
        self.adds = adds  # the coordinator is asked to add the partition: transaction version 2
        self.begun_ms = now_ms


# Most partitions never have producers with ids, or transactions: they share these, which stay empty.
NONE_KNOWN: dict[int, ProducerEntry] = {}
NOTHING_TO_VERIFY: dict[int, Verification] = {}
NONE_ONGOING: dict[int, int] = {}
NONE_HELD_BACK: list[int] = []


class CompletedTransaction:
    """A transaction that its end marker has completed."""

    __slots__ = ("aborted", "first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, aborted: bool) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.aborted = aborted


def first_sequence_of(last_sequence: int, offset_delta: int) -> int:
    """The first sequence of a batch, by its last one; sequences wrap: 0 follows 2^31-1."""
    first = last_sequence - offset_delta
    return first if first >= 0 else first + MAX_SEQUENCE + 1


class ProducerState:
    """All producers of one partition."""

    __slots__ = (
        "_held_back",
        "end_offset",
        "ongoing",
        "producers",
        "snapshot_offset",
        "unreplicated",
        "verifying",
    )

    def __init__(self) -> None:
        self.producers = NONE_KNOWN
        self.ongoing = NONE_ONGOING  # first offset of a transaction -> producer id
        # first offset of a transaction -> offset of its end marker, which is above the high watermark
        self.unreplicated = NONE_ONGOING
        self._held_back = NONE_HELD_BACK  # their first offsets
        self.verifying = NOTHING_TO_VERIFY  # by producer id
        self.end_offset = 0
        self.snapshot_offset = 0

    # -- a client's batch ------------------------------------------------------------------------------------

    def check(
        self, batch: Batch, offset: int, verify: bool, where: object = "the partition"
    ) -> BatchMetadata | None:
        """Check a client's batch that would be appended at `offset`. Returns the original batch if it is a duplicate,
        None if it may be appended; raises ProducerError otherwise. `verify`: its transaction must have been verified
        with the transaction coordinator."""
        producer_id = batch.producer_id
        epoch = batch.producer_epoch
        entry = self.producers.get(producer_id)
        if entry is None:
            if verify and batch.is_transactional:
                raise ProducerError(INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
            if epoch < NO_EPOCH:
                raise ProducerError(INVALID_PRODUCER_EPOCH, f"{epoch} is no producer epoch")
            if self.verifying:
                self._check_overtaking(batch, offset, where)
            return None  # the producer is not known here: it may begin with any epoch and any sequence
        first = batch.base_sequence
        batches = entry.batches
        if epoch == entry.epoch:
            last = batches[-1][1] if batches else -1
            in_order = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
            if not in_order:
                last_sequence = batch.last_sequence
                for known in batches:
                    if known[0] == first and known[1] == last_sequence:
                        return known
        else:
            in_order = first == 0 or entry.epoch == NO_EPOCH
        if not in_order or epoch < entry.epoch or entry.transaction_start >= 0 or batch.is_transactional:
            self._check_rest(entry, batch, offset, verify, in_order, where)
        return None

    def _check_rest(
        self, entry: ProducerEntry, batch: Batch, offset: int, verify: bool, in_order: bool, where: object
    ) -> None:
        producer_id, epoch, first = batch.producer_id, batch.producer_epoch, batch.base_sequence
        ongoing = entry.transaction_start >= 0 and epoch == entry.epoch
        if batch.is_transactional and not ongoing:
            if epoch < entry.epoch:
                said = f"is {epoch}, which is smaller than the last seen epoch {entry.epoch}"
                raise ProducerError(INVALID_PRODUCER_EPOCH, f"Epoch of producer {producer_id} {said}")
            if verify:
                raise ProducerError(INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        self._check_epoch(entry, epoch, offset, where)
        self._check_overtaking(batch, offset, where)
        place = f"for producer {producer_id} at offset {offset} in partition {where}"
        if not in_order and epoch != entry.epoch:
            said = f"{epoch} (request epoch), {first} (seq. number), {entry.epoch} (current producer epoch)"
            detail = f"Invalid sequence number for new epoch {place}: {said}"
            raise ProducerError(OUT_OF_ORDER_SEQUENCE_NUMBER, detail)
        if not in_order:
            said = f"{first} (incoming seq. number), {entry.last_sequence} (current end sequence number)"
            raise ProducerError(OUT_OF_ORDER_SEQUENCE_NUMBER, f"Out of order sequence number {place}: {said}")
        self._check_transaction(entry, batch, offset, where)

    def _check_overtaking(self, batch: Batch, offset: int, where: object) -> None:
        """The first batch of a transaction may have failed to be verified, and will be sent again: those that follow it
        must not come before it."""
        verification = self.verifying.get(batch.producer_id)
        if verification is None:
            return
        first, lowest = batch.base_sequence, verification.lowest_sequence
        entry = self.producers.get(batch.producer_id)
        if verification.adds and (entry is None or not entry.batches):
            lowest = 0  # sequences begin anew with each transaction
        if first > lowest:
            place = f"for producer {batch.producer_id} at offset {offset} in partition {where}"
            said = f"{first} (incoming seq. number), {lowest} (earliest seen sequence)"
            raise ProducerError(OUT_OF_ORDER_SEQUENCE_NUMBER, f"Out of order sequence number {place}: {said}")

    @staticmethod
    def _check_epoch(entry: ProducerEntry, epoch: int, offset: int, where: object) -> None:
        if epoch < entry.epoch:
            said = f"is {epoch}, which is < the last seen epoch {entry.epoch}"
            detail = f"Epoch of producer {entry.producer_id} at offset {offset} in {where} {said}"
            raise ProducerError(INVALID_PRODUCER_EPOCH, detail)

    @staticmethod
    def _check_transaction(entry: ProducerEntry, batch: Batch, offset: int, where: object) -> None:
        if entry.transaction_start >= 0 and not batch.is_transactional:
            place = f"from producer {entry.producer_id} at offset {offset} in partition {where}"
            raise ProducerError(INVALID_TXN_STATE, f"Expected transactional write {place}")

    def check_own(self, batch: Batch, offset: int, where: object = "the partition") -> None:
        """Check a batch of one of our own coordinators, which has no sequences, but epochs and transactions."""
        entry = self.producers.get(batch.producer_id)
        if entry is None:
            return
        self._check_epoch(entry, batch.producer_epoch, offset, where)
        self._check_transaction(entry, batch, offset, where)

    def append(self, batch: Batch, base_offset: int, last_offset: int, timestamp: int) -> None:
        """A data batch was appended (or queued) at these offsets."""
        producer_id = batch.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self._add(ProducerEntry(producer_id))
        batches = entry.batches
        if entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            batches.clear()
        elif len(batches) == RETAINED_BATCHES:
            del batches[0]
        last_sequence = batch.last_sequence
        delta = last_offset - base_offset
        batches.append(
            (first_sequence_of(last_sequence, delta), last_sequence, last_offset, delta, timestamp)
        )
        entry.last_timestamp = timestamp
        if batch.is_transactional:
            self.verifying.pop(producer_id, None)
            if entry.transaction_start < 0:
                entry.transaction_start = base_offset
                if self.ongoing is NONE_ONGOING:
                    self.ongoing = {}
                self.ongoing[base_offset] = producer_id

    def _add(self, entry: ProducerEntry) -> ProducerEntry:
        if self.producers is NONE_KNOWN:
            self.producers = {}
        self.producers[entry.producer_id] = entry
        return entry

    # -- asking the transaction coordinator ------------------------------------------------------------------

    def is_under_way(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction here, in this epoch."""
        entry = self.producers.get(producer_id)
        return entry is not None and entry.transaction_start >= 0 and epoch == entry.epoch

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, adds: bool, now_ms: int
    ) -> Verification | None:
        """The coordinator has to be asked whether the partition is part of the producer's transaction or, with `adds`, to
        make it so; None: the transaction is under way here, so it is. Raises ProducerError if the producer is fenced."""
        entry = self.producers.get(producer_id)
        if entry is not None:
            if epoch < entry.epoch:
                said = f"is {epoch}, which is smaller than the last seen epoch {entry.epoch}"
                raise ProducerError(INVALID_PRODUCER_EPOCH, f"Epoch of producer {producer_id} {said}")
            if self.is_under_way(producer_id, epoch):
                return None
        known = self.verifying.get(producer_id)
        if known is None:
            if self.verifying is NOTHING_TO_VERIFY:
                self.verifying = {}
            known = self.verifying[producer_id] = Verification(epoch, sequence, adds, now_ms)
        elif epoch > known.epoch or (epoch == known.epoch and sequence < known.lowest_sequence):
            known.epoch, known.lowest_sequence = epoch, sequence
        return known

    # -- transaction markers ---------------------------------------------------------------------------------

    def check_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        transaction_version: int,
        where: object = "the partition",
    ) -> None:
        """Check an end marker from the transaction coordinator (KIP-1228: from transaction version 2 on its epoch must
        be higher)."""
        entry = self.producers.get(producer_id)
        if entry is None:
            if epoch < NO_EPOCH:
                raise ProducerError(INVALID_PRODUCER_EPOCH, f"{epoch} is no producer epoch")
            return
        newer = transaction_version >= NEWER_EPOCHS_SINCE
        if epoch <= entry.epoch if newer else epoch < entry.epoch:
            repeated = newer and epoch == entry.epoch and entry.transaction_start < 0
            if repeated:  # written before, when its answer was lost: the marker may be there twice
                return
            said = f"is {epoch}, which is {'<=' if newer else '<'} the last seen epoch {entry.epoch}"
            detail = f"Epoch of producer {producer_id} at offset {offset} in {where} {said}"
            raise ProducerError(INVALID_PRODUCER_EPOCH, f"{detail} (TV{transaction_version})")
        if entry.coordinator_epoch > coordinator_epoch:
            place = f"for producerId {producer_id} at offset {offset} in partition {where}"
            said = f"{coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
            raise ProducerError(TRANSACTION_COORDINATOR_FENCED, f"Invalid coordinator epoch {place}: {said}")

    def append_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, kind: int, offset: int, timestamp: int
    ) -> CompletedTransaction | None:
        """An end marker was appended; returns the transaction that it completed, if there was one."""
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self._add(ProducerEntry(producer_id))
        start = entry.transaction_start
        self.verifying.pop(producer_id, None)
        entry.set_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.transaction_start = -1
        return CompletedTransaction(producer_id, start, offset, kind == ABORT) if start >= 0 else None

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset once this transaction is completed; it is written to the transaction index."""
        for first_offset, producer_id in self.ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """Take the transaction out of the open ones. It holds the last stable offset back until the high watermark has
        passed its marker."""
        del self.ongoing[completed.first_offset]
        if not self.unreplicated:
            self.unreplicated, self._held_back = {}, []
        self.unreplicated[completed.first_offset] = completed.last_offset
        insort(self._held_back, completed.first_offset)

    def replicated_to(self, high_watermark: int) -> None:
        """The high watermark advanced: transactions whose end markers are below it no longer hold the last stable
        offset back."""
        done = list(takewhile(lambda first: self.unreplicated[first] < high_watermark, self.unreplicated))
        for first in done:
            del self.unreplicated[first]
        if done:
            self._held_back = sorted(self.unreplicated)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open, or whose end marker is not replicated yet."""
        first = next(iter(self.ongoing), None)
        if self._held_back:
            other = self._held_back[0]
            first = other if first is None or other < first else first
        return first

    # -- expiry and loading ----------------------------------------------------------------------------------

    def is_expired(self, entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
        return entry.transaction_start < 0 and now_ms - entry.last_timestamp >= expiration_ms

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were idle for `expiration_ms` and have no open transaction."""
        idle = [
            producer_id
            for producer_id, entry in self.producers.items()
            if self.is_expired(entry, now_ms, expiration_ms)
        ]
        for producer_id in idle:
            del self.producers[producer_id]
        for producer_id, verification in list(self.verifying.items()):
            if now_ms - verification.begun_ms >= expiration_ms:
                del self.verifying[producer_id]
        return len(idle)

    def load(self, entries: Iterable[ProducerEntry], offset: int, now_ms: int, expiration_ms: int) -> None:
        """Begin with a snapshot that was taken at `offset`."""
        self.clear(offset)
        ongoing = []
        for entry in entries:
            if self.is_expired(entry, now_ms, expiration_ms):
                continue
            self._add(entry)
            if entry.transaction_start >= 0:
                ongoing.append((entry.transaction_start, entry.producer_id))
        if ongoing:
            self.ongoing = dict(sorted(ongoing))

    def clear(self, offset: int) -> None:
        self.producers = NONE_KNOWN
        self.ongoing = self.unreplicated = NONE_ONGOING
        self._held_back = NONE_HELD_BACK
        self.verifying = NOTHING_TO_VERIFY
        self.end_offset = offset
        self.snapshot_offset = offset

    def log_start_advanced(self, log_start_offset: int) -> None:
        self.replicated_to(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self.producers.values())
