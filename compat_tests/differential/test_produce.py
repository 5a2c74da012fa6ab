"""Produce: acks, partitions that do not exist, limits, idempotent producers; and what Fetch returns afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import (
    OLD_MS,
    batch,
    fetch,
    fetch_partition,
    produce,
    topic_id,
)
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ApiVersionsRequest, ProduceRequest

FETCH_VERSION = 12
FIELDS_BEFORE_CRC = 21
Step = tuple[int, int, int]  # epoch, base sequence, records


def stored(pair: Pair, topic: str, partitions: int = 1) -> Any:
    """The contents of the log, the same on both."""
    return pair.same(fetch({topic: [fetch_partition(i, 0) for i in range(partitions)]}), FETCH_VERSION)


@at_every_version("Produce")
def test_batches_in_order(pair: Pair, version: int) -> None:
    topic = pair.topic("produced")
    for count in (1, 3, 2):
        pair.same(produce(topic, {0: batch(*[b"value"] * count)}), version)
    stored(pair, topic)


@at_every_version("Produce")
@pytest.mark.parametrize("acks", [1, -1, 2, -2, 32767])
def test_acks(pair: Pair, version: int, acks: int) -> None:
    topic = pair.topic("acks")
    pair.same(produce(topic, {0: batch(b"a")}, acks=acks), version)
    stored(pair, topic)


@at_every_version("Produce")
def test_no_acks_no_answer(pair: Pair, version: int) -> None:
    topic = pair.topic("acks")

    def frame(side: Side) -> bytes:
        return side.client.frame(produce(topic, {0: batch(b"a")}, acks=0)(side), version)

    outcome = pair.same_outcome(frame)
    assert not outcome.answers and not outcome.closed
    stored(pair, topic)


@at_every_version("Produce")
@pytest.mark.parametrize("wrong", ["topic", "partition", "batch", "transactional id"])
def test_an_error_without_acks(pair: Pair, version: int, wrong: str) -> None:
    """There is no answer for the error, so Kafka closes the connection."""
    topic = "never-made" if wrong == "topic" else pair.topic("acks")
    data = batch(b"a")[:-1] + b"x" if wrong == "batch" else batch(b"a")
    fields = {"transactional_id": "t"} if wrong == "transactional id" else {}
    build = produce(topic, {7 if wrong == "partition" else 0: data}, acks=0, **fields)
    pair.same_outcome(lambda side: side.client.frame(build(side), version))
    pair.same(ApiVersionsRequest(), 0)


@at_every_version("Produce")
def test_what_is_not_there(pair: Pair, version: int) -> None:
    topic = pair.topic("produced", 2)
    data = batch(b"a")
    pair.same(produce("never-made", {0: data, 1: data}), version)
    for partition in (2, -1, 2**31 - 1):
        pair.same(produce(topic, {partition: data}), version)
    pair.same(produce(topic, {0: data, 2: data, 1: data}), version)
    if version < 13:
        for name in ("", "a b", "a" * 250):
            pair.same(produce(name, {0: data}), version)
    stored(pair, topic, 2)


@at_every_version("Produce")
def test_good_and_bad_partitions_together(pair: Pair, version: int) -> None:
    topic = pair.topic("produced", 4)
    good = batch(b"a", b"b")
    broken = good[:-1] + b"x"
    pair.same(produce(topic, {0: good, 1: broken, 2: b"", 3: good}), version)
    stored(pair, topic, 4)


@at_every_version("Produce")
def test_several_topics(pair: Pair, version: int) -> None:
    names = [pair.topic("produced") for _ in range(2)]
    names.insert(1, "never-made")

    def build(side: Side) -> Any:
        entries = []
        for name in names:
            part = ProduceRequest.PartitionProduceData(index=0, records=batch(b"a"))
            entry = ProduceRequest.TopicProduceData(name=name, topic_id=topic_id(side, name))
            entry.partition_data = [part]
            entries.append(entry)
        return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=entries)

    pair.same(build, version)


@at_every_version("Produce")
def test_one_partition_twice(pair: Pair, version: int) -> None:
    topic = pair.topic("produced")
    pair.same(produce(topic, [(0, batch(b"a")), (0, batch(b"b"))]), version)
    stored(pair, topic)


@at_every_version("Produce")
def test_nothing_to_write(pair: Pair, version: int) -> None:
    topic = pair.topic("produced")
    pair.same(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[]), version)
    pair.same(produce(topic, {}), version)
    pair.same(produce(topic, {0: b""}), version)
    stored(pair, topic)


def test_no_records_at_all_are_refused(pair: Pair) -> None:
    topic = pair.topic("produced")
    pair.differ("records that are null", produce(topic, {0: None}), 9)
    stored(pair, topic)


@at_every_version("Produce")
def test_two_batches_at_once(pair: Pair, version: int) -> None:
    topic = pair.topic("produced")
    pair.same(produce(topic, {0: batch(b"a") + batch(b"b")}), version)
    stored(pair, topic)


@at_every_version("Produce")
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_timeouts(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(produce(pair.topic("produced"), {0: batch(b"a")}, timeout_ms=timeout_ms), version)


@at_every_version("Produce")
@pytest.mark.parametrize("transactional_id", ["", "some"])
def test_a_transactional_id_without_a_transaction(pair: Pair, version: int, transactional_id: str) -> None:
    topic = pair.topic("produced")
    pair.same(produce(topic, {0: batch(b"a")}, transactional_id=transactional_id), version)
    data = batch(b"a", producer_id=77, producer_epoch=0, base_sequence=0)
    pair.same(produce(topic, {0: data}, transactional_id=transactional_id), version)
    stored(pair, topic)


@at_every_version("Produce")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs_kept_as_they_are(pair: Pair, version: int, codec: str) -> None:
    topic = pair.topic("produced")
    pair.same(produce(topic, {0: batch(*[b"some value"] * 20, codec=codec)}), version)
    stored(pair, topic)


@pytest.mark.parametrize("size", [900, 921, 922, 923, 930, 1000, 5000])
def test_the_largest_batch(pair: Pair, size: int) -> None:
    topic = pair.topic("small", configs={"max.message.bytes": "1000"})
    pair.same(produce(topic, {0: batch(b"x" * size)}), 9)
    stored(pair, topic)


@at_every_version("Produce")
def test_the_broker_writes_the_time(pair: Pair, version: int) -> None:
    topic = pair.topic("append", configs={"message.timestamp.type": "LogAppendTime"})
    pair.same(produce(topic, {0: batch(b"a", b"b")}), version)
    pair.same(produce(topic, {0: batch(b"a", b"b", codec="gzip")}), version)


@at_every_version("Produce")
@pytest.mark.parametrize("timestamp", [0, -1, -2, OLD_MS, 4_000_000_000_000, 2**62])
def test_timestamp_bounds(pair: Pair, version: int, timestamp: int) -> None:
    configs = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}
    topic = pair.topic("bounds", configs=configs)
    pair.same(produce(topic, {0: batch(b"a", b"b", timestamp=timestamp)}), version)
    pair.same(produce(topic, {0: batch(b"a", b"b", timestamp=timestamp, codec="gzip")}), version)
    other = pair.topic("default-bounds")
    pair.same(produce(other, {0: batch(b"a", b"b", timestamp=timestamp)}), version)
    stored(pair, other)


@at_every_version("Produce")
def test_a_compacted_topic_wants_keys(pair: Pair, version: int) -> None:
    topic = pair.topic("compacted", configs={"cleanup.policy": "compact"})
    pair.same(produce(topic, {0: batch(b"a", b"b")}), version)
    pair.same(produce(topic, {0: batch(b"a", b"b", codec="gzip")}), version)
    stored(pair, topic)


@at_every_version("Produce")
@pytest.mark.parametrize("position", [0, 8, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61, 70])
def test_a_damaged_byte(pair: Pair, version: int, position: int) -> None:
    topic = pair.topic("damaged")
    data = bytearray(batch(b"some value", b"another"))
    data[position] ^= 0xFF
    pair.same(produce(topic, {0: bytes(data)}), version)
    stored(pair, topic)


@pytest.mark.parametrize("cut", [1, 8, 12, 16, 17, 20, 40, 60, 61, 62, 70, -1])
def test_a_batch_cut_short(pair: Pair, cut: int) -> None:
    topic = pair.topic("damaged")
    whole = batch(b"some value", b"another")
    pair.same(produce(topic, {0: whole[:cut]}), 9)
    pair.same(produce(topic, {0: whole + whole[:cut]}), 9)
    stored(pair, topic)


PRODUCER_STEPS: dict[str, list[Step]] = {
    "in order": [(0, 0, 1), (0, 1, 3), (0, 4, 2)],
    "the same again": [(0, 0, 1), (0, 1, 3), (0, 1, 3), (0, 0, 1), (0, 4, 1)],
    "a gap": [(0, 0, 1), (0, 2, 1), (0, 1, 1)],
    "not from the start": [(0, 5, 1), (0, 6, 1), (0, 5, 1)],
    "back": [(0, 0, 2), (0, 2, 2), (0, 1, 1), (0, 1, 2)],
    "other counts": [(0, 0, 3), (0, 0, 2), (0, 0, 4), (0, 1, 2)],
    "six batches, each again": [(0, n, 1) for n in range(6)] + [(0, n, 1) for n in range(6)],
    "a new epoch": [(0, 0, 2), (1, 0, 1), (1, 1, 1), (0, 2, 1)],
    "a new epoch not from zero": [(0, 0, 2), (1, 2, 1), (1, 0, 1)],
    "an old epoch": [(5, 0, 1), (4, 0, 1), (4, 1, 1), (5, 1, 1)],
    "around the end": [(0, 2**31 - 3, 3), (0, 0, 2), (0, 2, 1)],
    "through the end": [(0, 2**31 - 2, 4), (0, 2, 1), (0, 2**31 - 2, 4)],
    "the first batch again after a restart of the producer": [(0, 0, 5), (0, 0, 5), (1, 0, 5), (1, 0, 5)],
    "negative": [(0, -1, 1), (-1, 0, 1), (0, -2, 1), (0, 0, 1)],
}


@at_every_version("Produce")
@pytest.mark.parametrize("name", list(PRODUCER_STEPS))
def test_an_idempotent_producer(pair: Pair, version: int, name: str) -> None:
    topic = pair.topic("idempotent")
    for epoch, sequence, count in PRODUCER_STEPS[name]:
        data = batch(*[b"v"] * count, producer_id=4242, producer_epoch=epoch, base_sequence=sequence)
        pair.same(produce(topic, {0: data}), version)
    stored(pair, topic)


def test_two_producers_and_none_beside_each_other(pair: Pair) -> None:
    topic = pair.topic("idempotent")
    for step in range(3):
        for producer in (7, 8, -1):
            known = {"producer_epoch": 0, "base_sequence": step} if producer > 0 else {}
            pair.same(produce(topic, {0: batch(b"v", producer_id=producer, **known)}), 9)
    stored(pair, topic)


def test_two_batches_of_one_producer_in_one_request(pair: Pair) -> None:
    topic = pair.topic("idempotent", 2)
    first = batch(b"v", producer_id=9, producer_epoch=0, base_sequence=0)
    second = batch(b"w", producer_id=9, producer_epoch=0, base_sequence=1)
    pair.same(produce(topic, [(0, first), (0, second), (1, first)]), 9)
    stored(pair, topic, 2)
