"""OffsetFetch: one group and several, some topics and all, members' epochs, topics that were deleted and created
again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from compat_tests.differential.offset_requests import (
    commit,
    consumer,
    fetch,
    group,
    member,
    wanted,
)
from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import UNKNOWN_ID
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import DeleteTopicsRequest, OffsetFetchRequest

GONE_SECONDS = 30

Topics = Sequence[tuple[str, Sequence[int]]] | None


def committed(pair: Pair, *topics: str) -> str:
    """A group with committed offsets for the partitions 0 and 2 of these topics."""
    name = group(pair)
    for topic in topics:
        pair.same(commit(name, topic, (0, 5, "five", 1), (2, 7, None)), 8)
    return name


@at_every_version("OffsetFetch")
def test_some_partitions(pair: Pair, version: int) -> None:
    topic, other = pair.topic(partitions=3), pair.topic()
    name = committed(pair, topic)
    pair.same(fetch(version, name, [(topic, [0, 1, 2])]), version)
    pair.same(fetch(version, name, [(topic, [2]), (other, [0]), (topic, [0])]), version)
    pair.same(fetch(version, name, [(topic, [0, 0, 9, -1])]), version)
    pair.same(fetch(version, name, [(topic, [])]), version)
    pair.same(fetch(version, name, []), version)


@at_every_version("OffsetFetch")
def test_what_does_not_exist(pair: Pair, version: int) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    pair.same(fetch(version, name, [("never-made", [0, 1]), (topic, [0])]), version)
    pair.same(fetch(version, pair.new_name("nobody"), [(topic, [0, 1])]), version)
    pair.same(fetch(version, "", [(topic, [0])]), version)


@at_every_version("OffsetFetch", since=2)
def test_all_partitions(pair: Pair, version: int) -> None:
    topics = [pair.topic(partitions=3) for _ in range(3)]
    name = committed(pair, *topics)
    pair.same(fetch(version, name, None), version)
    pair.same(fetch(version, pair.new_name("nobody"), None), version)
    pair.same(fetch(version, "", None), version)


@at_every_version("OffsetFetch", until=1)
def test_version_1_knows_no_null(pair: Pair, version: int) -> None:
    client = pair.theirs.client
    frame = client.frame(OffsetFetchRequest(group_id="g", topics=[]), version)
    pair.same_outcome(frame[:-4] + b"\xff\xff\xff\xff", fetch(version, "g", [])(pair.theirs), version)


@at_every_version("OffsetFetch", since=7)
@pytest.mark.parametrize("stable", [False, True])
def test_stable_offsets(pair: Pair, version: int, stable: bool) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    pair.same(fetch(version, name, [(topic, [0, 1, 2])], require_stable=stable), version)
    pair.same(fetch(version, name, None, require_stable=stable), version)


@at_every_version("OffsetFetch", since=8)
def test_several_groups(pair: Pair, version: int) -> None:
    topic = pair.topic(partitions=3)
    names = [committed(pair, topic), group(pair), committed(pair, topic)]

    def several(*asked: tuple[str, Topics]) -> Each:
        return lambda side: OffsetFetchRequest(groups=[wanted(side, *each) for each in asked])

    pair.same(several(*((name, [(topic, [0, 1])]) for name in names)), version)
    pair.same(several((names[0], None), (names[1], None), (names[2], [])), version)
    pair.same(several((names[0], None), (names[0], [(topic, [0])]), ("", None)), version)
    pair.same(several(), version)


@at_every_version("OffsetFetch", since=9)
@pytest.mark.parametrize("epoch", [-1, 0, 1, 7, -2])
@pytest.mark.parametrize("member_id", [None, "", "nobody"])
def test_members_of_no_consumer_group(pair: Pair, version: int, epoch: int, member_id: str | None) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    fields: dict[str, Any] = {"member_id": member_id, "member_epoch": epoch}
    for who in (name, pair.new_name("nobody")):
        pair.same(fetch(version, who, [(topic, [0])], **fields), version)
        pair.same(fetch(version, who, None, **fields), version)


@at_every_version("OffsetFetch", since=9)
def test_members_of_a_consumer_group(pair: Pair, version: int) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    known = {side.name: consumer(side, name, topic) for side in pair.sides}
    for member_id in (None, "", "nobody", "A" * 21 + "Q"):
        for epoch in (-1, 0, -2, "its", "one less", "one more"):
            for topics in ([(topic, [0, 1])], None):

                def build(
                    side: Side, member_id: Any = member_id, epoch: Any = epoch, topics: Any = topics
                ) -> Any:
                    now = known[side.name][1]
                    steps = {"its": now, "one less": now - 1, "one more": now + 1}
                    given = {"member_id": member_id, "member_epoch": steps.get(epoch, epoch)}
                    return fetch(version, name, topics, **given)(side)

                pair.same(build, version)


@at_every_version("OffsetFetch")
def test_a_group_with_members(pair: Pair, version: int) -> None:
    topic = pair.topic(partitions=3)
    name = group(pair)
    for side in pair.sides:
        member(side, name, topic)
    pair.same(fetch(version, name, [(topic, [0])]), version)


@at_every_version("OffsetFetch", since=10)
def test_unknown_topic_ids(pair: Pair, version: int) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    kind = OffsetFetchRequest

    def build(*ids: bytes | None) -> Each:
        def of_side(side: Side) -> Any:
            given = [side.topic_ids[topic] if each is None else each for each in ids]
            rows = [kind.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0, 1]) for each in given]
            return kind(groups=[kind.OffsetFetchRequestGroup(group_id=name, topics=rows)])

        return of_side

    pair.same(build(UNKNOWN_ID), version)
    pair.same(build(UNKNOWN_ID, None, bytes(16), None), version)
    unknown_group = [kind.OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[0])]
    pair.same(
        kind(groups=[kind.OffsetFetchRequestGroup(group_id="not-there", topics=unknown_group)]), version
    )


def test_offsets_go_with_their_topic(pair: Pair) -> None:
    topic, other = pair.topic(partitions=3), pair.topic(partitions=3)
    name = committed(pair, topic, other)
    for side in pair.sides:
        side.demand(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5)
    deadline = time.monotonic() + GONE_SECONDS
    for side in pair.sides:
        while len(side.demand(fetch(8, name, None)(side), 8).groups[0].topics) > 1:
            assert time.monotonic() < deadline, f"{side.name} keeps the offsets of {topic}"
            time.sleep(0.02)
    for version in (2, 7, 8, 9):
        pair.same(fetch(version, name, None), version)
        pair.same(fetch(version, name, [(topic, [0]), (other, [0])]), version)
    pair.same(fetch(10, name, None), 10)
