"""ConsumerGroupDescribe: groups that exist, that do not, and that are of another type."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.cast import Cast
from compat_tests.differential.pair import Pair
from compat_tests.differential.play import Play
from compat_tests.differential.tree import differences
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ConsumerGroupDescribeRequest, DescribeGroupsRequest, ListGroupsRequest
from pykafkad.pure.groups.consumer_records import GROUP
from pykafkad.pure.groups.settings import NoTopics
from pykafkad.pure.groups.topic_watch import TopicWatch


@at_every_version("ConsumerGroupDescribe")
@pytest.mark.parametrize("include", [False, True])
def test_a_group(pair: Pair, version: int, include: bool) -> None:
    topic, other = pair.topic("c", 3), pair.topic("c", 1)
    play = Play(pair)
    play.join("a", topic, other, instance_id="i", rack_id="r", server_assignor="range")
    play.join("b", topic, server_assignor="range")
    play.describe(version, include_authorized_operations=include)
    play.beat("a", owned={topic: [0, 1, 2]}, instance_id="i")
    play.describe(version, include_authorized_operations=include)
    play.leave("a", instance_id="i")
    play.leave("b")
    play.describe(version, include_authorized_operations=include)


@at_every_version("ConsumerGroupDescribe")
@pytest.mark.parametrize("include", [False, True])
def test_groups_that_are_not_there(pair: Pair, version: int, include: bool) -> None:
    play = Play(pair, interval_ms=None)
    play.describe(version, include_authorized_operations=include)
    for group_ids in ([], ["", play.group_id], [""], [play.group_id] * 3):
        asked = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=include)
        pair.same(asked, version)


@at_every_version("ConsumerGroupDescribe")
def test_a_classic_group(pair: Pair, version: int) -> None:
    cast = Cast(pair)
    cast.found("one")
    pair.same(ConsumerGroupDescribeRequest(group_ids=[cast.group_id]), version)
    cast.close()


@at_every_version("DescribeGroups")
def test_describe_groups_of_a_consumer_group(pair: Pair, version: int) -> None:
    topic = pair.topic("c", 1)
    play = Play(pair)
    play.join("a", topic)
    pair.same(DescribeGroupsRequest(groups=[play.group_id]), version)


@at_every_version("ListGroups")
def test_list_groups(pair: Pair, version: int) -> None:
    topic = pair.topic("c", 2)
    play = Play(pair)
    play.join("a", topic, server_assignor="range")
    fields: dict[str, Any] = {} if version < 5 else {"types_filter": ["consumer"]}
    for _ in range(2):
        rows = []
        for side in pair.sides:
            groups = side.demand(ListGroupsRequest(**fields), version).groups
            rows += [each for each in groups if each.group_id == play.group_id]
        assert not differences(pair, *rows)
        play.leave("a")


def test_the_hash_of_a_groups_topics(pair: Pair) -> None:
    """It depends on topic ids, which differ: so what each has written is compared with the expected hash."""
    topics = [pair.topic("c", partitions) for partitions in (1, 7, 40)]
    pair.learn_topics()
    play = Play(pair)
    play.join("a", *topics)
    for side in pair.sides:
        image = NoTopics()
        for name, partitions in zip(topics, (1, 7, 40), strict=True):
            image.topics[name] = Topic(name, side.topic_ids[name], partitions)
        hashes = [value.metadata_hash for key, value in play.written(side) if key.api_key == GROUP]
        assert hashes == [TopicWatch(image).hash_of(topics)], side.name


class Partition:
    replicas = (1,)


class Topic:
    def __init__(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.name, self.id, self.partitions = name, topic_id, [Partition()] * partitions
