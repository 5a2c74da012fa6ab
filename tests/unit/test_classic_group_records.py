"""What classic groups write, what a restart makes of it, and what happens when records cannot be written."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import GroupMetadataKey, GroupMetadataValue
from pykafkad.pure.groups.classic import ClassicGroup
from pykafkad.slices import finish
from tests.group_kit import NOW_MS, Room, settle, stable


@pytest.fixture
def room() -> Room:
    return Room()


def values(room: Room) -> list[Any]:
    return [value for _, value in room.written()]


def test_a_group_is_written_as_soon_as_it_is_there(room: Room) -> None:
    room.join()
    [(key, value)] = room.written()
    assert key == GroupMetadataKey(group="group")
    nobody = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None)
    nobody.current_state_timestamp = NOW_MS
    assert value == nobody
    room.join(version=3, group="other")
    assert values(room)[1].current_state_timestamp == NOW_MS


def test_the_leaders_assignment_is_written_with_all_members(room: Room) -> None:
    leader, other = stable(room)
    value = values(room)[-1]
    assert (value.generation, value.protocol_type, value.protocol, value.leader) == (
        1,
        "consumer",
        "range",
        leader,
    )
    assert value.current_state_timestamp == NOW_MS + 6_000
    assert [(each.member_id, each.subscription, each.assignment) for each in value.members] == [
        (leader, b"r", b"0"),
        (other, b"r", b"1"),
    ]
    member = value.members[0]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.session_timeout, member.rebalance_timeout, member.group_instance_id) == (
        10_000,
        60_000,
        None,
    )


def test_nothing_is_written_while_a_group_rebalances(room: Room) -> None:
    leader, other = stable(room)
    written = len(room.log)
    room.join(leader)
    room.join(other)
    room.sync(other, 2)
    assert len(room.log) == written
    room.sync(leader, 2)
    assert len(room.log) == written + 1


def test_an_empty_group_is_written_with_its_generation(room: Room) -> None:
    leader, other = stable(room)
    room.leave((leader, None), (other, None))
    value = values(room)[-1]
    assert (value.generation, value.protocol_type, value.protocol, value.leader) == (
        2,
        "consumer",
        None,
        None,
    )
    assert value.members == []


def test_a_group_is_the_same_after_a_restart(room: Room) -> None:
    leader, other = stable(room)
    static = room.join(instance="desk")
    room.join(leader)
    room.join(other)
    ids = [leader, other, static.answer.member_id]
    settle(room, ids, 2)
    before = finish(room.group().describe(6))
    room.reload()
    assert finish(room.group().describe(6)) == before
    assert room.group().roster.leader_id == leader
    assert room.group().roster.instances == {"desk": ids[2]}
    assert room.heartbeat(other, 2) == 0
    assert room.join(other).answer.generation_id == 2
    assert room.join(instance="desk").answer.generation_id == 2


def test_after_a_restart_members_have_a_whole_session_to_come_back(room: Room) -> None:
    leader, other = stable(room)
    room.advance(9_000)
    room.reload()
    room.advance(9_999)
    assert room.heartbeat(leader, 1) == 0
    room.advance(1)
    assert room.heartbeat(other, 1) == errors.UNKNOWN_MEMBER_ID


def test_a_generation_that_was_not_complete_is_not_there_after_a_restart(room: Room) -> None:
    leader, other = stable(room)
    room.join(leader)
    room.join(other)
    room.reload()
    assert room.group().generation_id == 1
    assert room.heartbeat(leader, 2) == errors.ILLEGAL_GENERATION
    asked = room.join(leader)
    room.join(other)
    assert asked.answer.generation_id == 2


def test_an_empty_group_is_empty_since_then_after_a_restart(room: Room) -> None:
    leader, other = stable(room)
    room.leave((leader, None), (other, None))
    since_ms = room.now_ms
    room.advance(1_000_000)
    room.reload()
    assert room.group().is_empty
    assert room.group().protocol_type == "consumer"
    assert room.group().offset_expiry_base_ms(7) == since_ms


def test_a_group_that_only_commits_counts_from_each_commit(room: Room) -> None:
    group = room.groups.new_classic("tool", room.now_ms)
    assert group.offset_expiry_base_ms(7) == 7
    assert not group.is_subscribed_to("any")


def test_a_tombstone_takes_the_group_away(room: Room) -> None:
    leader, other = stable(room)
    room.leave((leader, None), (other, None))
    for key, value in room.group().tombstones():
        room.groups.replay(key, value)
    assert not room.groups.by_id


def test_records_of_old_versions_have_no_rebalance_timeout_and_no_time(room: Room) -> None:
    Metadata = GroupMetadataValue.MemberMetadata
    member = Metadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=9_000, subscription=b"s"
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    room.groups.is_loading = True
    room.groups.replay(GroupMetadataKey(group="group"), GroupMetadataValue.decode(value.encode(0), 0))
    group = room.group()
    assert isinstance(group, ClassicGroup)
    assert group.roster.members["m"].rebalance_timeout_ms == 9_000
    assert group.state_since_ms is None
    room.begin()
    room.advance(9_000)
    assert group.state_name == "Empty"
    assert values(room)[-1].generation == 4


def test_the_leader_is_the_one_that_the_record_names(room: Room) -> None:
    members = [GroupMetadataValue.MemberMetadata(member_id=each, session_timeout=9_000) for each in "abc"]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="b", members=members
    )
    room.groups.is_loading = True
    room.groups.replay(GroupMetadataKey(group="group"), value)
    assert room.group().roster.leader_id == "b"


def test_a_record_that_contradicts_itself_does_not_stop_the_load(room: Room) -> None:
    Metadata = GroupMetadataValue.MemberMetadata
    members = [
        Metadata(member_id=id, group_instance_id="desk", session_timeout=9_000) for id in ("m", "m", "n")
    ]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol=None, leader="x", members=members
    )
    room.groups.is_loading = True
    room.groups.replay(GroupMetadataKey(group="group"), value)
    room.begin()
    assert list(room.group().roster.members) == ["m"]
    assert room.group().roster.leader_id == "m"
    assert room.heartbeat("m", 3) == 0


# -- records cannot be written


def test_an_assignment_that_cannot_be_stored_begins_anew(room: Room) -> None:
    (leader, _), (other, _) = room.enter(), room.enter()
    room.advance(6_000)
    waiting = room.sync(other, 1)
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    asked = room.sync(leader, 1, {other: b"much"})
    room.refuse_with = None
    assert (waiting.code, asked.code) == (errors.UNKNOWN_SERVER_ERROR,) * 2
    assert waiting.answer.assignment == b""
    assert room.group().state_name == "PreparingRebalance"
    room.join(leader)
    assert room.join(other).answer.generation_id == 2
    settle(room, [leader, other], 2)


def test_a_storage_error_sends_the_members_elsewhere(room: Room) -> None:
    leader, _ = room.enter()
    room.advance(3_000)
    room.refuse_with = errors.KAFKA_STORAGE_ERROR
    assert room.sync(leader, 1).code == errors.NOT_COORDINATOR


@pytest.mark.parametrize("version", [3, 9])
def test_a_group_that_cannot_be_stored_was_never_there(room: Room, version: int) -> None:
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    asked = room.join(version=version)
    assert asked.code in (errors.UNKNOWN_SERVER_ERROR, errors.MESSAGE_TOO_LARGE)  # the coordinator translates
    assert not room.groups.by_id
    room.refuse_with = None
    stable(room)


def test_leaving_holds_even_if_it_cannot_be_stored(room: Room) -> None:
    leader, other = stable(room)
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    answer = room.leave((leader, None), (other, None))
    room.refuse_with = None
    assert [each.error_code for each in answer.members] == [0, 0]
    assert room.group().is_empty
    stable(room)
