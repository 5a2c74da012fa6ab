"""Which segments are deleted, and when: by age, by size, below the log start, under every policy."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.errors import KafkaError
from pykafkad.storage import retention
from pykafkad.storage.retention import described
from tests.storage_kit import NOW_MS, TOPIC_ID, Threads, append, batch, read_all
from tests.unit.retention_kit import BATCH_BYTES, KEY, Home, age_of, config


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# -- age


def test_a_segment_goes_when_its_newest_record_is_too_old(home: Home) -> None:
    home.create(retention_ms=600_000)
    assert home.check() == [0, 2, 4, 6]
    home.clock.set_wall(age_of(1) + 600_000)
    assert home.check() == [0, 2, 4, 6]  # not older than that
    assert home.check(1) == [2, 4, 6]
    assert home.partition.log_start_offset == 2
    assert home.check(240_000) == [6]
    assert [record.offset for record in read_all(home.partition)] == [6]


def test_the_active_segment_goes_too_and_an_empty_one_takes_its_place(home: Home) -> None:
    partition = home.create(retention_ms=600_000)
    assert home.check(86_400_000) == [7]
    assert (partition.log_start_offset, partition.high_watermark, partition.log_end_offset) == (7, 7, 7)
    assert partition.size == 0 and read_all(partition) == []
    empty = partition.active
    assert home.check(86_400_000) == [7] and partition.active is empty, "an empty one stays as it is"
    now_ms = home.clock.now_ms()
    assert append(partition, batch(b"y", timestamp=now_ms), now_ms=now_ms) == [7]
    assert [record.offset for record in read_all(partition)] == [7]
    with pytest.raises(KafkaError):
        partition.read(6, 1000, limit_offset=8, at_least_one=True)


def test_a_record_of_the_future_keeps_what_is_behind_it_and_is_told_once(
    home: Home, said: io.StringIO
) -> None:
    partition = home.create(0, retention_ms=600_000)
    for number, timestamp in enumerate((age_of(0), age_of(100), age_of(0), age_of(0), age_of(0))):
        append(partition, batch(b"x" * 100, timestamp=timestamp), now_ms=timestamp)
        assert partition.log_end_offset == number + 1
    home.logs.dirty.clear()
    assert home.check(3_600_000) == home.check() == [0, 2, 4]
    assert said.getvalue().count("future") == 1
    other = home.logs.create("other", 0, TOPIC_ID, config(retention_ms=600_000), 0)
    append(other, batch(b"x", timestamp=age_of(100)), now_ms=age_of(100))
    home.logs.dirty.clear()
    assert home.check() == home.check() == [0, 2, 4]
    assert said.getvalue().count("future") == 2, "once each"
    home.clock.set_wall(age_of(100) + 600_001)
    assert home.check() == [5]


def test_without_timestamps_a_segment_is_as_old_as_its_file(home: Home, said: io.StringIO) -> None:
    partition = home.create(0, retention_ms=600_000)
    for _ in range(5):
        append(partition, batch(b"x" * 100, timestamp=-1))
    home.logs.dirty.clear()
    for segment, minutes in zip(partition.segments, (0, 5, 10), strict=True):
        os.utime(segment.path, ns=(0, age_of(minutes) * 1_000_000))
    assert home.check(600_000) == [0, 2, 4]
    assert home.check(1) == [2, 4]
    assert home.check(300_000) == [4]
    assert home.check(300_000) == [5]


def test_retention_ms_0_keeps_nothing_that_has_an_age(home: Home) -> None:
    home.create(retention_ms=0)
    home.clock.set_wall(age_of(6))
    assert home.check() == [6]
    assert home.check(1) == [7]


def test_what_was_loaded_at_start_has_its_age_from_the_time_index(home: Home) -> None:
    home.create()
    partition = home.restart()
    assert [segment.max_timestamp for segment in partition.segments[:3]] == [-2, -2, -2]
    home.logs.configure("orders", 1, config(retention_ms=600_000))
    home.clock.set_wall(age_of(3) + 600_001)
    assert home.check() == [4, 6]
    assert not any(segment.time_index.mapped for segment in partition.segments)


@pytest.mark.parametrize("limits", [{"retention_ms": 600_000}, {"retention_bytes": 0}], ids=["age", "size"])
def test_all_that_is_to_go_goes_with_one_look(home: Home, limits: dict[str, int]) -> None:
    """A few segments in a turn, and the rest in the turns that follow it."""
    partition = home.create(4 * retention.SEGMENTS_AT_ONCE + 3, **limits)
    end = partition.log_end_offset
    assert len(partition.bases) > 2 * retention.SEGMENTS_AT_ONCE
    home.clock.set_wall(age_of(end) + 600_001)
    assert home.check() == [end] and partition.log_start_offset == end


# -- size


@pytest.mark.parametrize(
    ("batches_kept", "bases"),
    [(7, [0, 2, 4, 6]), (6, [0, 2, 4, 6]), (5, [2, 4, 6]), (3, [4, 6]), (2, [4, 6]), (1, [6]), (0, [7])],
)
def test_the_log_never_gets_smaller_than_retention_bytes(
    home: Home, batches_kept: int, bases: list[int]
) -> None:
    home.create(retention_bytes=batches_kept * BATCH_BYTES)
    assert home.check() == bases
    assert home.partition.log_start_offset == bases[0]


def test_one_byte_more_keeps_the_segment(home: Home) -> None:
    home.create(retention_bytes=5 * BATCH_BYTES + 1)
    assert home.check() == [0, 2, 4, 6]


def test_size_first_then_age(home: Home) -> None:
    home.create(retention_bytes=5 * BATCH_BYTES, retention_ms=600_000)
    home.clock.set_wall(age_of(3) + 600_001)
    assert home.check() == [4, 6]


# -- the log start, and policies


@pytest.mark.parametrize("policy", [["delete"], ["compact"], ["compact", "delete"], []])
def test_what_lies_below_the_start_goes_under_every_policy(home: Home, policy: list[str]) -> None:
    partition = home.create(cleanup_policy=policy)
    partition.advance_log_start(5)
    assert home.check() == [4, 6]
    assert partition.log_start_offset == 5
    partition.advance_log_start(7)
    assert home.check() == [6]  # the active segment stays, though it cannot be read any more
    assert partition.log_start_offset == 7


def test_without_a_cleaner_nothing_goes_from_a_compacted_log(tmp_path: Path) -> None:
    home = Home(tmp_path, log_cleaner_enable=False)
    partition = home.create(cleanup_policy=["compact", "delete"], retention_bytes=0)
    partition.advance_log_start(5)
    assert home.check() == [0, 2, 4, 6]
    home.logs.configure("orders", 1, config(cleanup_policy=["delete"], retention_bytes=0))
    assert home.check() == [7]


@pytest.mark.parametrize(
    ("policy", "bases"),
    [(["delete"], [7]), (["compact"], [0, 2, 4, 6]), (["compact", "delete"], [7]), ([], [0, 2, 4, 6])],
)
def test_age_and_size_count_where_the_policy_says_delete(
    home: Home, policy: list[str], bases: list[int]
) -> None:
    home.create(cleanup_policy=policy, retention_ms=1, retention_bytes=0)
    assert home.check(86_400_000) == bases


def test_a_change_of_config_counts_from_the_next_check_on(home: Home) -> None:
    home.create()
    assert home.check(86_400_000) == [0, 2, 4, 6]
    home.logs.configure("orders", 1, config(retention_bytes=3 * BATCH_BYTES))
    assert home.check() == [4, 6]
    home.logs.configure("orders", 1, config(retention_ms=1, cleanup_policy=["compact"]))
    assert home.check() == [4, 6]
    home.logs.configure("orders", 1, config(retention_ms=1))
    assert home.check() == [7]


def test_nothing_at_or_above_the_high_watermark_goes(home: Home) -> None:
    partition = home.create(retention_ms=1, retention_bytes=0)
    partition.append(batch(b"x" * 100), NOW_MS)  # queued, until the pass ends
    assert home.check(86_400_000) == [6]
    assert home.logs.commit() == []
    assert home.check() == [8]


@pytest.mark.parametrize("rule", [{"retention_ms": 1}, {"retention_bytes": 0}], ids=["age", "size"])
def test_closed_segments_that_wait_for_their_flush_stay(home: Home, rule: dict[str, int]) -> None:
    """flush.messages: records that are not on the disk are not acknowledged, so they may neither be deleted nor passed
    by the log start."""
    threads = Threads()
    home.logs.submit = threads.submit
    partition = home.logs.create(*KEY, TOPIC_ID, config(flush_messages=1, **rule), 0)
    for number in range(7):
        append(partition, batch(b"x" * 100, timestamp=age_of(number)), now_ms=age_of(number))
    assert (partition.bases, partition.high_watermark) == ([0, 2, 4, 6], 0)
    assert home.check(after_ms=3_600_000) == [0, 2, 4, 6] and partition.log_start_offset == 0
    partition.high_watermark = 3
    assert home.check() == [2, 4, 6] and partition.log_start_offset == 2
    partition.high_watermark = 4
    assert home.check() == [4, 6] and partition.log_start_offset == 4
    while threads.waiting or partition.is_dirty:
        threads.all()
        home.logs.commit()
    assert partition.high_watermark == 7
    assert home.check() == [7] and partition.log_start_offset == 7


def test_a_segment_is_told_with_its_newest_timestamp_where_it_has_one() -> None:
    def told(timestamp: int) -> str:
        segment: Any = SimpleNamespace(base_offset=5, size=70, max_timestamp=timestamp)
        return described(segment)

    assert told(0) == "segment 5 (70 bytes, newest timestamp 0)"
    assert told(-1) == "segment 5 (70 bytes)"


def test_a_partition_is_looked_at_once_in_a_round(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it was asked for meanwhile."""
    home.create(retention_ms=600_000)
    later: list[Any] = []
    home.logs.call_later = lambda delay_ms, action: later.append(action)
    monkeypatch.setattr(retention, "WORK_A_TURN", 0)
    rounds = retention.Retention(home.logs)
    for _ in range(3):
        rounds.check()
    assert len(rounds._queue) == len(later) == 1
