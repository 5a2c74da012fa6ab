"""DescribeTopicPartitions: order, limit, cursor."""

from __future__ import annotations

import pytest

from compat_tests.differential.pair import Pair
from pykafkad.messages import DescribeTopicPartitionsRequest

Request = DescribeTopicPartitionsRequest
VERSION = 0


@pytest.fixture(scope="module")
def topics(pair: Pair) -> list[str]:
    return [pair.topic("partitions", count) for count in (3, 1, 5)]


def asked(names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Request:
    at = Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    return Request(
        topics=[Request.TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=at
    )


def test_topics_in_any_order(pair: Pair, topics: list[str]) -> None:
    pair.same(asked(topics), VERSION)
    pair.same(asked(topics[::-1]), VERSION)
    pair.same(asked([topics[0], topics[0]]), VERSION)


@pytest.mark.parametrize("name", ["never-made", "", ".", "a b", "a" * 250, "é"], ids=lambda name: name[:10])
def test_unknown_and_bad_names(pair: Pair, topics: list[str], name: str) -> None:
    pair.same(asked([name]), VERSION)
    pair.same(asked([topics[0], name, topics[1]]), VERSION)


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 8, 9, 10, 2000, 2001, 2**31 - 1])
def test_the_limit_cuts_and_gives_a_cursor(pair: Pair, topics: list[str], limit: int) -> None:
    pair.same(asked(topics, limit), VERSION)
    pair.same(asked([topics[2]], limit), VERSION)


@pytest.mark.parametrize("limit", [1, 2, 4, 2000])
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 4, 5, 99])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_going_on_from_a_cursor(pair: Pair, topics: list[str], limit: int, index: int, which: int) -> None:
    pair.same(asked(topics, limit, (topics[which], index)), VERSION)


@pytest.mark.parametrize("name", ["a", "never-made", "zzz", "", "a b"])
def test_a_cursor_at_a_topic_that_is_not_asked_for(pair: Pair, topics: list[str], name: str) -> None:
    pair.same(asked(topics, 4, (name, 0)), VERSION)
    pair.same(asked(topics, 4, (name, 2)), VERSION)


def test_all_topics(pair: Pair, topics: list[str]) -> None:
    pair.learn_topics()
    pair.same(asked([]), VERSION)
    pair.same(asked([], 2), VERSION)
    pair.same(asked([], 3, (topics[0], 1)), VERSION)
