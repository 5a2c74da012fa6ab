"""DescribeProducers: the producers of partitions, and partitions that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import batch, produce
from pykafkad.messages import DescribeProducersRequest


def describe(*topics: tuple[str, list[int]]) -> Any:
    kind = DescribeProducersRequest
    return kind(topics=[kind.TopicRequest(name=name, partition_indexes=parts) for name, parts in topics])


def test_producers_of_a_partition(pair: Pair) -> None:
    name = pair.topic("produced", 2)
    pair.same(describe((name, [0, 1])), 0)
    for producer_id, epoch, sequence in [
        (7, 3, 0),
        (7, 3, 2),
        (8, 0, 5),
        (8, 1, 0),
        (2**40, 32767, 2**31 - 1),
    ]:
        data = batch(b"x", b"y", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        pair.same(produce(name, {0: data}), 9)
        pair.same(describe((name, [0, 1])), 0)
    pair.same(describe((name, [0, 0]), (name, [1])), 0)


def test_a_transaction_under_way(pair: Pair) -> None:
    name = pair.topic("produced")
    pair.same(produce(name, {0: batch(b"a", b"b")}), 9)
    data = batch(b"x", producer_id=9, producer_epoch=2, base_sequence=0, transactional=True)
    pair.same(produce(name, {0: data}, transactional_id="described"), 9)
    pair.same(describe((name, [0])), 0)


@pytest.mark.parametrize("topic", ["never-made", "", "a b", ".", "é", "a" * 250, "__cluster_metadata"])
def test_partitions_that_are_not_there(pair: Pair, topic: str) -> None:
    pair.same(describe((topic, [0, 1, -1]), (pair.topic("beside"), [0, 1, -1])), 0)
    pair.same(describe((topic, [])), 0)
    pair.same(describe(), 0)
