"""The scenarios of a group, in either protocol, which are the same for every client."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from .flavours import FLAVOURS, Flavour
from .member import Member, Partition
from .stage import LONG_SESSION_MS, SESSION_MS, Stage, until

FETCH_SECONDS = 0.3  # sarama still returns the records of a fetch that was in flight at the pause
LATER_SECONDS = 0.7  # time in which a paused partition's records would have arrived


def each(flavours: Iterable[Flavour]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("flavour", [pytest.param(one, id=one.name) for one in flavours])


def read_from(member: Member, partition: Partition) -> list[int]:
    return [one.offset for one in list(member.read) if one.partition == partition]


@each(FLAVOURS)
def test_partitions_move_when_members_join_crash_and_leave(flavour: Flavour, stage: Stage) -> None:
    partitions = stage.new_topic()
    topic = partitions[0].topic
    first, second, third = stage.members(flavour, topic, *[""] * 3)
    first.join()
    stage.settled([first], partitions)
    stage.delivered(stage.produce(partitions, 2), [first])

    second.join()
    stage.settled([first, second], partitions)
    stage.delivered(stage.produce(partitions, 2), [first, second])

    began = time.monotonic()
    second.crash()
    until("the crashed member's partitions come back", lambda: first.owned == set(partitions), lambda: first)
    assert time.monotonic() - began > SESSION_MS / 1000 - 1.5, "it was dropped before its session was over"
    stage.delivered(stage.produce(partitions), [first])

    third.join()
    stage.settled([first, third], partitions)
    began = time.monotonic()
    third.leave()
    until("the leaving member's partitions come back", lambda: first.owned == set(partitions), lambda: first)
    assert time.monotonic() - began < SESSION_MS / 1000, "it left, but its session was waited for"
    stage.delivered(stage.produce(partitions), [first])
    first.leave()
    assert stage.state() == "Empty"


@each(one for one in FLAVOURS if one.cooperative)
def test_a_cooperative_member_keeps_what_it_keeps(flavour: Flavour, stage: Stage) -> None:
    partitions = stage.new_topic()
    topic = partitions[0].topic
    members = stage.members(flavour, topic, *[""] * 3, assignor=flavour.cooperative or "")
    members[0].join()
    stage.settled(members[:1], partitions)
    for count in (2, 3):
        seen = [len(member.rebalances) for member in members]
        members[count - 1].join()
        stage.settled(members[:count], partitions)
        for member, before in zip(members[: count - 1], seen, strict=False):
            kept = member.owned
            assert all(kept <= held for held in member.rebalances[before:]), (member, member.rebalances)
    stage.delivered(stage.produce(partitions), members)


RESTARTS = [pytest.param(one, end, id=f"{one.name}-{end}") for one in FLAVOURS for end in one.static]


@pytest.mark.parametrize(("flavour", "end"), RESTARTS)
def test_a_static_member_that_returns_in_time_disturbs_nobody(
    flavour: Flavour, end: str, stage: Stage
) -> None:
    partitions = stage.new_topic()
    topic = partitions[0].topic
    first, second, again = stage.members(flavour, topic, "one", "two", "two", session_ms=LONG_SESSION_MS)
    first.join()
    second.join()
    stage.settled([first, second], partitions)
    held, kept, told = second.owned, first.owned, len(first.rebalances)
    if end == "leaves":
        second.leave()
    else:
        second.crash()
    again.join()
    until("the returned member has its partitions again", lambda: again.owned == held, lambda: again)
    stage.delivered(stage.produce(partitions), [first, again])
    assert all(now == kept for now in first.rebalances[told:]), first.rebalances[told:]
    rows = stage.described("--members")
    assert sorted(row["GROUP-INSTANCE-ID"] for row in rows) == ["one", "two"], rows


@each(FLAVOURS)
def test_commits_are_where_a_group_goes_on_and_resets_move_them(flavour: Flavour, stage: Stage) -> None:
    partitions = stage.new_topic()
    topic = partitions[0].topic
    first, second, third = stage.members(flavour, topic, *[""] * 3)
    first.join()
    stage.settled([first], partitions)
    assert first.committed(partitions[0]) is None
    stage.delivered(stage.produce(partitions, 10), [first])
    first.ask("commit")
    assert [first.committed(partition) for partition in partitions] == [10] * len(partitions)
    stage.delivered(stage.produce(partitions[:1], 3), [first])
    assert_lag_is_shown(stage, first, partitions)

    refused = stage.tool("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    assert "Assignments can only be reset if the group" in refused.out + refused.err, refused
    assert first.committed(partitions[1]) == 10

    first.leave()
    second.join()
    stage.settled([second], partitions)
    until("what was not committed comes again", lambda: len(second.read) >= 3, lambda: second)
    second.ask("commit", partitions[1], 5)
    assert second.committed(partitions[1]) == 5
    stage.delivered(stage.produce(partitions[2:3]), [second])
    assert read_from(second, partitions[0]) == [10, 11, 12]
    assert [read_from(second, partition) for partition in partitions[1:]] == [[], [10], []]
    second.leave()

    reset = stage.tool("--reset-offsets", "--to-earliest", "--topic", f"{topic}:0", "--execute")
    assert reset.code == 0 and topic in reset.out, reset
    third.join()
    stage.settled([third], partitions)
    until("all is read again", lambda: len(third.read) >= 13 + 5 + 1, lambda: third)
    assert [read_from(third, partition) for partition in partitions] == [
        list(range(13)),
        [5, 6, 7, 8, 9],
        [10],
        [],
    ]


def assert_lag_is_shown(stage: Stage, member: Member, partitions: list[Partition]) -> None:
    rows = {int(row["PARTITION"]): row for row in stage.described()}
    assert sorted(rows) == [partition.number for partition in partitions]
    for number, row in rows.items():
        end = 13 if number == 0 else 10
        assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == ("10", str(end), str(end - 10))
        assert row["HOST"] == "/127.0.0.1" and row["CLIENT-ID"] == member.name, row
        assert row["CONSUMER-ID"] not in ("", "-"), row


@each(one for one in FLAVOURS if one.seeks)
def test_a_member_reads_where_it_seeks(flavour: Flavour, stage: Stage) -> None:
    partitions = stage.new_topic()
    member = stage.member(flavour, partitions[0].topic)
    member.join()
    stage.settled([member], partitions)
    stage.delivered(stage.produce(partitions, 5), [member])
    member.ask("seek", partitions[2], 3)
    until("it reads again", lambda: len(member.read) >= 4 * 5 + 2, lambda: member)
    assert read_from(member, partitions[2]) == [0, 1, 2, 3, 4, 3, 4]
    stage.delivered(stage.produce(partitions), [member])
    assert [read_from(member, partition) for partition in partitions[:2]] == [[0, 1, 2, 3, 4, 5]] * 2


@each(one for one in FLAVOURS if one.pauses)
def test_a_paused_partition_waits(flavour: Flavour, stage: Stage) -> None:
    partitions = stage.new_topic()
    member = stage.member(flavour, partitions[0].topic)
    member.join()
    stage.settled([member], partitions)
    stage.delivered(stage.produce(partitions), [member])
    member.ask("pause", partitions[1])
    time.sleep(FETCH_SECONDS)
    sent = stage.produce(partitions, 3)
    stage.delivered({p: values for p, values in sent.items() if p != partitions[1]}, [member])
    time.sleep(LATER_SECONDS)
    assert read_from(member, partitions[1]) == [0]
    member.ask("resume", partitions[1])
    stage.delivered(sent, [member])
