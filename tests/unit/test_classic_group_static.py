"""Static members of classic groups (KIP-345, KIP-814): they rejoin by their instance id, and others are fenced."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.slices import finish
from tests.group_kit import GROUP, Asked, Room, settle

LEADER, OTHER = "first", "second"


def static_group(room: Room, version: int = 9) -> list[str]:
    """A stable group of two static members, the leader first."""
    asked = [room.join(instance=name, version=version) for name in (LEADER, OTHER)]
    room.advance(6_000)
    ids = [each.answer.member_id for each in asked]
    settle(room, ids, 1)
    return ids


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_restart_within_the_session_is_no_rebalance(room: Room) -> None:
    leader, other = static_group(room)
    records = len(room.log)
    again = room.join(instance=OTHER)
    new_id = again.answer.member_id
    assert new_id not in (leader, other)
    assert (again.answer.generation_id, again.answer.leader, again.answer.members) == (1, leader, [])
    assert not again.answer.skip_assignment
    assert room.group().state_name == "Stable"
    assert room.sync(new_id, 1, instance=OTHER).answer.assignment == b"1"
    assert room.heartbeat(leader, 1, instance=LEADER) == 0
    assert len(room.log) == records + 1  # the new id is known after a restart of the broker


def test_the_old_id_is_fenced(room: Room) -> None:
    _, other = static_group(room)
    room.join(instance=OTHER)
    assert room.heartbeat(other, 1, instance=OTHER) == errors.FENCED_INSTANCE_ID
    assert room.heartbeat(other, 1) == errors.UNKNOWN_MEMBER_ID
    assert room.join(other, instance=OTHER).code == errors.FENCED_INSTANCE_ID
    assert room.sync(other, 1, instance=OTHER).code == errors.FENCED_INSTANCE_ID
    assert room.leave((other, OTHER)).members[0].error_code == errors.FENCED_INSTANCE_ID
    assert any(
        f"is fenced by existing memberId={room.group().roster.instances[OTHER]}" in line
        for line in room.lines
    )


def test_a_name_nobody_has_is_unknown(room: Room) -> None:
    leader, _ = static_group(room)
    assert room.heartbeat(leader, 1, instance="third") == errors.UNKNOWN_MEMBER_ID
    assert room.join(leader, instance="third").code == errors.UNKNOWN_MEMBER_ID


def test_a_leader_that_comes_back_has_nothing_to_assign(room: Room) -> None:
    static_group(room)
    again = room.join(instance=LEADER).answer
    assert again.skip_assignment
    assert again.leader == again.member_id
    assert {each.group_instance_id for each in again.members} == {LEADER, OTHER}


@pytest.mark.parametrize("version", [5, 6, 7, 8])
def test_before_version_9_it_is_told_that_another_leads(room: Room, version: int) -> None:
    leader, _ = static_group(room, version)
    again = room.join(instance=LEADER, version=version).answer
    assert again.leader == leader != again.member_id
    assert (again.members, again.skip_assignment) == ([], False)
    assert room.group().roster.leader_id == again.member_id


def test_a_change_of_the_selected_protocol_is_a_rebalance(room: Room) -> None:
    both = (("range", b"r"), ("sticky", b"s"))
    asked = [room.join(instance=name, protocols=both) for name in (LEADER, OTHER)]
    room.advance(6_000)
    ids = [each.answer.member_id for each in asked]
    settle(room, ids, 1)
    again = room.join(instance=OTHER, protocols=(("sticky", b"s"),))
    assert again.waits
    room.join(ids[0], instance=LEADER, protocols=both)
    assert again.answer.protocol_name == "sticky"


def test_metadata_may_change_without_a_rebalance(room: Room) -> None:
    static_group(room)
    again = room.join(instance=OTHER, protocols=(("range", b"new"),), rebalance_ms=70_000)
    assert again.code == 0
    described = {
        each.group_instance_id: each.member_metadata for each in finish(room.group().describe(6)).members
    }
    assert described == {LEADER: b"r", OTHER: b"new"}
    assert room.group().roster.rebalance_timeout_ms == 70_000


def test_coming_back_during_the_sync_phase_begins_anew(room: Room) -> None:
    """The leader may be assigning partitions to a member id that does not exist any more."""
    asked = [room.join(instance=name) for name in (LEADER, OTHER)]
    room.advance(6_000)
    leader = asked[0].answer.member_id
    waiting = room.sync(asked[1].answer.member_id, 1, instance=OTHER)
    again = room.join(instance=OTHER)
    assert waiting.code == errors.FENCED_INSTANCE_ID
    assert again.waits
    assert room.group().state_name == "PreparingRebalance"
    assert room.join(leader, instance=LEADER).answer.generation_id == 2
    assert again.answer.generation_id == 2


def test_two_with_one_name_while_the_group_forms(room: Room) -> None:
    first = room.join(instance=LEADER)
    second = room.join(instance=LEADER)
    assert first.code == errors.FENCED_INSTANCE_ID
    assert first.answer.member_id == "first-id1"
    room.advance(6_000)
    assert second.answer.member_id == second.answer.leader == "first-id2"
    assert len(second.answer.members) == 1


def test_static_members_need_not_come_back_within_the_rebalance_timeout(room: Room) -> None:
    asked = [room.join(instance=name, session_ms=100_000, rebalance_ms=20_000) for name in (LEADER, OTHER)]
    room.advance(6_000)
    leader, other = (each.answer.member_id for each in asked)
    settle(room, [leader, other], 1)
    _, new = room.enter(session_ms=100_000, rebalance_ms=20_000)
    room.advance(20_000)
    assert new.answer.leader == new.answer.member_id  # the leader has not joined
    assert {each.member_id for each in new.answer.members} == {leader, other, new.answer.member_id}
    assert room.heartbeat(other, 1, instance=OTHER) == errors.ILLEGAL_GENERATION


def test_a_rebalance_that_nobody_joins_is_looked_at_again_until_the_sessions_end(room: Room) -> None:
    leader, other = static_group(room)
    waiting = room.join(leader, instance=LEADER, rebalance_ms=0)
    room.leave((leader, LEADER))
    assert waiting.code == errors.UNKNOWN_MEMBER_ID
    room.group().roster.members[other].rebalance_timeout_ms = 0
    lines = len(room.lines)
    room.advance(100_000)
    assert room.group().state_name == "Empty"
    assert len(room.lines) - lines < 10_500  # it does not spin


def test_an_administrator_removes_by_name(room: Room) -> None:
    leader, other = static_group(room)
    answer = room.leave(("", OTHER))
    assert (answer.members[0].error_code, answer.members[0].member_id) == (0, "")
    assert list(room.group().roster.members) == [leader]
    assert room.heartbeat(other, 1, instance=OTHER) == errors.UNKNOWN_MEMBER_ID


def test_a_static_member_is_out_when_its_session_ends(room: Room) -> None:
    leader, _ = static_group(room)
    room.advance(9_000)
    room.heartbeat(leader, 1, instance=LEADER)
    room.advance(1_000)
    assert list(room.group().roster.instances) == [LEADER]
    assert room.join(instance=OTHER).waits


def test_the_session_goes_on_under_the_new_id(room: Room) -> None:
    leader, other = static_group(room)
    new_id = room.join(instance=OTHER).answer.member_id
    assert (GROUP, "session", other) not in room.timers
    room.advance(9_999)
    room.heartbeat(leader, 1, instance=LEADER)
    assert room.heartbeat(new_id, 1, instance=OTHER) == 0
    room.advance(9_999)
    room.heartbeat(leader, 1, instance=LEADER)
    room.advance(1)
    assert list(room.group().roster.instances) == [LEADER]


def test_a_new_id_that_the_log_does_not_take_is_none(room: Room) -> None:
    leader, other = static_group(room)
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    again = room.join(instance=LEADER, protocols=(("range", b"new"),))
    room.refuse_with = None
    assert again.code == errors.UNKNOWN_SERVER_ERROR
    assert (again.answer.member_id, again.answer.leader, again.answer.generation_id) == ("", leader, 1)
    assert room.heartbeat(leader, 1, instance=LEADER) == 0
    assert room.group().roster.leader_id == leader
    assert room.sync(leader, 1, instance=LEADER).answer.assignment == b"0"
    assert {each.member_metadata for each in finish(room.group().describe(6)).members} == {b"r"}
    assert room.heartbeat(other, 1, instance=OTHER) == 0


def test_a_late_answer_to_the_fenced_one_is_not_given_twice(room: Room) -> None:
    leader, _ = static_group(room)
    joins: list[Asked] = [room.join(leader, instance=LEADER)]
    joins.append(room.join(instance=LEADER))
    joins.append(room.join(instance=LEADER))
    assert [each.code for each in joins[:2]] == [errors.FENCED_INSTANCE_ID] * 2
    assert joins[2].waits
