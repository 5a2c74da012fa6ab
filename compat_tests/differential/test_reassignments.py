"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders on one node."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

REPLICAS = [None, [1], [], [2], [1, 1], [1, 2], [2, 1], [-1], [2, 2], [1, 2, 3]]
TIMEOUTS = [0, -1, 2**31 - 1]


def alter(*topics: tuple[str, list[tuple[int, list[int] | None]]], **fields: Any) -> Any:
    kind = AlterPartitionReassignmentsRequest
    return kind(
        topics=[
            kind.ReassignableTopic(
                name=name,
                partitions=[
                    kind.ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in parts
                ],
            )
            for name, parts in topics
        ],
        **fields,
    )


def elect(*topics: tuple[str, list[int]], **fields: Any) -> Any:
    kind = ElectLeadersRequest
    return kind(
        topic_partitions=[kind.TopicPartitions(topic=name, partitions=parts) for name, parts in topics],
        **fields,
    )


@at_every_version("AlterPartitionReassignments")
@pytest.mark.parametrize("replicas", REPLICAS, ids=str)
@pytest.mark.parametrize("allowed", [True, False])
def test_replicas(pair: Pair, version: int, replicas: list[int] | None, allowed: bool) -> None:
    fields = {"allow_replication_factor_change": allowed} if version else {}
    name = pair.topic("reassigned", 2)
    pair.same(alter((name, [(0, replicas), (1, [1]), (2, replicas), (-1, replicas)]), **fields), version)


@at_every_version("AlterPartitionReassignments")
@pytest.mark.parametrize("name", ["never-made", "", "a b", "__cluster_metadata"])
def test_unknown_topics_are_not_reassigned(pair: Pair, version: int, name: str) -> None:
    pair.same(alter((name, [(0, [1]), (1, None)]), (pair.topic("beside"), [(0, [1])])), version)
    pair.same(alter((name, [])), version)


@at_every_version("AlterPartitionReassignments")
def test_partitions_named_twice(pair: Pair, version: int) -> None:
    name = pair.topic("reassigned", 2)
    pair.same(alter((name, [(0, [1]), (0, None)]), (name, [(0, [2]), (1, [1])])), version)


@at_every_version("AlterPartitionReassignments")
def test_texts_that_no_answer_of_reassignments_can_carry(pair: Pair, version: int) -> None:
    name = pair.topic("reassigned")
    pair.same(alter((name, [(0, [1])]), ("n" * 32_760, [(0, [1]), (1, None)])), version)
    pair.same(alter(("n" * 32_760, []), (name, [(0, [1])])), version)
    pair.same(alter((name, [(0, list(range(500, 0, -1)))])), version)


@at_every_version("ElectLeaders")
def test_texts_that_no_answer_of_elections_can_carry(pair: Pair, version: int) -> None:
    name = pair.topic("led")
    pair.same(elect((name, [0, 1]), ("n" * 32_760, [0, 3])), version)
    pair.same(elect(("n" * 32_760, []), (name, [0])), version)


@at_every_version("AlterPartitionReassignments")
@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
@pytest.mark.parametrize("allowed", [True, False])
def test_timeouts_of_reassignments(pair: Pair, version: int, timeout_ms: int, allowed: bool) -> None:
    fields = {"allow_replication_factor_change": allowed} if version else {}
    pair.same(alter(timeout_ms=timeout_ms, **fields), version)
    name = pair.topic("reassigned")
    pair.same(alter((name, [(0, [1]), (9, None)]), timeout_ms=timeout_ms, **fields), version)
    pair.same(alter((name, []), timeout_ms=timeout_ms, **fields), version)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_there_are_none(pair: Pair, timeout_ms: int) -> None:
    kind = ListPartitionReassignmentsRequest
    name = pair.topic("reassigned")
    pair.same(kind(topics=None, timeout_ms=timeout_ms), 0)
    pair.same(kind(topics=[], timeout_ms=timeout_ms), 0)
    asked = [
        kind.ListPartitionReassignmentsTopics(name=one, partition_indexes=[0, 99, -1])
        for one in (name, "never-made", "")
    ]
    pair.same(kind(topics=asked, timeout_ms=timeout_ms), 0)


@at_every_version("ElectLeaders")
@pytest.mark.parametrize("kind", [0, 1, 2, -1, 127])
def test_elections(pair: Pair, version: int, kind: int) -> None:
    fields = {"election_type": kind} if version else {}
    name, other = pair.topic("led", 2), pair.topic("led")
    pair.same(elect((name, [99, 0, 1, 0, -1]), (other, [0]), **fields), version)
    pair.same(elect((name, [0]), ("never-made", [0, 3]), ("", [1]), ("a b", []), **fields), version)
    pair.same(elect((name, [0]), (other, [0]), (name, [1]), **fields), version)
    pair.same(elect((name, []), **fields), version)


@at_every_version("ElectLeaders")
@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_timeouts_of_elections(pair: Pair, version: int, timeout_ms: int, kind: int) -> None:
    fields: dict[str, int] = {"election_type": kind} if version else {}
    pair.same(elect(timeout_ms=timeout_ms, **fields), version)
    pair.same(elect((pair.topic("led"), [0, 9]), timeout_ms=timeout_ms, **fields), version)
    pair.same(elect((pair.topic("led"), []), timeout_ms=timeout_ms, **fields), version)


@at_every_version("ElectLeaders")
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("timeout_ms", [0, 60_000])
def test_elections_everywhere(pair: Pair, version: int, kind: int, timeout_ms: int) -> None:
    fields: dict[str, Any] = {"election_type": kind} if version else {}
    pair.topic("led", 3)
    pair.same(ElectLeadersRequest(topic_partitions=None, timeout_ms=timeout_ms, **fields), version)
