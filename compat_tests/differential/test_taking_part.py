"""Produce and TxnOffsetCommit in transactions: what takes part in one, what does not, and what both brokers then say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.config_requests import BROKER, DELETE, SET, alter_one
from compat_tests.differential.offset_requests import consumer, fetch, group, member
from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import batch, produce
from compat_tests.differential.test_describe_producers import describe
from compat_tests.differential.test_write_txn_markers import look
from compat_tests.differential.transactional import Producer
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ProduceRequest

VERIFY = "transaction.partition.verification.enable"
ADDS = 12
OFFSETS_ADDS = 5


@pytest.fixture(scope="module", autouse=True)
def verifying(pair: Pair) -> Iterator[None]:
    """The other tests make transactions by hand; here the brokers ask their coordinators."""
    pair.same(alter_one(BROKER, "", (VERIFY, SET, "true")), 1)
    pair.settle()
    yield
    pair.same(alter_one(BROKER, "", (VERIFY, DELETE, None)), 1)
    pair.settle()


@pytest.fixture
def producer(pair: Pair) -> Producer:
    return Producer(pair)


@at_every_version("Produce", since=3)
def test_a_partition_that_was_not_added(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part", 2)
    pair.same(producer.produce(name), version)
    pair.same(producer.produce(name, 0, 1), version)
    pair.same(describe((name, [0, 1])), 0)
    pair.same(producer.produce(name, sequence=2), version)


@at_every_version("Produce", since=3)
def test_a_partition_that_was_added(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part", 2)
    for round in range(2):
        producer.begin(name, 0)
        sequence = 4 * round
        pair.same(producer.produce(name, sequence=sequence), version)
        pair.same(producer.produce(name, sequence=sequence + 2), version)
        pair.same(producer.produce(name, sequence=sequence + 2), version)
        look(pair, name)
        producer.end(name, committed=bool(round))
        look(pair, name)
    if version < ADDS:
        pair.same(producer.produce(name, sequence=8), version)
        pair.same(producer.produce(name, 1), version)


@pytest.mark.parametrize("version", [12, 13])
def test_each_transaction_has_an_epoch_of_its_own(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part")
    for committed in (True, False, True):
        pair.same(producer.produce(name), version)
        pair.same(producer.produce(name, sequence=2), version)
        producer.end(name, committed, version=5)
        look(pair, name)


@at_every_version("Produce", since=3)
@pytest.mark.parametrize("epoch", [-1, 1, 32767])
def test_another_epoch(pair: Pair, producer: Producer, version: int, epoch: int) -> None:
    name = pair.topic("part")
    pair.same(producer.produce(name, epoch=epoch), version)
    producer.begin(name)
    pair.same(producer.produce(name, epoch=epoch), version)
    pair.same(producer.produce(name), version)
    pair.same(producer.produce(name, sequence=2, epoch=epoch), version)
    producer.end(name)
    pair.same(producer.produce(name, sequence=2, epoch=epoch), version)


@at_every_version("Produce", since=3)
@pytest.mark.parametrize("transactional_id", ["nobody", ""])
def test_an_id_that_nobody_has(pair: Pair, producer: Producer, version: int, transactional_id: str) -> None:
    name = pair.topic("part")
    pair.same(producer.produce(name, name=transactional_id), version)


@at_every_version("Produce", since=3)
def test_a_producer_id_that_is_another_ones(pair: Pair, producer: Producer, version: int) -> None:
    name, other = pair.topic("part"), Producer(pair)
    pair.same(producer.produce(name, name=other.name), version)


@at_every_version("Produce", since=3)
def test_two_producers_in_one_request(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part", 2)
    parts = {
        index: batch(b"x", producer_id=9, producer_epoch=index, base_sequence=0, transactional=True)
        for index in (0, 1)
    }
    pair.same(produce(name, parts, transactional_id=producer.name), version)


@at_every_version("Produce", since=3)
def test_batches_of_other_kinds_beside_it(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part", 4)
    producer.begin(name, 0)

    def build(side: Any) -> Any:
        request = producer.produce(name, 0, 3, 9)(side)
        plain = batch(b"plain")
        idempotent = batch(b"i", producer_id=10**6, producer_epoch=0, base_sequence=0)
        for index, data in ((1, plain), (2, idempotent)):
            item = ProduceRequest.PartitionProduceData(index=index, records=data)
            request.topic_data[0].partition_data.append(item)
        return request

    pair.same(build, version)
    pair.same(describe((name, [0, 1, 2, 3])), 0)


@pytest.mark.parametrize("version", [9, 11, 12])
def test_what_is_not_in_sequence(pair: Pair, producer: Producer, version: int) -> None:
    name = pair.topic("part")
    producer.begin(name)
    pair.same(producer.produce(name, sequence=5), version)
    pair.same(producer.produce(name, sequence=0), version)
    pair.same(producer.produce(name, sequence=9), version)


# -- offsets


@at_every_version("TxnOffsetCommit")
def test_offsets_of_a_group_that_was_not_added(pair: Pair, producer: Producer, version: int) -> None:
    name, group_id = pair.topic("part", 2), group(pair)
    pair.same(producer.commit(group_id, name, (0, 1), (1, 2)), version)
    pair.same(fetch(7, group_id, [(name, [0, 1])], require_stable=True), 7)


@at_every_version("TxnOffsetCommit")
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_count_when_the_transaction_is_committed(
    pair: Pair, producer: Producer, version: int, committed: bool
) -> None:
    name, group_id = pair.topic("part", 3), group(pair)
    producer.begin(name)
    pair.same(producer.produce(name), 9)
    if version < OFFSETS_ADDS:
        pair.same(producer.add_offsets(group_id), 3)
    pair.same(producer.commit(group_id, name, (0, 1), (1, 2), (9, 1)), version)
    pair.same(producer.commit(group_id, name, (0, 3)), version)
    for stable in (True, False):
        pair.same(fetch(7, group_id, [(name, [0, 1, 2])], require_stable=stable), 7)
        pair.same(fetch(9, group_id, None, require_stable=stable), 9)
    producer.end(name, committed)
    wait_until_stable_offsets(pair, group_id, name)
    pair.same(fetch(7, group_id, [(name, [0, 1, 2])], require_stable=True), 7)


def wait_until_stable_offsets(pair: Pair, group_id: str, name: str) -> None:
    import time

    for side in pair.sides:
        request = fetch(7, group_id, [(name, [0, 1])], require_stable=True)(side)
        deadline = time.monotonic() + 30
        while any(row.error_code for row in side.demand(request, 7).topics[0].partitions):
            assert time.monotonic() < deadline, f"{side.name} ends no transaction of {group_id}"
            time.sleep(0.02)


@at_every_version("TxnOffsetCommit")
@pytest.mark.parametrize("epoch", [-1, 1])
def test_offsets_of_another_epoch(pair: Pair, producer: Producer, version: int, epoch: int) -> None:
    name, group_id = pair.topic("part"), group(pair)
    pair.same(producer.commit(group_id, name, (0, 1), epoch=epoch), version)
    pair.same(producer.add_offsets(group_id), 3)
    pair.same(producer.commit(group_id, name, (0, 1), epoch=epoch), version)
    pair.same(producer.commit(group_id, name, (0, 1)), version)
    pair.same(producer.commit(group_id, name, (0, 1), epoch=epoch), version)


@at_every_version("TxnOffsetCommit")
def test_offsets_of_nobodys_transaction(pair: Pair, producer: Producer, version: int) -> None:
    name, group_id = pair.topic("part"), group(pair)
    for transactional_id in ("nobody", ""):
        pair.same(producer.commit(group_id, name, (0, 1), transactional_id=transactional_id), version)
    pair.same(producer.commit("", name, (0, 1)), version)
    pair.same(producer.commit("", "never-made", (0, 1)), version)
    pair.same(producer.commit(group_id, "never-made", (0, 1)), version)
    pair.same(producer.commit(group_id, "never-made"), version)
    pair.same(producer.commit(group_id, name), version)


@at_every_version("TxnOffsetCommit", since=3)
@pytest.mark.parametrize("protocol", [member, consumer])
def test_members_and_their_generations(pair: Pair, producer: Producer, version: int, protocol: Any) -> None:
    name, group_id = pair.topic("part"), group(pair)
    pair.same(producer.add_offsets(group_id), 3)
    pair.same(producer.commit(group_id, name, (0, 1), generation_id=1, member_id="nobody"), version)
    members = {side.name: protocol(side, group_id, name) for side in pair.sides}

    def commit(older: int = 0, **fields: Any) -> Any:
        def build(side: Any) -> Any:
            member_id, generation = members[side.name]
            given = {"generation_id": generation - older, "member_id": member_id, **fields}
            return producer.commit(group_id, name, (0, 1), **given)(side)

        return build

    for fields in (
        {},
        {"older": 1},
        {"older": -1},
        {"older": 9},
        {"member_id": "nobody"},
        {"member_id": ""},
        {"generation_id": -1},
        {"generation_id": -1, "member_id": ""},
        {"generation_id": -1, "member_id": "nobody"},
        {"group_instance_id": "nobody"},
        {"generation_id": -1, "member_id": "", "group_instance_id": "nobody"},
    ):
        pair.same(commit(**fields), version)
