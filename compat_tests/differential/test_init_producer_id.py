"""InitProducerId of idempotent producers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import InitProducerIdRequest

COORDINATOR_LOAD_IN_PROGRESS = 14
READY_SECONDS = 20


def request(**fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000, **fields})


def next_id(side: Side) -> int:
    """Kafka answers that it is loading while it waits for its next block of ids."""
    deadline = time.monotonic() + READY_SECONDS
    while (answer := side.demand(request(), 4)).error_code == COORDINATOR_LOAD_IN_PROGRESS:
        assert time.monotonic() < deadline, f"{side.name} gives no producer id"
        time.sleep(0.01)
    producer_id: int = answer.producer_id
    return producer_id


@pytest.fixture
def ready(pair: Pair) -> Pair:
    for side in pair.sides:
        next_id(side)
    return pair


@at_every_version("InitProducerId")
@pytest.mark.parametrize("timeout_ms", [0, 60_000, -1, 2**31 - 1])
def test_an_id_for_an_idempotent_producer(ready: Pair, version: int, timeout_ms: int) -> None:
    ready.same(request(transaction_timeout_ms=timeout_ms), version)


@at_every_version("InitProducerId")
def test_an_empty_transactional_id(ready: Pair, version: int) -> None:
    ready.same(request(transactional_id=""), version)


@at_every_version("InitProducerId", since=3)
@pytest.mark.parametrize(("producer_id", "epoch"), [(5, 3), (-1, 0), (5, -1), (-2, -2), (10**15, 32767)])
def test_an_id_and_epoch_given(ready: Pair, version: int, producer_id: int, epoch: int) -> None:
    ready.same(request(producer_id=producer_id, producer_epoch=epoch), version)


def test_ids_follow_each_other(ready: Pair) -> None:
    for side in ready.sides:
        ids = [next_id(side) for _ in range(1100)]
        assert ids == list(range(ids[0], ids[0] + len(ids))), side.name
