"""Fetch without sessions: offsets, limits, waiting, epochs, partitions that do not exist."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import (
    UNKNOWN_ID,
    batch,
    fetch,
    fetch_partition,
    produce,
    topic_id,
)
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import FetchRequest

TIMER_MS = 2  # a timer in whole milliseconds may be this early
COUNTS = [1, 3, 10, 2, 1, 50]
END = sum(COUNTS)
OFFSETS = [
    0,
    1,
    2,
    3,
    4,
    13,
    14,
    15,
    16,
    17,
    40,
    END - 1,
    END,
    END + 1,
    END + 100,
    -1,
    -2,
    2**63 - 1,
    -(2**63),
]
LIMITS = [0, 1, 10, 60, 61, 75, 76, 100, 200, 300, 500, 1000, 2**31 - 1, -1, -(2**31)]


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    """Partitions 0 and 1 have six batches each, 2 has one, 3 none."""
    name = pair.topic("fetched", 4)
    for number, count in enumerate(COUNTS):
        data = batch(*[b"value %d" % number] * count, codec="gzip" if number == 3 else "none")
        pair.same(produce(name, {0: data, 1: data}), 9)
    pair.same(produce(name, {2: batch(b"alone")}), 9)
    return name


@at_every_version("Fetch")
@pytest.mark.parametrize("offset", OFFSETS)
def test_offsets(pair: Pair, topic: str, version: int, offset: int) -> None:
    pair.same(fetch({topic: [fetch_partition(0, offset)]}), version)


@at_every_version("Fetch")
@pytest.mark.parametrize("limit", LIMITS)
def test_partition_limits(pair: Pair, topic: str, version: int, limit: int) -> None:
    for offset in (0, 1, 4, 16):
        pair.same(fetch({topic: [fetch_partition(0, offset, partition_max_bytes=limit)]}), version)


@at_every_version("Fetch")
@pytest.mark.parametrize("limit", LIMITS)
def test_response_limits(pair: Pair, topic: str, version: int, limit: int) -> None:
    parts = [fetch_partition(index, offset) for index, offset in ((3, 0), (0, 4), (1, 0), (2, 0))]
    pair.same(fetch({topic: parts}, max_bytes=limit), version)


@at_every_version("Fetch")
@pytest.mark.parametrize("limit", [0, 1, 80, 200])
def test_both_limits(pair: Pair, topic: str, version: int, limit: int) -> None:
    parts = [fetch_partition(index, 0, partition_max_bytes=limit) for index in (0, 1, 2)]
    for total in (0, 100, 150, 300):
        pair.same(fetch({topic: parts}, max_bytes=total), version)


@at_every_version("Fetch")
def test_the_first_batch_is_given_whole_once(pair: Pair, topic: str, version: int) -> None:
    parts = [fetch_partition(index, 16, partition_max_bytes=1) for index in (0, 1)]
    pair.same(fetch({topic: parts}), version)
    pair.same(fetch({topic: [fetch_partition(3, 0), *parts]}), version)
    pair.same(fetch({topic: [fetch_partition(0, 999), *parts]}), version)


@at_every_version("Fetch")
def test_isolation_levels(pair: Pair, topic: str, version: int) -> None:
    for level in (0, 1, 2, -1):
        pair.same(fetch({topic: [fetch_partition(0, 0)]}, isolation_level=level), version)


@at_every_version("Fetch")
def test_what_is_not_there(pair: Pair, topic: str, version: int) -> None:
    pair.same(fetch({"never-made": [fetch_partition(0, 0)]}), version)
    for partition in (4, -1, 2**31 - 1):
        pair.same(fetch({topic: [fetch_partition(partition, 0)]}), version)
        pair.same(fetch({topic: [fetch_partition(0, 0), fetch_partition(partition, 0)]}), version)
    pair.same(fetch({"never-made": [fetch_partition(0, 0)], topic: [fetch_partition(0, 0)]}), version)
    if version < 13:
        for name in ("", "a b"):
            pair.same(fetch({name: [fetch_partition(0, 0)]}), version)


@at_every_version("Fetch", since=13)
def test_no_topic_id(pair: Pair, topic: str, version: int) -> None:
    def build(side: Side) -> Any:
        ids = (bytes(16), topic_id(side, topic), UNKNOWN_ID)
        entries = [FetchRequest.FetchTopic(topic_id=one, partitions=[fetch_partition(0, 0)]) for one in ids]
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=entries)

    pair.same(build, version)


@at_every_version("Fetch")
def test_nothing_asked(pair: Pair, topic: str, version: int) -> None:
    pair.same(fetch({}), version)
    pair.same(fetch({topic: []}), version)


@at_every_version("Fetch")
def test_one_partition_twice(pair: Pair, topic: str, version: int) -> None:
    pair.same(fetch({topic: [fetch_partition(0, 0), fetch_partition(0, 4)]}), version)
    pair.same(fetch({topic: [fetch_partition(0, 0), fetch_partition(1, 0), fetch_partition(0, 0)]}), version)


@at_every_version("Fetch")
def test_one_topic_twice(pair: Pair, topic: str, version: int) -> None:
    def build(side: Side) -> Any:
        entries = [
            FetchRequest.FetchTopic(
                topic=topic, topic_id=topic_id(side, topic), partitions=[fetch_partition(index, 0)]
            )
            for index in (0, 1, 2)
        ]
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=entries)

    pair.same(build, version)


@at_every_version("Fetch", since=9)
@pytest.mark.parametrize("epoch", [-1, 0, 1, 5, -2, 2**31 - 1])
def test_current_leader_epochs(pair: Pair, topic: str, version: int, epoch: int) -> None:
    for partition in (0, 3):
        part = fetch_partition(partition, 0, current_leader_epoch=epoch)
        pair.same(fetch({topic: [part]}), version)


@at_every_version("Fetch", since=12)
@pytest.mark.parametrize("epoch", [-1, 0, 1, 5, -2])
@pytest.mark.parametrize("offset", [0, 4, END, END + 1])
def test_last_fetched_epochs(pair: Pair, topic: str, version: int, epoch: int, offset: int) -> None:
    for current in (-1, 0, 1):
        part = fetch_partition(0, offset, last_fetched_epoch=epoch, current_leader_epoch=current)
        pair.same(fetch({topic: [part]}), version)
    pair.same(fetch({topic: [fetch_partition(3, offset, last_fetched_epoch=epoch)]}), version)


@at_every_version("Fetch", until=14)
@pytest.mark.parametrize("replica_id", [-1, -2, -3, 0, 1, 5])
def test_replica_ids(pair: Pair, topic: str, version: int, replica_id: int) -> None:
    pair.same(fetch({topic: [fetch_partition(0, 0)]}, replica_id=replica_id), version)


@at_every_version("Fetch", since=15)
@pytest.mark.parametrize("replica_id", [-1, -2, 0, 1, 5])
@pytest.mark.parametrize("epoch", [-1, 0, 10**9])
def test_replica_states(pair: Pair, topic: str, version: int, replica_id: int, epoch: int) -> None:
    state = FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=epoch)
    pair.same(fetch({topic: [fetch_partition(0, 0)]}, replica_state=state), version)


@at_every_version("Fetch", since=5)
@pytest.mark.parametrize("start", [-1, 0, 5, 10**6])
def test_log_start_offsets_of_the_asker(pair: Pair, topic: str, version: int, start: int) -> None:
    pair.same(fetch({topic: [fetch_partition(0, 4, log_start_offset=start)]}), version)


@at_every_version("Fetch", since=11)
@pytest.mark.parametrize("rack", ["", "rack-1", "é" * 50])
def test_racks(pair: Pair, topic: str, version: int, rack: str) -> None:
    pair.same(fetch({topic: [fetch_partition(0, 0)]}, rack_id=rack), version)


@at_every_version("Fetch", since=12)
@pytest.mark.parametrize("cluster_id", [None, "", "another"])
def test_cluster_ids(pair: Pair, topic: str, version: int, cluster_id: str | None) -> None:
    pair.same(fetch({topic: [fetch_partition(0, 0)]}, cluster_id=cluster_id), version)


@at_every_version("Fetch")
@pytest.mark.parametrize(
    ("min_bytes", "waits"), [(0, False), (1, True), (-1, False), (2**31 - 1, True)], ids=str
)
def test_waiting_at_the_end_of_the_log(
    pair: Pair, topic: str, version: int, min_bytes: int, waits: bool
) -> None:
    wait_ms = 60
    request = fetch({topic: [fetch_partition(0, END)]}, min_bytes=min_bytes, max_wait_ms=wait_ms)
    for side in pair.sides:
        began = time.monotonic()
        side.demand(request(side), version)
        assert (time.monotonic() - began >= (wait_ms - TIMER_MS) / 1000) == waits, side.name
    pair.same(request, version)


@pytest.mark.parametrize("parts", [(0, 999), (4, 0), (0, 0), (1, END)], ids=str)
def test_what_ends_the_waiting(pair: Pair, topic: str, parts: tuple[int, int]) -> None:
    wait_ms = 200
    for min_bytes in (1, 100, 10**6):
        both = [fetch_partition(3, 0), fetch_partition(*parts)]
        request = fetch({topic: both}, min_bytes=min_bytes, max_wait_ms=wait_ms)
        waited = []
        for side in pair.sides:
            began = time.monotonic()
            side.demand(request(side), 12)
            waited.append(time.monotonic() - began >= (wait_ms - TIMER_MS) / 1000)
        assert waited[0] == waited[1]
        pair.same(request, 12)


def woken(pair: Pair, version: int) -> list[bytes]:
    """The answers of both to a fetch that waits while a record is produced."""
    topic = pair.topic("woken")
    waiting = fetch({topic: [fetch_partition(0, 0)]}, min_bytes=1, max_wait_ms=10_000)
    answers = []
    for side in pair.sides:
        began = time.monotonic()
        side.client.send(side.client.frame(waiting(side), version))
        fetcher, side._client = side._client, None
        try:
            side.demand(produce(topic, {0: batch(b"news")})(side), 9)
            assert fetcher is not None
            answers.append(fetcher.receive()[4:])
            assert time.monotonic() - began < 8, side.name
        finally:
            side.hang_up()
            side._client = fetcher
    return answers


@at_every_version("Fetch")
def test_a_waiting_fetch_is_woken_by_a_produce(pair: Pair, version: int) -> None:
    """Kafka takes the high watermark before it reads, and so may answer the record with a high watermark of 0 where the
    record is appended in between: this must not be so every time."""
    compared = version < 13  # from there on the topic's id is in the answer
    assert any(ours == theirs or not compared for ours, theirs in (woken(pair, version) for _ in range(5)))
