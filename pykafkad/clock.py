"""Time, as the broker sees it: the wall clock for what is stored, the monotonic one for waits.

Everything that needs the time is given a Clock, so that tests can set the time (ManualClock).
"""

from __future__ import annotations

import time


class Clock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Wall clock: record timestamps, retention, expiry of what is on disk."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """A clock that never goes back, for waits, timeouts, idle connections."""
        return time.monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """The same in microseconds, for what takes a few milliseconds or less."""
        return time.monotonic_ns() // 1_000


class ManualClock(Clock):
    """A clock that moves only when a test moves it."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def monotonic_us(self) -> int:
        return self._monotonic_ms * 1_000

    def advance(self, delta_ms: int) -> None:
        """Let time pass: both clocks move."""
        if delta_ms < 0:
            raise ValueError("time passes forwards; set_wall() moves the wall clock back")
        self._now_ms += delta_ms
        self._monotonic_ms += delta_ms

    def set_wall(self, now_ms: int) -> None:
        """Set the wall clock, as an administrator may; the monotonic clock does not change."""
        self._now_ms = now_ms
