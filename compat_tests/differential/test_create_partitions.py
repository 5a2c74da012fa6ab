"""CreatePartitions: counts, assignments, and the messages for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import batch, list_offsets, produce
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import CreatePartitionsRequest, MetadataRequest

Topic = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = CreatePartitionsRequest.CreatePartitionsAssignment

ASSIGNMENTS: list[list[list[int]]] = [
    [],
    [[1]],
    [[1], [1]],
    [[1], [1], [1]],
    [[], []],
    [[1], []],
    [[2], [1]],
    [[1, 1], [1]],
    [[1, 2], [1]],
    [[2, 1], [1]],
    [[-1], [1]],
    [[1], [2]],
]


def grow(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    given = None if assignments is None else [Assignment(broker_ids=each) for each in assignments]
    return Topic(name=name, count=count, assignments=given)


def request(*topics: Any, **fields: Any) -> Any:
    return CreatePartitionsRequest(**{"topics": list(topics), "timeout_ms": 10_000, **fields})


@at_every_version("CreatePartitions")
def test_more_partitions(pair: Pair, version: int) -> None:
    name = pair.topic("grown", 2)
    pair.same(request(grow(name, 5), validate_only=True), version)
    pair.same(request(grow(name, 4)), version)
    pair.same(request(grow(name, 4)), version)
    pair.same(request(grow(name, 3)), version)
    for side in pair.sides:
        pair._wait_for_leaders(side, name, 4)
    pair.same(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), 12)
    pair.same(produce(name, {3: batch(b"a", b"b")}), 9)
    pair.same(list_offsets(name, (0, -1), (3, -1), (4, -1)), 7)


@at_every_version("CreatePartitions")
@pytest.mark.parametrize("count", [2, 1, 0, -1, -(2**31)])
def test_counts_that_are_no_increase(pair: Pair, version: int, count: int) -> None:
    name = pair.topic("shrunk", 2)
    pair.same(request(grow(name, count)), version)
    pair.same(request(grow(name, count, [[1]])), version)


@at_every_version("CreatePartitions")
@pytest.mark.parametrize("assignments", ASSIGNMENTS, ids=str)
def test_assignments(pair: Pair, version: int, assignments: list[list[int]]) -> None:
    pair.same(request(grow(pair.topic("assigned"), 3, assignments)), version)


@at_every_version("CreatePartitions")
@pytest.mark.parametrize("name", ["never-made", "", "a b", "é", "__cluster_metadata", "a" * 300])
def test_unknown_topics(pair: Pair, version: int, name: str) -> None:
    pair.same(request(grow(name, 4)), version)
    pair.same(request(grow(name, 4), grow(pair.topic("beside"), 2)), version)


@at_every_version("CreatePartitions")
def test_one_name_twice(pair: Pair, version: int) -> None:
    name, other = pair.topic("double"), pair.topic("double")
    pair.same(request(grow(name, 2), grow(other, 2), grow(name, 3)), version)
    pair.same(request(grow(name, 2), grow("never-made", 2), grow("never-made", 2)), version)
    pair.same(request(grow(name, 2), validate_only=True), version)


@at_every_version("CreatePartitions")
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_timeouts(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(request(timeout_ms=timeout_ms), version)
    name = pair.topic("hurried")
    pair.same(request(grow(name, 2), grow("never-made", 2), timeout_ms=timeout_ms), version)
    pair.same(request(grow(name, 2), validate_only=True), version)


@pytest.mark.parametrize("count", [10_000, 10_001, 10_002])
def test_too_many_at_once(pair: Pair, count: int) -> None:
    """Kafka's list of records has room for 10,000; topics after the one that overflows it do not fit either."""
    name = pair.topic("many")
    pair.same(request(grow(name, count), validate_only=True), 3)
    pair.same(request(grow(name, count), grow("never-made", 2), validate_only=True), 3)


@at_every_version("CreatePartitions")
def test_assignments_that_are_too_many(pair: Pair, version: int) -> None:
    name = pair.topic("assigned")
    pair.same(request(grow(name, 2, [list(range(500, 0, -1))])), version)
    pair.same(request(grow(name, 2, [[1] * 500])), version)
    pair.same(request(grow(name, 2**31 - 1, [[1]] * 500)), version)
    pair.same(request(grow(name, 3, [[1]] * 500)), version)


@at_every_version("CreatePartitions")
def test_many_names_twice_and_many_unknown_ones(pair: Pair, version: int) -> None:
    names = [f"never-made-{place}" for place in range(300)]
    pair.same(request(*(grow(name, 2) for name in names + names[:200])), version)
    pair.same(request(*(grow("n" * 32_760, count) for count in (1, 2)), grow("n" * 32_000, 2)), version)


def test_far_too_many_at_once(pair: Pair) -> None:
    """Kafka runs out of memory over them, and answers with that."""
    pair.same(request(grow(pair.topic("many"), 2**31 - 1), validate_only=True), 3)
