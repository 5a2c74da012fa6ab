"""The ends of int64, as timestamps, offsets and config values: they saturate or wrap like Kafka's longs, and are never
undefined. `make asan` runs these tests under the undefined-behaviour sanitizer, which ends the process at an overflow.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.cleaner import Throttle
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import CorruptSegment, Segment
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.cleaning.cleaning import Limits
from pykafkad.storage.files import OFFSET_MAX
from pykafkad.storage.log.settings import index_room
from tests.cleaner_kit import Home as CleanerHome
from tests.cleaner_kit import write
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    append,
    batch,
    lead,
    manager,
    new_partition,
    open_partition,
    read_all,
    topic_config,
)

LEAST, MOST = -(1 << 63), (1 << 63) - 1
TIMES = [LEAST, LEAST + 1, -1, 0, NOW_MS, MOST - 1, MOST]
EXTREME = {
    "segment.ms": MOST,
    "segment.jitter.ms": MOST,
    "retention.ms": MOST,
    "retention.bytes": MOST,
    "flush.ms": MOST,
    "flush.messages": MOST,
    "file.delete.delay.ms": MOST,
    "delete.retention.ms": MOST,
    "min.compaction.lag.ms": MOST,
    "max.compaction.lag.ms": MOST,
    "message.timestamp.before.max.ms": MOST,
    "message.timestamp.after.max.ms": MOST,
    "index.interval.bytes": (1 << 31) - 1,
    "segment.bytes": (1 << 31) - 1,
}


def timed(*timestamps: int, codec: str = "none") -> bytearray:
    return bytearray(records.build([(b"k", b"v", [], timestamp) for timestamp in timestamps], codec=codec))


def wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


# -- timestamps


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("first", TIMES)
@pytest.mark.parametrize("then", TIMES)
def test_records_of_any_time_are_read_back(first: int, then: int, codec: str, tmp_path: Path) -> None:
    """The difference of two such timestamps may be no int64. In Kafka it wraps, and wraps back when it is read."""
    data = timed(first, then, codec=codec)
    assert [record.timestamp for record in records.read(data)] == [first, then]
    partition = new_partition(tmp_path, message_timestamp_after_max_ms=MOST, segment_ms=1000)
    appended = []
    for each in (data, timed(then), timed(first)):
        try:
            append(partition, each)
            appended.append(each)
        except records.RecordsError:  # negative timestamps are invalid, as in Kafka
            assert min(first, then) < 0
    found = [record.timestamp for record in read_all(partition)]
    assert found == [record.timestamp for each in appended for record in records.read(each)]
    for timestamp in TIMES:
        partition.offset_for_timestamp(timestamp)
    partition.max_timestamp_offset()


@pytest.mark.parametrize("roll_ms", [0, 1, MOST])
@pytest.mark.parametrize("first", TIMES)
@pytest.mark.parametrize("then", TIMES)
def test_whether_a_segment_is_too_old_for_a_batch(
    first: int, then: int, roll_ms: int, tmp_path: Path
) -> None:
    path = str(tmp_path)
    indexes = OffsetIndex(path, 0, 800, fresh=True), TimeIndex(path, 0, 1200, fresh=True)
    segment = Segment(path, 0, *indexes, fresh=True)
    segment.queue(timed(NOW_MS), 0, 0, NOW_MS)
    segment.write()
    segment.first_timestamp, segment.roll_ms = first, roll_ms
    expected = then - first > roll_ms if first >= 0 else segment.must_roll(1, 1, NOW_MS, NOW_MS)
    if first != -2:
        assert segment.must_roll(1, 1, then, NOW_MS) == expected


@pytest.mark.parametrize("now_ms", [0, NOW_MS, MOST])
@pytest.mark.parametrize("sent", TIMES)
@pytest.mark.parametrize("bound", [0, 1, MOST])
def test_the_bounds_of_timestamps_wrap_as_kafkas(sent: int, now_ms: int, bound: int) -> None:
    rules = records.Rules(
        max_message_bytes=1 << 20,
        compression="producer",
        compression_level=None,
        log_append_time=False,
        timestamp_before_max_ms=bound,
        timestamp_after_max_ms=bound,
        compacted=False,
        client=True,
    )
    if sent == -1 or (wrapped(now_ms - sent) <= bound and wrapped(sent - now_ms) <= bound):
        records.validate(timed(sent), rules, now_ms, "t-0")
    else:
        with pytest.raises(records.RecordsError, match="imestamp"):
            records.validate(timed(sent), rules, now_ms, "t-0")


# -- offsets


def with_offset(data: bytes, base_offset: int) -> bytearray:
    return bytearray(base_offset.to_bytes(8, "big", signed=True) + data[8:])


OFFSETS = [LEAST, -1, OFFSET_MAX - 1, OFFSET_MAX, OFFSET_MAX + 1, MOST - 1, MOST]


@pytest.mark.parametrize("base_offset", OFFSETS)
def test_a_produced_batch_may_say_any_offset(base_offset: int, tmp_path: Path) -> None:
    """Any base offset is accepted in the frame, and then refused unless it is 0, as in Kafka."""
    data = with_offset(bytes(batch(b"a", b"b")), base_offset)
    (found,) = records.scan(data)
    assert found.last_offset == wrapped(base_offset + 1)
    partition = new_partition(tmp_path)
    with pytest.raises(records.RecordsError, match="base offset"):
        append(partition, data)
    assert append(partition, batch(b"a")) == [0]


@pytest.mark.parametrize("base_offset", OFFSETS)
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
def test_a_stored_batch_may_say_any_offset(base_offset: int, clean: bool, tmp_path: Path) -> None:
    """The base offset is not under the checksum: a start truncates there, or reading finds the damage."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"a"), batch(b"b"), batch(b"c"))
    partition.close()
    path = Path(partition.active.path)
    size = path.stat().st_size // 3
    data = bytearray(path.read_bytes())
    data[size : 2 * size] = with_offset(bytes(data[size : 2 * size]), base_offset)
    path.write_bytes(data)
    again = open_partition(tmp_path, clean=clean)
    assert 1 <= again.log_end_offset <= OFFSET_MAX + 1
    lead(again, 1)
    try:
        append(again, batch(b"d"))
        read_all(again)
    except (KafkaError, CorruptSegment):
        pass
    again.close(clean=False)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_log_whose_offsets_are_used_up_takes_no_more(left: int, tmp_path: Path) -> None:
    """One more record would leave no offset for the next one. Other partitions continue."""
    home = manager(tmp_path)
    home.open_all({}, lambda topic: topic_config())
    home.close()
    starts = {("orders", 0): OFFSET_MAX + 1 - left if left else OFFSET_MAX}
    (tmp_path / "orders-0").mkdir()
    checkpoints.write_topic_id(str(tmp_path / "orders-0"), TOPIC_ID)
    checkpoints.write_offsets(str(tmp_path / checkpoints.LOG_STARTS), starts)
    logs = manager(tmp_path)
    logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: topic_config())
    partition = logs.partitions["orders", 0]
    lead(partition, 0)
    for _ in range(max(left, 1)):
        append(partition, batch(b"a"))
    with pytest.raises(KafkaError) as refused:
        append(partition, batch(b"a"))
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR
    assert partition.log_end_offset == OFFSET_MAX + 1 and logs.directories[0].is_online
    logs.close()
    assert logs.directories[0].is_online


@pytest.mark.parametrize("text", [str(OFFSET_MAX + 1), str(MOST), str(1 << 63), str(LEAST - 1), "9" * 400])
def test_an_offset_that_is_none_makes_a_checkpoint_unreadable(text: str, tmp_path: Path) -> None:
    path = tmp_path / checkpoints.LOG_STARTS
    path.write_text(f"0\n1\norders 0 {text}\n")
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.read_offsets(str(path))


@pytest.mark.parametrize("line", [f"{1 << 31} 0", f"{-(1 << 31) - 1} 0", f"0 {OFFSET_MAX + 1}"])
def test_a_leader_epoch_that_is_none_makes_a_checkpoint_unreadable(line: str, tmp_path: Path) -> None:
    (tmp_path / files.LEADER_EPOCHS).write_text(f"0\n1\n{line}\n")
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.read_epochs(str(tmp_path))


def test_the_largest_leader_epoch(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, leader_epoch=(1 << 31) - 1)
    append(partition, batch(b"a"))
    assert partition.epochs.entries == LeaderEpochs([((1 << 31) - 1, 0)]).entries


@pytest.mark.parametrize("base", [OFFSET_MAX, OFFSET_MAX + 1, MOST])
def test_a_segment_named_after_the_last_offsets(base: int, tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"a"))
    partition.close()
    extra = Path(partition.directory) / files.offset_name(base, files.LOG)
    extra.write_bytes(with_offset(bytes(batch(b"x")), base))
    again = open_partition(tmp_path, clean=False)
    assert again.bases[0] == 0 and again.log_end_offset == 1
    assert extra.exists() == (base > OFFSET_MAX)  # else it is set aside, since nothing leads up to it
    again.close(clean=False)


# -- configs


@pytest.mark.parametrize("least", [True, False], ids=["least", "most"])
def test_a_log_with_the_most_extreme_configs_is_served_kept_and_cleaned(least: bool, tmp_path: Path) -> None:
    smallest: dict[str, Any] = dict.fromkeys(EXTREME, 0) | {
        "segment.bytes": 14,
        "segment.ms": 1,
        "flush.messages": 1,
    }
    smallest |= {"retention.ms": -1, "retention.bytes": -1, "index.interval.bytes": 0}
    smallest |= {name: each for name, each in EXTREME.items() if name.startswith("message.timestamp")}
    config: dict[str, Any] = smallest if least else dict(EXTREME)
    config |= {
        "cleanup.policy": ["compact", "delete"],
        "min.cleanable.dirty.ratio": 0.0,
        "segment.bytes": 300,
    }
    home = CleanerHome(tmp_path)
    partition = home.create(**{name.replace(".", "_"): value for name, value in config.items()})
    for number in range(12):
        rows: list[Any] = [(b"k", None if number % 3 else b"v", [], NOW_MS + number)]
        partition.append(bytearray(records.build(rows)), NOW_MS)
        write(partition)
    home.manager.flushing.aged()
    home.clean(3)
    home.manager.check_retention()
    home.manager.deletions.unlink_due()
    assert home.cleaner.running == 0 and not home.cleaner.is_uncleanable(partition)
    assert all(directory.is_online for directory in home.manager.directories)
    assert read_all(partition)[-1].offset == 11
    home.manager.close()


def test_a_tombstone_that_is_to_be_kept_for_ever_is(tmp_path: Path) -> None:
    """now + delete.retention.ms overflows: with a horizon in the past the tombstone would be removed at once."""
    home = CleanerHome(tmp_path)
    partition = home.create(delete_retention_ms=MOST, min_cleanable_dirty_ratio=0.0, segment_bytes=200)
    for key in (b"a", b"b", b"a", b"c", b"d"):
        partition.append(bytearray(records.build([(key, None, [], NOW_MS)])), NOW_MS)
        write(partition)
    for _ in range(3):
        home.clean()
        home.clock.advance(1 << 40)
    assert [record.key for record in read_all(partition)][:2] == [b"b", b"a"]
    home.manager.close()


@pytest.mark.parametrize(
    ("rate", "waits"),
    [
        (0.0, True),
        (5e-324, True),
        (1e-300, True),
        (1.8e308, False),
        (math.nan, False),
        (-1.0, False),
        (-5e-324, False),
    ],
)
def test_a_rate_of_the_cleaner_is_any_number(rate: float, waits: bool) -> None:
    throttle = Throttle(rate)
    assert throttle.take(1 << 20, 0) == 0
    assert (throttle.take(0, 0) > 0) == (throttle.take(MOST, 0) > 0) == waits
    throttle.bytes_per_second = rate
    for _ in range(100):
        assert 0 <= throttle.take(MOST, 0) < 1 << 60


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.0, 1e308, math.inf, -math.inf, math.nan])
def test_a_load_factor_is_any_number(factor: float) -> None:
    limits = Limits(MOST, (1 << 31) - 1, factor, 1)
    assert 0 < limits.load <= 1 and limits.key_bytes < 1 << 31


def test_an_index_interval_of_nothing_takes_no_more_room_than_batches_need(tmp_path: Path) -> None:
    assert index_room(1 << 30, 0) == index_room(1 << 30, 26) < 1 << 29
    assert index_room(100_000, 1000) >= 100 * 12, "of the time index, an entry for each interval"
    partition = new_partition(tmp_path, index_interval_bytes=0, segment_index_bytes=8000)
    append(partition, *(batch(b"x") for _ in range(100)))
    partition.close(clean=False)
    again = open_partition(tmp_path, clean=False, index_interval_bytes=0, segment_index_bytes=8000)
    assert again.log_end_offset == 100 and again.active.offset_index.entries == 99
    again.close(clean=False)
