"""Committed offsets: what is written and read back, what expires, what is deleted with its topic, transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages, slices
from pykafkad.hot import records
from pykafkad.pure.effects import Effects
from pykafkad.pure.groups.group_requests import is_expired
from pykafkad.pure.groups.offset_requests import is_longer
from pykafkad.pure.groups.offsets import Offset, Offsets
from pykafkad.pure.groups.records import encode
from tests.group_kit import Room
from tests.unit.coordinator_kit import OFFSETS, GroupDesk

MINUTE_MS = 60_000
RETENTION_MS = 10_080 * MINUTE_MS
CHECK_MS = 600_000


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path)


# -- commits


def test_a_commit_is_written_as_kafka_writes_it(desk: GroupDesk) -> None:
    assert desk.commit("g", (1, 42, "note", 3)) == [0]
    (key, value) = desk.log()[0]
    assert (key.group, key.topic, key.partition) == ("g", "orders", 1)
    assert (value.offset, value.metadata, value.leader_epoch) == (42, "note", 3)
    assert (value.commit_timestamp, value.expire_timestamp) == (desk.clock.now_ms(), -1)
    assert value.topic_id == desk.image.topics["orders"].id
    partition: Any = desk.storage.partitions[OFFSETS, 0]
    found = partition.read(0, 1 << 20, limit_offset=1, at_least_one=True)
    (record,) = records.read(found.read())
    assert ((record.key or b"")[:2], (record.value or b"")[:2]) == (b"\0\1", b"\0\4")
    assert record.timestamp == desk.clock.now_ms()


def test_an_old_client_says_how_long_an_offset_is_kept(desk: GroupDesk) -> None:
    assert desk.commit("g", (0, 5), retention_time_ms=1000, version=2) == [0]
    (_, value) = desk.log()[0]
    assert value.expire_timestamp == desk.clock.now_ms() + 1000
    partition: Any = desk.storage.partitions[OFFSETS, 0]
    (record,) = records.read(partition.read(0, 1 << 20, limit_offset=1, at_least_one=True).read())
    assert (record.value or b"")[:2] == b"\0\1"  # the one version of the value that has room for it


@pytest.mark.parametrize("generation", [0, 1])
def test_a_member_of_no_group_cannot_commit(desk: GroupDesk, generation: int) -> None:
    fields: dict[str, Any] = {"member_id": "m", "generation_id_or_member_epoch": generation}
    assert desk.commit("g", (0, 5), **fields) == [errors.ILLEGAL_GENERATION]
    assert desk.commit("g", (0, 5), version=9, **fields) == [errors.GROUP_ID_NOT_FOUND]
    assert desk.listed() == {}


def test_metadata_that_is_too_long_refuses_its_partition_only(desk: GroupDesk) -> None:
    assert desk.commit("g", (0, 5, "m" * 4097), (1, 6, "m" * 4096)) == [errors.OFFSET_METADATA_TOO_LARGE, 0]
    assert desk.committed("g") == {("orders", 1): 6}


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        ("", False),
        ("abcd", False),
        ("abcde", True),
        ("éééé", False),
        ("𝄞𝄞", False),
        ("𝄞𝄞a", True),
        ("ab\udc80", False),
    ],
)
def test_the_length_of_metadata_is_counted_as_java_does(text: str, longer: bool) -> None:
    assert is_longer(text, 4) is longer


def test_no_metadata_is_empty_metadata(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5, None))
    assert desk.log()[0][1].metadata == ""


# -- deletion


def delete_offsets(desk: GroupDesk, group_id: str, *indexes: int) -> Any:
    kind = messages.OffsetDeleteRequest
    rows = [kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
    topics = [kind.OffsetDeleteRequestTopic(name="orders", partitions=rows)]
    return desk.ask(kind(group_id=group_id, topics=topics), 0)


def delete_group(desk: GroupDesk, *names: str) -> dict[str, int]:
    answer = desk.ask(messages.DeleteGroupsRequest(groups_names=list(names)), 2)
    return {row.group_id: row.error_code for row in answer.results}


def test_deleted_offsets_leave_tombstones(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5), (1, 6))
    assert delete_offsets(desk, "g", 0, 2).error_code == 0
    assert desk.committed("g") == {("orders", 1): 6}
    assert [(key.partition, value) for key, value in desk.log()[2:]] == [(0, None)]
    assert delete_offsets(desk, "nobody", 0).error_code == errors.GROUP_ID_NOT_FOUND
    assert delete_offsets(desk, "", 0).error_code == errors.INVALID_GROUP_ID


def test_a_deleted_group_is_gone_after_a_restart_too(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5), (1, 6))
    desk.commit("h", (0, 5))
    assert delete_group(desk, "g", "nobody") == {"g": 0, "nobody": errors.GROUP_ID_NOT_FOUND}
    for _ in range(2):
        assert desk.listed() == {"h": "Empty"}
        assert desk.committed("g") == {}
        desk = desk.restarted()
        desk.settle()


def test_offsets_of_a_group_with_members_stay_that_says_no_topics() -> None:
    """Connect's workers, for instance: what they read nobody can tell."""
    room = Room()
    leader, asked = room.enter(protocol_type="connect")
    room.advance(3_000)
    room.sync(leader, asked.answer.generation_id, protocol_type="connect", assignments={leader: b"x"})
    group = room.group()
    assert group.state_name == "Stable" and group.offset_expiry_base_ms(room.now_ms) is None
    value = messages.OffsetCommitValue(offset=5, commit_timestamp=room.now_ms)
    offset = Offset(value, 0)
    assert not is_expired(group, offset, room.now_ms + 10 * RETENTION_MS, RETENTION_MS)


def test_the_offsets_of_a_deleted_topic_go(desk: GroupDesk) -> None:
    desk.create("other", 1)
    desk.commit("g", (0, 5), (1, 6))
    desk.commit("g", (0, 7), topic="other")
    desk.commit("h", (2, 8))
    desk.group_coordinator.topic_deleted(desk.image.topics["orders"])
    desk.end_pass()
    for _ in range(2):
        assert desk.committed("g") == {("other", 0): 7}
        assert desk.committed("h") == {}
        desk = desk.restarted()
        desk.settle()


def test_a_topic_that_is_deleted_while_its_offsets_load_takes_them_along(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    desk = desk.restarted()
    orders = desk.image.topics["orders"]
    desk.group_coordinator.shard(0)
    desk.group_coordinator.topic_deleted(orders)
    desk.group_coordinator.shard(0).is_active = False
    desk.group_coordinator.topic_deleted(orders)
    desk.group_coordinator.shard(0).loaded()
    desk.end_pass()
    assert desk.committed("g") == {}


def test_more_tombstones_than_a_batch_holds_are_several_batches(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykafkad.pure.groups.offset_requests.TOMBSTONES_AT_ONCE", 3000)
    name = "n" * 200
    desk.add(name, 3000)
    for start in range(0, 3000, 1000):
        desk.commit("g" * 200, *((index, 1) for index in range(start, start + 1000)), topic=name)
    assert len(desk.committed("g" * 200)) == 3000
    before = desk.storage.partitions[OFFSETS, 0].log_end_offset
    desk.group_coordinator.topic_deleted(desk.image.topics[name])
    desk.end_pass()
    assert desk.committed("g" * 200) == {}
    partition: Any = desk.storage.partitions[OFFSETS, 0]
    data = partition.read(before, 1 << 30, limit_offset=before + 3000, at_least_one=True).read()
    counts = [batch.count for batch in records.scan(data) if batch.base_offset >= before]
    assert len(counts) == 2 and sum(counts) == 3000


# -- expiry


def expire(desk: GroupDesk) -> None:
    desk.group_coordinator.expire()
    desk.end_pass()
    desk.settle()


def test_an_offset_expires_when_its_time_since_the_commit_is_over(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    desk.advance(RETENTION_MS - 1)
    desk.commit("g", (1, 6))
    expire(desk)
    assert desk.committed("g") == {("orders", 0): 5, ("orders", 1): 6}
    desk.advance(1)
    expire(desk)
    assert desk.committed("g") == {("orders", 1): 6}
    assert desk.listed() == {"g": "Empty"}


def test_a_group_goes_with_its_last_offset(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    desk.advance(RETENTION_MS)
    expire(desk)
    for _ in range(2):
        assert desk.listed() == {}
        desk = desk.restarted()
        desk.settle()
    assert [value for _, value in desk.log()[1:]] == [None, None]


def test_what_an_old_client_said_comes_before_the_retention(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5), retention_time_ms=1000, version=2)
    desk.commit("g", (1, 5), retention_time_ms=10 * RETENTION_MS, version=2)
    desk.advance(999)
    expire(desk)
    assert len(desk.committed("g")) == 2
    desk.advance(1)
    expire(desk)
    assert desk.committed("g") == {("orders", 1): 5}
    desk.advance(2 * RETENTION_MS)
    expire(desk)
    assert desk.committed("g") == {("orders", 1): 5}


def test_the_retention_is_what_the_broker_is_told(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, offsets_retention_minutes="2")
    desk.commit("g", (0, 5))
    desk.advance(2 * MINUTE_MS - 1)
    expire(desk)
    assert desk.committed("g") == {("orders", 0): 5}
    desk.advance(1)
    expire(desk)
    assert desk.listed() == {}


def test_expiry_is_looked_for_as_often_as_the_broker_is_told(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, offsets_retention_check_interval_ms="1234")
    ((interval_ms, job),) = desk.group_coordinator.jobs
    assert (interval_ms, job) == (1234, desk.group_coordinator.expire)


def test_many_groups_are_looked_at_in_turns(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(25):
        desk.commit(f"g{index}", (0, 1))
    desk.advance(RETENTION_MS)
    with monkeypatch.context() as patch:
        patch.setattr(slices, "SLICE_US", 0)
        desk.group_coordinator.expire()
        for _ in range(19):
            desk.advance(0)
        desk.end_pass()
    assert len(desk.group_coordinator.shard(0).machine.by_id) == 15, "two steps a group"
    desk.settle()
    assert desk.listed() == {}


def test_a_round_of_expiry_is_over_before_the_next_one_begins(desk: GroupDesk) -> None:
    """However short offsets.retention.check.interval.ms is: otherwise rounds would pile up, each with all groups."""
    for index in range(25):
        desk.commit(f"g{index}", (0, 1))
    later: list[Any] = []
    desk.coordinator_loop.in_slices = lambda work, done: later.append(done)
    for _ in range(5):
        desk.group_coordinator.expire()
    assert len(later) == 1
    later[0](None)
    desk.group_coordinator.expire()
    assert len(later) == 2


# -- transactions


def transactional(desk: GroupDesk, producer_id: int, *rows: tuple[int, int]) -> None:
    """Records as a transaction writes them."""
    kind = messages.OffsetCommitValue
    data = [
        encode(
            messages.OffsetCommitKey(group="g", topic="orders", partition=index),
            kind(offset=offset, metadata="", commit_timestamp=desk.clock.now_ms()),
        )
        for index, offset in rows
    ]
    batch = records.build(
        [(key, value, [], desk.clock.now_ms()) for key, value in data],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    desk.storage.partitions[OFFSETS, 0].append_built(batch, desk.clock.now_ms())
    desk.end_pass()


def end_transaction(desk: GroupDesk, producer_id: int, committed: bool) -> None:
    batch = records.build(
        [(b"\0\0\0\1" if committed else b"\0\0\0\0", bytes(6), [], desk.clock.now_ms())],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    desk.storage.partitions[OFFSETS, 0].append_built(batch, desk.clock.now_ms())
    desk.end_pass()


@pytest.fixture
def restarted(desk: GroupDesk) -> Any:
    """The state after a restart, from the log."""

    def restart() -> GroupDesk:
        again = desk.restarted()
        again.settle()
        return again

    return restart


def test_offsets_of_a_committed_transaction_count(desk: GroupDesk, restarted: Any) -> None:
    desk.commit("g", (0, 5))
    transactional(desk, 7, (0, 10), (1, 11))
    end_transaction(desk, 7, True)
    assert restarted().committed("g") == {("orders", 0): 10, ("orders", 1): 11}


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends_in_the_running_coordinator_as_in_a_restarted_one(
    desk: GroupDesk, restarted: Any, committed: bool
) -> None:
    desk.commit("g", (0, 5))
    effects = Effects()
    effects.producer = 7, 0
    effects.write(
        messages.OffsetCommitKey(group="g", topic="orders", partition=0),
        messages.OffsetCommitValue(offset=10, metadata="", commit_timestamp=desk.clock.now_ms()),
    )
    desk.group_coordinator.shard(0).perform(effects)
    desk.end_pass()
    assert desk.committed("g") == {("orders", 0): 5}
    assert desk.committed("g", require_stable=True) == {("orders", 0): -errors.UNSTABLE_OFFSET_COMMIT}
    desk.group_coordinator.shard(0).end_transaction((7, 0), 0, committed, 1)
    desk.end_pass()
    expected = {("orders", 0): 10 if committed else 5}
    assert desk.committed("g", require_stable=True) == expected
    assert restarted().committed("g", require_stable=True) == expected


def test_offsets_of_an_aborted_transaction_do_not(desk: GroupDesk, restarted: Any) -> None:
    desk.commit("g", (0, 5))
    transactional(desk, 7, (0, 10), (1, 11))
    end_transaction(desk, 7, False)
    assert restarted().committed("g") == {("orders", 0): 5}


def test_a_later_commit_wins_over_a_transaction_that_ends_after_it(desk: GroupDesk, restarted: Any) -> None:
    transactional(desk, 7, (0, 10), (1, 11))
    desk.commit("g", (0, 20))
    end_transaction(desk, 7, True)
    assert restarted().committed("g") == {("orders", 0): 20, ("orders", 1): 11}


def test_offsets_of_an_open_transaction_are_unstable(desk: GroupDesk, restarted: Any) -> None:
    desk.commit("g", (0, 5), (1, 6))
    transactional(desk, 7, (0, 10), (2, 12))
    again = restarted()
    assert again.committed("g") == {("orders", 0): 5, ("orders", 1): 6}
    unstable = again.committed("g", require_stable=True)
    assert unstable == {("orders", 0): -errors.UNSTABLE_OFFSET_COMMIT, ("orders", 1): 6}


def test_what_an_open_transaction_holds_does_not_expire(desk: GroupDesk, restarted: Any) -> None:
    desk.commit("g", (0, 5), (1, 6))
    transactional(desk, 7, (0, 10))
    desk.advance(RETENTION_MS)
    again = restarted()
    expire(again)
    assert again.committed("g") == {("orders", 0): 5}
    assert again.listed() == {"g": "Empty"}


def test_a_deleted_group_takes_open_transactions_along(desk: GroupDesk, restarted: Any) -> None:
    transactional(desk, 7, (0, 10))
    again = restarted()
    assert delete_group(again, "g") == {"g": 0}
    end_transaction(again, 7, True)
    last = again.restarted()
    last.settle()
    assert last.committed("g") == {}


def test_the_end_of_a_transaction_without_offsets_changes_nothing() -> None:
    offsets = Offsets()
    offsets.end_transaction(9, True)
    assert (offsets.by_group, offsets.pending) == ({}, {})


def test_a_large_topic_goes_in_turns_and_what_is_committed_meanwhile_stays(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykafkad.pure.groups.offset_requests.TOMBSTONES_AT_ONCE", 2)
    desk.commit("g", (0, 1), (1, 2), (2, 3))
    desk.commit("h", (0, 4), (1, 5))
    held = desk.group_coordinator.shard(0).machine.offsets.by_group
    with monkeypatch.context() as patch:
        patch.setattr(slices, "SLICE_US", 0)
        desk.group_coordinator.topic_deleted(desk.image.topics["orders"])
        assert [len(held[group_id]["orders"]) for group_id in "gh"] == [1, 2]
        desk.commit("h", (1, 6))  # the topic was created again
    desk.settle()
    assert (desk.committed("g"), desk.committed("h")) == ({}, {("orders", 1): 6})
