"""Time, as the broker sees it: the wall clock for what is stored, the monotonic one for what waits.

Everything that needs the time is given a Clock, so that tests move time themselves (ManualClock).
"""

from __future__ import annotations

import time


class Clock:
    """The machine's clocks, in whole milliseconds."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Wall clock: record timestamps, retention, expiry of what is on disk."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Never goes back: waits, timeouts, idle connections."""
        return time.monotonic_ns() // 1_000_000


class ManualClock(Clock):
    """A clock that only moves when told to."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, delta_ms: int) -> None:
        """Time passes: both clocks move."""
        if delta_ms < 0:
            raise ValueError("time passes forwards; set_wall() moves the wall clock back")
        self._now_ms += delta_ms
        self._monotonic_ms += delta_ms

    def set_wall(self, now_ms: int) -> None:
        """Somebody set the machine's clock; the monotonic one does not notice."""
        self._now_ms = now_ms
