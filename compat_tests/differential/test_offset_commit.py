"""OffsetCommit: groups without members, members, refusals; committed offsets are read back from both."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.offset_requests import (
    commit,
    commit_topics,
    consumer,
    fetch,
    group,
    member,
)
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import UNKNOWN_ID
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import OffsetCommitRequest

BIGGEST = (1 << 63) - 1


@at_every_version("OffsetCommit")
def test_a_group_without_members(pair: Pair, version: int) -> None:
    topic, name = pair.topic(partitions=3), group(pair)
    pair.same(commit(name, topic, (0, 5), (2, 7, "some é 𝄞"), (1, 0, None)), version)
    pair.same(commit(name, topic, (0, 3)), version)  # a lower offset is as good as a higher one
    pair.same(fetch(8, name, [(topic, [0, 1, 2])]), 8)


@at_every_version("OffsetCommit")
@pytest.mark.parametrize("offset", [0, -1, -2, -1000, BIGGEST, -BIGGEST - 1])
def test_any_offset_will_do(pair: Pair, version: int, offset: int) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit(name, topic, (0, offset)), version)
    pair.same(fetch(8, name, [(topic, [0])]), 8)


@at_every_version("OffsetCommit", since=6)
@pytest.mark.parametrize("epoch", [-1, 0, 7, -2, 0x7FFFFFFF])
def test_leader_epochs(pair: Pair, version: int, epoch: int) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit(name, topic, (0, 5, "", epoch)), version)
    pair.same(fetch(8, name, [(topic, [0])]), 8)


@at_every_version("OffsetCommit")
def test_what_does_not_exist(pair: Pair, version: int) -> None:
    topic, name = pair.topic(partitions=2), group(pair)
    pair.same(commit(name, topic, (0, 5), (2, 5), (1, 6), (-1, 5)), version)
    pair.same(commit(name, topic, (9, 5)), version)
    pair.same(commit(name, "never-made", (0, 5)), version)
    pair.same(commit_topics(name, [("never-made", [(0, 5)]), (topic, [(7, 1), (0, 8)])]), version)
    pair.same(commit_topics(name, [(topic, [(0, 9)]), ("never-made", [(1, 5)])]), version)
    pair.same(fetch(8, name, [(topic, [0, 1])]), 8)


@at_every_version("OffsetCommit")
def test_nothing(pair: Pair, version: int) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit_topics(name, []), version)
    pair.same(commit(name, topic), version)
    pair.same(commit_topics("", []), version)


@at_every_version("OffsetCommit")
def test_the_same_partition_twice(pair: Pair, version: int) -> None:
    topic, name = pair.topic(partitions=2), group(pair)
    pair.same(commit(name, topic, (0, 5), (0, 6)), version)
    pair.same(commit_topics(name, [(topic, [(0, 7)]), (topic, [(1, 8)])]), version)
    pair.same(fetch(8, name, [(topic, [0, 1])]), 8)


@at_every_version("OffsetCommit")
def test_an_empty_group_id(pair: Pair, version: int) -> None:
    topic = pair.topic()
    group(pair)
    pair.same(commit("", topic, (0, 5)), version)
    pair.same(fetch(8, "", [(topic, [0])]), 8)


@at_every_version("OffsetCommit")
@pytest.mark.parametrize("length", [4095, 4096, 4097, 12_000])
@pytest.mark.parametrize("letter", ["x", "é", "𝄞"])
def test_the_size_of_metadata(pair: Pair, version: int, length: int, letter: str) -> None:
    topic, name = pair.topic(partitions=2), group(pair)
    pair.same(commit(name, topic, (0, 5, letter * (length // (2 if letter == "𝄞" else 1))), (1, 6)), version)


@at_every_version("OffsetCommit")
@pytest.mark.parametrize("epoch", [0, 1, 7, -1, -2, -7])
@pytest.mark.parametrize("member_id", ["", "nobody"])
def test_generations_of_a_group_that_is_not_there(
    pair: Pair, version: int, epoch: int, member_id: str
) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit(name, topic, (0, 5), generation_id_or_member_epoch=epoch, member_id=member_id), version)


@at_every_version("OffsetCommit")
def test_members_and_generations(pair: Pair, version: int) -> None:
    topic, name = pair.topic(), group(pair)
    known = {side.name: member(side, name, topic) for side in pair.sides}

    def with_(member_id: str | None, step: int, **fields: Any) -> None:
        def build(side: Side) -> Any:
            mine, generation = known[side.name]
            given: dict[str, Any] = {
                "member_id": mine if member_id is None else member_id,
                "generation_id_or_member_epoch": generation + step,
            }
            return commit(name, topic, (0, 5), **{**given, **fields})(side)

        pair.same(build, version)

    with_(None, 0)
    for step in (1, -1, -2, -3, 5):
        with_(None, step)
    with_("nobody", 0)
    with_("", 0)
    with_("", -2)  # a consumer without membership while the group has members
    with_("", -3)


@at_every_version("OffsetCommit", since=7)
@pytest.mark.parametrize("instance", [None, "", "known", "unknown"])
@pytest.mark.parametrize("member_id", [None, "", "nobody"])
def test_static_members(pair: Pair, version: int, instance: str | None, member_id: str | None) -> None:
    topic, name = pair.topic(), group(pair)
    known = {side.name: member(side, name, topic, instance="known") for side in pair.sides}

    def build(side: Side) -> Any:
        mine, generation = known[side.name]
        return commit(
            name,
            topic,
            (0, 5),
            member_id=mine if member_id is None else member_id,
            generation_id_or_member_epoch=generation,
            group_instance_id=instance,
        )(side)

    pair.same(build, version)


@at_every_version("OffsetCommit")
def test_members_of_a_consumer_group(pair: Pair, version: int) -> None:
    topic, name = pair.topic(), group(pair)
    known = {side.name: consumer(side, name, topic) for side in pair.sides}

    def with_(member_id: str | None, step: int, **fields: Any) -> None:
        def build(side: Side) -> Any:
            mine, epoch = known[side.name]
            given: dict[str, Any] = {
                "member_id": mine if member_id is None else member_id,
                "generation_id_or_member_epoch": epoch + step,
            }
            return commit(name, topic, (0, 5), **{**given, **fields})(side)

        pair.same(build, version)

    for step in (0, 1, -1, 9):
        with_(None, step)
    for member_id in (None, "", "nobody"):
        with_(member_id, 0)
        for epoch in (-1, -2, 0):
            with_(member_id, 0, generation_id_or_member_epoch=epoch)


@at_every_version("OffsetCommit", until=4)
@pytest.mark.parametrize("retention_ms", [-1, 0, 1, -2, 86_400_000, BIGGEST])
def test_retention_times(pair: Pair, version: int, retention_ms: int) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit(name, topic, (0, 5), retention_time_ms=retention_ms), version)
    pair.same(fetch(8, name, [(topic, [0])]), 8)


@at_every_version("OffsetCommit", since=10)
def test_unknown_topic_ids(pair: Pair, version: int) -> None:
    topic, name = pair.topic(), group(pair)
    kind = OffsetCommitRequest

    def build(*ids: bytes | None) -> Any:
        def of_side(side: Side) -> Any:
            rows = [kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=4)]
            given = [side.topic_ids[topic] if each is None else each for each in ids]
            topics = [kind.OffsetCommitRequestTopic(topic_id=each, partitions=rows) for each in given]
            return kind(group_id=name, topics=topics)

        return of_side

    pair.same(build(UNKNOWN_ID), version)
    pair.same(build(bytes(16)), version)
    pair.same(build(None, UNKNOWN_ID), version)
    pair.same(build(UNKNOWN_ID, None), version)
    pair.same(build(UNKNOWN_ID, None, bytes(16), None), version)


@pytest.mark.parametrize("offset_bytes", [900_000, 1_048_000])
def test_more_than_a_batch_can_hold(pair: Pair, offset_bytes: int) -> None:
    """Many partitions with metadata of the largest size: beyond max.message.bytes nothing is stored."""
    count = offset_bytes // 4096 + 2
    topic, name = pair.topic(partitions=count), group(pair)
    rows = [(index, index, "m" * 4096) for index in range(count)]
    pair.same(commit(name, topic, *rows), 8)
    pair.same(fetch(8, name, [(topic, [0, count - 1])]), 8)
