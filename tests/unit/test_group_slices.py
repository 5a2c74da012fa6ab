"""Requests about groups with many elements, and many things that are due at once: in slices, with the same results."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages, slices
from pykafkad.coordinator.runtime.shard import Shard
from pykafkad.handlers import find_coordinator, offset_commit
from pykafkad.handlers.pieces import FEW, PIECE
from pykafkad.hot import records
from pykafkad.messages import OffsetCommitResponse
from pykafkad.pure.effects import Effects
from pykafkad.pure.groups.classic import ClassicGroup
from pykafkad.pure.groups.settings import GroupSettings
from tests.unit.coordinator_kit import OFFSETS, GroupDesk
from tests.unit.data_kit import Ticket

MANY = FEW * 4
PARTITIONS = 5_000
SESSION_MS = 10_000
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Build = Callable[[int], tuple[Any, int]]


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    made = GroupDesk(tmp_path, group_initial_rebalance_delay_ms="0")
    made.add("big", PARTITIONS)
    return made


def in_turns(desk: GroupDesk, request: Any, version: int, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """The answer, and after how many turns of the loop with one step each it came."""
    with patch.context() as still:
        still.setattr(slices, "SLICE_US", 0)
        given = desk.send(request, version)
        turns = 0
        while isinstance(given, Ticket) and given.parts is None:
            desk.advance(0)
            desk.end_pass()
            turns += 1
        desk.end_pass()
    return desk.answer_of(given, type(request).__name__, version), turns


# -- requests


def commit_of(*topics: tuple[str, list[int]], group_id: str = "g") -> Any:
    kind = messages.OffsetCommitRequest
    rows = [
        kind.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                kind.OffsetCommitRequestPartition(partition_index=index, committed_offset=index)
                for index in indexes
            ],
        )
        for name, indexes in topics
    ]
    return kind(group_id=group_id, topics=rows)


def fetch_of(*topics: tuple[str, list[int]] | None, group_id: str = "g") -> Any:
    kind = messages.OffsetFetchRequest
    groups = [
        kind.OffsetFetchRequestGroup(
            group_id=group_id,
            topics=None
            if topic is None
            else [kind.OffsetFetchRequestTopics(name=topic[0], partition_indexes=topic[1])],
        )
        for topic in topics
    ]
    return kind(groups=groups)


def old_fetch(count: int) -> tuple[Any, int]:
    kind = messages.OffsetFetchRequest
    return kind(
        group_id="g", topics=[kind.OffsetFetchRequestTopic(name="big", partition_indexes=[0] * count)]
    ), 1


def leave_of(names: list[str]) -> Any:
    kind = messages.LeaveGroupRequest
    return kind(group_id="c", members=[kind.MemberIdentity(member_id=name) for name in names])


def sync_of(count: int) -> tuple[Any, int]:
    kind = messages.SyncGroupRequest
    rows = [
        kind.SyncGroupRequestAssignment(member_id=f"nobody{number}", assignment=b"x")
        for number in range(count)
    ]
    return kind(group_id="c", generation_id=1, member_id="stranger", assignments=rows), 3


def join_of(count: int) -> tuple[Any, int]:
    kind = messages.JoinGroupRequest
    rows = [kind.JoinGroupRequestProtocol(name="range", metadata=b"x") for _ in range(count)]
    return kind(
        group_id="new",
        session_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=rows,
        member_id="me",
    ), 3


def subscribe_to(count: int) -> tuple[Any, int]:
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="k",
        member_id="me",
        member_epoch=0,
        rebalance_timeout_ms=SESSION_MS,
        topic_partitions=[],
        subscribed_topic_names=["big", *(f"topic{number}" for number in range(count))],
    )
    return request, 1


def delete_of(*topics: tuple[str, list[int]]) -> Any:
    kind = messages.OffsetDeleteRequest
    rows = [
        kind.OffsetDeleteRequestTopic(
            name=name,
            partitions=[kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in topics
    ]
    return kind(group_id="g", topics=rows)


REQUESTS: dict[str, Build] = {
    "commit of partitions": lambda n: (commit_of(("big", list(range(n)))), 8),
    "commit of one partition": lambda n: (commit_of(("big", [0] * n)), 8),
    "commit of a topic named again": lambda n: (commit_of(*[("big", [0])] * n, ("big", [PARTITIONS])), 8),
    "commit of what is not there": lambda n: (commit_of(*[("nowhere", [0])] * n, ("big", [1])), 8),
    "commit of topics without partitions": lambda n: (commit_of(*[("big", [])] * n), 8),
    "commit of unknown topics": lambda n: (commit_of(*((f"t{index}", [0]) for index in range(n))), 8),
    "fetch of partitions": lambda n: (fetch_of(("big", list(range(n)))), 8),
    "fetch of groups": lambda n: (fetch_of(*[("big", [0])] * n), 8),
    "old fetch": old_fetch,
    "coordinators": lambda n: (
        messages.FindCoordinatorRequest(coordinator_keys=[f"g{index}" for index in range(n)]),
        4,
    ),
    "coordinators of one group": lambda n: (messages.FindCoordinatorRequest(coordinator_keys=["g"] * n), 4),
    "describe": lambda n: (messages.DescribeGroupsRequest(groups=[f"g{index}" for index in range(n)]), 6),
    "describe one group": lambda n: (messages.DescribeGroupsRequest(groups=["c"] * n), 6),
    "describe consumer groups": lambda n: (
        messages.ConsumerGroupDescribeRequest(group_ids=[f"g{index}" for index in range(n)]),
        1,
    ),
    "list with filters": lambda n: (
        messages.ListGroupsRequest(states_filter=["x"] * n, types_filter=["y"] * n),
        5,
    ),
    "delete groups": lambda n: (
        messages.DeleteGroupsRequest(groups_names=[f"g{index}" for index in range(n)]),
        2,
    ),
    "delete offsets": lambda n: (delete_of(("big", list(range(n)))), 0),
    "delete offsets of a topic named again": lambda n: (delete_of(*[("big", [0, -1])] * n), 0),
    "leave": lambda n: (leave_of([f"nobody{index}" for index in range(n)]), 5),
    "subscribe": subscribe_to,
    "sync": sync_of,
    "join": join_of,
}


def with_groups(desk: GroupDesk) -> None:
    """g has an offset, c a member."""
    assert desk.commit("g", (0, 5)) == [0]
    kind = messages.JoinGroupRequest
    protocol = kind.JoinGroupRequestProtocol(name="range", metadata=b"x")
    request = kind(
        group_id="c", session_timeout_ms=SESSION_MS, protocol_type="consumer", protocols=[protocol]
    )
    given = desk.send(request, 3)
    desk.advance(0)
    desk.end_pass()
    assert desk.answer_of(given, "JoinGroupRequest", 3).error_code == 0


@pytest.mark.parametrize("name", REQUESTS)
def test_a_large_request_takes_many_turns_and_is_answered_as_at_once(
    name: str, desk: GroupDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GroupDesk(tmp_path / "other", group_initial_rebalance_delay_ms="0")
    other.add("big", PARTITIONS)
    with_groups(desk), with_groups(other)
    request, version = REQUESTS[name](MANY)
    if name.startswith("coordinators"):
        for each in (desk, other):
            coordinator_of(each, monkeypatch)
    answer, turns = in_turns(desk, request, version, monkeypatch)
    assert turns >= MANY // FEW, "no more than so many elements are worked off at once"
    assert turns <= 3 * MANY + PIECE
    given = other.send(request, version)
    other.settle()
    other.end_pass()
    expected = other.answer_of(given, type(request).__name__, version)
    assert UUID.sub("", str(answer)) == UUID.sub("", str(expected)) and answer is not None


def coordinator_of(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(id=desk.node_id), SimpleNamespace(host="here", port=9092)
    monkeypatch.setattr(find_coordinator, "reachable_brokers", lambda broker, context: [here])
    monkeypatch.setattr(find_coordinator, "partitions_without_leader", lambda broker, name: frozenset())
    desk.controller = SimpleNamespace(is_auto_creating=lambda name: False)


@pytest.mark.parametrize("name", REQUESTS)
def test_four_times_as_much_does_not_take_sixteen_times_as_long(
    name: str, desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_groups(desk)
    if name.startswith("coordinators"):
        coordinator_of(desk, monkeypatch)

    def cost(count: int) -> float:
        request, version = REQUESTS[name](count)
        data = request.encode(version)
        best = float("inf")
        for _ in range(2):
            decoded = type(request).decode(data, version)
            started = time.thread_time()
            given = desk.send(decoded, version)
            desk.end_pass()
            best = min(best, time.thread_time() - started)
            assert not isinstance(given, Ticket) or given.parts is not None or name == "join"
        return best

    cost(FEW * 2)  # imports
    assert cost(4_000) < 10 * cost(1_000) + 0.005


# -- what holds for a handler in slices


def test_a_large_commit_is_one_batch_and_there_is_nothing_before_it(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition: Any = desk.storage.partitions[OFFSETS, 0]
    monkeypatch.setattr(slices, "SLICE_US", 0)
    given = desk.send(commit_of(("big", list(range(MANY)))), 8)
    while given.parts is None:
        assert partition.log_end_offset == 0
        desk.advance(0)
        desk.end_pass()
    data = partition.read(0, 1 << 30, limit_offset=MANY, at_least_one=True).read()
    assert [batch.count for batch in records.scan(data)] == [MANY]


def test_a_large_commit_that_is_refused_is_refused_as_a_whole(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = commit_of(("big", [-1, *range(MANY)]))
    request.generation_id_or_member_epoch = 3
    answer, _ = in_turns(desk, request, 8, monkeypatch)
    (topic,) = answer.topics
    codes = [row.error_code for row in topic.partitions]
    assert len(codes) == MANY + 1 and set(codes[1:]) == {errors.ILLEGAL_GENERATION}
    assert codes[0] == errors.UNKNOWN_TOPIC_OR_PARTITION, "which was never shown to the group"
    assert desk.committed("g") == {}


def test_a_commit_that_no_batch_holds_is_refused(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, message_max_bytes="50000")
    desk.add("big", MANY)
    given = desk.send(commit_of(("big", list(range(MANY)))), 8)
    desk.end_pass()
    (topic,) = desk.answer_of(given, "OffsetCommitRequest", 8).topics
    assert {row.error_code for row in topic.partitions} == {errors.UNKNOWN_SERVER_ERROR}
    assert desk.listed() == {}


READERS: dict[str, tuple[Any, int]] = {
    "list": (messages.ListGroupsRequest(states_filter=["empty"] * 200), 5),
    "describe": (messages.DescribeGroupsRequest(groups=["g"] * 200), 6),
    "consumer": (messages.ConsumerGroupDescribeRequest(group_ids=["g"] * 200), 1),
    "fetch": (fetch_of(*[("orders", [0])] * 200), 8),
    "delete": (messages.DeleteGroupsRequest(groups_names=[f"x{each}" for each in range(200)]), 2),
}


def codes_of(answer: Any) -> set[int]:
    rows = getattr(answer, "groups", None) or getattr(answer, "results", None) or [answer]
    return {row.error_code for row in rows} if hasattr(rows[0], "error_code") else {answer.error_code}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("turns", [0, 3])
def test_a_write_that_fails_in_the_middle_of_slices_is_told(
    name: str, turns: int, desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offsets that it read at first were never written."""
    assert desk.commit("h", (0, 1)) == [0]
    request, version = READERS[name]
    monkeypatch.setattr(slices, "SLICE_US", 0)
    desk.send(commit_of(("orders", [0])), 8)  # its write will fail
    given = desk.send(request, version)
    for _ in range(250 if name == "list" else turns):
        desk.advance(0)  # in the same pass still, however long that takes
    desk.storage.partitions[OFFSETS, 0].log_directory.fail("the disk is gone")
    desk.end_pass()
    while given.parts is None:
        desk.advance(0)
        desk.end_pass()
    answer = desk.answer_of(given, type(request).__name__, version)
    assert errors.NOT_COORDINATOR in ({answer.error_code} if name == "list" else codes_of(answer))


def test_who_sees_in_slices_what_is_not_on_the_disk_waits_for_it(desk: GroupDesk) -> None:
    context: Any = FakeContext()
    asked = desk.group_coordinator.asker_in_slices(context, lambda error: ("refused", error.code))
    assert desk.commit("g", (0, 1)) == [0]
    desk.group_coordinator.look("g", asked)
    assert asked.answer("fine") == "fine", "it was written by then"
    shard = desk.group_coordinator.shard(0)
    shard.is_uncommitted = True
    desk.group_coordinator.look("g", asked)
    assert shard.made == []
    assert asked.answer("fine") == "fine" and [promise[-1] for promise in shard.made] == [asked]
    shard.is_active = False
    given: Any = "fine"
    assert asked.answer(given) == ("refused", errors.NOT_COORDINATOR)


class FakeContext:
    refuse: Any = None


# -- timers, expiry, deleted topics: all at once


def members(desk: GroupDesk, count: int) -> list[str]:
    """Members of a consumer group; each has a session that can time out."""
    kind = messages.ConsumerGroupHeartbeatRequest
    names = [f"m{number}" for number in range(count)]
    for name in names:
        request = kind(
            group_id="c",
            member_id=name,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        assert desk.ask(request, 1).error_code == 0
    return names


def test_sessions_that_end_together_end_in_slices_and_who_comes_back_meanwhile_stays(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = members(desk, 30)
    group = desk.group_coordinator.shard(0).machine.by_id["c"]
    monkeypatch.setattr(slices, "SLICE_US", 0)
    desk.advance(45_000)
    left = len(group.members)
    assert left == len(names) - 1, "one at a time"
    last = names[-1]
    kind = messages.ConsumerGroupHeartbeatRequest
    beat = kind(group_id="c", member_id=last, member_epoch=group.members[last].epoch)
    assert desk.ask(beat, 1).error_code in (errors.NONE, errors.FENCED_MEMBER_EPOCH)
    for _ in names:
        desk.advance(0)
        desk.end_pass()
    assert set(group.members) == {last}


def test_a_timer_that_fails_is_tried_again_and_the_others_go_on(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    members(desk, 3)
    shard = desk.group_coordinator.shard(0)
    group = shard.machine.by_id["c"]
    real = shard.machine.on_timer
    failures = [KeyError("a mistake")]

    def failing(groups: Any, key: Any, now_ms: int) -> Effects:
        if failures and key[1] == "session":
            raise failures.pop()
        return real(key, now_ms)

    monkeypatch.setattr(type(shard.machine), "on_timer", failing)
    desk.advance(45_000)
    desk.end_pass()
    assert len(group.members) == 1
    assert "a timer of group c failed" in capfd.readouterr().err
    desk.advance(60_000)
    assert group.members == {}


def test_many_topics_that_go_are_looked_for_together(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        desk.add(f"t{number}", 1)
    groups = [f"g{number}" for number in range(20)]
    for group_id in groups:
        desk.ask(commit_of(*((f"t{number}", [0]) for number in range(0, 100, 10)), group_id=group_id), 8)
    monkeypatch.setattr(slices, "SLICE_US", 0)
    turns = 0
    for number in range(100):
        desk.group_coordinator.topic_deleted(desk.image.topics.pop(f"t{number}"))
    while desk.slices.count:
        desk.advance(0)
        desk.end_pass()
        turns += 1
    assert desk.group_coordinator.shard(0).machine.offsets.by_group == {}
    assert turns <= len(groups) * 13, "not once for each topic and group"


def test_the_offsets_of_one_group_expire_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = GroupDesk(tmp_path, offsets_retention_minutes="1")
    desk.add("big", PARTITIONS)
    given = desk.send(commit_of(("big", list(range(PARTITIONS)))), 8)
    desk.end_pass()
    assert desk.answer_of(given, "OffsetCommitRequest", 8) is not None
    desk.advance(60_000)
    monkeypatch.setattr(slices, "SLICE_US", 0)
    held = desk.group_coordinator.shard(0).machine.offsets.by_group["g"]["big"]
    desk.group_coordinator.expire()
    sizes = []
    while desk.slices.count:
        sizes.append(len(held))
        desk.advance(0)
        desk.end_pass()
    assert sizes[0] < PARTITIONS and max(a - b for a, b in pairwise(sizes)) <= 500
    assert desk.group_coordinator.shard(0).machine.by_id == {}


# -- an unexpected error fails one request alone


def test_a_batch_that_cannot_be_built_is_told_and_the_groups_are_loaded_anew(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert desk.commit("g", (0, 5)) == [0]

    def fail(*batch: Any, **how: Any) -> bytes:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("pykafkad.coordinator.runtime.writing.build", fail)
        assert desk.commit("g", (0, 6)) == [errors.NOT_COORDINATOR]
    assert "loaded anew" in capfd.readouterr().err
    desk.listed() if desk.group_coordinator.shard(0).is_active else desk.settle()
    assert desk.committed("g") == {("orders", 0): 5}
    assert desk.commit("g", (0, 7)) == [0]


def test_a_pass_whose_end_fails_for_one_partition_ends_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = GroupDesk(tmp_path, partitions=2)
    desk.group_coordinator.settings  # noqa: B018  made before anything fails
    first, second = "a", "b"  # of the two partitions
    assert desk.group_coordinator.partition_of(first) != desk.group_coordinator.partition_of(second)
    assert desk.commit(first, (0, 1)) == desk.commit(second, (0, 1)) == [0]
    bad = desk.group_coordinator.shard(desk.group_coordinator.partition_of(first))
    written = Shard.written

    def failing(shard: Shard) -> None:
        if shard is bad:
            raise KeyError("a mistake")
        written(shard)

    with monkeypatch.context() as patch:
        patch.setattr(Shard, "written", failing)
        desk.send(commit_of(("orders", [0]), group_id=first), 8)
        given = desk.send(commit_of(("orders", [1]), group_id=second), 8)
        desk.end_pass()
    assert desk.answer_of(given, "OffsetCommitRequest", 8).topics[0].partitions[0].error_code == 0
    assert not desk.group_coordinator.shard(desk.group_coordinator.partition_of(second)).is_uncommitted
    desk.settle()
    for group_id in (first, second):
        desk.commit(group_id, (0, 2))
        desk.settle()
        assert desk.commit(group_id, (0, 2)) == [0]


def test_a_load_whose_end_fails_does_not_keep_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = GroupDesk(tmp_path, partitions=2)
    for group_id in "ab":
        assert desk.commit(group_id, (0, 1)) == [0]
    loaded = Shard.loaded
    failures = [KeyError("a mistake")]

    def failing(shard: Shard) -> None:
        if failures:
            raise failures.pop()
        loaded(shard)

    monkeypatch.setattr(Shard, "loaded", failing)
    again = desk.restarted()
    again.settle()
    assert sorted(code for group_id in "ab" for code in again.commit(group_id, (0, 2))) == [
        errors.NONE,
        errors.NOT_COORDINATOR,
    ]


def test_a_group_that_cannot_begin_does_not_keep_the_others(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in "abc":
        assert desk.commit(group_id, (0, 1)) == [0]
    again = desk.restarted()
    failures = [KeyError("a mistake")]
    begin = ClassicGroup.on_loaded

    def failing(group: ClassicGroup, now_ms: int) -> Iterator[Effects]:
        if failures:
            raise failures.pop()
        return begin(group, now_ms)

    monkeypatch.setattr(ClassicGroup, "on_loaded", failing)
    again.settle()
    assert set(again.listed()) == {"a", "b", "c"} and not failures


# -- texts that are too long for a message

MENDED = "�" * 20_000


@pytest.mark.parametrize("size", [32_730, 32_731, 32_767])
@pytest.mark.parametrize("version", [0, 3, 4, 9])
def test_a_member_id_that_would_be_too_long(desk: GroupDesk, size: int, version: int) -> None:
    request, _ = join_of(1)
    request.member_id = ""
    given = desk.send(request, version, client_id="x" * size)
    desk.advance(0)
    desk.end_pass()
    answer = desk.answer_of(given, "JoinGroupRequest", version)
    if size + 37 <= 32_767:
        assert answer.error_code in (errors.NONE, errors.MEMBER_ID_REQUIRED)
    else:
        assert (answer.error_code, answer.member_id) == (errors.UNKNOWN_SERVER_ERROR, "")
        assert desk.listed() == {}
    assert desk.connection.closed is None


def test_an_answer_that_no_message_holds_is_an_error_of_ours(desk: GroupDesk) -> None:
    """Text decoded from malformed UTF-8 is longer than it was before."""
    context = desk.send(messages.HeartbeatRequest(group_id="g"), 3)
    context.response = messages.JoinGroupResponse(member_id=MENDED)
    context.refuse = None
    with pytest.raises(ValueError, match="32767"):
        context.encode()
    context.response = messages.HeartbeatResponse()
    context.refuse = lambda error: messages.HeartbeatResponse(error_code=error.code)
    context.response = messages.LeaveGroupResponse(
        members=[messages.LeaveGroupResponse.MemberResponse(member_id=MENDED)]
    )
    assert messages.HeartbeatResponse.decode(context.encode(), 3, 8).error_code == errors.UNKNOWN_SERVER_ERROR


def test_a_record_that_cannot_be_written_is_refused_and_nothing_is_changed(desk: GroupDesk) -> None:
    settings: GroupSettings = desk.group_coordinator.settings
    settings.offset_metadata_max_bytes = 1 << 20
    for rows in ([(0, 1, "m")], [(0, 1, MENDED)]):
        kind = messages.OffsetCommitRequest
        items = [
            kind.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=at, committed_metadata=text
            )
            for index, at, text in rows
        ]
        request = kind(group_id="g", topics=[kind.OffsetCommitRequestTopic(name="orders", partitions=items)])
        context = FakeRequest(8)
        answer = offset_commit.handle(desk, request, context)  # type: ignore[arg-type]
        desk.end_pass()
        code = errors.NONE if rows[0][2] == "m" else errors.UNKNOWN_SERVER_ERROR
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == code
    assert len(desk.log()) == 1


class FakeRequest:
    def __init__(self, version: int) -> None:
        self.version, self.refuse, self.response, self.client_id = version, None, None, "c"


# -- partitions at the edge


@pytest.mark.parametrize("version", [8, 9])
def test_a_partition_whose_number_is_the_count_of_partitions_does_not_exist(
    desk: GroupDesk, version: int
) -> None:
    for indexes, codes in (([2], [0]), ([3], [3]), ([-1], [3]), ([3, 2], [3, 0]), ([2, 3], [3, 0])):
        answer = desk.ask(commit_of(("orders", indexes)), version)
        rows = [(row.partition_index, row.error_code) for topic in answer.topics for row in topic.partitions]
        assert [code for _, code in rows] == codes
        assert all(index == 2 for index, code in rows if not code)
    assert set(desk.committed("g")) == {("orders", 2)}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_topic_without_partitions_is_answered_if_it_is_unknown(desk: GroupDesk, version: int) -> None:
    """Kafka makes the entry of a topic when it refuses it as a whole; of a known one it answers the partitions."""
    request = commit_of(("orders", []), ("nowhere", []))
    if version >= offset_commit.TOPIC_IDS_SINCE:
        request.topics[0].topic_id = desk.image.topics["orders"].id
        request.topics[1].topic_id = b"nowhere".ljust(16)
    answer = desk.ask(request, version)
    (topic,) = answer.topics
    refused = request.topics[1]
    by_id = version >= offset_commit.TOPIC_IDS_SINCE
    assert (topic.topic_id if by_id else topic.name) == (refused.topic_id if by_id else refused.name)
    assert topic.partitions == [] and desk.log() == []
    assert desk.ask(commit_of(), version).topics == []


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_commit_says_of_each_topic_what_is_not_there(desk: GroupDesk, version: int) -> None:
    request = commit_of(("nowhere", [0, 1]), ("orders", [3, 2]), ("elsewhere", [0]))
    by_id = version >= offset_commit.TOPIC_IDS_SINCE
    for topic in request.topics if by_id else ():
        topic.topic_id = topic.name.encode().ljust(16)
    request.topics[1].topic_id = desk.image.topics["orders"].id
    names = {topic.topic_id: topic.name for topic in request.topics}
    gone = errors.UNKNOWN_TOPIC_OR_PARTITION
    unknown = errors.UNKNOWN_TOPIC_ID if by_id else gone
    assert [
        (
            names[topic.topic_id] if by_id else topic.name,
            [(row.partition_index, row.error_code) for row in topic.partitions],
        )
        for topic in desk.ask(request, version).topics
    ] == [
        ("nowhere", [(0, unknown), (1, unknown)]),
        ("orders", [(3, gone), (2, errors.NONE)]),
        ("elsewhere", [(0, unknown)]),
    ]
    assert desk.committed("g") == {("orders", 2): 2}


def test_of_many_assignments_those_of_members_count(desk: GroupDesk) -> None:
    """A leader may send more than there are members."""
    with_groups(desk)
    (leader,) = members_of_c(desk)
    request, version = sync_of(MANY)
    kind = messages.SyncGroupRequest.SyncGroupRequestAssignment
    request.assignments.insert(FEW, kind(member_id=leader, assignment=b"first"))
    request.assignments.append(kind(member_id=leader, assignment=b"mine"))
    request.member_id = leader
    answer = desk.ask_in_turns(request, version)
    assert (answer.error_code, answer.assignment) == (errors.NONE, b"mine")
    (group,) = desk.ask(messages.DescribeGroupsRequest(groups=["c"]), 5).groups
    assert [(each.member_id, each.member_assignment) for each in group.members] == [(leader, b"mine")]


def test_many_assignments_for_a_group_of_another_broker_are_refused(desk: GroupDesk) -> None:
    desk.replicas.table[OFFSETS, 0].become_follower(3, 9)
    assert desk.ask_in_turns(*sync_of(MANY)).error_code == errors.NOT_COORDINATOR


def members_of_c(desk: GroupDesk) -> list[str]:
    (group,) = desk.ask(messages.DescribeGroupsRequest(groups=["c"]), 5).groups
    return [each.member_id for each in group.members]
