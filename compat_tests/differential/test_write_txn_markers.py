"""End markers of transactions, and what consumers see of the transactions that they end.

The transactions are made by hand, without a coordinator: both brokers are told not to verify them.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import batch, fetch, fetch_partition, list_offsets, produce
from compat_tests.differential.test_describe_producers import describe
from pykafkad.messages import WriteTxnMarkersRequest

VERSIONS = [1, 2]
PRODUCER = 9
LATEST = -1
UNCOMMITTED, COMMITTED = 0, 1


def marker(topics: dict[str, list[int]], epoch: int = 0, committed: bool = True, **fields: Any) -> Any:
    kind = WriteTxnMarkersRequest
    asked = [
        kind.WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
    ]
    given = {"producer_id": PRODUCER, "coordinator_epoch": 0, "transaction_version": 0, **fields}
    return kind.WritableTxnMarker(producer_epoch=epoch, transaction_result=committed, topics=asked, **given)


def markers(*each: Any) -> Any:
    return WriteTxnMarkersRequest(markers=list(each))


def begin(
    pair: Pair, topic: str, *values: bytes, sequence: int = 0, epoch: int = 0, producer: int = PRODUCER
) -> None:
    data = batch(
        *values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )
    pair.same(produce(topic, {0: data}, transactional_id="by-hand"), 9)


def look(pair: Pair, topic: str) -> None:
    """What there is to be seen of a partition."""
    pair.same(describe((topic, [0])), 0)
    for isolation in (UNCOMMITTED, COMMITTED):
        for timestamp in (LATEST, -3, 0, 1_700_000_000_001):
            pair.same(list_offsets(topic, (0, timestamp), isolation_level=isolation), 7)
        for offset in range(9):
            pair.same(fetch({topic: [fetch_partition(0, offset)]}, isolation_level=isolation), 12)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends(pair: Pair, version: int, committed: bool) -> None:
    name = pair.topic("marked", 2)
    begin(pair, name, b"a", b"b")
    pair.same(produce(name, {0: batch(b"plain")}), 9)
    look(pair, name)
    pair.same(markers(marker({name: [0, 1]}, committed=committed)), version)
    look(pair, name)
    begin(pair, name, b"c", sequence=2)
    look(pair, name)
    pair.same(markers(marker({name: [0]}, committed=not committed)), version)
    look(pair, name)


def test_two_transactions_side_by_side(pair: Pair) -> None:
    name = pair.topic("marked")
    begin(pair, name, b"a")
    begin(pair, name, b"b", producer=10)
    begin(pair, name, b"c", sequence=1)
    pair.same(markers(marker({name: [0]}, committed=False, producer_id=10)), 2)
    look(pair, name)
    begin(pair, name, b"d", producer=10, sequence=1)
    pair.same(markers(marker({name: [0]}, committed=False)), 2)
    look(pair, name)
    pair.same(markers(marker({name: [0]}, producer_id=10)), 2)
    look(pair, name)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transaction_version", [0, 1, 2, 3])
@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_epochs(pair: Pair, version: int, transaction_version: int, epoch: int) -> None:
    name = pair.topic("marked")
    begin(pair, name, b"a", epoch=5)
    asked = markers(marker({name: [0]}, epoch=epoch, transaction_version=transaction_version))
    for _ in range(2):
        pair.same(asked, version)
        pair.same(describe((name, [0])), 0)
    look(pair, name)


def test_a_transaction_version_that_there_is_not(pair: Pair) -> None:
    pair.same(markers(marker({pair.topic("marked"): [0]}, transaction_version=-1)), 2)


def test_epochs_of_coordinators(pair: Pair) -> None:
    name = pair.topic("marked")
    for coordinator_epoch in (3, 2, 3, -1, 4):
        pair.same(markers(marker({name: [0]}, coordinator_epoch=coordinator_epoch)), 2)
        pair.same(describe((name, [0])), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_are_not_there(pair: Pair, version: int) -> None:
    name = pair.topic("marked")
    pair.same(markers(marker({name: [0, 1, -1], "never-made": [0], "": [0], "a b": [1]})), version)
    pair.same(markers(marker({"never-made": [0]})), version)
    pair.same(describe((name, [0])), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_markers_without_partitions(pair: Pair, version: int) -> None:
    name = pair.topic("marked")
    pair.same(markers(), version)
    pair.same(markers(marker({})), version)
    pair.same(markers(marker({name: []})), version)
    pair.same(markers(marker({name: []}), marker({name: [0]}, producer_id=10)), version)
    pair.same(markers(marker({name: [0]}, epoch=1), marker({name: [0]}, epoch=0)), version)


def test_a_marker_for_offsets(pair: Pair) -> None:
    pair.same(markers(marker({"__consumer_offsets": [0, 49, 50, -1]})), 2)


def test_numbers_that_no_producer_has(pair: Pair) -> None:
    name = pair.topic("marked")
    for producer_id in (-1, -2, 2**62):
        for epoch in (-1, -2, 32767):
            pair.same(markers(marker({name: [0]}, epoch=epoch, producer_id=producer_id)), 2)
            pair.same(describe((name, [0])), 0)
            pair.same(fetch({name: [fetch_partition(0, 0)]}), 12)
