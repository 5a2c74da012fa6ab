"""Retention on both brokers, checked all the time: where logs start, what can be read, which files are left.

Every test says where the log must start, waits until both brokers are there, checks that they stay there, and then asks
both everything that a client could: offsets by timestamp, epochs, each offset's records, the bytes on the disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.differential.config_requests import BROKER, DELETE, SET, TOPIC, alter_one
from compat_tests.differential.meant import lasting_files
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import (
    OLD_MS,
    batch,
    fetch,
    fetch_partition,
    leader_epochs,
    list_offsets,
    produce,
)
from compat_tests.differential.test_delete_records import asked, request
from pykafkad.messages import DescribeLogDirsRequest

WAIT_SECONDS = 20.0
STAY_SECONDS = 0.6  # three checks
HOUR_MS = 3_600_000
BATCH_BYTES = len(batch(b"x" * 100))
SEGMENT_BYTES = str(2 * BATCH_BYTES)


@pytest.fixture
def pair(tidy_pair: Pair) -> Pair:
    return tidy_pair


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def filled(pair: Pair, batches: int = 7, timestamp: int = OLD_MS, **configs: str) -> str:
    """Batches of 100 bytes, two a segment."""
    given = {key.replace("_", "."): value for key, value in configs.items()}
    name = pair.topic("retained", 1, {"internal.segment.bytes": SEGMENT_BYTES, **given})
    append(pair, name, *[timestamp + number * 10 for number in range(batches)])
    return name


def append(pair: Pair, name: str, *timestamps: int) -> None:
    for timestamp in timestamps:
        pair.same(produce(name, {0: batch(b"x" * 100, timestamp=timestamp)}), 9)


def change(pair: Pair, name: str, **configs: str) -> None:
    operations = [(key.replace("_", "."), SET, value) for key, value in configs.items()]
    pair.same(alter_one(TOPIC, name, *operations), 1)
    pair.settle()


def start_of(side: Side, name: str) -> int:
    found: int = side.demand(list_offsets(name, (0, -2)), 7).topics[0].partitions[0].offset
    return found


def bytes_of(side: Side, name: str) -> int:
    kind = DescribeLogDirsRequest.DescribableLogDirTopic
    answer = side.demand(DescribeLogDirsRequest(topics=[kind(topic=name, partitions=[0])]), 4)
    found: int = answer.results[0].topics[0].partitions[0].partition_size
    return found


def files_of(side: Side, name: str) -> list[str]:
    """The files of the log, as soon as none is being deleted."""
    path = f"{side.demand(DescribeLogDirsRequest(topics=[]), 4).results[0].log_dir}/{name}-0"
    wait_for(side, lambda: not any(file.endswith(".deleted") for file in os.listdir(path)), "files to go")
    return lasting_files(os.listdir(path))


def wait_for(side: Side, reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, f"{side.name}: waited in vain for {what}"
        time.sleep(0.02)


def settled(pair: Pair, name: str, start: int, size: int | None = None) -> None:
    """Both logs start there (and have so many bytes), stay so, and answer the same."""

    def there(side: Side) -> bool:
        return start_of(side, name) == start and (size is None or bytes_of(side, name) == size)

    for side in pair.sides:
        wait_for(side, lambda side=side: there(side), f"{name} to start at {start}")  # type: ignore[misc]
    time.sleep(STAY_SECONDS)
    same_log(pair, name)


def same_log(pair: Pair, name: str) -> None:
    special = [(0, timestamp) for timestamp in (-1, -2, -3, -4, -5)]
    times = [(0, OLD_MS + step) for step in range(0, 80, 5)]
    answer = pair.same(list_offsets(name, *special), 9)
    pair.same(list_offsets(name, *times), 7)
    pair.same(list_offsets(name, (0, -1), (0, -2), isolation_level=1), 7)
    pair.same(leader_epochs(name, (0, -1, 0), (0, -1, 1), (0, 0, 0)), 4)
    end = answer.topics[0].partitions[0].offset
    for offset in range(end + 2):
        pair.same(fetch({name: [fetch_partition(0, offset)]}, isolation_level=offset % 2), 12)
    assert bytes_of(pair.ours, name) == bytes_of(pair.theirs, name)
    assert files_of(pair.ours, name) == files_of(pair.theirs, name)


# -- age


def test_old_segments_go(pair: Pair) -> None:
    name = filled(pair, 4)
    append(pair, name, now_ms(), now_ms(), now_ms())
    change(pair, name, retention_ms=str(HOUR_MS))
    settled(pair, name, 4)
    append(pair, name, now_ms())
    settled(pair, name, 4)


def test_the_active_segment_goes_too(pair: Pair) -> None:
    name = filled(pair, 3)
    change(pair, name, retention_ms=str(HOUR_MS))
    settled(pair, name, 3)
    append(pair, name, now_ms())
    settled(pair, name, 3)
    change(pair, name, retention_ms="1")
    settled(pair, name, 4)


def test_an_empty_log_stays_as_it_is(pair: Pair) -> None:
    name = filled(pair, 0, retention_ms="1")
    settled(pair, name, 0)


def test_a_record_of_the_future_keeps_what_is_behind_it(pair: Pair) -> None:
    name = filled(pair, 2, message_timestamp_after_max_ms=str(2**62))
    append(pair, name, OLD_MS, now_ms() + 24 * HOUR_MS, OLD_MS, OLD_MS, OLD_MS)
    change(pair, name, retention_ms=str(HOUR_MS))
    settled(pair, name, 3)  # it began a segment, and the three behind it are in that one or later ones


def test_without_timestamps_the_files_time_counts(pair: Pair) -> None:
    name = filled(pair, 0, retention_ms="1000")
    append(pair, name, -1, -1, -1)
    settled(pair, name, 3)


# -- size


@pytest.mark.parametrize(
    ("kept", "start"),
    [(7, 0), (6, 0), (5, 2), (4, 2), (3, 4), (2, 4), (1, 6), (0, 7)],
)
def test_size(pair: Pair, kept: int, start: int) -> None:
    name = filled(pair, retention_bytes=str(2**40))
    change(pair, name, retention_bytes=str(kept * BATCH_BYTES))
    settled(pair, name, start)


def test_one_byte_more_keeps_the_segment(pair: Pair) -> None:
    name = filled(pair, retention_bytes=str(5 * BATCH_BYTES + 1))
    settled(pair, name, 0)


def test_size_and_age(pair: Pair) -> None:
    name = filled(pair, 6)
    append(pair, name, now_ms())
    change(pair, name, retention_bytes=str(5 * BATCH_BYTES), retention_ms=str(HOUR_MS))
    settled(pair, name, 6)


# -- DeleteRecords, and policies


@pytest.mark.parametrize(("start", "left"), [(1, 7), (2, 5), (3, 5), (5, 3), (6, 1), (7, 1)])
def test_segments_below_the_start_go(pair: Pair, start: int, left: int) -> None:
    name = filled(pair)
    pair.same(request(asked(name, (0, start))), 2)
    settled(pair, name, start, left * BATCH_BYTES)
    append(pair, name, OLD_MS + 100)
    settled(pair, name, start)


@pytest.mark.parametrize(
    ("policy", "start", "left"),
    [("delete", 7, 0), ("compact,delete", 7, 0), ("", 3, 5), ("compact", 0, 7)],
)
def test_policies(pair: Pair, policy: str, start: int, left: int) -> None:
    """DeleteRecords is refused for a topic that is only compacted; age and size count only with the policy delete."""
    name = filled(pair, 0, min_cleanable_dirty_ratio="1.0")
    for number in range(7):
        data = keyed(b"%d" % number, OLD_MS + number)
        pair.same(produce(name, {0: data}), 9)
    change(pair, name, cleanup_policy=policy)
    settled(pair, name, 0)  # Kafka's brokers apply a change a little later
    pair.same(request(asked(name, (0, 3))), 2)
    change(pair, name, retention_ms="1", retention_bytes="0")
    settled(pair, name, start, left * BATCH_BYTES)


def keyed(key: bytes, timestamp: int) -> bytes:
    from pykafkad.hot import records

    data = bytes(records.build([(key, b"x" * (100 - len(key)), [], timestamp)]))
    assert len(data) == BATCH_BYTES
    return data


def test_a_policy_that_changes(pair: Pair) -> None:
    name = filled(pair, cleanup_policy="", retention_bytes="0")
    settled(pair, name, 0)
    change(pair, name, cleanup_policy="delete")
    settled(pair, name, 7)


# -- the broker's own configs


def test_a_dynamic_config_of_the_broker(pair: Pair) -> None:
    name, other = filled(pair), filled(pair)
    pair.same(alter_one(TOPIC, name, ("retention.ms", DELETE, None)), 1)
    settled(pair, name, 7)  # a week is the default
    append(pair, name, now_ms() - HOUR_MS)
    append(pair, other, now_ms() - HOUR_MS)
    settled(pair, name, 7)
    try:
        for key, value, start in (
            ("log.retention.hours", "2", 7),
            ("log.retention.minutes", "90", 7),
            ("log.retention.ms", "1000", 8),
        ):
            pair.same(alter_one(BROKER, "", (key, SET, value)), 1)
            settled(pair, name, start)
        settled(pair, other, 0)
    finally:
        keys = ("log.retention.hours", "log.retention.minutes", "log.retention.ms")
        pair.same(alter_one(BROKER, "", *[(key, DELETE, None) for key in keys]), 1)


# -- producers and transactions


def test_producers_are_known_when_their_records_are_gone(pair: Pair) -> None:
    """Nothing may go while batches are sent: an answer says where the log starts, and the two look at other times."""
    name = filled(pair, 0)

    def send(sequence: int) -> Any:
        data = batch(b"x", timestamp=now_ms(), producer_id=4343, producer_epoch=0, base_sequence=sequence)
        return produce(name, {0: data})

    for sequence in range(3):
        pair.same(send(sequence), 9)
    change(pair, name, retention_bytes="0")
    settled(pair, name, 3)
    change(pair, name, retention_bytes="-1")
    for sequence in (2, 1, 5, 3, 3):
        pair.same(send(sequence), 9)
    change(pair, name, retention_bytes="0")
    settled(pair, name, 4)


def test_an_open_transaction_whose_first_records_are_gone(pair: Pair) -> None:
    name = filled(pair, 0)
    for sequence in range(5):
        data = batch(
            b"x" * 100,
            timestamp=OLD_MS,
            producer_id=4444,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        pair.same(produce(name, {0: data}, transactional_id="retained"), 9)
    change(pair, name, retention_bytes=str(3 * BATCH_BYTES))
    settled(pair, name, 2)
    change(pair, name, retention_ms="1")
    settled(pair, name, 5)
    append(pair, name, now_ms() + HOUR_MS)
    settled(pair, name, 5)
