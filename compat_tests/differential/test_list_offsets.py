"""ListOffsets: the special timestamps, times between records, epochs, partitions that do not exist."""

from __future__ import annotations

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import OLD_MS, batch, list_offsets, produce
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ListOffsetsRequest

SPECIAL = [-1, -2, -3, -4, -5, -6, -7, -100, -(2**63)]
TIMES = [0, 1, OLD_MS - 1, OLD_MS, OLD_MS + 1, OLD_MS + 2, OLD_MS + 500, OLD_MS + 1000, OLD_MS + 1001]
TIMES += [OLD_MS + 2000, OLD_MS + 2001, OLD_MS + 5000, OLD_MS + 5001, OLD_MS + 5003, 2**63 - 1]


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    """Partition 0 has batches whose timestamps go up and down, one of them compressed; partition 1 is empty."""
    name = pair.topic("offsets", 2)
    for data in (
        batch(b"a", b"b", b"c"),
        batch(b"d", b"e", b"f", timestamp=OLD_MS + 1000),
        batch(b"g", timestamp=OLD_MS + 500),
        batch(*[b"h"] * 5, timestamp=OLD_MS + 5000, codec="gzip"),
        batch(b"i", timestamp=OLD_MS + 2000),
        batch(b"j", b"k", timestamp=OLD_MS + 5003),
    ):
        pair.same(produce(name, {0: data}), 9)
    return name


@at_every_version("ListOffsets")
@pytest.mark.parametrize("timestamp", SPECIAL + TIMES)
@pytest.mark.parametrize("partition", [0, 1])
def test_timestamps(pair: Pair, topic: str, version: int, timestamp: int, partition: int) -> None:
    pair.same(list_offsets(topic, (partition, timestamp)), version)


@at_every_version("ListOffsets")
@pytest.mark.parametrize("partition", [2, -1, 2**31 - 1])
def test_unknown_partitions(pair: Pair, topic: str, version: int, partition: int) -> None:
    pair.same(list_offsets(topic, (partition, -1), (0, -1)), version)


@at_every_version("ListOffsets")
@pytest.mark.parametrize("name", ["never-made", "", "a b"])
def test_unknown_topics(pair: Pair, version: int, name: str) -> None:
    pair.same(list_offsets(name, (0, -1)), version)


@at_every_version("ListOffsets")
def test_one_partition_twice(pair: Pair, topic: str, version: int) -> None:
    pair.same(list_offsets(topic, (0, -1), (0, -2)), version)
    pair.same(list_offsets(topic, (0, -1), (1, -1), (0, -1)), version)


@at_every_version("ListOffsets")
def test_one_topic_twice(pair: Pair, topic: str, version: int) -> None:
    kind = ListOffsetsRequest
    topics = [list_offsets(topic, (index, -1)).topics[0] for index in (0, 1, 0)]
    pair.same(kind(replica_id=-1, topics=topics), version)


@at_every_version("ListOffsets")
def test_nothing_asked(pair: Pair, topic: str, version: int) -> None:
    pair.same(ListOffsetsRequest(replica_id=-1, topics=[]), version)
    pair.same(list_offsets(topic), version)


@at_every_version("ListOffsets", since=4)
@pytest.mark.parametrize("epoch", [-1, 0, 1, 5, -2, 2**31 - 1])
@pytest.mark.parametrize("timestamp", [-1, -2, OLD_MS])
def test_leader_epochs(pair: Pair, topic: str, version: int, epoch: int, timestamp: int) -> None:
    pair.same(list_offsets(topic, (0, timestamp), current_leader_epoch=epoch), version)


@at_every_version("ListOffsets")
@pytest.mark.parametrize("replica_id", [-1, -2, -3, 0, 1, 5])
@pytest.mark.parametrize("timestamp", [-1, -2, OLD_MS + 1])
def test_replica_ids(pair: Pair, topic: str, version: int, replica_id: int, timestamp: int) -> None:
    pair.same(list_offsets(topic, (0, timestamp), replica_id=replica_id), version)


@at_every_version("ListOffsets", since=2)
@pytest.mark.parametrize("level", [0, 1])
def test_isolation_levels(pair: Pair, topic: str, version: int, level: int) -> None:
    for timestamp in (-1, -2, OLD_MS + 5003):
        pair.same(list_offsets(topic, (0, timestamp), isolation_level=level), version)


@at_every_version("ListOffsets", since=10)
@pytest.mark.parametrize("timeout_ms", [0, -1, 1000])
def test_timeouts(pair: Pair, topic: str, version: int, timeout_ms: int) -> None:
    pair.same(list_offsets(topic, (0, OLD_MS), timeout_ms=timeout_ms), version)
