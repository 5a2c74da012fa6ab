"""The APIs of classic groups through frames: what is refused before the group is asked, and answers that wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages, slices
from tests.unit.coordinator_kit import GroupDesk

JoinGroupRequest = messages.JoinGroupRequest
PROTOCOLS = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path, group_initial_rebalance_delay_ms="0")


def join(member_id: str = "", **fields: Any) -> Any:
    given = {
        "group_id": "group",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": PROTOCOLS,
    }
    return JoinGroupRequest(**{**given, **fields})


def sync(member_id: str, generation: int, given: dict[str, bytes] | None = None) -> Any:
    kind = messages.SyncGroupRequest
    assignments = [
        kind.SyncGroupRequestAssignment(member_id=each, assignment=data)
        for each, data in (given or {}).items()
    ]
    return kind(group_id="group", generation_id=generation, member_id=member_id, assignments=assignments)


def heartbeat(member_id: str, generation: int = 1, group_id: str = "group") -> Any:
    return messages.HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)


def joined(desk: GroupDesk, version: int = 3) -> Any:
    """The answer to the first member's JoinGroup."""
    waiting = desk.send(join(), version)
    desk.end_pass()
    desk.settle()
    return desk.answer_of(waiting, "JoinGroupRequest", version)


def test_a_join_waits_for_its_generation_and_a_sync_for_the_leader(desk: GroupDesk) -> None:
    leader = joined(desk).member_id
    waiting = desk.send(join(), 3)
    desk.end_pass()
    assert desk.answer_of(waiting, "JoinGroupRequest", 3) is None
    assert desk.ask(heartbeat(leader), 3).error_code == errors.REBALANCE_IN_PROGRESS
    assert desk.ask(join(leader), 3).generation_id == 2
    other = desk.answer_of(waiting, "JoinGroupRequest", 3).member_id
    waiting = desk.send(sync(other, 2), 3)
    desk.end_pass()
    assert desk.answer_of(waiting, "SyncGroupRequest", 3) is None
    assert desk.ask(sync(leader, 2, {leader: b"l", other: b"o"}), 3).assignment == b"l"
    assert desk.answer_of(waiting, "SyncGroupRequest", 3).assignment == b"o"


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, errors.INVALID_GROUP_ID),
        ({"group_id": "", "session_timeout_ms": 1}, errors.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, errors.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, errors.INVALID_SESSION_TIMEOUT),
        ({}, errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_a_join_is_refused_for(desk: GroupDesk, version: int, fields: dict[str, Any], code: int) -> None:
    answer = desk.ask(join("me", **fields), version)
    assert (answer.error_code, answer.member_id, answer.generation_id) == (code, "me", -1)
    assert answer.protocol_name == (None if version >= 7 else "")
    assert not desk.listed()


def test_session_timeouts_are_those_of_the_configuration(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, group_min_session_timeout_ms="100", group_max_session_timeout_ms="200")
    codes = [desk.ask(join(session_timeout_ms=each), 9).error_code for each in (99, 100, 200, 201)]
    refused, asked_back = errors.INVALID_SESSION_TIMEOUT, errors.MEMBER_ID_REQUIRED
    assert codes == [refused, asked_back, asked_back, refused]


@pytest.mark.parametrize(
    "request_of_nobody",
    [
        messages.SyncGroupRequest(member_id="me", protocol_type="consumer", protocol_name="range"),
        messages.HeartbeatRequest(member_id="me"),
        messages.LeaveGroupRequest(members=[]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_group_has_an_id(desk: GroupDesk, request_of_nobody: Any) -> None:
    newest = type(request_of_nobody).max_version
    assert desk.ask(request_of_nobody, newest).error_code == errors.INVALID_GROUP_ID


@pytest.mark.parametrize(("said", "name"), [(None, "range"), ("consumer", None), (None, None)])
def test_since_version_5_a_sync_names_its_protocol(
    desk: GroupDesk, said: str | None, name: str | None
) -> None:
    request = messages.SyncGroupRequest(group_id="", member_id="me", protocol_type=said, protocol_name=name)
    assert desk.ask(request, 5).error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert desk.ask(request, 4).error_code == errors.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_nobody_is_a_member_of_a_group_that_is_not_there(desk: GroupDesk, version: int) -> None:
    kind = messages.LeaveGroupRequest
    request = kind(group_id="group", member_id="me")
    if version >= 3:
        request = kind(
            group_id="group", members=[kind.MemberIdentity(member_id="me", group_instance_id="desk")]
        )
    answer = desk.ask(request, version)
    if version < 3:
        assert answer.error_code == errors.UNKNOWN_MEMBER_ID
    else:
        told = [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members]
        assert (answer.error_code, told) == (0, [("me", "desk", errors.UNKNOWN_MEMBER_ID)])


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_the_order_asked(desk: GroupDesk, version: int) -> None:
    member_id = joined(desk).member_id
    desk.ask(sync(member_id, 1, {member_id: b"all"}), 3)
    request = messages.DescribeGroupsRequest(groups=["none", "group", "group"])
    request.include_authorized_operations = version >= 3
    none, group, again = desk.ask(request, version).groups
    assert (none.group_id, none.group_state) == ("none", "Dead")
    assert none.error_code == (errors.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert none.error_message == ("Group none not found." if version >= 6 else None)
    assert group == again
    assert (group.group_state, group.members[0].member_assignment) == ("Stable", b"all")
    assert group.members[0].client_host == "/127.0.0.1"
    assert group.authorized_operations == (0b1101_0100_1000 if version >= 3 else -(2**31))


def test_a_silent_member_is_out_when_its_session_ends(desk: GroupDesk) -> None:
    member_id = joined(desk).member_id
    desk.ask(sync(member_id, 1), 3)
    for _ in range(4):
        desk.advance(9_000)
        assert desk.ask(heartbeat(member_id), 3).error_code == 0
    desk.advance(10_000)
    assert desk.ask(heartbeat(member_id), 3).error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.listed() == {"group": "Empty"}


def test_without_its_topic_there_is_no_coordinator(desk: GroupDesk) -> None:
    desk.image.topics.clear()
    for request, version in ((join(), 9), (sync("me", 1), 3), (heartbeat("me"), 3)):
        assert desk.ask(request, version).error_code == errors.NOT_COORDINATOR
    described = desk.ask(messages.DescribeGroupsRequest(groups=["group"]), 6).groups[0]
    assert (described.error_code, described.group_state) == (errors.NOT_COORDINATOR, "")


def test_while_groups_are_loaded_members_wait_but_keep_their_place(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_US", 0)
    member_id = joined(desk).member_id
    desk.ask(sync(member_id, 1, {member_id: b"all"}), 3)
    again = desk.restarted()
    again.advance(0)
    asked = [
        (join(member_id), 3),
        (sync(member_id, 1), 3),
        (messages.LeaveGroupRequest(group_id="group", member_id=member_id), 1),
        (heartbeat(member_id), 3),
        (messages.DescribeGroupsRequest(groups=["group"]), 6),
    ]
    *refused, heart, described = [again.ask_in_turns(request, version) for request, version in asked]
    assert {each.error_code for each in (*refused, *described.groups)} == {
        errors.COORDINATOR_LOAD_IN_PROGRESS
    }
    assert refused[0].member_id == ""
    assert heart.error_code == 0
    monkeypatch.undo()
    again.settle()
    assert again.ask(sync(member_id, 1), 3).assignment == b"all"
    assert again.ask(heartbeat(member_id), 3).error_code == 0


def test_stopping_answers_whoever_waits(desk: GroupDesk) -> None:
    member_id = joined(desk).member_id
    waiting = desk.send(join(), 3)
    desk.end_pass()
    desk.group_coordinator.stop()
    assert desk.answer_of(waiting, "JoinGroupRequest", 3).error_code == errors.NOT_COORDINATOR
    assert desk.ask(heartbeat(member_id), 3).error_code == errors.COORDINATOR_NOT_AVAILABLE


def test_an_assignment_larger_than_a_batch_may_be_begins_anew(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, group_initial_rebalance_delay_ms="0", message_max_bytes="2000")
    member_id = joined(desk).member_id
    assert (
        desk.ask(sync(member_id, 1, {member_id: b"x" * 3_000}), 3).error_code == errors.UNKNOWN_SERVER_ERROR
    )
    assert desk.ask(heartbeat(member_id), 3).error_code == errors.REBALANCE_IN_PROGRESS
    assert desk.ask(join(member_id), 3).generation_id == 2
    assert desk.ask(sync(member_id, 2, {member_id: b"x"}), 3).assignment == b"x"
