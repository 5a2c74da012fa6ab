"""Idempotent and transactional producers, with the verdicts of Kafka 4.3.1's ProducerStateManager and
ProducerAppendInfo.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pykafkad.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
)
from pykafkad.pure.producer_state import (
    ABORT,
    COMMIT,
    MAX_SEQUENCE,
    CompletedTransaction,
    ProducerEntry,
    ProducerError,
    ProducerState,
    first_sequence_of,
)

DAY_MS = 86_400_000


class Batch(NamedTuple):
    base_sequence: int
    count: int = 1  # type: ignore[assignment]
    producer_epoch: int = 0
    producer_id: int = 7
    is_transactional: bool = False
    max_timestamp: int = 1000

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.count - 1) & MAX_SEQUENCE


class Log:
    """The offsets of a partition around a producer state, as Partition.append uses it."""

    def __init__(self, *, verify: bool = False) -> None:
        self.state = ProducerState()
        self.end = 0
        self.verify = verify

    def append(self, batch: Batch) -> int:
        """The base offset; for a duplicate that of the original."""
        known = self.state.check(batch, self.end, self.verify)
        if known is not None:
            return known[2] - known[3]
        base = self.end
        self.end += batch.count
        self.state.append(batch, base, self.end - 1, batch.max_timestamp)
        return base

    def mark(self, kind: int, *, epoch: int = 0, coordinator_epoch: int = 0, producer_id: int = 7) -> None:
        self.state.check_marker(producer_id, epoch, coordinator_epoch, self.end, 0)
        completed = self.state.append_marker(producer_id, epoch, coordinator_epoch, kind, self.end, 1000)
        self.end += 1
        if completed is not None:
            self.state.complete(completed)


def refusal(log: Log, batch: Batch) -> int:
    with pytest.raises(ProducerError) as caught:
        log.append(batch)
    assert caught.value.message is None  # Kafka's answer has the code alone
    return caught.value.code


def test_sequences_in_order_are_appended() -> None:
    log = Log()
    assert [log.append(Batch(sequence, 5)) for sequence in (0, 5, 10)] == [0, 5, 10]


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert Log().append(Batch(4711, producer_epoch=3)) == 0


@pytest.mark.parametrize("sequence", [0, 5, 11, 12, MAX_SEQUENCE])
def test_a_gap_or_an_old_sequence_is_out_of_order(sequence: int) -> None:
    log = Log()
    log.append(Batch(0, 10))
    assert refusal(log, Batch(sequence)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(Batch(10)) == 10


def test_the_last_five_batches_are_duplicates_and_older_ones_out_of_order() -> None:
    log = Log()
    offsets = [log.append(Batch(sequence, 2)) for sequence in range(0, 14, 2)]
    assert offsets == list(range(0, 14, 2))
    assert [log.append(Batch(sequence, 2)) for sequence in (4, 6, 8, 10, 12)] == [4, 6, 8, 10, 12]
    assert log.end == 14
    for sequence in (0, 2):
        assert refusal(log, Batch(sequence, 2)) == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_the_exact_range_is_a_duplicate() -> None:
    log = Log()
    log.append(Batch(0, 4))
    log.append(Batch(4, 4))
    assert refusal(log, Batch(4, 3)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, Batch(0, 8)) == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap() -> None:
    log = Log()
    log.append(Batch(MAX_SEQUENCE - 2, 2))
    assert log.append(Batch(MAX_SEQUENCE, 3)) == 2  # 2^31-1, 0, 1
    assert log.append(Batch(2)) == 5
    assert log.append(Batch(MAX_SEQUENCE, 3)) == 2
    assert first_sequence_of(1, 2) == MAX_SEQUENCE


def test_after_the_largest_sequence_comes_zero() -> None:
    log = Log()
    log.append(Batch(MAX_SEQUENCE))
    assert log.append(Batch(0)) == 1


def test_an_older_epoch_is_fenced() -> None:
    log = Log()
    log.append(Batch(0, producer_epoch=2))
    assert refusal(log, Batch(1, producer_epoch=1)) == INVALID_PRODUCER_EPOCH
    assert refusal(log, Batch(0, producer_epoch=1)) == INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_zero() -> None:
    log = Log()
    log.append(Batch(0, 5))
    assert refusal(log, Batch(5, producer_epoch=1)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(Batch(0, producer_epoch=1)) == 5
    assert refusal(log, Batch(0, 5)) == INVALID_PRODUCER_EPOCH  # no duplicate any more


def test_producers_do_not_disturb_each_other() -> None:
    log = Log()
    log.append(Batch(0, producer_id=1))
    log.append(Batch(0, producer_id=2))
    assert log.append(Batch(1, producer_id=1)) == 2


def test_idle_producers_expire_unless_in_a_transaction() -> None:
    log = Log()
    log.append(Batch(0, producer_id=1, max_timestamp=1000))
    log.append(Batch(0, producer_id=2, max_timestamp=1000, is_transactional=True))
    log.append(Batch(0, producer_id=3, max_timestamp=1001))
    assert log.state.remove_expired(1000 + DAY_MS - 1, DAY_MS) == 0
    assert log.state.remove_expired(1000 + DAY_MS, DAY_MS) == 1
    assert sorted(log.state.producers) == [2, 3]
    assert log.append(Batch(99, producer_id=1)) == 3  # expired: it may begin with any sequence


def test_a_transaction_nobody_verified_is_refused() -> None:
    log = Log(verify=True)
    assert refusal(log, Batch(0, is_transactional=True)) == INVALID_TXN_STATE
    assert log.append(Batch(0)) == 0
    assert refusal(log, Batch(1, is_transactional=True)) == INVALID_TXN_STATE


def test_a_transaction_once_begun_needs_no_verification() -> None:
    log = Log()
    log.append(Batch(0, is_transactional=True))
    log.verify = True
    assert log.append(Batch(1, is_transactional=True)) == 1
    log.mark(COMMIT)
    assert refusal(log, Batch(2, is_transactional=True)) == INVALID_TXN_STATE


def test_an_older_epoch_comes_before_the_missing_verification() -> None:
    log = Log(verify=True)
    log.append(Batch(0, producer_epoch=3))
    assert refusal(log, Batch(0, producer_epoch=2, is_transactional=True)) == INVALID_PRODUCER_EPOCH


def test_no_plain_batch_within_a_transaction() -> None:
    log = Log()
    log.append(Batch(0, is_transactional=True))
    assert refusal(log, Batch(1)) == INVALID_TXN_STATE


def test_a_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    log = Log()
    log.append(Batch(0))
    log.append(Batch(1, 3, is_transactional=True))
    log.append(Batch(0, producer_id=8, is_transactional=True))
    assert log.state.first_unstable_offset == 1
    log.mark(COMMIT)
    assert log.state.first_unstable_offset == 1  # the marker at 5 is not below the high watermark yet
    log.state.replicated_to(5)
    assert log.state.first_unstable_offset == 1
    log.state.replicated_to(6)
    assert log.state.first_unstable_offset == 4
    log.mark(ABORT, producer_id=8)
    log.state.replicated_to(7)
    assert log.state.first_unstable_offset is None


def test_transactions_that_end_in_another_order_than_they_began_hold_back_the_first_that_is_not_replicated() -> (
    None
):
    log = Log()
    for producer_id in (7, 8, 9):  # their first offsets are 0, 1, 2
        log.append(Batch(0, producer_id=producer_id, is_transactional=True))
    for producer_id in (9, 7, 8):  # their markers are at 3, 4, 5
        log.mark(COMMIT, producer_id=producer_id)
    unstable = []
    for high_watermark in range(3, 7):
        log.state.replicated_to(high_watermark)
        unstable.append(log.state.first_unstable_offset)
    assert unstable == [0, 0, 1, None]


def test_the_end_of_a_transaction_costs_little_however_many_are_not_replicated() -> None:
    """As when a long log is recovered: no high watermark moves until it is read whole."""
    compared = 0

    class Offset(int):
        def __lt__(self, other: int) -> bool:
            nonlocal compared
            compared += 1
            return int(self) < int(other)

    state = ProducerState()
    for number in range(1000):
        compared = 0
        state.ongoing[Offset(number)] = 7
        state.complete(CompletedTransaction(7, Offset(number), number, False))
        assert compared <= 2 * number.bit_length()
    assert state.first_unstable_offset == 0


def test_what_an_abort_leaves_for_the_index() -> None:
    log = Log()
    log.append(Batch(0, 2, is_transactional=True))
    log.append(Batch(0, producer_id=8, is_transactional=True))
    done = log.state.append_marker(7, 0, 0, ABORT, 3, 1000)
    assert done is not None
    assert (done.producer_id, done.first_offset, done.last_offset, done.aborted) == (7, 0, 3, True)
    assert log.state.last_stable_offset_after(done) == 2
    log.state.complete(done)
    other = log.state.append_marker(8, 0, 0, ABORT, 4, 1000)
    assert other is not None
    assert log.state.last_stable_offset_after(other) == 5


def test_a_marker_without_a_transaction_completes_nothing() -> None:
    assert ProducerState().append_marker(7, 0, 0, COMMIT, 0, 1000) is None


def test_markers_of_older_epochs_and_coordinators_are_refused() -> None:
    log = Log()
    log.append(Batch(0, producer_epoch=2, is_transactional=True))
    with pytest.raises(ProducerError) as caught:
        log.mark(COMMIT, epoch=1)
    assert caught.value.code == INVALID_PRODUCER_EPOCH
    assert str(caught.value).endswith("is 1, which is < the last seen epoch 2 (TV0)"), "for the log"
    log.mark(COMMIT, epoch=2, coordinator_epoch=5)
    with pytest.raises(ProducerError) as caught:
        log.mark(COMMIT, epoch=2, coordinator_epoch=4)
    assert caught.value.code == TRANSACTION_COORDINATOR_FENCED


def test_markers_of_transaction_version_2_bump_the_epoch() -> None:
    log = Log()
    log.append(Batch(0, is_transactional=True))
    state = log.state
    with pytest.raises(ProducerError):
        state.check_marker(7, 0, 0, 1, 2)
    state.check_marker(7, 1, 0, 1, 2)
    done = state.append_marker(7, 1, 0, COMMIT, 1, 1000)
    assert done is not None
    state.complete(done)
    state.check_marker(7, 1, 0, 2, 2)  # the answer was lost, the coordinator asks again (KAFKA-19999)
    assert log.append(Batch(0, producer_epoch=1)) == 1


def test_own_batches_have_no_sequences_but_epochs() -> None:
    state = ProducerState()
    state.append(Batch(-1, producer_epoch=3), 0, 0, 1000)
    state.check_own(Batch(-1, producer_epoch=3), 1)
    with pytest.raises(ProducerError) as caught:
        state.check_own(Batch(-1, producer_epoch=2), 1)
    assert caught.value.code == INVALID_PRODUCER_EPOCH


def test_loading_a_snapshot_restores_what_is_not_expired() -> None:
    young, old, open_ = ProducerEntry(1), ProducerEntry(2), ProducerEntry(3)
    for entry, timestamp in ((young, DAY_MS), (old, 0), (open_, 0)):
        entry.epoch = 0
        entry.last_timestamp = timestamp
        entry.batches.append((4, 5, 9, 1, timestamp))
    open_.transaction_start = 8
    state = ProducerState()
    state.load([young, old, open_], 10, DAY_MS, DAY_MS)
    assert sorted(state.producers) == [1, 3]
    assert (state.end_offset, state.snapshot_offset, state.first_unstable_offset) == (10, 10, 8)
    assert state.check(Batch(4, 2, producer_id=1), 10, False) == (4, 5, 9, 1, DAY_MS)
