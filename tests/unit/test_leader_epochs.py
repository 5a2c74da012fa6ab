"""Leader epochs and their end offsets, as OffsetForLeaderEpoch answers them (KIP-101, KIP-279)."""

from __future__ import annotations

import pytest

from pykafkad.pure.leader_epochs import UNDEFINED, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(list(entries))


def test_an_epoch_keeps_its_first_start() -> None:
    history = epochs((0, 0))
    assert not history.assign(0, 10)
    assert history.assign(2, 10)
    assert not history.assign(2, 10)
    assert history.entries == ((0, 0), (2, 10))
    assert history.latest == 2


def test_an_epoch_in_which_nothing_was_written_is_replaced() -> None:
    history = epochs((0, 0), (1, 10))
    assert history.assign(2, 10)
    assert history.entries == ((0, 0), (2, 10))


def test_entries_that_contradict_a_new_one_go() -> None:
    history = epochs((0, 0), (3, 10), (5, 20))
    assert history.assign(2, 15)
    assert history.entries == ((0, 0), (2, 15))


def test_the_latest_epoch_may_be_found_to_start_earlier() -> None:
    history = epochs((0, 0), (1, 10))
    assert history.assign(1, 5)
    assert history.entries == ((0, 0), (1, 5))


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_ones_are_our_mistake(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="leader epoch"):
        LeaderEpochs().assign(epoch, offset)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, UNDEFINED),
        (0, (0, 10)),  # before all known ones: where the first known one starts
        (2, (2, 20)),
        (3, (2, 20)),  # never happened: the largest smaller one
        (4, (4, 30)),
        (7, (7, 100)),  # the latest: the log's end
        (8, UNDEFINED),
    ],
)
def test_end_offsets(asked: int, answer: tuple[int, int]) -> None:
    assert epochs((2, 10), (4, 20), (7, 30)).end_offset_for(asked, 100) == answer


def test_nothing_is_known_of_an_empty_history() -> None:
    assert LeaderEpochs().end_offset_for(0, 100) == UNDEFINED
    assert LeaderEpochs().latest == -1


@pytest.mark.parametrize(("offset", "epoch"), [(0, -1), (9, -1), (10, 2), (19, 2), (20, 4), (1000, 4)])
def test_the_epoch_of_an_offset(offset: int, epoch: int) -> None:
    assert epochs((2, 10), (4, 20)).epoch_at(offset) == epoch


def test_cutting_the_end_drops_epochs_from_there_on() -> None:
    history = epochs((0, 0), (1, 10), (2, 20))
    assert history.truncate_from_end(20)
    assert history.entries == ((0, 0), (1, 10))
    assert not history.truncate_from_end(11)


def test_cutting_the_start_keeps_the_covering_epoch() -> None:
    history = epochs((0, 0), (1, 10), (2, 20))
    assert history.truncate_from_start(15)
    assert history.entries == ((1, 15), (2, 20))
    assert not history.truncate_from_start(15)
    assert history.truncate_from_start(20)
    assert list(history.entries) == [(2, 20)]
    assert not history.truncate_from_start(3)
