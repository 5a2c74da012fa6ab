"""Records of several partitions in the order of their times, as Kafka Streams takes them."""

from __future__ import annotations

from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.running.reading import MAX_WAITING, Merging

A, B = ("t", 0), ("t", 1)


def record(partition: tuple[str, int], offset: int, time: int) -> Record:
    return Record(partition[0], None, None, time, partition=partition[1], offset=offset)


def taken(merging: Merging) -> list[tuple[int, int]]:
    found = []
    while (one := merging.next()) is not None:
        found.append((one.partition, one.offset))
    return found


def test_the_oldest_of_the_first_records_is_next() -> None:
    merging = Merging({A: 0, B: 0})
    merging.add(A, [record(A, 0, 5), record(A, 1, 1), record(A, 2, 9)], 3)
    merging.add(B, [record(B, 0, 6), record(B, 1, 7)], 2)
    merging.learn({A: 3, B: 2})
    assert taken(merging) == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]
    assert merging.taken == {A: 3, B: 2} and not merging.is_behind({A: 3, B: 2})


def test_a_partition_that_has_more_is_waited_for() -> None:
    merging = Merging({A: 0, B: 0})
    merging.learn({A: 1, B: 1})
    merging.add(A, [record(A, 0, 5)], 1)
    assert taken(merging) == []
    merging.add(B, [record(B, 0, 1)], 1)
    assert taken(merging) == [(1, 0), (0, 0)]


def test_offsets_without_records_are_passed() -> None:
    merging = Merging({A: 0})
    merging.add(A, [record(A, 0, 5)], 7)
    assert merging.is_behind({A: 7}) and taken(merging) == [(0, 0)]
    assert merging.taken == {A: 7} and not merging.is_behind({A: 7})


def test_nothing_is_given_out_from_a_stop_on() -> None:
    merging = Merging({A: 2, B: 4})
    merging.stop_at({A: 4, B: 4})
    merging.learn({A: 9, B: 9})
    assert merging.has_room == {A: 2}
    merging.add(A, [record(A, 2, 1), record(A, 3, 2), record(A, 4, 3)], 5)
    assert taken(merging) == [(0, 2), (0, 3)]
    assert merging.has_room == {} and not merging.is_behind(merging.ends)


def test_a_partition_whose_records_wait_is_read_no_further() -> None:
    merging = Merging({A: 0, B: 0})
    merging.learn({A: MAX_WAITING, B: 1})
    merging.add(A, [record(A, offset, offset) for offset in range(MAX_WAITING)], MAX_WAITING)
    assert merging.has_room == {B: 0}
