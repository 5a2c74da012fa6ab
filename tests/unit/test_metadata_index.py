"""The indexes of a segment of the metadata log: what is noted of which batch, and what is believed of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.cluster.metadata_files import segment_name
from pykafkad.cluster.metadata_index import ENTRY, TIME_ENTRY, SegmentIndex

BASE = 100


def offsets(index: SegmentIndex) -> list[tuple[int, ...]]:
    return list(ENTRY.iter_unpack(bytes(index.entries)))


def times(index: SegmentIndex) -> list[tuple[int, ...]]:
    return list(TIME_ENTRY.iter_unpack(bytes(index.times)))


def index_of(*batches: tuple[int, int]) -> SegmentIndex:
    """Of batches of one record, by their size and time."""
    index, position = SegmentIndex(BASE), 0
    for number, (size, time_ms) in enumerate(batches):
        index.add(BASE + number, position, size, time_ms)
        position += size
    return index


@pytest.mark.parametrize(
    ("sizes", "noted"),
    [
        ([4096, 1, 1], [(2, 4097)]),
        ([4095, 1, 1, 1], [(3, 4097)]),
        ([4097, 1], [(1, 4097)]),
        ([5000, 4096, 1, 1], [(1, 5000), (3, 9097)]),
        ([5000, 4097, 1], [(1, 5000), (2, 9097)]),
    ],
)
def test_a_batch_is_noted_behind_more_than_4096_bytes_of_others(
    sizes: list[int], noted: list[tuple[int, int]]
) -> None:
    assert offsets(index_of(*((size, 1) for size in sizes))) == noted


def test_of_times_the_largest_so_far_is_noted_with_the_first_batch_that_has_it(tmp_path: Path) -> None:
    index = index_of((5000, 7), (5000, 9), (5000, 9), (5000, 3), (10, 11), (10, 11))
    assert times(index) == [(9, 1), (11, 4)]
    index.add(BASE + 6, 20_020, 10, 12)
    index.save(str(tmp_path))
    index.save(str(tmp_path))
    assert times(index) == [(9, 1), (11, 4), (12, 6)], "at the end the last one is, too"
    again = SegmentIndex(BASE)
    again.load(str(tmp_path))
    assert (again.entries, again.times) == (index.entries, index.times)


def test_a_walk_begins_with_the_last_batch_that_is_noted_below_an_offset() -> None:
    index = index_of(*[(5000, 1)] * 5)
    assert offsets(index) == [(number, number * 5000) for number in range(1, 5)]
    found = [index.start_for(BASE + number) for number in range(-1, 7)]
    none, last = (0, -1), (20_000, BASE + 4)
    assert found == [none] * 3 + [(5000 * number, BASE + number) for number in (1, 2, 3)] + [last] * 2
    assert SegmentIndex(BASE).start_for(BASE + 5) == none


@pytest.mark.parametrize("last", range(-1, 6))
def test_what_is_cut_off_is_noted_again_as_it_was(last: int) -> None:
    batches = [(5000, time_ms) for time_ms in (3, 9, 5, 9, 12, 4)]
    whole, index = index_of(*batches), index_of(*batches)
    index.cut(BASE + last)
    assert offsets(index) == offsets(whole)[: max(0, last)]
    assert times(index) == [each for each in times(whole) if each[1] <= last]
    fresh = SegmentIndex(BASE)
    fresh.entries, fresh.times = bytearray(index.entries), bytearray(index.times)
    fresh.cut(BASE + last)
    for number in range(max(last, 0), 6):
        fresh.add(BASE + number, number * 5000, *batches[number])
    assert (fresh.entries, fresh.times) == (whole.entries, whole.times)


def test_files_are_believed_as_far_as_they_grow(tmp_path: Path) -> None:
    def loaded(entries: bytes, of_times: bytes) -> tuple[int, int]:
        (tmp_path / segment_name(BASE, ".index")).write_bytes(entries)
        (tmp_path / segment_name(BASE, ".timeindex")).write_bytes(of_times)
        index = SegmentIndex(BASE)
        index.load(str(tmp_path))
        assert entries.startswith(index.entries) and of_times.startswith(index.times)
        return len(index.entries) // ENTRY.size, len(index.times) // TIME_ENTRY.size

    def both(*numbers: int) -> tuple[bytes, bytes]:
        return (
            b"".join(ENTRY.pack(5, number) for number in numbers),
            b"".join(TIME_ENTRY.pack(number, 5) for number in numbers),
        )

    assert loaded(*both(1, 2, 9)) == (3, 3)
    assert loaded(*both(2, 2, 9)) == loaded(*both(2, 1, 9)) == (1, 1)
    assert loaded(*both(7, 0, 0)) == (1, 1) and loaded(*both(0, 0)) == (0, 0)
    assert loaded(*(part[:-1] for part in both(1, 2))) == (1, 1)
    assert loaded(b"", b"") == (0, 0)
