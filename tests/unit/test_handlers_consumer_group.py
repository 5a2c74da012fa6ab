"""ConsumerGroupHeartbeat and ConsumerGroupDescribe through the dispatcher, the coordinator and its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from tests.unit.coordinator_kit import OFFSETS, GroupDesk

Heartbeat = messages.ConsumerGroupHeartbeatRequest


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path)


def beat(desk: GroupDesk, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Any:
    given = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, **fields}
    return desk.ask(Heartbeat(**given), version)


def join(desk: GroupDesk, member_id: str, *topics: str, version: int = 1, **fields: Any) -> Any:
    given = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": list(topics), "topic_partitions": []}
    return beat(desk, fields.pop("id", member_id), 0, version, **{**given, **fields})


def describe(desk: GroupDesk, *group_ids: str, version: int = 1, **fields: Any) -> list[Any]:
    request = messages.ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields)
    groups = desk.ask(request, version).groups
    assert isinstance(groups, list)
    return groups


def partitions(answer: Any) -> list[list[int]]:
    return [list(topic.partitions) for topic in answer.assignment.topic_partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_is_described(desk: GroupDesk, version: int) -> None:
    answer = join(desk, "a", "orders", version=version)
    assert (answer.error_code, answer.member_epoch, partitions(answer)) == (0, 2, [[0, 1, 2]])
    (group,) = describe(desk, "g", version=version)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert group.authorized_operations == -2147483648
    (member,) = group.members
    assert (member.client_id, member.client_host, member.member_type) == (
        "test",
        "/127.0.0.1",
        1 if version else -1,
    )
    assert partitions(member) == [[0, 1, 2]]


def test_operations_are_told_when_asked_for(desk: GroupDesk) -> None:
    join(desk, "a", "orders")
    (group,) = describe(desk, "g", include_authorized_operations=True)
    assert group.authorized_operations == 3400


def test_groups_that_are_not_there_or_of_another_kind(desk: GroupDesk) -> None:
    desk.commit("simple", (0, 5))
    answers = describe(desk, "", "none", "simple")
    assert [each.error_code for each in answers] == [
        errors.INVALID_GROUP_ID,
        errors.GROUP_ID_NOT_FOUND,
        errors.GROUP_ID_NOT_FOUND,
    ]
    assert [each.error_message for each in answers[1:]] == [
        "Group none not found.",
        "Group simple is not a consumer group.",
    ]


def test_members_in_version_0_get_ids_of_22_characters(desk: GroupDesk) -> None:
    assert len(join(desk, "", "orders", version=0).member_id) == 22


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"id": "\t"}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests(desk: GroupDesk, fields: dict[str, Any], text: str) -> None:
    answer = join(desk, "a", "orders", **fields)
    assert (answer.error_code, answer.error_message) == (errors.INVALID_REQUEST, text)


def test_an_unknown_assignor(desk: GroupDesk) -> None:
    answer = join(desk, "a", "orders", server_assignor="mine")
    assert (answer.error_code, answer.error_message) == (
        errors.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor mine is not supported. Supported assignors: uniform, range.",
    )


def test_the_protocol_may_be_switched_off(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, group_coordinator_rebalance_protocols="classic")
    assert join(desk, "a", "orders").error_code == errors.UNSUPPORTED_VERSION
    assert describe(desk, "g")[0].error_code == errors.UNSUPPORTED_VERSION


def test_a_group_is_there_after_a_restart(desk: GroupDesk) -> None:
    join(desk, "a", "orders")
    before = describe(desk, "g")[0]
    again = desk.restarted()
    again.settle()
    assert describe(again, "g")[0].encode(1) == before.encode(1)
    assert beat(again, "a", 2).error_code == 0
    assert again.listed() == {"g": "Stable"}


def test_sessions_end_with_time(desk: GroupDesk) -> None:
    join(desk, "a", "orders")
    desk.advance(44_999)
    assert desk.listed() == {"g": "Stable"}
    desk.advance(1)
    desk.end_pass()
    assert desk.listed() == {"g": "Empty"}


def test_an_expression_is_resolved_in_a_later_pass(desk: GroupDesk) -> None:
    answer = join(desk, "a", subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    assert (answer.member_epoch, partitions(answer)) == (1, [])
    desk.settle()
    assert partitions(beat(desk, "a", 1)) == [[0, 1, 2]]


def test_commits_are_checked_against_epochs(desk: GroupDesk) -> None:
    join(desk, "a", "orders")
    good: dict[str, Any] = {"member_id": "a", "generation_id_or_member_epoch": 2, "version": 9}
    assert desk.commit("g", (0, 5), **good) == [0]
    assert desk.commit("g", (0, 6), **{**good, "generation_id_or_member_epoch": 3}) == [
        errors.STALE_MEMBER_EPOCH
    ]
    assert desk.commit("g", (0, 6), **{**good, "generation_id_or_member_epoch": 1}) == [
        errors.STALE_MEMBER_EPOCH
    ]
    assert desk.committed("g") == {("orders", 0): 5}


def test_the_offsets_topic_itself_can_be_subscribed_to(desk: GroupDesk) -> None:
    answer = join(desk, "a", OFFSETS)
    assert partitions(answer) == [[0]]


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, errors.NONE),
        ("a", 2, errors.NONE),
        ("a", 1, errors.STALE_MEMBER_EPOCH),
        ("a", 3, errors.STALE_MEMBER_EPOCH),
        ("a", -1, errors.STALE_MEMBER_EPOCH),
        ("b", 2, errors.UNKNOWN_MEMBER_ID),
        (None, 2, errors.UNKNOWN_SERVER_ERROR),
    ],
)
def test_offsets_are_read_by_a_member_in_its_epoch_or_by_nobody_in_particular(
    desk: GroupDesk, member_id: str | None, epoch: int, code: int
) -> None:
    assert join(desk, "a", "orders").member_epoch == 2
    kind = messages.OffsetFetchRequest
    asked = kind.OffsetFetchRequestGroup(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        topics=[kind.OffsetFetchRequestTopics(name="orders", partition_indexes=[0])],
    )
    (group,) = desk.ask(kind(groups=[asked]), 9).groups
    assert group.error_code == code
    assert [row.committed_offset for topic in group.topics for row in topic.partitions] == (
        [-1] if not code else []
    )
