"""OffsetDelete: which offsets are deleted, what is refused because of a member, what does not exist."""

from __future__ import annotations

import pytest

from compat_tests.differential.offset_requests import (
    commit,
    consumer,
    delete,
    fetch,
    group,
    member,
)
from compat_tests.differential.pair import Pair


def committed(pair: Pair, *topics: str) -> str:
    name = group(pair)
    for topic in topics:
        pair.same(commit(name, topic, (0, 5), (1, 6), (2, 7)), 8)
    return name


def test_some_and_all(pair: Pair) -> None:
    topic, other = pair.topic(partitions=3), pair.topic(partitions=3)
    name = committed(pair, topic, other)
    pair.same(delete(name, (topic, [1])), 0)
    pair.same(fetch(8, name, None), 8)
    pair.same(delete(name, (topic, [0, 1, 2]), (other, [2])), 0)
    pair.same(fetch(8, name, None), 8)
    pair.same(delete(name, (other, [0, 1])), 0)
    pair.same(fetch(8, name, None), 8)
    pair.same(delete(name, (other, [0])), 0)  # the group still exists, without offsets


def test_what_does_not_exist(pair: Pair) -> None:
    topic = pair.topic(partitions=3)
    name = committed(pair, topic)
    pair.same(delete(name, (topic, [3, 0, -1])), 0)
    pair.same(delete(name, ("never-made", [0])), 0)
    pair.same(delete(name, ("never-made", [0]), (topic, [1])), 0)
    pair.same(delete(name, (topic, [])), 0)
    pair.same(delete(name), 0)
    pair.same(fetch(8, name, None), 8)


@pytest.mark.parametrize("stem", ["", "nobody"])
def test_groups_that_are_not_there(pair: Pair, stem: str) -> None:
    topic = pair.topic(partitions=3)
    group(pair)
    pair.same(delete(stem, (topic, [0])), 0)
    pair.same(delete(stem, ("never-made", [0])), 0)
    pair.same(delete(stem), 0)


def test_a_topic_that_a_member_reads(pair: Pair) -> None:
    topic, other = pair.topic(partitions=3), pair.topic(partitions=3)
    name = committed(pair, topic, other)
    for side in pair.sides:
        member(side, name, topic)
    pair.same(delete(name, (topic, [0, 7]), (other, [0, 7])), 0)
    pair.same(fetch(8, name, None), 8)


def test_a_topic_that_a_consumer_reads(pair: Pair) -> None:
    topic, other = pair.topic(partitions=3), pair.topic(partitions=3)
    name = committed(pair, topic, other)
    for side in pair.sides:
        consumer(side, name, topic)
    pair.same(delete(name, (topic, [0, 7]), (other, [0, 7])), 0)
    pair.same(fetch(8, name, None), 8)
