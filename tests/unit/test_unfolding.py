"""Memory for unfolding: who enters, who waits, and what is left when all have gone."""

from __future__ import annotations

import random
from typing import Any

from pykafkad.unfolding import LANE_BYTES, WIDE_BYTES, Stay, Unfolding

MIB = 1 << 20


def enters(stay: Stay, size: int) -> Any:
    """None if it is in; else the work that waits."""
    work = stay.keep(size)
    return work if next(work, None) is not None else None


def test_what_fits_enters_and_the_rest_waits_in_its_order() -> None:
    unfolding = Unfolding()
    stays = [unfolding.stay() for _ in range(5)]
    waiting = [enters(stay, 60 * MIB) for stay in stays]
    assert [work is None for work in waiting] == [True, True, False, False, False]
    assert unfolding.kept == 120 * MIB
    stays[0].leave()
    assert next(waiting[2], None) is None and next(waiting[3], None) is not None
    for stay in stays[1:]:
        stay.leave()
    assert next(waiting[3], None) is None


def test_more_than_all_enters_alone() -> None:
    unfolding = Unfolding()
    first, second = unfolding.stay(), unfolding.stay()
    assert enters(first, 10 * LANE_BYTES) is None
    work = enters(second, WIDE_BYTES + 1)
    assert work is not None
    first.leave()
    assert next(work, None) is None


def test_little_does_not_wait_for_much() -> None:
    unfolding = Unfolding()
    assert enters(unfolding.stay(), 10 * LANE_BYTES) is None
    assert enters(unfolding.stay(), WIDE_BYTES) is None


def test_nothing_is_kept_when_all_have_gone() -> None:
    chance = random.Random(1)
    unfolding = Unfolding()
    waiting: list[tuple[Stay, Any]] = []
    inside: list[Stay] = []
    for _ in range(2000):
        if inside and chance.random() < 0.5:
            inside.pop(chance.randrange(len(inside))).leave()
        else:
            stay = unfolding.stay()
            work = enters(stay, chance.randrange(100 * MIB))
            (waiting.append((stay, work)) if work is not None else inside.append(stay))
        entered = [each for each in waiting if next(each[1], None) is None]
        waiting = [each for each in waiting if each not in entered]
        inside += [stay for stay, _ in entered]
        assert unfolding.kept <= 2 * LANE_BYTES
        assert inside or not waiting
    while inside:
        inside.pop().leave()
        entered = [each for each in waiting if next(each[1], None) is None]
        waiting = [each for each in waiting if each not in entered]
        inside += [stay for stay, _ in entered]
    assert unfolding.kept == 0 and not waiting
