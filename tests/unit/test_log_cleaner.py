"""The log cleaner on a manual clock: what is cleaned when, what remains, and what may happen in between."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.slices import finish
from pykafkad.storage.cleaning import cleaning
from pykafkad.storage.log import snapshots, transaction_index
from pykafkad.storage.log.log import Log
from tests.cleaner_kit import COMPACTED, DAY_MS, Home, contents, fill, mark, names, put
from tests.storage_kit import NOW_MS, idempotent, marker, read_all


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def keys_and_offsets(partition: Log) -> list[tuple[int, str | None]]:
    return [(offset, key) for offset, key, _ in contents(partition)]


# -- what remains


def test_the_newest_record_of_each_key_is_left_where_it_was(home: Home) -> None:
    """For example, of keys at offsets 13 to 28 exactly the newest record of each is left."""
    partition = home.create()
    fill(partition, [(f"old{number}", "x") for number in range(13)])
    keys = ["k1", "k2", "k1", "k3", "k2", "k4", "k5", "k5", "k2", "k6", "k1", "k3", "k7", "k2", "k6", "k8"]
    fill(partition, [(key, f"v{number}") for number, key in enumerate(keys)])
    home.clean()
    newest = {key: offset for offset, key in enumerate(keys, 13)}
    expected = sorted((offset, key) for key, offset in newest.items())
    assert keys_and_offsets(partition)[13:] == expected
    assert [offset for offset, _ in expected] == [18, 20, 23, 24, 25, 26, 27, 28]
    assert partition.log_end_offset == 29
    assert partition.first_dirty_offset == 29


def test_records_of_the_active_segment_supersede_nothing_yet(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("b", "1"), ("b", "2")])
    put(partition, ("a", "2"))
    home.clean()
    assert contents(partition) == [(0, "a", "1"), (2, "b", "2"), (3, "a", "2")]


def test_small_segments_become_one(home: Home) -> None:
    partition = home.create()
    for number in range(20):
        fill(partition, [(f"k{number % 3}", str(number))])
    home.clean()
    assert contents(partition) == [(17, "k2", "17"), (18, "k0", "18"), (19, "k1", "19")]
    assert partition.bases == [0, 20]
    home.timers.advance(1000)
    home.manager.deletions.unlink_due()
    stems = {name.partition(".")[0] for name in names(partition) if name.startswith("0")}
    assert stems == {"00000000000000000000", "00000000000000000020"}
    assert [segment.end_offset for segment in partition.segments[:-1]] == partition.bases[1:]


def test_a_cleaned_log_is_read_as_before_from_every_offset(home: Home) -> None:
    partition = home.create()
    for number in range(60):
        fill(partition, [(f"k{number % 7}", "x" * 300) for _ in range(3)])
    expected = [record for record in read_all(partition) if record.offset >= 180 - 7 * 3]
    home.clean()
    left = keys_and_offsets(partition)
    assert [offset for offset, _ in left] == [number * 3 + 2 for number in range(53, 60)]
    for start in range(partition.log_end_offset):
        found = [record.offset for record in read_all(partition, start)]
        assert found == [offset for offset, _ in left if offset >= start]
    assert {record.offset for record in expected} >= {offset for offset, _ in left}


def test_questions_by_time_find_what_is_left(home: Home) -> None:
    partition = home.create()
    for number in range(40):
        put(partition, (f"k{number % 4}", "x" * 200), timestamp=NOW_MS + number * 10)
    partition.roll(NOW_MS)
    home.clean()
    left = [record.offset for record in read_all(partition)]
    assert left == [36, 37, 38, 39]
    assert finish(partition.offset_for_timestamp(NOW_MS)) == (36, NOW_MS + 360, 0)
    assert finish(partition.offset_for_timestamp(NOW_MS + 375)) == (38, NOW_MS + 380, 0)
    assert finish(partition.offset_for_timestamp(NOW_MS + 391)) is None
    assert finish(partition.max_timestamp_offset()) == (39, NOW_MS + 390, 0)
    home.restart()
    partition = home.manager.partitions["orders", 0]
    assert finish(partition.offset_for_timestamp(NOW_MS + 375)) == (38, NOW_MS + 380, 0)
    assert finish(partition.max_timestamp_offset()) == (39, NOW_MS + 390, 0)


def test_a_tombstone_stays_until_its_horizon_and_then_goes(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("b", "1"), ("a", None)])
    home.clean()
    assert contents(partition) == [(1, "b", "1"), (2, "a", None)]
    (batch,) = [each for each in batches(partition) if each.base_offset == 2]
    assert batch.delete_horizon_ms == NOW_MS + 1000 + DAY_MS
    home.timers.advance(DAY_MS - 60_000)
    fill(partition, [("c", "x" * 1000)])
    home.clean()
    assert (2, "a", None) in contents(partition), "the horizon has not come"
    home.timers.advance(60_000)
    fill(partition, [("d", "x" * 3000)])
    home.clean()
    assert (2, "a", None) not in contents(partition)
    assert partition.log_end_offset == 5


def test_timestamps_survive_a_new_horizon(home: Home) -> None:
    partition = home.create()
    put(partition, ("a", "1"), ("b", None), timestamp=NOW_MS - 5)
    fill(partition, [("c", "1")])
    home.clean()
    assert [record.timestamp for record in read_all(partition)] == [NOW_MS - 5, NOW_MS - 5, NOW_MS]
    assert finish(partition.max_timestamp_offset()) == (2, NOW_MS, 0)


def test_records_without_key_go(home: Home, said: io.StringIO) -> None:
    """They were written before the topic was compacted."""
    partition = home.create(cleanup_policy=["delete"])
    fill(partition, [(None, "1"), ("a", "1"), (None, "2")])
    configure(home, partition, cleanup_policy=["compact"])
    home.clean()
    assert contents(partition) == [(1, "a", "1")]
    assert "2 records had no key" in said.getvalue()


def test_the_last_batch_of_a_cleaning_stays_if_empty(home: Home) -> None:
    """If nothing follows it shows up to which offset the log goes."""
    partition = home.create(cleanup_policy=["delete"])
    fill(partition, [("a", "1"), (None, "1"), (None, "2")])
    configure(home, partition, cleanup_policy=["compact"])
    home.clean()
    assert [(batch.base_offset, batch.count) for batch in batches(partition)] == [(0, 1), (2, 0)]


def batches(partition: Log) -> list[records.Batch]:
    found = []
    for segment in partition.segments:
        found += records.scan(segment.bytes_at(0, segment.size))
    return found


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_stay_compressed(home: Home, codec: str) -> None:
    partition = home.create()
    for number in range(6):
        put(partition, ("same", str(number)), (f"own{number}", "x" * 100), codec=codec)
    partition.roll(NOW_MS)
    home.clean()
    assert keys_and_offsets(partition) == [(1, "own0"), (3, "own1"), (5, "own2"), (7, "own3"), (9, "own4"),
                                           (10, "same"), (11, "own5")]  # fmt: skip
    assert {batch.codec for batch in batches(partition)} == {codec}


# -- producers and transactions


def test_the_last_batch_of_a_producer_stays_as_long_as_it_is_known(home: Home) -> None:
    """Otherwise the producer's next batch would be out of order after a restart without snapshots."""
    partition = home.create()
    partition.append(idempotent(0, b"1"), NOW_MS)
    partition.append(idempotent(1, b"2"), NOW_MS)
    partition.commit()
    fill(partition, [("k", "3"), ("z", "1")])
    home.clean()
    assert contents(partition) == [(2, "k", "3"), (3, "z", "1")]
    kept = [batch for batch in batches(partition) if batch.producer_id == 7]
    assert [(batch.base_sequence, batch.count, batch.last_offset) for batch in kept] == [(1, 0, 1)]
    home.restart()
    partition = home.manager.partitions["orders", 0]
    assert partition.append(idempotent(1, b"2"), NOW_MS).duplicate
    assert partition.append(idempotent(2, b"4"), NOW_MS).base_offset == 4


def test_a_forgotten_producer_keeps_nothing(home: Home) -> None:
    partition = home.create()
    partition.append(idempotent(0, b"1"), NOW_MS)
    partition.commit()
    fill(partition, [("k", "3"), ("z", "1")])
    home.clock.advance(2 * DAY_MS)
    home.manager.expire_producers()
    home.clean()
    assert [batch.base_offset for batch in batches(partition)] == [1, 2]


def transactional(sequence: int, key: bytes, producer_id: int = 7) -> bytearray:
    rows: list[tuple[bytes, bytes, list[Any], int]] = [(key, b"v", [], NOW_MS)]
    options: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    return bytearray(records.build(rows, transactional=True, **options))


def test_records_of_aborted_transactions_go_and_supersede_nothing(home: Home) -> None:
    partition = home.create()
    put(partition, ("a", "good"), ("b", "good"))
    partition.append(transactional(0, b"a"), NOW_MS, verified=True)
    partition.append(transactional(1, b"c"), NOW_MS, verified=True)
    mark(partition, marker(7, 0, commit=False))
    partition.append(transactional(2, b"b"), NOW_MS, verified=True)
    mark(partition, marker(7, 0, commit=True))
    fill(partition, [("z", "1")])
    assert list(transaction_index.read(partition.directory, 0)) == [(7, 2, 4, 5)]
    home.clean()
    data = [each for each in contents(partition) if each[1] is not None and each[1] in "abcz"]
    assert data == [(0, "a", "good"), (5, "b", "v"), (7, "z", "1")]
    assert [batch.base_offset for batch in batches(partition) if batch.is_control] == [4, 6]


def test_the_transaction_index_lists_only_what_still_has_data(home: Home) -> None:
    """With entries whose markers are gone, readers would drop committed records."""
    partition = home.create()
    partition.append(transactional(0, b"a"), NOW_MS, verified=True)
    mark(partition, marker(7, 0, commit=False))
    fill(partition, [("z", "1")])
    fill(partition, [("y", "1")])
    home.clean()
    # The batch was the producer's last one, and is kept empty.
    assert list(transaction_index.read(partition.directory, 0)) == [(7, 0, 1, 2)]
    home.clock.advance(2 * DAY_MS)
    home.manager.expire_producers()
    fill(partition, [("x", "1" * 500)])
    home.clean()
    # It was removed by this cleaning; the index follows when the next cleaning finds nothing of the transaction.
    assert list(transaction_index.read(partition.directory, 0)) == [(7, 0, 1, 2)]
    fill(partition, [("w", "1" * 2000)])
    home.clean()
    assert list(transaction_index.read(partition.directory, 0)) == []
    assert not Path(transaction_index.path_of(partition.directory, 0)).exists()


def test_readers_are_told_of_aborted_transactions_in_merged_segments(home: Home) -> None:
    partition = home.create()
    fill(partition, [("z", "1")])
    first = partition.log_end_offset
    partition.append(transactional(0, b"a"), NOW_MS, verified=True)
    mark(partition, marker(7, 0, commit=False))
    fill(partition, [("y", "1"), ("y", "2")])

    def told() -> list[tuple[int, int]]:
        part = partition.read(0, 1 << 20, limit_offset=partition.last_stable_offset, at_least_one=True)
        assert part is not None
        later = partition.read(first, 1 << 20, limit_offset=partition.last_stable_offset, at_least_one=True)
        assert later is not None
        return [*partition.aborted_transactions(0, part), *partition.aborted_transactions(first, later)]

    assert told() == [(7, first)] and len(partition.bases) == 3
    home.clean()
    assert told() == [(7, first)] * 2 and len(partition.bases) == 2


def test_nothing_of_an_open_transaction_is_touched(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    partition.append(transactional(0, b"a"), NOW_MS, verified=True)
    partition.commit()
    fill(partition, [("a", "3")])
    home.clean()
    assert partition.first_dirty_offset == 2
    assert keys_and_offsets(partition)[:1] == [(1, "a")]
    mark(partition, marker(7, 0, commit=True))
    home.clean()
    assert partition.first_dirty_offset == 4
    assert [offset for offset, key in keys_and_offsets(partition) if key == "a"] == [3]


def test_snapshots_of_merged_segments_go_with_them(home: Home) -> None:
    partition = home.create()
    for number in range(4):
        partition.append(idempotent(number, b"v"), NOW_MS)
        partition.commit()
        partition.roll(NOW_MS)
    home.clean()
    assert partition.bases == [0, 4]
    assert snapshots.offsets(names(partition)) == [4]


# -- when


def test_nothing_is_cleaned_before_enough_is_dirty(home: Home) -> None:
    partition = home.create(min_cleanable_dirty_ratio=0.8)
    fill(partition, [("a", "x" * 100)])
    home.clean()
    assert partition.first_dirty_offset == 1
    fill(partition, [("a", "x" * 100), ("a", "x" * 100)])
    home.clean()
    assert partition.first_dirty_offset == 1, "two thirds are dirty"
    fill(partition, [("a", "x" * 100)] * 4)
    home.clean()
    assert partition.first_dirty_offset == 7


def test_records_younger_than_the_least_lag_stay(home: Home) -> None:
    partition = home.create(min_compaction_lag_ms=7 * DAY_MS)
    fill(partition, [("a", "1"), ("a", "2")])
    home.clean()
    assert len(contents(partition)) == 2
    home.timers.advance(7 * DAY_MS)
    home.finish()
    assert contents(partition) == [(1, "a", "2")]


def test_the_greatest_lag_counts_more_than_the_ratio(home: Home) -> None:
    partition = home.create(min_cleanable_dirty_ratio=0.99, max_compaction_lag_ms=7 * DAY_MS)
    fill(partition, [("b", "x" * 3000)])
    home.clean()
    fill(partition, [("a", "1"), ("a", "2")])
    home.clean()
    assert len(contents(partition)) == 3
    home.timers.advance(7 * DAY_MS)
    home.finish()
    assert len(contents(partition)) == 2


def test_an_open_segment_is_rolled_by_the_greatest_lag_like_by_its_age(home: Home) -> None:
    """Kafka rolls at the lesser of segment.ms and max.compaction.lag.ms, since otherwise the lag could not be kept."""
    partition = home.create(max_compaction_lag_ms=DAY_MS, segment_ms=7 * DAY_MS)
    put(partition, ("a", "1"))
    put(partition, ("a", "2"), timestamp=NOW_MS + DAY_MS + 1)
    assert partition.bases == [0, 1]


def test_a_topic_that_is_not_compacted_is_left_alone(home: Home) -> None:
    partition = home.create(cleanup_policy=["delete"])
    fill(partition, [("a", "1"), ("a", "2")])
    home.clean()
    assert home.manager.compaction.cleaner is None
    assert len(contents(partition)) == 2


def test_a_log_without_closed_segments_needs_no_cleaner(home: Home) -> None:
    put(home.create(), ("a", "1"))
    home.clean()
    assert home.manager.compaction.cleaner is None


def test_after_the_end_nothing_is_begun(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    compaction = home.manager.compaction
    compaction.stop()
    compaction.begin(home.timers.call_later, home.threads.submit)
    compaction.reconfigure()
    compaction.turn()
    home.timers.advance(60_000)
    assert compaction.cleaner is None and not home.threads.waiting
    assert len(contents(partition)) == 2


def test_log_cleaner_enable_off_leaves_everything(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", log_cleaner_enable=False)
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    home.timers.advance(DAY_MS)
    assert not home.timers.waiting
    assert len(contents(partition)) == 2


def test_a_cleaner_that_was_in_vain_does_not_spin(home: Home) -> None:
    partition = home.create(min_cleanable_dirty_ratio=0.0)
    fill(partition, [("a", "1")])
    home.clean()
    before = os.stat(partition.segments[0].path).st_ino
    home.clean(3)
    assert os.stat(partition.segments[0].path).st_ino == before


def test_the_dirtiest_log_comes_first_and_each_has_one_thread(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", log_cleaner_threads=2)
    partitions = [home.create(f"t{number}", min_cleanable_dirty_ratio=0.1) for number in range(4)]
    for clean, partition in enumerate(partitions):
        fill(partition, [("a", "x" * (200 * clean + 1))])
    home.clean()
    for partition in partitions:
        fill(partition, [("b", "x" * 1000)])
    home.timers.advance(15_001)
    cleaner = home.cleaner
    assert [cleaner.is_busy(partition) for partition in partitions] == [True, True, False, False]
    assert cleaner.running == len(home.threads.waiting) == 2
    home.timers.advance(15_001)
    assert cleaner.running == len(home.threads.waiting) == 2
    home.finish()
    assert [partition.first_dirty_offset for partition in partitions] == [2] * 4
    assert cleaner.running == 0


def test_a_log_that_is_not_due_any_more_has_no_turn(tmp_path: Path) -> None:
    """What it needs changed while the one before it was cleaned."""
    home = Home(tmp_path / "a", log_cleaner_threads=1)
    first, second = home.create("first"), home.create("second")
    fill(first, [("a", "1"), ("a", "2"), ("a", "3")])
    fill(second, [("a", "1"), ("a", "2")])
    home.timers.advance(15_000)
    (busy,) = [each for each in (first, second) if home.cleaner.is_busy(each)]
    other = second if busy is first else first
    home.configs[other.topic] = COMPACTED | {"min.compaction.lag.ms": DAY_MS}
    home.manager.configure(other.topic, 1, home.configs[other.topic])
    before = contents(other)
    home.finish()
    assert len(contents(busy)) == 1 and contents(other) == before


def test_a_full_key_map_cleans_as_far_as_it_reaches(tmp_path: Path) -> None:
    """The next cleaning begins there at once: the memory is bounded, not the log."""
    home = Home(tmp_path / "a", log_cleaner_dedupe_buffer_size=24 * 10, log_cleaner_io_buffer_load_factor=0.5)
    partition = home.create(min_cleanable_dirty_ratio=0.01)
    fill(partition, [(f"k{number % 9}", str(number)) for number in range(40)])
    home.timers.advance(15_000)
    home.threads.step()
    assert home.cleaner._runs["orders", 0].cleaning.end_offset == 5
    home.finish()
    assert [offset for offset, _ in keys_and_offsets(partition)] == list(range(31, 40))
    assert partition.first_dirty_offset == 40


def test_many_logs_are_measured_in_turns(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafkad.storage.cleaning.cleaner.WORK_A_TURN", 30)
    partitions = [home.create(f"t{number}") for number in range(10)]
    for partition in partitions:
        fill(partition, [("a", "1"), ("a", "2")])
    home.timers.advance(1000)
    assert home.cleaner.running == 0, "the loop is asked in between"
    home.timers.advance(3)
    assert home.cleaner.running == 1
    home.finish()
    assert [len(contents(partition)) for partition in partitions] == [1] * 10


def test_logs_that_need_no_cleaner_are_passed_over_in_turns(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykafkad.storage.cleaning.cleaner.WORK_A_TURN", 30)
    fill(home.create("t"), [("a", "1"), ("a", "2")])
    for number in range(100):
        home.create(f"d{number}", cleanup_policy=["delete"])
    home.timers.advance(1000)
    assert home.cleaner.running == 0, "the loop is asked in between"
    home.timers.advance(5)
    assert home.cleaner.running == 1
    home.finish()


# -- configs


def configure(home: Home, partition: Log, **overrides: Any) -> None:
    changed = {key.replace("_", "."): value for key, value in overrides.items()}
    home.configs[partition.topic] = home.configs[partition.topic] | changed
    home.manager.configure(partition.topic, 1, home.configs[partition.topic])


def test_a_change_of_the_brokers_config_counts_at_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", log_cleaner_backoff_ms=3_600_000)
    home.timers.advance(1001)
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    home.manager.config["log.cleaner.backoff.ms"] = 100
    home.manager.config["log.cleaner.io.max.bytes.per.second"] = 12_345.0
    home.manager.reconfigure()
    assert home.cleaner._throttle.bytes_per_second == 12_345.0
    assert home.cleaner.running == 1
    home.manager.config["log.cleaner.io.max.bytes.per.second"] = 1e9
    home.manager.reconfigure()
    home.finish()
    assert len(contents(partition)) == 1
    assert home.timers.waiting[0].due_ms <= home.clock.monotonic_ms() + 100


def test_memory_is_shared_by_the_threads() -> None:
    limits = cleaning.Limits(240_000, 1000, 0.9, 4)
    assert (limits.key_bytes, limits.buffer_bytes) == (60_000, 125)
    assert cleaning.Limits(1 << 40, 1000, 0.9, 1).key_bytes == 0x7FFFFFFF


def test_a_small_log_takes_a_small_map(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    home.timers.advance(15_000)
    run = home.cleaner._runs["orders", 0].cleaning
    assert run.keys.slots <= 8
    assert run.max_keys == int((128 << 20) // 24 * 0.9)


def test_compact_and_delete_do_both(home: Home) -> None:
    partition = home.create(cleanup_policy=["compact", "delete"], retention_ms=DAY_MS)
    fill(partition, [("a", "1"), ("a", "2")])
    put(partition, ("b", "1"), timestamp=NOW_MS + DAY_MS)
    home.clean()
    assert [offset for offset, _ in keys_and_offsets(partition)] == [1, 2]
    home.timers.advance(DAY_MS)
    home.finish()
    assert [offset for offset, _ in keys_and_offsets(partition)] == [2]
    assert partition.log_start_offset == 2
