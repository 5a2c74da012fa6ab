"""TxnOffsetCommit: who may commit offsets in a transaction, and when they count."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import TxnOffsetCommitRequest
from tests.unit.coordinator_kit import OFFSETS
from tests.unit.test_classic_group_handlers import joined, sync
from tests.unit.test_handlers_consumer_group import beat
from tests.unit.test_handlers_consumer_group import join as join_consumers
from tests.unit.transaction_kit import TransactionDesk

ADDS, KNOWS_ABORTABLE, OLD = 5, 4, 3
NONE = errors.NONE
VERSIONS = range(6)
UNSTABLE = {("orders", 0): -errors.UNSTABLE_OFFSET_COMMIT}


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = TransactionDesk(tmp_path, group_initial_rebalance_delay_ms="0")
    yield desk
    desk.storage.close()


def commit(*rows: tuple[int, int], topic: str = "orders", **fields: Any) -> Any:
    kind = TxnOffsetCommitRequest
    parts = [
        kind.TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=fields.get("metadata", "")
        )
        for index, offset in rows
    ]
    fields.pop("metadata", None)
    given = {"transactional_id": "tx", "group_id": "group", "producer_id": 7, "producer_epoch": 0, **fields}
    topics = [kind.TxnOffsetCommitRequestTopic(name=topic, partitions=parts)]
    return kind(topics=topics, **given)


def codes(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }


def committed(desk: TransactionDesk, request: Any, version: int = ADDS) -> int:
    """The one code of the answer."""
    (code,) = set(codes(desk.told(request, version)).values())
    return code


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ends_well", [True, False])
def test_offsets_count_when_the_transaction_is_committed(
    desk: TransactionDesk, version: int, ends_well: bool
) -> None:
    desk.commit("group", (0, 5))
    assert codes(desk.told(commit((0, 10), (1, 11)), version)) == {("orders", 0): NONE, ("orders", 1): NONE}
    assert desk.coordinator.asked == [("tx", 7, 0, [(OFFSETS, 0)], version >= ADDS)]
    assert desk.committed("group") == {("orders", 0): 5}
    assert desk.committed("group", require_stable=True) == UNSTABLE
    desk.end(OFFSETS, 0, committed=ends_well)
    expected = {("orders", 0): 10, ("orders", 1): 11} if ends_well else {("orders", 0): 5}
    assert desk.committed("group", require_stable=True) == expected
    again = desk.restarted()
    again.settle()
    assert again.committed("group", require_stable=True) == expected


def test_a_second_commit_in_the_transaction_asks_nobody(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 10))) == NONE
    assert committed(desk, commit((0, 12))) == NONE
    assert len(desk.coordinator.asked) == 1
    desk.end(OFFSETS, 0, committed=True)
    assert desk.committed("group") == {("orders", 0): 12}


def test_verification_can_be_switched_off_and_adding_cannot(desk: TransactionDesk) -> None:
    desk.switch_verification_off()
    assert committed(desk, commit((0, 10)), KNOWS_ABORTABLE) == NONE
    assert desk.coordinator.asked == []
    desk.end(OFFSETS, 0)
    assert committed(desk, commit((0, 10)), ADDS) == NONE
    assert len(desk.coordinator.asked) == 1


# -- refusals of the transaction coordinator


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errors.TRANSACTION_ABORTABLE, {OLD: errors.INVALID_TXN_STATE}),
        (errors.PRODUCER_FENCED, dict.fromkeys(VERSIONS, errors.INVALID_PRODUCER_EPOCH)),
        (errors.INVALID_PRODUCER_ID_MAPPING, {}),
        (errors.INVALID_TXN_STATE, {}),
        (errors.NOT_COORDINATOR, {}),
        (errors.COORDINATOR_LOAD_IN_PROGRESS, {0: errors.COORDINATOR_NOT_AVAILABLE}),
    ],
)
def test_what_the_coordinator_refuses(desk: TransactionDesk, code: int, expected: dict[int, int]) -> None:
    for version in (0, OLD, KNOWS_ABORTABLE, ADDS):
        if version == 0 and code == errors.TRANSACTION_ABORTABLE:
            continue
        desk.coordinator.codes = [code]
        assert committed(desk, commit((0, 10)), version) == expected.get(version, code)
    assert desk.log() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_clients_know_no_word_for_a_coordinator_that_loads(
    desk: TransactionDesk, version: int
) -> None:
    desk.coordinator.codes = [errors.COORDINATOR_LOAD_IN_PROGRESS]
    known = errors.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else errors.COORDINATOR_NOT_AVAILABLE
    assert committed(desk, commit((0, 10)), version) == known


def test_nothing_is_written_before_the_coordinator_has_answered(desk: TransactionDesk) -> None:
    desk.coordinator.waits = True
    given = desk.begin(commit((0, 10)), ADDS)
    desk.settle()
    assert desk.log() == [] and desk.answer_of(given, "TxnOffsetCommitRequest", ADDS) is None
    desk.coordinator.answer()
    desk.settle()
    desk.end_pass()
    assert len(desk.log()) == 1
    assert set(codes(desk.answer_of(given, "TxnOffsetCommitRequest", ADDS)).values()) == {NONE}


def test_an_answer_that_an_end_marker_overtook_counts_no_more(desk: TransactionDesk) -> None:
    desk.coordinator.waits = True
    given = desk.begin(commit((0, 10)), KNOWS_ABORTABLE)
    desk.end(OFFSETS, 0)
    desk.coordinator.answer()
    desk.settle()
    answer = desk.answer_of(given, "TxnOffsetCommitRequest", KNOWS_ABORTABLE)
    assert set(codes(answer).values()) == {errors.INVALID_TXN_STATE}


def test_a_fenced_producer(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 10), producer_epoch=3)) == NONE
    assert committed(desk, commit((0, 11), producer_epoch=2)) == errors.INVALID_PRODUCER_EPOCH
    assert len(desk.coordinator.asked) == 1


# -- groups


def test_a_group_is_made_for_offsets_without_a_member(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 10))) == NONE
    assert desk.listed() == {"group": "Empty"}


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_generation_of_a_group_that_is_not_there(desk: TransactionDesk, version: int) -> None:
    request = commit((0, 10), generation_id=1, member_id="me")
    assert committed(desk, request, version) == errors.ILLEGAL_GENERATION
    assert desk.listed() == {}


def test_members_of_a_classic_group(desk: TransactionDesk) -> None:
    me = joined(desk).member_id
    in_sync = {"generation_id": 1, "member_id": me}
    assert committed(desk, commit((0, 10), **in_sync)) == NONE, "while it rebalances, too"
    assert desk.ask(sync(me, 1, {me: b""}), 3).error_code == NONE
    for fields, code in [
        (in_sync, NONE),
        ({"generation_id": 0, "member_id": me}, errors.ILLEGAL_GENERATION),
        ({"generation_id": 2, "member_id": me}, errors.ILLEGAL_GENERATION),
        ({"generation_id": 1, "member_id": "somebody"}, errors.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "nobody", **in_sync}, errors.UNKNOWN_MEMBER_ID),
        ({}, NONE),  # older clients say nothing of members
    ]:
        assert committed(desk, commit((0, 11), **fields)) == code, fields


def test_members_of_a_consumer_group(desk: TransactionDesk) -> None:
    epoch = join_consumers(desk, "me", "orders").member_epoch
    for fields, code in [
        ({"generation_id": epoch, "member_id": "me"}, NONE),
        ({"generation_id": epoch + 1, "member_id": "me"}, errors.ILLEGAL_GENERATION),
        ({"generation_id": epoch - 1, "member_id": "me"}, errors.ILLEGAL_GENERATION),
        ({"generation_id": epoch, "member_id": "somebody"}, errors.UNKNOWN_MEMBER_ID),
        ({}, NONE),
    ]:
        assert committed(desk, commit((0, 11), group_id="g", **fields)) == code, fields
    assert beat(desk, "me", epoch).error_code == NONE


# -- partitions, texts, coordinators


def test_partitions_that_do_not_exist_come_first(desk: TransactionDesk) -> None:
    request = commit((0, 1), (3, 1), (-1, 1), (2, 1))
    request.topics += commit((0, 1), topic="nobody").topics
    answer = codes(desk.told(request, ADDS))
    gone = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert list(answer.items()) == [
        (("orders", 3), gone),
        (("orders", -1), gone),
        (("orders", 0), NONE),
        (("orders", 2), NONE),
        (("nobody", 0), gone),
    ]


def test_nothing_that_exists_asks_nobody(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 1), topic="nobody", group_id="")) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(desk.told(TxnOffsetCommitRequest(), ADDS)) == {}
    assert desk.coordinator.asked == []


def test_metadata_that_is_too_long(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 1), metadata="x" * 4097)) == errors.OFFSET_METADATA_TOO_LARGE
    assert desk.log() == []


def test_a_group_without_a_name(desk: TransactionDesk) -> None:
    assert committed(desk, commit((0, 1), group_id="")) == errors.INVALID_GROUP_ID


def test_a_broker_that_does_not_lead_the_groups_offsets(desk: TransactionDesk) -> None:
    desk.replicas.table[OFFSETS, 0].become_follower(3, 9)
    assert committed(desk, commit((0, 1))) == errors.NOT_COORDINATOR
    del desk.replicas.table[OFFSETS, 0]
    assert committed(desk, commit((0, 1))) == errors.NOT_COORDINATOR
    assert desk.coordinator.asked == [], "nothing takes part in a transaction that is not written"


def test_a_write_that_fails(desk: TransactionDesk) -> None:
    given = desk.send(commit((0, 1), (3, 1)), ADDS)
    desk.replicas.table[OFFSETS, 0].log_directory.fail("the disk is gone")
    desk.end_pass()
    desk.settle()
    answer = codes(desk.answer_of(given, "TxnOffsetCommitRequest", ADDS))
    assert answer == {
        ("orders", 3): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): errors.NOT_COORDINATOR,
    }


def test_many_partitions_are_committed_in_slices(desk: TransactionDesk) -> None:
    desk.add("wide", 2_000)
    request = commit(*[(index, 1) for index in range(2_000)], topic="wide")
    given = desk.send(request, ADDS)
    for _ in range(200):
        desk.advance(0)
    desk.end_pass()
    answer = codes(desk.answer_of(given, "TxnOffsetCommitRequest", ADDS))
    assert len(answer) == 2_000 and set(answer.values()) == {NONE}
    assert len(desk.log()) == 2_000


def test_what_was_answered_is_freed_at_once(desk: TransactionDesk) -> None:
    """The collector comes seldom."""
    committed(desk, commit((0, 10)))
    gc.collect()
    gc.disable()
    try:
        for code in (NONE, errors.INVALID_TXN_STATE):
            desk.coordinator.codes = [code]
            assert committed(desk, commit((0, 10), producer_id=8 + code)) == code
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_topic_without_partitions_is_answered_if_it_is_unknown(desk: TransactionDesk) -> None:
    request = commit(topic="nobody")
    request.topics += commit(topic="orders").topics
    answer = desk.told(request, ADDS)
    assert [(topic.name, topic.partitions) for topic in answer.topics] == [("nobody", [])]
    assert desk.coordinator.asked == []
