"""DeleteRecords: the log start offset afterwards, what can be read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import (
    batch,
    fetch,
    fetch_partition,
    leader_epochs,
    list_offsets,
    produce,
)
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import DeleteRecordsRequest

Topic = DeleteRecordsRequest.DeleteRecordsTopic
Partition = DeleteRecordsRequest.DeleteRecordsPartition


def asked(name: str, *parts: tuple[int, int]) -> Any:
    return Topic(name=name, partitions=[Partition(partition_index=index, offset=to) for index, to in parts])


def request(*topics: Any, timeout_ms: int = 10_000) -> Any:
    return DeleteRecordsRequest(topics=list(topics), timeout_ms=timeout_ms)


def filled(pair: Pair, stem: str = "deleted", **configs: str) -> str:
    """A topic with two partitions; the first has nine records in three batches."""
    given = {key.replace("_", "."): value for key, value in configs.items()}
    name = pair.topic(stem, 2, given)
    for number in range(3):
        pair.same(produce(name, {0: batch(b"a", b"b", b"c", timestamp=1_700_000_000_000 + number * 10)}), 9)
    return name


@at_every_version("DeleteRecords")
def test_offsets_one_after_the_other(pair: Pair, version: int) -> None:
    name = filled(pair)
    for offset in (0, 1, 4, 2, 10, -2, -(2**63), 2**63 - 1, 8, -1, 9, 3):
        pair.same(request(asked(name, (0, offset))), version)
        pair.same(list_offsets(name, (0, -2), (0, -1), (0, -3), (0, 1_700_000_000_001)), 7)
    for offset in (1, -1, 0):
        pair.same(request(asked(name, (1, offset))), version)


@pytest.mark.parametrize("start", [1, 3, 5, 9, -1])
def test_what_is_deleted_is_not_read(pair: Pair, start: int) -> None:
    name = filled(pair)
    pair.same(request(asked(name, (0, start))), 2)
    for offset in range(11):
        pair.same(fetch({name: [fetch_partition(0, offset)]}), 12)
    pair.same(leader_epochs(name, (0, -1, 0), (0, 0, 0)), 4)
    pair.same(produce(name, {0: batch(b"later")}), 9)
    pair.same(list_offsets(name, (0, -2), (0, -1)), 7)


@at_every_version("DeleteRecords")
def test_unknown_partitions(pair: Pair, version: int) -> None:
    name = filled(pair)
    topics = [asked(name, (0, 1), (1, 0), (2, 0), (-1, 0)), asked("never-made", (0, 1)), asked("", (0, 0))]
    pair.same(request(*topics, asked("a b", (0, 0)), asked("__cluster_metadata", (0, 0))), version)


@at_every_version("DeleteRecords")
def test_named_twice(pair: Pair, version: int) -> None:
    name = filled(pair)
    pair.same(request(asked(name, (0, -2), (0, 1))), version)
    pair.same(request(asked(name, (0, 2), (0, -2))), version)
    pair.same(request(asked(name, (0, 3)), asked(name, (1, 0))), version)
    pair.same(list_offsets(name, (0, -2)), 7)


@at_every_version("DeleteRecords")
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_nothing_asked(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(request(timeout_ms=timeout_ms), version)
    pair.same(request(asked("never-made"), timeout_ms=timeout_ms), version)
    pair.same(request(asked(filled(pair), (0, 1)), timeout_ms=timeout_ms), version)


@at_every_version("DeleteRecords")
@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete", ""])
def test_policies(pair: Pair, version: int, policy: str) -> None:
    name = pair.topic("policy", 1, {"cleanup.policy": policy})
    for offset in (0, -1, -2, 5):
        pair.same(request(asked(name, (0, offset))), version)


def test_transactions_below_the_start(pair: Pair) -> None:
    """The last stable offset is raised together with the log start.

    Inside a batch Kafka keeps it at the batch's first offset, below the log start: so batches have one record here.
    """
    name = pair.topic("transactional")
    for sequence in range(3):
        data = batch(b"a", producer_id=4242, producer_epoch=0, base_sequence=sequence, transactional=True)
        pair.same(produce(name, {0: data}, transactional_id="deleted"), 9)
    pair.same(produce(name, {0: batch(b"c")}), 9)
    for offset in (0, 1, 2, 3, 4):
        pair.same(request(asked(name, (0, offset))), 2)
        pair.same(list_offsets(name, (0, -1), isolation_level=1), 7)
        pair.same(list_offsets(name, (0, -2), isolation_level=1), 7)
