"""Which log is cleaned, up to which offset, and which of its segments together."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pykafkad.pure import cleaning
from pykafkad.pure.cleaning import Source

NOW_MS = 1_700_000_000_000
FOREVER = (1 << 63) - 1


class Segment:
    def __init__(self, base_offset: int, size: int, newest_ms: int = 0, oldest_ms: int = 0) -> None:
        self.base_offset = base_offset
        self.size = size
        self.newest_ms = newest_ms
        self.oldest_ms = oldest_ms


class Log:
    """Segments of ten offsets; the last one is the active one."""

    def __init__(self, *sizes: int, log_start_offset: int = 0, last_stable_offset: int | None = None) -> None:
        self.segments = [Segment(slot * 10, size) for slot, size in enumerate(sizes)]
        self.bases = [segment.base_offset for segment in self.segments]
        self.log_start_offset = log_start_offset
        self.log_end_offset = len(sizes) * 10
        self.last_stable_offset = self.log_end_offset if last_stable_offset is None else last_stable_offset


def newest(segment: Segment) -> int:
    return segment.newest_ms


def oldest(segment: Segment) -> int:
    return segment.oldest_ms


def limit(log: Log, first_dirty: int = 0, min_lag_ms: int = 0) -> int:
    return cleaning.first_uncleanable_offset(log, first_dirty, min_lag_ms, NOW_MS, newest)


@pytest.mark.parametrize(
    ("checkpoint", "offset", "is_told"),
    [(None, 5, False), (5, 5, False), (17, 17, False), (30, 30, False), (4, 5, True), (41, 5, True)],
)
def test_cleaning_begins_where_the_last_one_ended_if_that_can_be(
    checkpoint: int | None, offset: int, is_told: bool
) -> None:
    log = Log(1, 1, 1, 1, log_start_offset=5)
    found, why = cleaning.first_dirty_offset(log, checkpoint)
    assert (found, why is not None) == (offset, is_told)


def test_a_checkpoint_inside_the_active_segment_is_not_believed() -> None:
    """That part was not cleaned: the end of the log was lost and written again."""
    assert cleaning.first_dirty_offset(Log(1, 1, 1), 25) == (20, None)


def test_a_log_that_starts_in_its_active_segment_is_clean_up_to_there() -> None:
    assert cleaning.first_dirty_offset(Log(1, 1, 1, log_start_offset=25), 25) == (25, None)


def test_the_active_segment_stays_as_it_is() -> None:
    assert limit(Log(1, 1, 1)) == 20


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned() -> None:
    assert limit(Log(1, 1, 1, 1, last_stable_offset=15)) == 10
    assert limit(Log(1, 1, 1, 1, last_stable_offset=20)) == 20


def test_a_segment_that_is_too_young_holds_back_those_behind_it() -> None:
    log = Log(1, 1, 1, 1)
    log.segments[1].newest_ms = NOW_MS - 100
    assert limit(log, min_lag_ms=100) == 30
    assert limit(log, min_lag_ms=101) == 10
    assert limit(log, first_dirty=20, min_lag_ms=101) == 30  # the clean part is old enough


def test_without_a_lag_nobody_asks_how_old_segments_are() -> None:
    def nobody(segment: Segment) -> int:
        raise AssertionError(segment.base_offset)

    assert cleaning.first_uncleanable_offset(Log(1, 1, 1), 0, 0, NOW_MS, nobody) == 20
    assert cleaning.overdue_ms(Log(1, 1, 1), 0, FOREVER, NOW_MS, nobody) == 0


def test_what_waits_longer_than_it_may_is_overdue() -> None:
    log = Log(1, 1, 1, 1)
    for segment, age_ms in zip(log.segments, (900, 500, 700, 950), strict=True):
        segment.oldest_ms = NOW_MS - age_ms
    assert cleaning.overdue_ms(log, 0, 600, NOW_MS, oldest) == 300
    assert cleaning.overdue_ms(log, 10, 600, NOW_MS, oldest) == 100
    assert cleaning.overdue_ms(log, 10, 700, NOW_MS, oldest) == 0
    assert cleaning.overdue_ms(log, 30, 600, NOW_MS, oldest) == 0, "the active segment may wait"


def test_segments_without_timestamps_are_never_overdue() -> None:
    log = Log(1, 1, 1)
    log.segments[0].oldest_ms, log.segments[1].oldest_ms = -1, 0
    assert cleaning.overdue_ms(log, 0, 1, NOW_MS, oldest) == 0


@pytest.mark.parametrize(
    ("first_dirty", "first_uncleanable", "clean", "cleanable"),
    [
        (0, 30, 0, 111),
        (10, 30, 1, 110),
        (20, 30, 11, 100),
        (30, 30, 111, 0),
        (15, 30, 11, 110),
        (10, 20, 1, 10),
    ],
)
def test_dirt_is_measured_in_whole_segments(
    first_dirty: int, first_uncleanable: int, clean: int, cleanable: int
) -> None:
    dirt = cleaning.dirt_of(Log(1, 10, 100, 1000), first_dirty, first_uncleanable)
    assert (dirt.clean_bytes, dirt.cleanable_bytes) == (clean, cleanable)


def test_a_log_is_due_when_more_than_the_ratio_of_it_is_dirty() -> None:
    dirt = cleaning.dirt_of(Log(50, 50, 1), 10, 20)
    assert dirt.ratio == 0.5
    assert not dirt.is_due(0.5)
    assert dirt.is_due(0.49)


def test_an_overdue_log_is_due_whatever_its_ratio_if_there_is_something_to_clean() -> None:
    dirt = cleaning.dirt_of(Log(99, 1, 1), 10, 20)
    dirt.delay_ms = 1
    assert dirt.is_due(0.5)
    dirt = cleaning.dirt_of(Log(99, 1, 1), 10, 10)
    dirt.delay_ms = 1
    assert not dirt.is_due(0.5)


def test_an_empty_log_is_not_due() -> None:
    assert not cleaning.dirt_of(Log(0, 0, 0), 0, 20).is_due(0.0)


def groups(
    sources: list[Source], max_bytes: int = 100, max_index_bytes: int = 100, end: int | None = None
) -> list[list[int]]:
    end = sources[-1].base_offset + 10 if end is None else end
    found = cleaning.group(sources, max_bytes, max_index_bytes, end)
    return [[source.base_offset for source in each] for each in found]


def test_small_neighbours_become_one_segment() -> None:
    sources = [Source(slot * 10, size) for slot, size in enumerate((40, 60, 1, 99, 100, 1))]
    assert groups(sources) == [[0, 10], [20, 30], [40], [50]]


def test_a_segment_larger_than_they_may_be_now_stays_alone() -> None:
    assert groups([Source(0, 500), Source(10, 0), Source(20, 1)]) == [[0], [10, 20]]


def test_indexes_have_limits_of_their_own() -> None:
    assert groups([Source(0, 1, 60), Source(10, 1, 40), Source(20, 1, 1)]) == [[0, 10], [20]]
    assert groups([Source(0, 1, 0, 60), Source(10, 1, 0, 41)]) == [[0], [10]]


def test_offsets_of_a_group_fit_its_index() -> None:
    far = 0x7FFFFFFF
    sources = [Source(0, 1), Source(10, 1), Source(far, 1)]
    assert groups(sources, end=far + 1) == [[0, 10, far]]
    assert groups(sources, end=far + 2) == [[0, 10], [far]]
    # An empty segment has no offsets: else one would be left every 2^31 records.
    assert groups([Source(0, 1), Source(10 * far, 0)]) == [[0, 10 * far]]


def test_every_segment_is_in_one_group_in_order() -> None:
    sources = [Source(slot * 10, (slot * 37) % 90) for slot in range(50)]
    found = groups(sources)
    assert [base for each in found for base in each] == [source.base_offset for source in sources]
    sizes = {source.base_offset: source.size for source in sources}
    totals = [sum(sizes[base] for base in each) for each in found]
    assert max(totals) <= 100
    assert all(
        total + sizes[after[0]] > 100 for total, (_, after) in zip(totals, pairwise(found), strict=False)
    )
