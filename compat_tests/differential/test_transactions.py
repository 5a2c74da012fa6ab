"""The transaction coordinator: each request in each state of a transaction, of its producer and of others, with
transaction.version 2 and 1."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.conftest import made_pair
from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.test_update_features import request as update_features
from compat_tests.differential.transactor import Transactor
from compat_tests.differential.versions import at_every_version, versions
from pykafkad import errors
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

FEATURE = "transaction.version"
SAFE_DOWNGRADE = 2
READY_SECONDS = 30
SAYS_SINCE = 3  # InitProducerId says what the producer was

# What is wrong with a request of somebody who is not the producer, or not any more.
OTHERS: list[dict[str, Any]] = [
    {"transactional_id": ""},
    {"transactional_id": "nobody"},
    {"producer_id": 1000},
    {"exact_id": -1},
    {"exact_id": -5},
    {"producer_epoch": 1},
    {"producer_epoch": 2},
    {"producer_epoch": -1},
    {"exact_epoch": 32767},
    {"producer_id": 1000, "producer_epoch": 1},
    {"exact_id": -1, "exact_epoch": -1},
]
STATES = ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"]
TOPIC = "taking-part"


@pytest.fixture(scope="module", params=[2, 1], ids=["TV2", "TV1"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two brokers of that transaction.version."""
    with made_pair(
        tmp_path_factory, {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    ) as made:
        if request.param != 2:
            set_level(made, request.param)
        yield made


def set_level(pair: Pair, level: int) -> None:
    for side in pair.sides:
        side.demand(update_features(1, (FEATURE, level, SAFE_DOWNGRADE)), 1)
        deadline = time.monotonic() + READY_SECONDS
        while finalized(side) != level:
            assert time.monotonic() < deadline, f"{side.name} keeps {FEATURE} {finalized(side)}"
            time.sleep(0.02)


def finalized(side: Side) -> int:
    answer = side.demand(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4)
    levels = {row.name: row.max_version_level for row in answer.finalized_features}
    return int(levels.get(FEATURE, 0))


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    return pair.topic(TOPIC, 3)


def in_state(pair: Pair, topic: str, state: str) -> Transactor:
    """A producer whose last transaction is in this state."""
    producer = Transactor(pair, state)
    if state != "Empty":
        producer.add({topic: [0]})
    if state.startswith("Complete"):
        assert producer.end(state == "CompleteCommit").error_code == 0
    assert producer.describe().transaction_state == state
    return producer


# -- InitProducerId


@at_every_version("InitProducerId")
def test_each_init_gets_the_next_epoch(pair: Pair, topic: str, version: int) -> None:
    producer = Transactor(pair, begin=False)
    for epoch in range(3):
        assert producer.init(version).producer_epoch == epoch
        producer.describe()
    producer.add({topic: [0]})
    producer.end(committed=True)
    assert producer.init(version).producer_epoch == 3
    producer.describe()


@at_every_version("InitProducerId")
@pytest.mark.parametrize("timeout_ms", [0, -1, 1, 900_000, 900_001, 2**31 - 1])
def test_timeouts(pair: Pair, version: int, timeout_ms: int) -> None:
    producer = Transactor(pair, begin=False)
    producer.init(version, timeout_ms=timeout_ms)
    producer.describe()


@at_every_version("InitProducerId", since=SAYS_SINCE)
@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_a_producer_that_says_what_it_was(pair: Pair, topic: str, version: int, state: str) -> None:
    producer = in_state(pair, topic, state)
    before = dict(producer.producers)
    producer.init(version, known=True)
    producer.describe()
    producer.producers = before
    producer.init(version, known=True)
    producer.producers = before
    producer.init(version, known=True, producer_epoch=1)
    producer.init(version)
    producer.producers = before
    producer.init(version, known=True)
    producer.describe()


@at_every_version("InitProducerId", since=SAYS_SINCE)
@pytest.mark.parametrize("state", ["Empty", "CompleteCommit"])
def test_init_by_others(pair: Pair, topic: str, version: int, state: str) -> None:
    producer = in_state(pair, topic, state)
    before = dict(producer.producers)
    for wrong in OTHERS:
        producer.producers = dict(before)
        producer.init(version, known=True, **wrong)
        producer.describe()


@pytest.mark.parametrize(
    ("version", "known"),
    [(version, known) for version in versions("InitProducerId") for known in {False, version >= SAYS_SINCE}],
)
def test_init_aborts_what_is_open(pair: Pair, topic: str, version: int, known: bool) -> None:
    producer = in_state(pair, topic, "Ongoing")
    assert producer.init(version, known=known).error_code == errors.CONCURRENT_TRANSACTIONS
    producer.settle()
    producer.describe()
    producer.init(version, known=known)
    producer.describe()


# -- AddPartitionsToTxn


@at_every_version("AddPartitionsToTxn", until=3)
@pytest.mark.parametrize("state", STATES)
def test_adding_partitions(pair: Pair, topic: str, version: int, state: str) -> None:
    producer = in_state(pair, topic, state)
    for wrong in (*OTHERS, {}):
        producer.add({topic: [1, 2]}, version, **wrong)
    producer.describe()


PARTITIONS: list[dict[str, list[int]]] = [
    {},
    {TOPIC: []},
    {"never-made": [0]},
    {"never-made": [0], TOPIC: [0]},
    {TOPIC: [0, 3]},
    {TOPIC: [-1]},
    {TOPIC: [0, 0, 1]},
    {"never-made": [0, 0], TOPIC: [1, 1]},
    {"": [0]},
    {"a b": [0], TOPIC: [1]},
    {"__consumer_offsets": [0], "__transaction_state": [0]},
]


def named(topic: str, partitions: dict[str, list[int]]) -> dict[str, list[int]]:
    return {topic if name == TOPIC else name: indexes for name, indexes in partitions.items()}


@at_every_version("AddPartitionsToTxn", until=3)
def test_partitions_that_are_not_there(pair: Pair, topic: str, version: int) -> None:
    producer = Transactor(pair)
    for partitions in PARTITIONS:
        producer.add(named(topic, partitions), version)
        producer.describe()


def several(*each: Each) -> Each:
    return lambda side: AddPartitionsToTxnRequest(transactions=[build(side) for build in each])


@at_every_version("AddPartitionsToTxn", since=4)
@pytest.mark.parametrize("verify_only", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_brokers_add_and_verify(pair: Pair, topic: str, version: int, verify_only: bool, state: str) -> None:
    producer = in_state(pair, topic, state)
    for wrong in (*OTHERS, {}):
        pair.same(several(producer.batched({topic: [0, 1]}, verify_only=verify_only, **wrong)), version)
    producer.describe()


@at_every_version("AddPartitionsToTxn", since=4)
@pytest.mark.parametrize("verify_only", [False, True])
def test_partitions_of_brokers_that_are_not_there(
    pair: Pair, topic: str, version: int, verify_only: bool
) -> None:
    producer = in_state(pair, topic, "Ongoing")
    for partitions in PARTITIONS:
        pair.same(several(producer.batched(named(topic, partitions), verify_only=verify_only)), version)
    producer.describe()


@at_every_version("AddPartitionsToTxn", since=4)
def test_several_transactions_at_once(pair: Pair, topic: str, version: int) -> None:
    one, two = in_state(pair, topic, "Ongoing"), in_state(pair, topic, "Empty")
    pair.same(
        several(
            one.batched({topic: [0]}, verify_only=True),
            two.batched({topic: [0, 2], "never-made": [1]}),
            one.batched({topic: [1]}, transactional_id="nobody"),
        ),
        version,
    )
    pair.same(several(one.batched({topic: [0, 1]}, verify_only=True), two.batched({topic: [1]})), version)
    one.describe()
    two.describe()


# -- AddOffsetsToTxn


@at_every_version("AddOffsetsToTxn")
@pytest.mark.parametrize("state", STATES)
def test_adding_offsets(pair: Pair, topic: str, version: int, state: str) -> None:
    producer = in_state(pair, topic, state)
    for wrong in (*OTHERS, {}):
        producer.add_offsets("some-group", version, **wrong)
    producer.describe()


@at_every_version("AddOffsetsToTxn")
@pytest.mark.parametrize("group_id", ["", "é", "a" * 300])
def test_groups(pair: Pair, version: int, group_id: str) -> None:
    producer = Transactor(pair)
    producer.add_offsets(group_id, version)
    producer.describe()


# -- EndTxn


@at_every_version("EndTxn")
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_ending(pair: Pair, topic: str, version: int, committed: bool, state: str) -> None:
    producer = in_state(pair, topic, state)
    before = dict(producer.producers)
    for wrong in (*OTHERS, {}):
        producer.producers = dict(before)
        producer.end(committed, version, **wrong)
    producer.describe()


@at_every_version("EndTxn")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_an_end_that_is_repeated(pair: Pair, topic: str, version: int, first: bool, second: bool) -> None:
    producer = in_state(pair, topic, "Ongoing")
    before = dict(producer.producers)
    producer.end(first, version)
    after = dict(producer.producers)
    producer.producers = before
    producer.end(second, version)
    producer.describe()
    producer.producers = after
    producer.end(second, version)
    producer.describe()
    producer.producers = after
    producer.add({topic: [1]})
    producer.describe()


# -- timeouts


def timed_out(pair: Pair, topic: str) -> Transactor:
    """A producer whose transaction took too long, and was aborted."""
    producer = Transactor(pair, "late", begin=False)
    producer.init(timeout_ms=300)
    producer.add({topic: [0]})
    producer.wait_for("CompleteAbort")
    producer.describe()
    return producer


@pytest.mark.parametrize("version", [3, 4, 5])
def test_the_end_of_a_transaction_that_took_too_long(pair: Pair, topic: str, version: int) -> None:
    for committed in (True, False):
        producer = timed_out(pair, topic)
        producer.end(committed, version)
        producer.describe()


def test_going_on_with_a_transaction_that_took_too_long(pair: Pair, topic: str) -> None:
    producer = timed_out(pair, topic)
    producer.add({topic: [1]})
    producer.add_offsets("some-group")
    for verify_only in (True, False):
        pair.same(several(producer.batched({topic: [0, 1]}, verify_only=verify_only)), 5)
    producer.describe()


@pytest.mark.parametrize("known", [True, False])
def test_beginning_again_after_a_transaction_that_took_too_long(pair: Pair, topic: str, known: bool) -> None:
    producer = timed_out(pair, topic)
    before = dict(producer.producers)
    producer.init(known=known, timeout_ms=60_000)
    producer.describe()
    producer.producers = before
    producer.init(known=True, timeout_ms=60_000)
    producer.describe()


# -- DescribeTransactions and ListTransactions


def test_describing_several(pair: Pair, topic: str) -> None:
    names = [in_state(pair, topic, state).id for state in STATES]
    asked = [*names, "", "nobody", names[0], "é"]
    pair.same(DescribeTransactionsRequest(transactional_ids=asked), 0)
    pair.same(DescribeTransactionsRequest(transactional_ids=[]), 0)


@at_every_version("ListTransactions")
def test_listing_states(pair: Pair, topic: str, version: int) -> None:
    for state in STATES:
        in_state(pair, topic, state)
    pair.same(ListTransactionsRequest(), version)
    for states in (["Ongoing"], ["Empty", "CompleteAbort"], ["ongoing", "Dead"], ["", "x", "x"], ["Unknown"]):
        pair.same(ListTransactionsRequest(state_filters=states), version)


@at_every_version("ListTransactions")
def test_listing_producers(pair: Pair, topic: str, version: int) -> None:
    one, two = in_state(pair, topic, "Ongoing"), in_state(pair, topic, "Empty")

    def asked(side: Side) -> Any:
        ids = [producer.producers[side.name][0] for producer in (one, two)]
        return ListTransactionsRequest(producer_id_filters=[*ids, 10**12, -1])

    pair.same(asked, version)
    pair.same(ListTransactionsRequest(producer_id_filters=[-1]), version)


@at_every_version("ListTransactions", since=1)
def test_listing_durations(pair: Pair, topic: str, version: int) -> None:
    for state in STATES:
        in_state(pair, topic, state)
    time.sleep(0.01)
    for duration_ms in (-1, -5, 0, 86_400_000, 10**13, 2**63 - 1):
        pair.same(ListTransactionsRequest(duration_filter=duration_ms), version)


PATTERNS = [
    "",
    ".*",
    "Empty-1",
    "Empty.*",
    "(?i)EMPTY-[0-9]+",
    "Empty",
    "[",
    "*",
    r"(?P<a>Ongoing)-\d+",
    "(?=a)",
    r"\C",
]


@at_every_version("ListTransactions", since=2)
def test_listing_by_a_pattern(pair: Pair, topic: str, version: int) -> None:
    in_state(pair, topic, "Empty")
    in_state(pair, topic, "Ongoing")
    for pattern in PATTERNS:
        asked: dict[str, Any] = {"transactional_id_pattern": pattern}
        pair.same(ListTransactionsRequest(**asked), version)
        pair.same(ListTransactionsRequest(**asked, state_filters=["Empty", "x"], duration_filter=0), version)
