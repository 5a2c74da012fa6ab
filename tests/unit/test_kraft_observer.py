"""An observer of the controllers' quorum: whom it asks, whom it believes, what it does with the answers."""

from __future__ import annotations

from typing import Any

from pykafkad import errors
from pykafkad.messages import FetchResponse, FetchSnapshotResponse
from pykafkad.pure.kraft.observer import (
    Append,
    AskLog,
    AskSnapshot,
    BeginSnapshot,
    Commit,
    Cut,
    Follow,
    Observer,
    Piece,
    Refused,
)

PAUSE_MS = 20
FIRST, SECOND = 100, 101


def observer(*configured: int, epoch: int = 0) -> Observer:
    return Observer(configured or (FIRST, SECOND), epoch, -1, PAUSE_MS)


def asked(machine: Observer, now_ms: int = 0) -> AskLog:
    ask = machine.next(now_ms)
    assert isinstance(ask, AskLog)
    return ask


def answer(leader: int = FIRST, epoch: int = 1, code: int = 0, **fields: Any) -> FetchResponse:
    row = FetchResponse.PartitionData(
        error_code=code,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        **{"high_watermark": -1, "records": b"", **fields},
    )
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[row])])


def led(leader: int = FIRST, epoch: int = 1) -> Observer:
    """It has heard who leads."""
    machine = observer()
    acts = machine.fetched(asked(machine), answer(leader, epoch, errors.FENCED_LEADER_EPOCH), 0)
    assert acts == [Follow(epoch, leader)]
    return machine


def test_those_that_are_configured_are_asked_in_turn_until_one_answers() -> None:
    machine = observer()
    nodes = []
    for now_ms in range(0, 4 * PAUSE_MS, PAUSE_MS):
        nodes.append(asked(machine, now_ms).node)
        machine.lost(now_ms)
        assert machine.next(now_ms + PAUSE_MS - 1) is None
    assert nodes == [FIRST, SECOND, FIRST, SECOND]


def test_whoever_is_asked_says_who_leads() -> None:
    machine = observer()
    ask = asked(machine)
    assert (ask.node, ask.epoch, ask.offset) == (FIRST, 0, 0)
    assert machine.fetched(ask, answer(SECOND, 5, errors.NOT_LEADER_OR_FOLLOWER), 0) == [Follow(5, SECOND)]
    assert asked(machine)[:2] == (SECOND, 5)


def test_records_and_the_high_watermark_come_in_this_order() -> None:
    machine = led()
    acts = machine.fetched(asked(machine), answer(records=b"batch", high_watermark=7), 0)
    assert acts == [Append(b"batch"), Commit(7)]
    machine.log_is(9, 1)
    machine.committed(7)
    assert asked(machine) == AskLog(FIRST, 1, 9, 1, 7)
    assert machine.fetched(asked(machine), answer(high_watermark=7), 0) == []
    assert machine.fetched(asked(machine), answer(high_watermark=5), 0) == []


def test_an_answer_of_an_epoch_that_is_over_brings_no_records() -> None:
    machine = led()
    late = asked(machine)
    machine.fetched(asked(machine), answer(SECOND, 2, errors.FENCED_LEADER_EPOCH), 0)
    assert machine.fetched(late, answer(FIRST, 1, records=b"old", high_watermark=3), 0) == []
    assert (machine.leader, machine.epoch) == (SECOND, 2)


def test_an_epoch_does_not_go_back_nor_change_its_leader() -> None:
    machine = led(FIRST, 4)
    assert machine.fetched(asked(machine), answer(SECOND, 3, errors.UNKNOWN_LEADER_EPOCH), 0) == []
    assert machine.fetched(asked(machine, PAUSE_MS), answer(SECOND, 4), 0) == []
    assert (machine.leader, machine.epoch) == (FIRST, 4)


def test_a_leader_that_does_not_answer_is_doubted_and_found_again() -> None:
    machine = led(FIRST)
    machine.lost(0)
    ask = asked(machine, PAUSE_MS)
    assert ask.node in (FIRST, SECOND)
    machine.lost(PAUSE_MS)
    other = asked(machine, 2 * PAUSE_MS)
    assert {ask.node, other.node} == {FIRST, SECOND}
    assert machine.fetched(other, answer(FIRST, 1, errors.NOT_LEADER_OR_FOLLOWER), 2 * PAUSE_MS) == []
    assert asked(machine, 3 * PAUSE_MS).node == FIRST


def test_another_leader_is_followed_while_the_old_one_is_doubted() -> None:
    machine = led(FIRST)
    machine.lost(0)
    ask = asked(machine, PAUSE_MS)
    assert machine.fetched(ask, answer(SECOND, 2, errors.NOT_LEADER_OR_FOLLOWER), 0) == [Follow(2, SECOND)]
    assert asked(machine, PAUSE_MS).node == SECOND


def test_an_epoch_without_a_leader_is_waited_through() -> None:
    machine = led(FIRST, 1)
    acts = machine.fetched(asked(machine), answer(-1, 2, errors.NOT_LEADER_OR_FOLLOWER), 0)
    assert acts == [Follow(2, -1)]
    assert machine.next(0) is None
    ask = asked(machine, PAUSE_MS)
    assert machine.fetched(ask, answer(SECOND, 2, errors.NOT_LEADER_OR_FOLLOWER), PAUSE_MS) == [
        Follow(2, SECOND)
    ]


def test_where_the_logs_part_the_copy_is_cut() -> None:
    machine = led()
    diverging = FetchResponse.EpochEndOffset(epoch=1, end_offset=40)
    assert machine.fetched(asked(machine), answer(diverging_epoch=diverging), 0) == [Cut(1, 40)]


def piece(data: bytes, position: int, size: int = 6, code: int = 0) -> FetchSnapshotResponse:
    kind = FetchSnapshotResponse
    row = kind.PartitionSnapshot(
        error_code=code,
        snapshot_id=kind.SnapshotId(end_offset=50, epoch=1),
        current_leader=kind.LeaderIdAndEpoch(leader_id=FIRST, leader_epoch=1),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return kind(topics=[kind.TopicSnapshot(partitions=[row])])


def snapshot_begun() -> Observer:
    machine = led()
    wanted = FetchResponse.SnapshotId(end_offset=50, epoch=1)
    assert machine.fetched(asked(machine), answer(snapshot_id=wanted), 0) == [BeginSnapshot((50, 1))]
    return machine


def test_a_snapshot_is_fetched_in_pieces() -> None:
    machine = snapshot_begun()
    first = machine.next(0)
    assert first == AskSnapshot(FIRST, 1, (50, 1), 0)
    assert isinstance(first, AskSnapshot)
    assert machine.snapshot_fetched(first, piece(b"abcd", 0), 0) == [Piece((50, 1), 0, b"abcd", False)]
    second = machine.next(0)
    assert second == AskSnapshot(FIRST, 1, (50, 1), 4)
    assert isinstance(second, AskSnapshot)
    assert machine.snapshot_fetched(second, piece(b"ef", 4), 0) == [Piece((50, 1), 4, b"ef", True)]
    machine.log_is(50, 1)
    assert asked(machine).offset == 50


def test_a_snapshot_that_is_gone_is_given_up() -> None:
    machine = snapshot_begun()
    ask = machine.next(0)
    assert isinstance(ask, AskSnapshot)
    assert machine.snapshot_fetched(ask, piece(b"", 0, code=errors.SNAPSHOT_NOT_FOUND), 0) == []
    assert isinstance(machine.next(0), AskLog)


def test_a_piece_that_nobody_asked_for_ends_the_snapshot() -> None:
    machine = snapshot_begun()
    ask = machine.next(0)
    assert isinstance(ask, AskSnapshot)
    assert machine.snapshot_fetched(ask, piece(b"cd", 2), 0) == []
    assert isinstance(machine.next(0), AskLog)


def test_what_may_pass_is_asked_again() -> None:
    machine = led()
    assert machine.fetched(asked(machine), answer(code=errors.UNKNOWN_SERVER_ERROR), 0) == [
        Refused(errors.UNKNOWN_SERVER_ERROR, False)
    ]
    assert asked(machine, PAUSE_MS).epoch == 1


def test_the_controllers_of_another_cluster_are_no_use() -> None:
    machine = observer()
    refused = FetchResponse(error_code=errors.INCONSISTENT_CLUSTER_ID)
    assert machine.fetched(asked(machine), refused, 0) == [Refused(errors.INCONSISTENT_CLUSTER_ID, True)]


def test_voters_that_the_log_names_are_asked_as_well() -> None:
    machine = observer(-2)
    machine.voters_are([SECOND, 102])
    nodes = []
    for now_ms in range(0, 4 * PAUSE_MS, PAUSE_MS):
        nodes.append(asked(machine, now_ms).node)
        machine.lost(now_ms)
    assert nodes == [-2, SECOND, 102, -2]
    machine.voters_are([102])
    assert {asked(machine, 10 * PAUSE_MS).node} <= {-2, 102}
