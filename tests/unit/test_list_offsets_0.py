"""ListOffsets 0: which of the segments' offsets, and the log's end, are as old as a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.handlers.list_offsets_0 import answer, chosen
from pykafkad.messages import ListOffsetsRequest
from pykafkad.slices import finish
from tests.unit.data_kit import NOW_MS, Desk, batch

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


LATEST, EARLIEST = -1, -2
CONSUMER, FOLLOWER = -1, 2


class Old(Desk):
    """With four segments of topic `t`, from the offsets 0, 2, 4 and 6 on, written to a minute after each other, the
    last of them an hour ago. The log ends at 7."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.create("t")
        self.log = self.storage.partitions["t", 0]
        for offset in range(7):
            if offset in (2, 4, 6):
                self.log.roll(NOW_MS)
            self.log.append(batch(b"x"), NOW_MS)
            self.storage.commit()
        for place, segment in enumerate(self.log.segments):
            os.utime(segment.path, ns=(0, self.written_ms(place) * 1_000_000))

    def written_ms(self, place: int) -> int:
        return NOW_MS - 3_600_000 + place * 60_000

    def told(self, *rows: tuple[int, int], replica_id: int = CONSUMER, topic: str = "t") -> list[Any]:
        """Of (timestamp, how many), each of partition 0: the offsets, or the error code."""
        kind = ListOffsetsRequest
        parts = [
            kind.ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
            for timestamp, most in rows
        ]
        request = kind(replica_id=replica_id, topics=[kind.ListOffsetsTopic(name=topic, partitions=parts)])
        response = finish(answer(self, request))
        (told,) = response.topics
        assert told.name == topic and all(row.partition_index == 0 for row in told.partitions)
        return [row.error_code or row.old_style_offsets for row in told.partitions]


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path)


def test_the_newest_come_first_and_at_most_so_many(old: Old) -> None:
    assert old.told((LATEST, 100), (LATEST, 5), (LATEST, 2), (LATEST, 1), (LATEST, 0)) == [
        [7, 6, 4, 2, 0],
        [7, 6, 4, 2, 0],
        [7, 6],
        [7],
        [],
    ]
    assert old.told((EARLIEST, 1), (EARLIEST, 9)) == [[0], [0]]


def test_a_time_is_compared_with_those_of_the_files(old: Old) -> None:
    second = old.written_ms(1)
    assert old.told((second, 9), (second - 1, 9), (second + 1, 1)) == [[2, 0], [0], [2]]
    assert old.told((old.written_ms(3), 9)) == [[6, 4, 2, 0]], "the end is of now"
    assert old.told((NOW_MS, 9), (NOW_MS - 1, 9)) == [[7, 6, 4, 2, 0], [6, 4, 2, 0]]


def test_where_the_last_segment_is_empty_the_end_is_its_begin(old: Old) -> None:
    old.log.roll(NOW_MS)
    assert old.told((LATEST, 9)) == [[7, 6, 4, 2, 0]]


def test_what_was_deleted_of_a_segment_is_not_offered(old: Old) -> None:
    old.log.delete_records(3)
    assert old.told((LATEST, 9), (EARLIEST, 1))[0][-1] == old.told((EARLIEST, 1))[0][0] == 3


def test_a_consumer_is_told_of_nothing_that_is_not_committed(
    old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica: Any = old.replicas.table["t", 0]
    monkeypatch.setattr(type(replica), "high_watermark", 5)
    assert old.told((LATEST, 9), (LATEST, 2), (LATEST, 1)) == [[5, 4, 2, 0], [5], [5]]
    assert old.told((old.written_ms(2), 9)) == [[4, 2, 0]]
    assert old.told((LATEST, 2), replica_id=FOLLOWER) == [[7, 6]]
    monkeypatch.setattr(type(replica), "high_watermark", 6)
    assert old.told((LATEST, 3)) == [[6, 6, 4]], "as Kafka's: the bound comes before what reaches up to it"


def test_what_cannot_be_answered_is_an_error_of_its_partition(old: Old) -> None:
    unsupported, unknown = errors.UNSUPPORTED_VERSION, errors.UNKNOWN_SERVER_ERROR
    assert old.told((-3, 1), (LATEST, 1), (LATEST, -1)) == [unsupported, [7], unknown]
    assert old.told((LATEST, 1), topic="other") == [errors.UNKNOWN_TOPIC_OR_PARTITION]
