"""What becomes of transactional ids as time passes: epochs run out, and ids that nobody uses are forgotten, on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from compat_tests.differential.conftest import made_pair
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.transactor import Transactor
from pykafkad.messages import InitProducerIdRequest, ListTransactionsRequest

LAST_EPOCH = 32766  # 32767 is never given to a producer: it is what fences the last one
READY_SECONDS = 60
FORGOTTEN_MS = 1500
CONFIG = {
    "transactional.id.expiration.ms": str(FORGOTTEN_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    return pair.topic("taking-part", 1)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made_pair(tmp_path_factory, CONFIG) as made:
        yield made


def wear_out(producer: Transactor, last: int) -> None:
    """Begins again and again, until its epoch is `last` on both brokers."""
    for side in producer.pair.sides:
        request = InitProducerIdRequest(
            transactional_id=producer.id, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        producer_id, epoch = producer.producers[side.name]
        while epoch < last:
            answer = side.demand(request, 4)
            assert not answer.error_code and answer.producer_id == producer_id
            epoch = answer.producer_epoch
        producer.producers[side.name] = producer_id, epoch


def test_epochs_run_out(pair: Pair, topic: str) -> None:
    """Then the transactional id gets another producer id, whichever request it is that finds none left."""
    producer = Transactor(pair, "worn-out")
    wear_out(producer, LAST_EPOCH - 2)
    for version, committed in ((4, True), (5, True), (5, False), (5, True)):
        producer.add({topic: [0]})
        assert producer.end(committed, version).error_code == 0
        producer.describe()
    before = dict(producer.producers)
    for known in (True, False):
        producer.init(known=known)
        producer.describe()
    producer.producers = before
    producer.init(known=True)
    producer.describe()


def test_epochs_run_out_at_the_start(pair: Pair) -> None:
    producer = Transactor(pair, "worn-out-too")
    wear_out(producer, LAST_EPOCH - 1)
    worn = dict(producer.producers)
    for _ in range(3):
        producer.init()
        producer.describe()
    producer.producers = worn
    producer.init(known=True)
    producer.describe()


def listed(side: Side, name: str) -> bool:
    answer = side.demand(ListTransactionsRequest(), 1)
    return name in {row.transactional_id for row in answer.transaction_states}


def until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("committed", [None, True, False])
def test_ids_that_nobody_uses_are_forgotten(forgetful: Pair, committed: bool | None, known: bool) -> None:
    name = forgetful.topic("once", 1)
    producer = Transactor(forgetful, "forgotten")
    if committed is not None:
        producer.add({name: [0]})
        producer.end(committed)
    for side in forgetful.sides:
        until(lambda side=side: not listed(side, producer.id), f"{side.name} keeps {producer.id}")  # type: ignore[misc]
    producer.describe()
    producer.init(known=known)
    producer.add({name: [0]})
    producer.end(committed=True)


def test_an_open_transaction_is_not_forgotten(forgetful: Pair) -> None:
    name = forgetful.topic("open", 1)
    producer = Transactor(forgetful, "kept")
    other = Transactor(forgetful, "other")
    producer.add({name: [0]})
    for side in forgetful.sides:
        until(lambda side=side: not listed(side, other.id), f"{side.name} keeps {other.id}")  # type: ignore[misc]
    assert producer.describe().transaction_state == "Ongoing"
    assert producer.end(committed=True).error_code == 0
