"""Who is in sync and how far the high watermark goes: the leader's rules, without logs."""

from __future__ import annotations

import pytest

from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.pure.replication import NO_LIMIT, NOWHERE, Leadership

LAG_MS = 10_000
START = 5  # where the leader's log ended when the epoch began


def leadership(isr: tuple[int, ...] = (1, 2, 3), least: int = 1, now_ms: int = 0) -> Leadership:
    return Leadership(
        1, 7, START, (1, 2, 3), isr, min_insync_replicas=least, max_lag_ms=LAG_MS, now_ms=now_ms
    )


def test_a_leader_alone_has_no_limit() -> None:
    alone = Leadership(1, 0, 0, (1,), (1,), min_insync_replicas=3)
    assert alone.limit == NO_LIMIT
    assert not alone.is_under_min_isr, "more than there are replicas cannot be in sync"


def test_the_high_watermark_waits_for_everybody_in_sync() -> None:
    leading = leadership()
    assert leading.limit == NOWHERE, "nobody has said yet what it has"
    leading.fetched(2, 9, 0, 10, 1)
    assert leading.limit == NOWHERE
    leading.fetched(3, 7, 0, 10, 1)
    assert leading.limit == 7
    leading.fetched(3, 10, 0, 10, 2)
    assert leading.limit == 9


def test_who_is_not_in_sync_holds_nothing_up_unless_it_is_about_to_be() -> None:
    leading = leadership(isr=(1, 2))
    leading.fetched(2, 10, 0, 10, 1)
    leading.fetched(3, 4, 0, 10, 1)
    assert leading.limit == 10, "3 has never had all there was"
    leading.fetched(3, 10, 0, 10, 2)
    leading.fetched(3, 10, 0, 12, 3)
    leading.fetched(2, 12, 0, 12, 3)
    assert leading.limit == 10, "3 had all there was a moment ago"
    leading.look_again(2 + LAG_MS)
    assert leading.limit == 10
    leading.look_again(4 + LAG_MS)
    assert leading.limit == 12


def test_while_too_few_are_in_sync_the_high_watermark_stays() -> None:
    leading = leadership(isr=(1,), least=2)
    assert (leading.is_under_min_isr, leading.limit) == (True, NOWHERE)
    leading.reconfigure(1, 0)
    assert (leading.is_under_min_isr, leading.limit) == (False, NO_LIMIT)


def test_out_of_sync_is_who_has_not_caught_up_for_the_time_of_a_lag() -> None:
    leading = leadership(now_ms=100)
    leading.fetched(2, 10, 0, 10, 200)
    assert leading.out_of_sync(10, 100 + LAG_MS) == frozenset()
    assert leading.out_of_sync(10, 101 + LAG_MS) == {3}
    assert leading.out_of_sync(11, 201 + LAG_MS) == {2, 3}
    assert leading.out_of_sync(10, 1_000 + LAG_MS) == {3}, "2 has all there is, however long ago it asked"


def test_a_follower_that_has_what_was_there_at_its_last_fetch_keeps_up() -> None:
    """It never has all of a log that grows all the time."""
    leading = leadership()
    for turn in range(1, 20):
        for replica in (2, 3):
            leading.fetched(replica, 10 * turn, 0, 10 * turn + 10, turn * LAG_MS // 2)
    assert leading.out_of_sync(1_000, 10 * LAG_MS - LAG_MS // 2) == frozenset()
    leading.fetched(2, 195, 0, 300, 10 * LAG_MS)  # not what there was at its last fetch
    assert leading.out_of_sync(1_000, 10 * LAG_MS) == frozenset()
    assert leading.out_of_sync(1_000, 10 * LAG_MS + 1) == {2, 3}


@pytest.mark.parametrize(
    ("end_offset", "high_watermark", "joins"),
    [(9, 9, True), (8, 9, False), (4, 3, False), (START, 3, True)],
    ids=["has what is acknowledged", "lacks some", "lacks some of before this epoch", "has that"],
)
def test_who_may_join(end_offset: int, high_watermark: int, joins: bool) -> None:
    leading = leadership(isr=(1, 2))
    leading.fetched(3, end_offset, 0, 10, 1)
    assert leading.may_join(3, high_watermark) is joins
    assert not leading.may_join(2, high_watermark), "it is in sync"


def test_while_the_controller_is_asked_whoever_is_in_either_isr_counts() -> None:
    leading = leadership(isr=(1, 2), now_ms=0)
    leading.fetched(2, 12, 0, 12, 1)
    leading.fetched(3, 10, 0, 12, 1)
    leading.ask_for((1, 2, 3), 1)
    assert leading.limit == 10 and leading.isr == {1, 2}
    assert not leading.may_join(3, 0) and not leading.out_of_sync(12, 10 * LAG_MS), "one change at a time"
    leading.refused(1)
    assert leading.limit == 12 and leading.may_join(3, 10)
    leading.ask_for((1, 3), 1)
    assert leading.limit == 10 and leading.maximal_isr == {1, 2, 3}
    assert leading.confirmed((1, 3), 1, 1) and leading.isr == {1, 3} and leading.asked_for is None


def test_an_older_answer_says_nothing() -> None:
    leading = leadership()
    assert leading.confirmed((1, 2), 4, 0)
    assert not leading.confirmed((1, 2, 3), 3, 0) and leading.isr == {1, 2}


def test_a_partition_begins_with_epoch_0_of_its_changes() -> None:
    leading = Leadership(1, 0, 0, (1, 2), (1, 2))
    assert leading.confirmed((1,), 0, 0) and leading.isr == {1}


def test_too_few_after_the_append() -> None:
    leading = leadership(isr=(1, 2), least=2)
    leading.ask_for((1,), 0)
    assert not leading.is_short_after_append, "it is not confirmed yet"
    leading.confirmed((1,), 1, 0)
    assert leading.is_short_after_append and leading.is_under_min_isr


# -- where a follower cuts its log (KIP-101, KIP-279)

OWN = [(1, 0), (3, 10), (4, 20)]  # of a log that ends at 30


@pytest.mark.parametrize(
    ("leaders", "cut", "is_final"),
    [
        ((4, 25), 25, True),
        ((4, 40), 30, True),
        ((3, 15), 15, True),
        ((3, 25), 20, True),
        ((2, 12), 10, False),
        ((0, 5), 0, True),
    ],
    ids=[
        "its last epoch ended earlier there",
        "and later",
        "an earlier one did",
        "and later than here",
        "an epoch that is not here",
        "one before all that are here",
    ],
)
def test_where_a_follower_cuts_its_log(leaders: tuple[int, int], cut: int, is_final: bool) -> None:
    assert LeaderEpochs(OWN).truncation(*leaders, 30) == (cut, is_final)


def test_a_log_without_epochs_is_cut_where_the_leader_says() -> None:
    assert LeaderEpochs().truncation(3, 12, 30) == (12, True)
