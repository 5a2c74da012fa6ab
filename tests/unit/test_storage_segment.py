"""Segments and indexes: what is written, and how it is found again."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from pykafkad.hot import records
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import CorruptSegment, FileRange, Segment
from tests.storage_kit import NOW_MS, batch


def fresh(path: Path, base: int = 0, *, index_bytes: int = 1 << 20) -> Segment:
    directory = str(path)
    indexes = (
        OffsetIndex(directory, base, index_bytes, fresh=True),
        TimeIndex(directory, base, index_bytes, fresh=True),
    )
    return Segment(directory, base, *indexes, fresh=True)


def put(segment: Segment, offset: int, value: bytes = b"value", timestamp: int = NOW_MS) -> int:
    """Queue a batch of one record; returns its size."""
    data = records.build([(None, value, [], timestamp)], base_offset=offset)
    segment.queue(data, offset, offset, timestamp)
    return len(data)


# -- indexes


def test_an_offset_index_finds_the_entry_at_or_below(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path), 100, 1 << 20, fresh=True)
    assert index.lookup(150) == (100, 0)
    for offset, position in ((110, 1000), (120, 2000), (130, 3000)):
        index.append(offset, position)
    assert [index.lookup(offset) for offset in (100, 109, 110, 119, 120, 1000)] == [
        (100, 0), (100, 0), (110, 1000), (110, 1000), (120, 2000), (130, 3000),
    ]  # fmt: skip
    assert (index.entries, index.last_offset, index.position_of(125)) == (3, 130, 2000)


def test_a_time_index_takes_only_later_timestamps(tmp_path: Path) -> None:
    index = TimeIndex(str(tmp_path), 100, 1 << 20, fresh=True)
    assert index.last_entry == (-1, 100)
    assert index.maybe_append(5, 110)
    assert not index.maybe_append(5, 120)
    assert index.maybe_append(9, 130)
    assert [index.lookup(timestamp) for timestamp in (4, 5, 8, 9, 99)] == [
        (-1, 100), (5, 110), (5, 110), (9, 130), (9, 130),
    ]  # fmt: skip
    assert not index.maybe_append(-1, 140)
    with pytest.raises(ValueError, match="below the last"):
        index.maybe_append(10, 120)


def test_index_files_have_kafkas_bytes_and_sizes(tmp_path: Path) -> None:
    offsets = OffsetIndex(str(tmp_path), 7, 1001, fresh=True)
    times = TimeIndex(str(tmp_path), 7, 1001, fresh=True)
    offsets.append(9, 0x12345)
    times.maybe_append(0x0102030405, 9)
    assert os.stat(offsets.path).st_size == 1000
    assert os.stat(times.path).st_size == 996
    offsets.trim()
    times.trim()
    assert Path(offsets.path).read_bytes() == bytes.fromhex("00000002 00012345")
    assert Path(times.path).read_bytes() == bytes.fromhex("0000000102030405 00000002")
    assert offsets.lookup(50) == (9, 0x12345)  # mapped again


def test_indexes_refuse_what_would_break_the_search(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path), 100, 24, fresh=True)
    index.append(110, 1)
    for offset in (110, 105):
        with pytest.raises(ValueError, match="not above"):
            index.append(offset, 2)
    with pytest.raises(ValueError, match="too far"):
        index.append(100 + 0x80000000, 2)
    index.append(111, 2)
    index.append(112, 3)
    assert index.is_full
    with pytest.raises(IndexError, match="no room"):
        index.append(113, 4)


def test_an_index_that_is_only_read_does_not_grow(tmp_path: Path) -> None:
    OffsetIndex(str(tmp_path), 0, 80, fresh=True).trim()
    index = OffsetIndex(str(tmp_path), 0)
    assert (index.entries, index.mapped, os.stat(index.path).st_size) == (0, False, 0)
    with pytest.raises(IndexError, match="only read"):
        index.append(1, 1)


def test_nothing_is_mapped_before_it_is_needed(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    put(segment, 0)
    segment.write()
    assert not segment.offset_index.mapped
    assert not segment.time_index.mapped
    assert segment.read(0, 1000, 1, False) is not None
    assert not segment.offset_index.mapped


def test_a_missing_index_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OffsetIndex(str(tmp_path / "nowhere"), 0).lookup(5)


# -- writing


def test_queued_batches_are_written_at_once_and_in_order(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    sizes = [put(segment, offset, b"x" * offset) for offset in range(10)]
    assert (segment.size, segment.queued_bytes, segment.queued_batches) == (0, sum(sizes), 10)
    segment.write()
    assert (segment.size, segment.queued_bytes, segment.end_offset) == (sum(sizes), 0, 10)
    assert [record.offset for record in records.read(Path(segment.path).read_bytes())] == list(range(10))


def test_more_batches_than_one_system_call_takes(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    for offset in range(3000):
        put(segment, offset)
    segment.write()
    assert [header.base_offset for header in segment.headers()] == list(range(3000))


def test_a_large_batch_is_written_whole(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    size = put(segment, 0, os.urandom(3 << 20))
    segment.write()
    assert os.stat(segment.path).st_size == size
    assert len(list(records.read(Path(segment.path).read_bytes()))) == 1


def test_a_failed_write_counts_nothing(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    put(segment, 0)
    os.close(segment.open_file().fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        segment.write()
    assert (segment.size, segment.queued_bytes) == (0, 0)
    spare = os.open(os.devnull, os.O_RDONLY)  # takes the same number, for the segment to close
    assert spare == segment.open_file().fd


def test_an_index_entry_follows_each_interval(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    segment.index_interval_bytes = 500
    positions = {}
    position = 0
    for offset in range(100):
        positions[offset] = position
        position += put(segment, offset, timestamp=NOW_MS + offset)
        segment.write()
    entries = [segment.offset_index.entry(slot) for slot in range(segment.offset_index.entries)]
    assert len(entries) > 10
    assert all(positions[offset] == found for offset, found in entries)
    gaps = [second[1] - first[1] for first, second in pairwise(entries)]
    assert all(500 < gap < 700 for gap in gaps)
    times = [segment.time_index.entry(slot) for slot in range(segment.time_index.entries)]
    assert times == [(NOW_MS + offset, offset) for offset, _ in entries]


# -- reading


@pytest.fixture
def filled(tmp_path: Path) -> Segment:
    """Offsets 10, 12, ... 208: a batch each, gaps between, 20 commits."""
    segment = fresh(tmp_path, 10)
    segment.index_interval_bytes = 300
    for offset in range(10, 210, 2):
        put(segment, offset, b"v" * 20, timestamp=NOW_MS + offset)
        if offset % 10 == 8:
            segment.write()
    return segment


def offsets_in(part: FileRange | None) -> list[int]:
    return [] if part is None else [record.offset for record in records.read(part.read())]


def test_every_offset_leads_to_its_batch_or_the_next(filled: Segment) -> None:
    for offset in range(10, 209):
        part = filled.read(offset, 1 << 20, 210, True)
        assert offsets_in(part)[0] == offset + offset % 2
        assert offsets_in(part)[-1] == 208
    assert filled.read(209, 1 << 20, 210, True) is None


def test_nothing_at_or_above_the_limit_is_given_out(filled: Segment) -> None:
    for limit in range(11, 211):
        assert offsets_in(filled.read(10, 1 << 20, limit, True)) == list(range(10, limit, 2))
    assert filled.read(50, 1 << 20, 50, True) is None


def test_max_bytes_cuts_and_the_first_batch_comes_whole_if_asked(filled: Segment) -> None:
    size = next(filled.headers()).size
    part = filled.read(20, size * 3 + 5, 210, False)
    assert part is not None and part.size == size * 3 + 5
    assert offsets_in(part) == [20, 22, 24]
    whole = filled.read(20, 1, 210, True)
    assert whole is not None and whole.size == size
    nothing = filled.read(20, size - 1, 210, False)
    assert nothing is not None and nothing.size == 0


def test_a_range_outlives_the_segment_and_its_file(filled: Segment) -> None:
    part = filled.read(10, 1 << 20, 210, True)
    filled.release()
    os.unlink(filled.path)
    assert len(offsets_in(part)) == 100


def test_batches_by_timestamp(filled: Segment) -> None:
    for timestamp in range(NOW_MS, NOW_MS + 209):
        header = filled.batch_since(timestamp, 0)
        assert header is not None and header.max_timestamp == max(NOW_MS + 10, timestamp + timestamp % 2)
    assert filled.batch_since(NOW_MS + 209, 0) is None
    header = filled.batch_since(0, 51)
    assert header is not None and header.base_offset == 52


def test_damage_is_said_and_not_followed(filled: Segment) -> None:
    position = next(header.position for header in filled.headers() if header.base_offset == 40)
    with open(filled.path, "r+b") as file:
        file.seek(position + 8)
        file.write(b"\xff\xff\xff\xff")
    filled.release()
    segment = Segment(filled.directory, 10, filled.offset_index, filled.time_index, filled.size)
    with pytest.raises(CorruptSegment):
        list(segment.headers())


# -- rolling


def test_size_age_full_index_and_far_offsets_roll(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    segment.max_bytes = 1000
    segment.roll_ms = 50
    assert not segment.must_roll(1000, 0, NOW_MS, NOW_MS)
    size = put(segment, 0)
    assert not segment.must_roll(1000 - size, 1, NOW_MS, NOW_MS)
    assert segment.must_roll(1001 - size, 1, NOW_MS, NOW_MS)
    assert not segment.must_roll(100, 1, NOW_MS + 50, NOW_MS)
    assert segment.must_roll(100, 1, NOW_MS + 51, NOW_MS)
    assert not segment.must_roll(100, 0x7FFFFFFF, NOW_MS, NOW_MS)
    assert segment.must_roll(100, 0x80000000, NOW_MS, NOW_MS)


def test_without_timestamps_the_segments_own_age_counts(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    segment.roll_ms = 50
    segment.created_ms = NOW_MS
    put(segment, 0, timestamp=-1)
    assert not segment.must_roll(100, 1, -1, NOW_MS + 50)
    assert segment.must_roll(100, 1, -1, NOW_MS + 51)


@pytest.mark.parametrize("batches_a_write", [1, 3, 100])
def test_a_full_index_rolls_exactly_when_it_is_full(tmp_path: Path, batches_a_write: int) -> None:
    segment = fresh(tmp_path, index_bytes=60)  # 7 offset entries, 5 time entries: one is kept for the roll
    segment.index_interval_bytes = 100
    offset = 0
    while not segment.must_roll(80, offset, NOW_MS + offset, NOW_MS):
        put(segment, offset, timestamp=NOW_MS + offset)
        offset += 1
        if offset % batches_a_write == 0:
            segment.write()
    segment.write()
    assert (segment.time_index.entries, segment.offset_index.entries) == (4, 4)
    segment.seal()
    assert segment.time_index.last_entry == (NOW_MS + offset - 1, offset - 1)


def test_reserved_room_is_given_back(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    segment.max_bytes = 1 << 20
    segment.reserve()
    put(segment, 0)
    segment.write()
    assert os.stat(segment.path).st_size == segment.size
    segment.give_back()
    assert os.stat(segment.path).st_blocks * 512 < 1 << 20
    assert len(records.scan(Path(segment.path).read_bytes())) == 1


def test_queue_takes_any_buffer_and_holds_it(tmp_path: Path) -> None:
    segment = fresh(tmp_path)
    data = batch(b"one")
    segment.queue(memoryview(data), 0, 0, NOW_MS)
    with pytest.raises(BufferError):
        data.clear()
    segment.write()
    data.clear()
