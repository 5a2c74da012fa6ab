"""Produce in transactions: when the coordinator is asked, what is made of its answers, and what comes in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import ProduceRequest
from tests.unit.data_kit import batch
from tests.unit.transaction_kit import TransactionDesk

ADDS, VERIFIES, OLD = 12, 11, 10
NONE = errors.NONE
EPOCH = 0


class Desk(TransactionDesk):
    def codes(self, given: Any, version: int) -> dict[int, int]:
        answer = self.answer_of(given, "ProduceRequest", version)
        assert answer is not None
        return {row.index: row.error_code for topic in answer.responses for row in topic.partition_responses}

    def produced(self, request: Any, version: int = ADDS) -> dict[int, int]:
        given = self.begin(request, version)
        self.settle()
        return self.codes(given, version)

    def end_offset(self, index: int = 0) -> int:
        return self.replicas.table["t", index].log_end_offset


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    desk.storage.close()


def data(sequence: int = 0, epoch: int = EPOCH, producer_id: int = 7, **fields: Any) -> bytes:
    given = {"transactional": True, **fields}
    return batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **given)


def produce(parts: dict[int, bytes] | bytes, transactional_id: str | None = "tx", **fields: Any) -> Any:
    kind = ProduceRequest
    rows = parts if isinstance(parts, dict) else {0: parts}
    items = [kind.PartitionProduceData(index=index, records=each) for index, each in rows.items()]
    topics = [kind.TopicProduceData(name="t", partition_data=items)]
    given = {"acks": -1, "timeout_ms": 1000, "transactional_id": transactional_id, **fields}
    return kind(topic_data=topics, **given)


# One batch of a newer client comes as a short form.
SHAPES = pytest.mark.parametrize("shape", [{0: data()}, {0: data(), 1: data()}])


@pytest.mark.parametrize("version", [3, 9, OLD, VERIFIES, ADDS])
@SHAPES
def test_the_first_batch_of_a_partition_is_asked_about(
    desk: Desk, version: int, shape: dict[int, bytes]
) -> None:
    assert desk.produced(produce(shape), version) == dict.fromkeys(shape, NONE)
    partitions = [("t", index) for index in shape]
    assert desk.coordinator.asked == [("tx", 7, EPOCH, partitions, version >= ADDS)]
    assert desk.replicas.table["t", 0].producers.ongoing == {0: 7}


def test_what_follows_in_the_transaction_is_not(desk: Desk) -> None:
    desk.produced(produce(data()))
    assert desk.produced(produce(data(1))) == {0: NONE}
    assert desk.produced(produce({0: data(2), 1: data()})) == {0: NONE, 1: NONE}
    assert [each[3] for each in desk.coordinator.asked] == [[("t", 0)], [("t", 1)]]
    assert not desk.replicas.table["t", 0].producers.verifying


def test_the_next_transaction_is_asked_about_again(desk: Desk) -> None:
    desk.produced(produce(data()), VERIFIES)
    desk.end("t", 0)
    assert desk.produced(produce(data(1)), VERIFIES) == {0: NONE}
    assert len(desk.coordinator.asked) == 2


def test_an_idempotent_producer_is_not_asked_about(desk: Desk) -> None:
    assert desk.produced(produce(data(transactional=False), None)) == {0: NONE}
    assert desk.produced(produce(data(1, transactional=False))) == {0: NONE}
    assert desk.produced(produce(data(2, transactional=False, codec="gzip"))) == {0: NONE}
    assert desk.produced(produce(batch(b"plain"))) == {0: NONE}
    assert desk.coordinator.asked == []


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
def test_verification_can_be_switched_off_and_adding_cannot(desk: Desk, version: int) -> None:
    desk.switch_verification_off()
    assert desk.produced(produce(data()), version) == {0: NONE}
    assert len(desk.coordinator.asked) == (version >= ADDS)


# -- refusals

AGAIN = errors.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    ("code", "old", "verifies", "adds"),
    [
        (errors.TRANSACTION_ABORTABLE, errors.INVALID_TXN_STATE, *[errors.TRANSACTION_ABORTABLE] * 2),
        (errors.PRODUCER_FENCED, *[errors.INVALID_PRODUCER_EPOCH] * 3),
        (errors.INVALID_PRODUCER_EPOCH, *[errors.INVALID_PRODUCER_EPOCH] * 3),
        (errors.INVALID_TXN_STATE, *[errors.INVALID_TXN_STATE] * 3),
        (errors.INVALID_PRODUCER_ID_MAPPING, *[errors.INVALID_PRODUCER_ID_MAPPING] * 3),
        (errors.NOT_COORDINATOR, AGAIN, AGAIN, AGAIN),
        (errors.COORDINATOR_NOT_AVAILABLE, AGAIN, AGAIN, AGAIN),
        (errors.COORDINATOR_LOAD_IN_PROGRESS, AGAIN, AGAIN, AGAIN),
        (errors.CONCURRENT_TRANSACTIONS, AGAIN, AGAIN, errors.CONCURRENT_TRANSACTIONS),
    ],
)
@SHAPES
def test_what_the_coordinator_refuses(
    desk: Desk, code: int, old: int, verifies: int, adds: int, shape: dict[int, bytes]
) -> None:
    for version, expected in [(OLD, old), (VERIFIES, verifies), (ADDS, adds)]:
        desk.coordinator.codes = [code] * 100
        given = desk.begin(produce(shape), version)
        for _ in range(200):
            desk.advance(1)
        assert desk.codes(given, version) == dict.fromkeys(shape, expected)
        assert desk.end_offset() == 0


def test_what_is_said_of_a_refusal(desk: Desk) -> None:
    for code, text in [
        (errors.INVALID_TXN_STATE, "Partition was not added to the transaction"),
        (
            errors.NOT_COORDINATOR,
            "Unable to verify the partition has been added to the transaction."
            " Underlying error: NOT_COORDINATOR",
        ),
        (errors.INVALID_PRODUCER_EPOCH, None),
    ]:
        desk.coordinator.codes = [code]
        answer = desk.answer_of(desk.begin(produce(data()), ADDS), "ProduceRequest", ADDS)
        row = answer.responses[0].partition_responses[0]
        assert (row.error_message, row.base_offset, row.log_start_offset) == (text, -1, -1)


def test_a_refused_partition_does_not_keep_the_others_back(desk: Desk) -> None:
    desk.produced(produce({0: data()}))
    desk.coordinator.codes = [errors.INVALID_TXN_STATE]
    assert desk.produced(produce({0: data(1), 1: data()})) == {0: NONE, 1: errors.INVALID_TXN_STATE}


def test_two_producers_in_a_request(desk: Desk) -> None:
    code = errors.INVALID_PRODUCER_ID_MAPPING
    assert desk.produced(produce({0: data(), 1: data(producer_id=8)})) == {0: code, 1: code}
    assert (desk.coordinator.asked, desk.end_offset()) == ([], 0)


def test_the_first_producer_of_all_takes_part(desk: Desk) -> None:
    """Its id is 0."""
    assert desk.produced(produce(data(producer_id=0))) == {0: NONE}
    assert [asked[:2] for asked in desk.coordinator.asked] == [("tx", 0)]


def test_a_transactional_batch_without_an_id(desk: Desk) -> None:
    assert desk.produced(produce(data(), None)) == {0: errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_an_empty_id_has_no_transactions(desk: Desk) -> None:
    assert desk.produced(produce(data(), "")) == {0: errors.INVALID_REQUEST}
    assert desk.coordinator.asked == []


def test_a_fenced_producer_is_refused_without_a_question(desk: Desk) -> None:
    desk.produced(produce(data(epoch=3)))
    assert desk.produced(produce(data(epoch=2))) == {0: errors.INVALID_PRODUCER_EPOCH}
    assert len(desk.coordinator.asked) == 1


def test_partitions_that_are_not_there(desk: Desk) -> None:
    assert desk.produced(produce({9: data()})) == {9: errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert desk.coordinator.asked == []


# -- while the coordinator thinks


def test_nothing_is_appended_before_the_coordinator_has_answered(desk: Desk) -> None:
    desk.coordinator.waits = True
    given = desk.begin(produce(data()), ADDS)
    desk.settle()
    assert (desk.end_offset(), desk.answer_of(given, "ProduceRequest", ADDS)) == (0, None)
    desk.coordinator.answer()
    desk.settle()
    assert (desk.end_offset(), desk.codes(given, ADDS)) == (1, {0: NONE})


@SHAPES
def test_an_answer_that_an_end_marker_overtook_counts_no_more(desk: Desk, shape: dict[int, bytes]) -> None:
    """Else a transaction would begin that nobody ends."""
    desk.coordinator.waits = True
    given = desk.begin(produce(shape), VERIFIES)
    desk.end("t", 0)
    desk.coordinator.answer()
    desk.settle()
    expected = dict.fromkeys(shape, NONE) | {0: errors.INVALID_TXN_STATE}
    assert desk.codes(given, VERIFIES) == expected
    assert not desk.replicas.table["t", 0].producers.ongoing


def test_a_partition_that_was_made_anew_meanwhile(desk: Desk) -> None:
    desk.coordinator.waits = True
    given = desk.begin(produce(data()), VERIFIES)
    for index in range(3):
        desk.storage.delete("t", index)
    desk.create("t", 3)
    desk.coordinator.answer()
    desk.settle()
    assert desk.codes(given, VERIFIES) == {0: errors.INVALID_TXN_STATE}


def test_what_overtakes_a_batch_that_must_be_sent_again(desk: Desk) -> None:
    desk.coordinator.codes = [errors.NOT_COORDINATOR]
    assert desk.produced(produce(data(0)), VERIFIES) == {0: AGAIN}
    assert desk.produced(produce(data(1)), VERIFIES) == {0: errors.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert desk.produced(produce(data(0)), VERIFIES) == {0: NONE}
    assert desk.produced(produce(data(1)), VERIFIES) == {0: NONE}


def test_the_sequences_of_a_transaction_begin_at_0_where_it_is_added(desk: Desk) -> None:
    assert desk.produced(produce(data(5)), ADDS) == {0: errors.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert desk.produced(produce({1: data(5)}), VERIFIES) == {1: NONE}


def test_a_coordinator_that_ends_the_last_transaction_is_asked_again(desk: Desk) -> None:
    desk.coordinator.codes = [errors.CONCURRENT_TRANSACTIONS] * 3
    given = desk.begin(produce(data()), ADDS)
    for _ in range(10):
        desk.advance(1)
    assert len(desk.coordinator.asked) == 4
    assert desk.codes(given, ADDS) == {0: NONE}


@SHAPES
def test_the_marker_of_the_last_transaction_comes_before_the_answer_that_counts(
    desk: Desk, shape: dict[int, bytes]
) -> None:
    """A coordinator on another broker has ended a transaction for its client before the markers are written: with the
    epoch that the next transaction has, since transaction version 2."""
    desk.produced(produce(data(epoch=0)))
    desk.coordinator.codes = [errors.CONCURRENT_TRANSACTIONS]
    parts = {index: data(epoch=1) for index in shape}
    given = desk.begin(produce(parts), ADDS)
    desk.end("t", 0, epoch=1, committed=True)
    for _ in range(3):
        desk.advance(1)
    assert desk.codes(given, ADDS) == dict.fromkeys(shape, NONE)
    assert desk.replicas.table["t", 0].producers.is_under_way(7, 1)


def test_it_is_asked_for_as_long_as_the_config_says(desk: Desk) -> None:
    desk.coordinator.codes = [errors.CONCURRENT_TRANSACTIONS] * 100
    given = desk.begin(produce(data()), ADDS)
    for _ in range(99):
        desk.advance(1)
    assert desk.answer_of(given, "ProduceRequest", ADDS) is None
    for _ in range(40):  # the pause under way
        desk.advance(1)
    assert desk.codes(given, ADDS) == {0: errors.CONCURRENT_TRANSACTIONS}


def test_with_acks_0_a_refusal_closes_the_connection(desk: Desk) -> None:
    desk.coordinator.codes = [errors.INVALID_TXN_STATE]
    desk.begin(produce(data(), acks=0), ADDS)
    assert desk.connection.closed


def test_verifications_that_nobody_came_back_to_expire(desk: Desk) -> None:
    desk.coordinator.codes = [errors.NOT_COORDINATOR]
    desk.produced(produce(data()), VERIFIES)
    producers = desk.replicas.table["t", 0].producers
    day_ms = desk.config["producer.id.expiration.ms"]
    producers.remove_expired(desk.clock.now_ms() + day_ms - 1, day_ms)
    assert producers.verifying
    producers.remove_expired(desk.clock.now_ms() + day_ms, day_ms)
    assert not producers.verifying
