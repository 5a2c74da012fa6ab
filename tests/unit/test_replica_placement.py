"""Where replicas go, as Kafka 3.9.2 was seen to place them and as KIP-36 says."""

from __future__ import annotations

from collections import Counter

import pytest

from pykafkad.pure.replica_placement import Placement, alternating

NO_RACKS = dict.fromkeys(range(5))
RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def placed(
    racks: dict[int, str | None], factor: int, start: int, shift: int, first: int, count: int
) -> list[list[int]]:
    return list(Placement(racks, factor, start, shift).partitions(first, count))


def test_a_topic_that_was_recorded() -> None:
    racks: dict[int, str | None] = {0: "rack-0", 1: "rack-1", 2: "rack-2"}
    assert placed(racks, 3, 0, 1, 0, 13) == [
        [0, 2, 1], [1, 0, 2], [2, 1, 0],
        [0, 1, 2], [1, 2, 0], [2, 0, 1],
        [0, 2, 1], [1, 0, 2], [2, 1, 0],
        [0, 1, 2], [1, 2, 0], [2, 0, 1],
        [0, 2, 1],
    ]  # fmt: skip


def test_a_growth_that_was_recorded() -> None:
    racks: dict[int, str | None] = {0: "rack-0", 1: "rack-1", 2: "rack-2"}
    assert placed(racks, 3, 0, 0, 2, 2) == [[2, 0, 1], [0, 2, 1]]


def test_without_racks_the_distance_grows_with_each_round() -> None:
    assert placed(NO_RACKS, 3, 0, 0, 0, 7) == [
        [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1],
        [0, 2, 3], [1, 3, 4],
    ]  # fmt: skip
    assert placed(NO_RACKS, 2, 3, 4, 0, 2) == [[3, 4], [4, 0]]


def test_brokers_alternate_between_racks() -> None:
    assert alternating(RACKS) == [0, 3, 1, 5, 4, 2]
    assert alternating({3: "b", 1: "b", 2: "a"}) == [2, 1, 3]
    assert placed(dict(RACKS), 3, 0, 0, 0, 7) == [
        [0, 3, 1], [3, 1, 5], [1, 5, 4], [5, 4, 2], [4, 2, 0], [2, 0, 3],
        [0, 4, 2],
    ]  # fmt: skip


@pytest.mark.parametrize("racks", [NO_RACKS, RACKS, {1: "a", 2: "a", 3: "a", 4: "b"}, {7: None}])
def test_replicas_differ_are_even_and_in_as_many_racks_as_can_be(racks: dict[int, str | None]) -> None:
    size = len(racks)
    names = set(racks.values())
    for factor in range(1, size + 1):
        for start in range(size):
            every = placed(racks, factor, start, start, 0, size * 3)
            leaders = Counter(replicas[0] for replicas in every)
            assert set(leaders.values()) == {3}
            for replicas in every:
                assert len(set(replicas)) == factor and set(replicas) <= set(racks)
                if names != {None}:
                    assert len({racks[broker] for broker in replicas}) == min(factor, len(names))
