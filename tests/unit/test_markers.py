"""End markers: where they are written, when they count as committed, what is answered where they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.markers import Marker
from pykafkad.cluster.replica import Replica
from pykafkad.messages import OffsetCommitKey, OffsetCommitValue
from pykafkad.pure.effects import Effects
from tests.unit.coordinator_kit import OFFSETS, GroupDesk
from tests.unit.data_kit import batch

COMMIT = Marker(producer_id=7, producer_epoch=1, coordinator_epoch=3, committed=True, transaction_version=2)
ABORT = COMMIT._replace(committed=False)


class Desk(GroupDesk):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.create("t", 2)

    def begin(self, index: int = 0, producer_id: int = 7, epoch: int = 0) -> None:
        """A batch of a transaction in a partition of `t`."""
        data = batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        self.storage.partitions["t", index].append(data, self.clock.now_ms(), verified=True)
        self.end_pass()

    def write(self, marker: Marker, *partitions: tuple[str, int]) -> list[dict[tuple[str, int], int]]:
        """What is told, if it is told by and by."""
        told: list[dict[tuple[str, int], int]] = []
        self.markers.write(marker, partitions, told.append)
        return told

    def run(self) -> None:
        self.end_pass()
        self.settle()

    def replica(self, index: int = 0) -> Replica:
        return self.replicas.table["t", index]


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    desk.storage.close()


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
def test_a_marker_ends_the_transaction_in_each_partition(desk: Desk, marker: Marker) -> None:
    desk.begin(0)
    desk.begin(1)
    assert [desk.replica(index).last_stable_offset for index in (0, 1)] == [0, 0]
    told = desk.write(marker, ("t", 0), ("t", 1))
    assert told == []
    desk.run()
    assert told == [{("t", 0): errors.NONE, ("t", 1): errors.NONE}]
    assert [desk.replica(index).last_stable_offset for index in (0, 1)] == [2, 2]
    entry = desk.replica().producers.producers[7]
    assert (entry.epoch, entry.coordinator_epoch, entry.transaction_start) == (1, 3, -1)


def test_it_is_told_in_a_pass_of_its_own(desk: Desk) -> None:
    told = desk.write(COMMIT, ("t", 0))
    desk.end_pass()
    assert told == [], "the appends of this pass are over"
    desk.settle()
    assert len(told) == 1


def test_a_partition_that_is_named_twice_has_one_marker(desk: Desk) -> None:
    told = desk.write(COMMIT, ("t", 0), ("t", 0))
    desk.run()
    assert told == [{("t", 0): errors.NONE}]
    assert desk.replica().log_end_offset == 1


def test_nothing_to_write_is_told_too(desk: Desk) -> None:
    told = desk.write(COMMIT)
    desk.run()
    assert told == [{}]


def test_partitions_that_do_not_exist(desk: Desk) -> None:
    told = desk.write(COMMIT, ("t", 2), ("t", -1), ("nobody", 0), ("t", 0))
    desk.run()
    gone = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert told == [{("t", 2): gone, ("t", -1): gone, ("nobody", 0): gone, ("t", 0): errors.NONE}]


def test_a_partition_whose_directory_is_offline_will_be_there_again(desk: Desk) -> None:
    told = desk.write(COMMIT, ("orders", 0))  # in the metadata, without a log
    desk.run()
    assert told == [{("orders", 0): errors.KAFKA_STORAGE_ERROR}]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"producer_epoch": 0}, errors.INVALID_PRODUCER_EPOCH),
        ({"producer_epoch": 0, "transaction_version": 1}, errors.NONE),
        ({"coordinator_epoch": 2}, errors.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_what_the_partitions_producers_refuse(desk: Desk, changes: dict[str, Any], code: int) -> None:
    desk.write(COMMIT._replace(producer_epoch=0), ("t", 0))
    desk.run()
    desk.begin()
    end = desk.replica().log_end_offset
    told = desk.write(COMMIT._replace(**changes), ("t", 0), ("t", 1))
    desk.run()
    assert told == [{("t", 0): code, ("t", 1): errors.NONE}]
    assert desk.replica().log_end_offset == end + (not code)


def test_a_second_marker_of_one_transaction_changes_nothing(desk: Desk) -> None:
    desk.begin()
    for _ in range(2):
        told = desk.write(COMMIT, ("t", 0))
        desk.run()
        assert told == [{("t", 0): errors.NONE}]
    assert desk.replica().last_stable_offset == 3
    assert not desk.replica().producers.ongoing


@pytest.mark.parametrize(
    "changes", [{"producer_id": -1}, {"producer_epoch": -1}, {"transaction_version": -1}]
)
def test_markers_that_make_no_sense(desk: Desk, changes: dict[str, Any]) -> None:
    told = desk.write(COMMIT._replace(**changes), ("t", 0))
    desk.run()
    assert told == [{("t", 0): errors.UNKNOWN_SERVER_ERROR}]
    assert desk.replica().log_end_offset == 0


def test_an_epoch_that_no_producer_has(desk: Desk) -> None:
    told = desk.write(COMMIT._replace(producer_epoch=-2), ("t", 0))
    desk.run()
    assert told == [{("t", 0): errors.INVALID_PRODUCER_EPOCH}]


def test_an_epoch_below_0_of_a_coordinator_is_written_too(desk: Desk) -> None:
    told = desk.write(COMMIT._replace(coordinator_epoch=-1), ("t", 0))
    desk.run()
    assert told == [{("t", 0): errors.NONE}]
    assert desk.replica().producers.producers[7].coordinator_epoch == -1


def test_another_leader(desk: Desk) -> None:
    desk.replica().become_follower(2, 9)
    told = desk.write(COMMIT, ("t", 0))
    desk.run()
    assert told == [{("t", 0): errors.NOT_LEADER_OR_FOLLOWER}]


# -- what is not committed with the write


def behind(desk: Desk) -> Replica:
    """A leader whose follower is in sync, and asks for nothing."""
    replica = desk.replica()
    replica.become_leader(5, (1, 2), (1, 2))
    return replica


def test_a_marker_counts_when_the_followers_have_it(desk: Desk) -> None:
    replica = behind(desk)
    told = desk.write(COMMIT, ("t", 0), ("t", 1))
    desk.run()
    assert told == [] and replica.high_watermark == 0
    (waiting,) = desk.waiting
    assert waiting.what == "end markers"
    replica.follower_fetched(2, 1, 0)
    desk.run()
    assert told == [{("t", 0): errors.NONE, ("t", 1): errors.NONE}]


def test_a_marker_that_is_not_committed_in_time(desk: Desk) -> None:
    behind(desk)
    told = desk.write(COMMIT, ("t", 0), ("t", 1))
    desk.run()
    desk.advance(29_999)
    assert told == []
    desk.advance(1)
    desk.settle()
    assert told == [{("t", 0): errors.REQUEST_TIMED_OUT, ("t", 1): errors.NONE}]


def test_a_leader_that_resigns_while_a_marker_waits(desk: Desk) -> None:
    replica = behind(desk)
    told = desk.write(COMMIT, ("t", 0))
    desk.run()
    replica.become_follower(6, 2)
    desk.run()
    assert told == [{("t", 0): errors.NOT_LEADER_OR_FOLLOWER}]


def test_a_topic_that_is_deleted_while_a_marker_waits(desk: Desk) -> None:
    behind(desk)
    told = desk.write(COMMIT, ("t", 0))
    desk.run()
    desk.storage.delete("t", 0)
    del desk.image.topics["t"]
    desk.run()
    assert told == [{("t", 0): errors.UNKNOWN_TOPIC_OR_PARTITION}]


def test_a_write_that_fails(desk: Desk) -> None:
    told = desk.write(COMMIT, ("t", 0))
    desk.replica().log_directory.fail("the disk is gone")
    desk.run()
    assert told == [{("t", 0): errors.KAFKA_STORAGE_ERROR}]


def test_too_few_in_sync(desk: Desk) -> None:
    desk.create("safe", min_insync_replicas="2")
    desk.replicas.table["safe", 0].become_leader(5, (1, 2), (1,))
    told = desk.write(COMMIT, ("safe", 0))
    desk.run()
    assert told == [{("safe", 0): errors.NOT_ENOUGH_REPLICAS}]


# -- offsets


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
def test_offsets_go_through_the_group_coordinator(desk: Desk, marker: Marker) -> None:
    desk.commit("g", (0, 5))
    effects = Effects()
    effects.producer = 7, 0
    effects.write(
        OffsetCommitKey(group="g", topic="orders", partition=0), OffsetCommitValue(offset=10, metadata="")
    )
    desk.group_coordinator.shard(0).perform(effects)
    desk.end_pass()
    assert desk.committed("g", require_stable=True) == {("orders", 0): -errors.UNSTABLE_OFFSET_COMMIT}
    told = desk.write(marker, (OFFSETS, 0))
    desk.run()
    assert told == [{(OFFSETS, 0): errors.NONE}]
    assert desk.committed("g", require_stable=True) == {("orders", 0): 10 if marker.committed else 5}


def test_a_group_coordinator_that_is_not_ready(desk: Desk) -> None:
    desk.group_coordinator.stop()
    told = desk.write(COMMIT, (OFFSETS, 0))
    desk.run()
    assert told == [{(OFFSETS, 0): errors.NOT_LEADER_OR_FOLLOWER}]
    assert desk.replicas.table[OFFSETS, 0].log_end_offset == 0


def test_a_bug_while_it_waits_is_an_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.begin()
    desk.replica().become_leader(1, (1, 2), (1, 2))
    told = desk.write(COMMIT, ("t", 0))
    desk.run()
    assert told == []

    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Replica, "check_appended", fail)
    desk.advance(desk.markers.timeout_ms)
    desk.run()
    assert told == [{("t", 0): errors.UNKNOWN_SERVER_ERROR}]


def test_a_bug_in_one_partition_is_logged_and_the_others_have_their_markers(
    desk: Desk, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(desk.group_coordinator, "end_transaction", fail)
    told = desk.write(COMMIT, (OFFSETS, 0), ("t", 0))
    desk.run()
    assert told == [{(OFFSETS, 0): errors.UNKNOWN_SERVER_ERROR, ("t", 0): errors.NONE}]
    assert "a bug" in capfd.readouterr().err


def test_many_partitions_are_written_in_slices(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.create("wide", 100)
    held: list[Any] = []
    desk.coordinator_loop.in_slices = lambda work, done: held.append((work, done))
    told = desk.write(COMMIT, *[("wide", index) for index in range(100)])
    work, done = held[0]
    turns = sum(1 for _ in work)
    assert turns >= 10
    desk.end_pass()  # what was appended meanwhile is committed before the last one is
    done(None)
    desk.settle()
    assert set(told[0].values()) == {errors.NONE} and len(told[0]) == 100
    desk.storage.close()
