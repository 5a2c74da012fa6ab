"""Compaction on both brokers: the same batches, cleaned by both, are the same files and the same answers afterwards.

A log is not cleaned until the test lets both begin, so that both clean the same range at once; then both
cleaner-offset-checkpoints must reach its end. Batches without tombstones and compression must be equal to the byte,
with their indexes; a tombstone's batch has a delete horizon by the broker's clock, and compression depends on
libraries.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from compat_tests.differential.config_requests import BROKER, DELETE, SET, TOPIC, alter_one
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import OLD_MS, fetch, fetch_partition, list_offsets, produce
from compat_tests.differential.test_retention import HOUR_MS, change, files_of, now_ms, start_of, wait_for
from pykafkad.hot import records
from pykafkad.messages import DescribeLogDirsRequest
from pykafkad.storage.checkpoints import checkpoints

NEVER, ALWAYS = "1.0", "0.0"
QUIET_SECONDS = 0.8  # four looks of both cleaners
CHUNK = 700  # bytes of a fetch: a batch or two

Rows = list[tuple[bytes | None, bytes | None]]


@pytest.fixture
def pair(tidy_pair: Pair) -> Pair:
    return tidy_pair


def compacted(pair: Pair, **configs: str) -> str:
    """A topic that may not be cleaned yet, with a few batches in each segment."""
    given = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "2000",
        "index.interval.bytes": "200",
        "min.cleanable.dirty.ratio": NEVER,
        **{key.replace("_", "."): value for key, value in configs.items()},
    }
    return pair.topic("compacted", 1, given)


def put(pair: Pair, name: str, rows: Rows, timestamp: int = OLD_MS, **header: Any) -> None:
    data = bytes(records.build([(*row, [], timestamp + step) for step, row in enumerate(rows)], **header))
    pair.same(produce(name, {0: data}), 9)


def fill(pair: Pair, name: str, count: int = 60, keys: int = 9, seed: int = 1, **header: Any) -> None:
    """Batches of one to three records, each a millisecond after the other."""
    chance = random.Random(seed)
    for number in range(count):
        rows: Rows = [
            (b"k%d" % chance.randrange(keys), chance.randbytes(chance.randrange(80)))
            for _ in range(chance.choice([1, 1, 2, 3]))
        ]
        put(pair, name, rows, OLD_MS + 10 * number, **header)


def directory_of(side: Side) -> str:
    found: str = side.demand(DescribeLogDirsRequest(topics=[]), 4).results[0].log_dir
    return found


def logs_of(side: Side, name: str) -> dict[str, bytes]:
    """The files of each closed segment."""
    root = Path(directory_of(side), f"{name}-0")
    bases = sorted(path.stem for path in root.glob("*.log"))
    return {
        path.name: path.read_bytes()
        for path in sorted(root.iterdir())
        if path.stem in bases[:-1] and path.suffix != ".snapshot"
    }


def clean_up_to(side: Side, name: str) -> int | None:
    offsets = checkpoints.read_offsets(os.path.join(directory_of(side), checkpoints.CLEANED))
    return offsets.get((name, 0))


def active_base(side: Side, name: str) -> int:
    return max(int(path.stem) for path in Path(directory_of(side), f"{name}-0").glob("*.log"))


def clean(pair: Pair, name: str, up_to: int | None = None) -> None:
    """Let both clean, until they have reached the base of the active segment."""
    change(pair, name, min_cleanable_dirty_ratio=ALWAYS)
    for side in pair.sides:
        end = active_base(side, name) if up_to is None else up_to
        wait_for(
            side,
            lambda side=side, end=end: clean_up_to(side, name) == end,  # type: ignore[misc]
            f"{name} to be clean up to {end}",
        )
    change(pair, name, min_cleanable_dirty_ratio=NEVER)
    assert clean_up_to(pair.ours, name) == clean_up_to(pair.theirs, name)


def same_files(pair: Pair, name: str) -> None:
    ours, theirs = (logs_of(side, name) for side in pair.sides)
    assert list(ours) == list(theirs)
    for file, data in ours.items():
        assert data == theirs[file], f"{file}: {len(data)} bytes, Kafka has {len(theirs[file])}"
    assert files_of(pair.ours, name) == files_of(pair.theirs, name)


def same_reading(pair: Pair, name: str, end: int) -> None:
    """The answers at each offset, whole and in small pieces, and for each timestamp."""
    for offset in range(start_of(pair.ours, name), end + 1):
        pair.same(fetch({name: [fetch_partition(0, offset)]}), 12)
        pair.same(fetch({name: [fetch_partition(0, offset, partition_max_bytes=CHUNK)]}), 12)
    pair.same(list_offsets(name, *[(0, -each) for each in range(1, 6)]), 9)
    pair.same(list_offsets(name, *[(0, OLD_MS + step) for step in range(0, 620, 7)]), 7)


def end_of(side: Side, name: str) -> int:
    found: int = side.demand(list_offsets(name, (0, -1)), 7).topics[0].partitions[0].offset
    return found


def headers_and_records(side: Side, name: str) -> list[Any]:
    """Everything in a batch except the delete horizon and the compression."""
    found: list[Any] = []
    for file, data in logs_of(side, name).items():
        if not file.endswith(".log"):
            continue
        for batch in records.scan(data):
            piece = data[batch.position : batch.position + batch.size]
            read = records.read(piece) if batch.count else ()
            rows = [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in read]
            header = (
                batch.base_offset,
                batch.last_offset,
                batch.attributes,
                batch.leader_epoch,
                batch.max_timestamp,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.delete_horizon_ms is None,
            )
            found.append((file, header, rows))
    return found


def same_batches(pair: Pair, name: str) -> None:
    ours, theirs = (headers_and_records(side, name) for side in pair.sides)
    assert ours == theirs


# -- the remaining records


@pytest.mark.parametrize("segment_bytes", ["400", "2000", "100000"])
def test_the_newest_of_each_key(pair: Pair, segment_bytes: str) -> None:
    name = compacted(pair, internal_segment_bytes="2000")
    fill(pair, name)
    change(pair, name, internal_segment_bytes=segment_bytes)  # compressed again, they are larger, or smaller
    clean(pair, name)
    same_files(pair, name)
    same_reading(pair, name, end_of(pair.ours, name))


def test_the_worked_example(pair: Pair) -> None:
    name = compacted(pair, internal_segment_bytes="100000")
    put(pair, name, [(b"old%d" % number, b"x") for number in range(13)])
    for number, key in enumerate((1, 2, 1, 3, 2, 4, 5, 5, 2, 6, 1, 3, 7, 2, 6, 8)):
        put(pair, name, [(b"k%d" % key, b"v%d" % number)])
    change(pair, name, internal_segment_bytes="1500")
    put(pair, name, [(b"last", b"x" * 1000)])
    clean(pair, name, 29)
    left = [row[0] for _, _, rows in headers_and_records(pair.ours, name) for row in rows]
    assert left == [*range(13), 18, 20, 23, 24, 25, 26, 27, 28]
    same_files(pair, name)


def test_again_and_again(pair: Pair) -> None:
    """Clean batches come together with new ones: segments are merged, some become empty."""
    name = compacted(pair)
    for turn in range(4):
        fill(pair, name, count=30, keys=5, seed=turn)
        clean(pair, name)
        same_files(pair, name)
    same_reading(pair, name, end_of(pair.ours, name))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(pair: Pair, codec: str) -> None:
    name = compacted(pair)
    fill(pair, name, keys=30, codec=codec)
    clean(pair, name)
    same_batches(pair, name)


def test_log_append_time(pair: Pair) -> None:
    """Each broker stamps its own time, so only the remaining records are compared."""
    name = compacted(pair, message_timestamp_type="LogAppendTime")
    fill(pair, name)
    clean(pair, name)
    ours, theirs = (
        [
            (header[:3], [(row[0], *row[2:]) for row in rows])
            for _, header, rows in headers_and_records(side, name)
        ]
        for side in pair.sides
    )
    assert ours == theirs


def test_records_from_before_the_topic_was_compacted(pair: Pair) -> None:
    name = compacted(pair, cleanup_policy="delete")
    chance = random.Random(3)
    for number in range(40):
        key = None if chance.random() < 0.3 else b"k%d" % chance.randrange(8)
        put(pair, name, [(key, chance.randbytes(50))], OLD_MS + number)
    change(pair, name, cleanup_policy="compact")
    clean(pair, name)
    same_files(pair, name)
    same_reading(pair, name, end_of(pair.ours, name))


# -- tombstones


def test_tombstones_stay_until_their_horizon(pair: Pair) -> None:
    name = compacted(pair, delete_retention_ms=str(HOUR_MS))
    chance = random.Random(4)
    for number in range(60):
        rows: Rows = [
            (b"k%d" % chance.randrange(9), None if chance.random() < 0.4 else chance.randbytes(40))
            for _ in range(2)
        ]
        put(pair, name, rows, OLD_MS + number)
    clean(pair, name)
    same_batches(pair, name)
    horizons = [batch for batch in headers_and_records(pair.ours, name) if not batch[1][-1]]
    assert horizons, "some batch has a tombstone"
    fill(pair, name, count=15)
    clean(pair, name)
    same_batches(pair, name)


def test_tombstones_go_after_their_horizon(pair: Pair) -> None:
    name = compacted(pair, delete_retention_ms="0")
    for number in range(20):
        put(pair, name, [(b"k%d" % (number % 7), None if number % 3 else b"x" * 50)], OLD_MS + number)
    fill(pair, name, count=10)
    clean(pair, name)
    same_batches(pair, name)
    fill(pair, name, count=20, seed=2)
    clean(pair, name)
    same_batches(pair, name)
    values = [row[3] for _, _, rows in headers_and_records(pair.ours, name) for row in rows if row[0] < 20]
    assert None not in values


# -- producers


def test_the_last_batch_of_each_producer_stays(pair: Pair) -> None:
    name = compacted(pair)
    for producer in range(3):
        for sequence in range(4):
            header = {"producer_id": 5000 + producer, "producer_epoch": 0, "base_sequence": sequence}
            put(pair, name, [(b"same", b"%d" % sequence)], OLD_MS + sequence, **header)
    fill(pair, name, count=30)
    clean(pair, name)
    same_files(pair, name)
    empty = [header[5:8] for _, header, rows in headers_and_records(pair.ours, name) if not rows]
    assert empty[:2] == [(5000, 0, 3), (5001, 0, 3)]
    header = {"producer_id": 5001, "producer_epoch": 0, "base_sequence": 4}
    put(pair, name, [(b"same", b"next")], **header)
    put(pair, name, [(b"same", b"next")], **header)
    same_reading(pair, name, end_of(pair.ours, name))


# -- when a log is cleaned


def test_a_least_lag_holds_back(pair: Pair) -> None:
    """By the newest record of a segment; all later segments wait as well."""
    name = compacted(pair, min_compaction_lag_ms=str(HOUR_MS))
    fill(pair, name, count=40)
    put(pair, name, [(b"young", b"x" * 1000)], now_ms())
    base = active_base(pair.theirs, name)
    fill(pair, name, count=40, seed=2)
    change(pair, name, min_cleanable_dirty_ratio=ALWAYS)
    for side in pair.sides:
        wait_for(side, lambda side=side: clean_up_to(side, name) is not None, f"{name} to be cleaned")  # type: ignore[misc]
    time.sleep(QUIET_SECONDS)
    change(pair, name, min_cleanable_dirty_ratio=NEVER)
    assert [clean_up_to(side, name) for side in pair.sides] == [base, base]
    same_files(pair, name)


def test_a_greatest_lag_counts_more_than_the_ratio(pair: Pair) -> None:
    name = compacted(pair)
    fill(pair, name, count=30)
    change(pair, name, max_compaction_lag_ms=str(HOUR_MS))
    for side in pair.sides:
        end = active_base(side, name)
        wait_for(side, lambda side=side, end=end: clean_up_to(side, name) == end, f"{name} to be clean")  # type: ignore[misc]
    same_files(pair, name)


def test_an_active_segment_is_closed_by_the_greatest_lag(pair: Pair) -> None:
    name = compacted(pair, max_compaction_lag_ms="1000", internal_segment_bytes="1000000")
    put(pair, name, [(b"a", b"1")], OLD_MS)
    put(pair, name, [(b"a", b"2")], OLD_MS + 1000)
    put(pair, name, [(b"a", b"3")], OLD_MS + 1001)
    assert [active_base(side, name) for side in pair.sides] == [2, 2]


def test_the_ratio_must_be_exceeded(pair: Pair) -> None:
    name = compacted(pair)
    fill(pair, name, count=30)
    clean(pair, name)
    fill(pair, name, count=30, keys=300)
    change(pair, name, min_cleanable_dirty_ratio="0.99")
    time.sleep(QUIET_SECONDS)
    change(pair, name, min_cleanable_dirty_ratio=NEVER)
    assert clean_up_to(pair.ours, name) == clean_up_to(pair.theirs, name) != active_base(pair.ours, name)


def test_compact_and_delete(pair: Pair) -> None:
    name = compacted(pair, cleanup_policy="compact,delete")
    fill(pair, name, count=40)
    put(pair, name, [(b"young", b"x" * 1500)], now_ms())
    put(pair, name, [(b"younger", b"x" * 1500)], now_ms())
    clean(pair, name)
    same_files(pair, name)
    change(pair, name, retention_ms=str(HOUR_MS))
    time.sleep(QUIET_SECONDS)
    assert [start_of(side, name) for side in pair.sides] == [0, 0], "what was emptied is as old as its file"
    change(pair, name, retention_bytes="3000")
    for side in pair.sides:
        wait_for(side, lambda side=side: start_of(side, name) > 0, f"{name} to lose what is too much")  # type: ignore[misc]
    time.sleep(QUIET_SECONDS)
    assert start_of(pair.ours, name) == start_of(pair.theirs, name)
    same_files(pair, name)


def test_more_keys_than_fit_into_memory(pair: Pair) -> None:
    """A megabyte has room for 39,321 keys: the first cleaning stops where these end, the next one continues."""
    name = compacted(pair, internal_segment_bytes="1000000")
    pair.same(alter_one(BROKER, "", ("log.cleaner.dedupe.buffer.size", SET, "1048577")), 1)
    try:
        for number in range(60):
            put(pair, name, [(b"%d" % (number * 1000 + step), b"x" * 10) for step in range(1000)])
        clean(pair, name)
        same_files(pair, name)
    finally:
        pair.same(alter_one(BROKER, "", ("log.cleaner.dedupe.buffer.size", DELETE, None)), 1)


def test_a_topic_that_is_not_compacted_any_more(pair: Pair) -> None:
    name = compacted(pair)
    fill(pair, name, count=20)
    pair.same(alter_one(TOPIC, name, ("cleanup.policy", SET, "delete")), 1)
    change(pair, name, min_cleanable_dirty_ratio=ALWAYS)
    time.sleep(QUIET_SECONDS)
    assert [clean_up_to(side, name) for side in pair.sides] == [None, None]
    same_files(pair, name)
