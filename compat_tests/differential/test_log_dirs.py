"""DescribeLogDirs and AlterReplicaLogDirs on brokers with one log directory."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import batch, produce
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

Asked = tuple[str, list[int]]


def describe(*topics: Asked) -> Any:
    kind = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(topics=[kind(topic=name, partitions=parts) for name, parts in topics])


def alter(*given: tuple[str, list[Asked]]) -> Each:
    """Directories have the same names for both sides: `{dir}` is the log directory."""
    kind = AlterReplicaLogDirsRequest

    def build(side: Side) -> Any:
        path = side.demand(DescribeLogDirsRequest(topics=[]), 4).results[0].log_dir
        return kind(
            dirs=[
                kind.AlterReplicaLogDir(
                    path=name.replace("{dir}", path),
                    topics=[
                        kind.AlterReplicaLogDirTopic(name=topic, partitions=parts) for topic, parts in asked
                    ],
                )
                for name, asked in given
            ]
        )

    return build


@at_every_version("DescribeLogDirs")
def test_partitions_and_their_sizes(pair: Pair, version: int) -> None:
    name, empty = pair.topic("sized", 3), pair.topic("sized")
    pair.same(produce(name, {0: batch(b"a" * 1000), 2: batch(b"b", b"c")}), 9)
    pair.same(describe((name, [0, 1, 2]), (empty, [0])), version)
    pair.same(describe((name, [2, 2, 9, -1])), version)
    pair.same(describe((name, [0]), (name, [1])), version)


@at_every_version("DescribeLogDirs")
@pytest.mark.parametrize("name", ["never-made", "", "a b", "__cluster_metadata"])
def test_what_is_not_there_is_left_out(pair: Pair, version: int, name: str) -> None:
    pair.same(describe((name, [0])), version)
    pair.same(describe((name, [0]), (pair.topic("beside"), [0])), version)
    pair.same(describe((name, [])), version)
    pair.same(describe(), version)


@at_every_version("DescribeLogDirs")
def test_everything(pair: Pair, version: int) -> None:
    name = pair.topic("everything", 2)
    for side in pair.sides:
        (result,) = side.demand(DescribeLogDirsRequest(topics=None), version).results
        (topic,) = [topic for topic in result.topics if topic.name == name]
        found = sorted((part.partition_index, part.is_future_key) for part in topic.partitions)
        assert found == [(0, False), (1, False)]
        assert not any(topic.name == "__cluster_metadata" for topic in result.topics)


@at_every_version("AlterReplicaLogDirs")
@pytest.mark.parametrize("path", ["/nowhere", "", "data", "{dir}/", "{dir}/../data", "{dir}/x", "é"])
def test_directories_that_are_none_of_ours(pair: Pair, version: int, path: str) -> None:
    pair.same(alter((path, [(pair.topic("placed"), [0, 1])])), version)
    pair.same(alter((path, [("never-made", [0])])), version)


@at_every_version("AlterReplicaLogDirs")
def test_to_where_it_is(pair: Pair, version: int) -> None:
    name = pair.topic("placed", 2)
    pair.same(alter(("{dir}", [(name, [0, 1])])), version)
    pair.same(alter(("{dir}", [(name, [0, 0, 7, -1]), ("never-made", [0]), ("", [0])])), version)
    pair.same(alter(("{dir}", [(name, [0])]), ("/nowhere", [(name, [0, 1])])), version)
    pair.same(alter(("/nowhere", [(name, [0, 1])]), ("{dir}", [(name, [1])])), version)
    pair.same(alter(("{dir}", [("__cluster_metadata", [0])])), version)
    pair.same(alter(("{dir}", [(name, [])]), ("{dir}/x", [])), version)
    pair.same(alter(), version)
    pair.same(describe((name, [0, 1])), 4)


@at_every_version("AlterReplicaLogDirs")
@pytest.mark.parametrize("length", [212, 213, 214, 215, 216, 249, 250])
def test_names_too_long_for_a_copy(pair: Pair, version: int, length: int) -> None:
    pair.same(alter(("{dir}", [("n" * length, [0])])), version)
    pair.same(alter(("/nowhere", [("n" * length, [10])])), version)
