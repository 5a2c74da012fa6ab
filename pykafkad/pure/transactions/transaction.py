"""A transactional id's state and its transitions: the content of a record of `__transaction_state`.

A producer of transaction version 2 (KIP-890) gets a new epoch with the end of each transaction, so that nothing that is
late can reach into the next one. Invariants: a Transaction is never changed, a transition makes a new one; the largest
epoch is never a producer's own, so that a producer can always be fenced.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

(
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    PREPARE_ABORT,
    COMPLETE_COMMIT,
    COMPLETE_ABORT,
    DEAD,
    PREPARE_EPOCH_FENCE,
) = range(8)
STATE_NAMES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
AT_REST = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)

NONE = -1  # no producer id, epoch or time
LARGEST_EPOCH = (1 << 15) - 1
EPOCH_BUMPS_SINCE = 2  # the transaction version whose transactions end with a new epoch

Partition = tuple[str, int]
NO_PARTITIONS: frozenset[Partition] = frozenset()


class ProducerIdNeeded(Exception):
    """The operation needs a producer id that nobody has."""


def needed(new_producer_id: int) -> int:
    if new_producer_id == NONE:
        raise ProducerIdNeeded
    return new_producer_id


class Transaction:
    __slots__ = (
        "client_version",
        "epoch",
        "last_epoch",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "updated_ms",
    )

    def __init__(self, producer_id: int, timeout_ms: int, now_ms: int) -> None:
        """A new one: no producer has its id yet, and it is in no log."""
        self.producer_id = producer_id
        self.previous_producer_id = NONE  # before the last transition
        self.next_producer_id = NONE  # the one that takes over with the end, when the epochs are used up
        self.epoch = NONE
        self.last_epoch = NONE  # with which a request may be repeated that was answered with `epoch`
        self.timeout_ms = timeout_ms
        self.state = EMPTY
        self.partitions = NO_PARTITIONS
        self.start_ms = NONE
        self.updated_ms = now_ms
        self.client_version = 0  # the transaction version that the client follows

    @property
    def state_name(self) -> str:
        return STATE_NAMES[self.state]

    @property
    def is_prepared(self) -> bool:
        """How it ends is decided, and markers are being written."""
        return self.state in PREPARED

    @property
    def is_exhausted(self) -> bool:
        """The producer id has no epoch left that a producer could be given."""
        return is_exhausted(self.epoch)

    def _changed(self, state: int, now_ms: int, **fields: Any) -> Transaction:
        new = Transaction.__new__(Transaction)
        for name in Transaction.__slots__:
            setattr(new, name, getattr(self, name))
        new.state, new.updated_ms, new.previous_producer_id = state, now_ms, self.producer_id
        for name, value in fields.items():
            setattr(new, name, value)
        return new

    # -- InitProducerId

    def begun(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """The producer goes on with this epoch."""
        return self._changed(
            EMPTY,
            now_ms,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=NO_PARTITIONS,
            start_ms=NONE,
        )

    def begun_anew(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, is_continued: bool
    ) -> Transaction:
        """It goes on with a new producer id; a producer that named its old one may repeat that."""
        new = self.begun(0, self.epoch if is_continued else NONE, timeout_ms, now_ms)
        new.producer_id = producer_id
        return new

    # -- the transaction

    def joined_by(self, partitions: frozenset[Partition], client_version: int, now_ms: int) -> Transaction:
        return self._changed(
            ONGOING,
            now_ms,
            partitions=self.partitions | partitions,
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_version=client_version,
        )

    def prepared(self, state: int, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """How it ends is decided. One that no partition has joined may be aborted, too."""
        start_ms = self.start_ms if self.state == ONGOING else now_ms
        new = self._changed(state, now_ms, client_version=client_version, start_ms=start_ms)
        new.next_producer_id = next_producer_id
        if client_version >= EPOCH_BUMPS_SINCE:
            new.epoch, new.last_epoch = min(self.epoch + 1, LARGEST_EPOCH), self.epoch
        return new

    def fenced(self) -> Transaction:
        """Before the end of a transaction by transaction version 1 that its producer did not ask for."""
        epoch = min(self.epoch + 1, LARGEST_EPOCH)
        return self._changed(self.state, self.updated_ms, epoch=epoch, last_epoch=NONE)

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written."""
        state = COMPLETE_COMMIT if self.state == PREPARE_COMMIT else COMPLETE_ABORT
        new = self._changed(state, now_ms, partitions=NO_PARTITIONS, next_producer_id=NONE)
        new.producer_id, new.epoch = self.producer_afterwards
        return new

    @property
    def producer_afterwards(self) -> tuple[int, int]:
        """The producer's id and epoch once the prepared end is complete."""
        if self.client_version >= EPOCH_BUMPS_SINCE and self.next_producer_id != NONE:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch


def is_exhausted(epoch: int) -> bool:
    return epoch >= LARGEST_EPOCH - 1
