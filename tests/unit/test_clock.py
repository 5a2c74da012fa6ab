from __future__ import annotations

import time

import pytest

from pykafkad.clock import Clock, ManualClock


def test_the_clock_tells_milliseconds_of_both_clocks() -> None:
    clock = Clock()
    before, now, after = time.time(), clock.now_ms(), time.time()
    assert int(before * 1000) <= now <= int(after * 1000) + 1
    before, now, after = time.monotonic(), clock.monotonic_ms(), time.monotonic()
    assert int(before * 1000) - 1 <= now <= int(after * 1000) + 1
    before_ns, now_us, after_ns = time.monotonic_ns(), clock.monotonic_us(), time.monotonic_ns()
    assert before_ns // 1000 <= now_us <= after_ns // 1000


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(now_ms=1000, monotonic_ms=5)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1000, 5)
    clock.advance(20)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1020, 25)


def test_setting_the_wall_clock_back_leaves_the_monotonic_one() -> None:
    clock = ManualClock(now_ms=1000, monotonic_ms=5)
    clock.set_wall(10)
    assert (clock.now_ms(), clock.monotonic_ms()) == (10, 5)
    with pytest.raises(ValueError, match="forwards"):
        clock.advance(-1)
