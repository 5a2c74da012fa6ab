"""ListOffsets 0: which of the segments' offsets, and the log's end, are as old as a time."""

from __future__ import annotations

import pytest

from pykafkad.handlers.list_offsets_0 import chosen

# Segments at 0, 10 and 20, written to at these times, and the end of the log, now.
TIMES = [(0, 100), (10, 200), (20, 300), (25, 400)]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (-1, [0, 10, 20, 25]),
        (-2, [0]),
        (0, []),
        (99, []),
        (100, [0]),
        (299, [0, 10]),
        (399, [0, 10, 20]),
        (400, [0, 10, 20, 25]),
    ],
)
def test_what_is_as_old_as_a_time_is_found(timestamp: int, expected: list[int]) -> None:
    assert chosen(TIMES, timestamp) == expected


def test_a_segment_that_was_touched_later_hides_none_before_it() -> None:
    """As Kafka's: the newest that is old enough counts, and all before it."""
    assert chosen([(0, 500), (10, 200), (20, 300)], 250) == [0, 10]
