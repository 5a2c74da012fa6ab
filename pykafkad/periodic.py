"""Periodic jobs, and how often they run for any configured interval:

    0, or less than SHORTEST_MS    every SHORTEST_MS (Kafka's schedulers refuse such an interval, or spin)
    less than the job needs        the job rests ten times as long as it took, so that the loop can serve others
    negative                       once, as in Kafka's scheduler
    beyond LONGEST_MS              never, which is what 2^63-1 is meant to say

A job that raises an exception runs again at its next time.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.clock import Clock

SHORTEST_MS = (
    10  # of a timer: jobs that run this often take a few percent of the loop, though they do next to nothing
)
REST = 10  # times the duration of the job
LONGEST_MS = 366 * 86_400_000

Job = Callable[[], None]
Jobs = list[tuple[int, Job]]  # the interval in ms, the job


class Periodic:
    def __init__(self, call_later: Callable[..., Any], clock: Clock) -> None:
        self._call_later = call_later
        self._clock = clock

    def every(self, interval_ms: int, job: Job, first_ms: int | None = None) -> None:
        """Run the job after each interval; the first time after one interval, or after `first_ms`."""

        def turn() -> None:
            began_us = self._clock.monotonic_us()
            try:
                job()
            finally:
                if interval_ms >= 0:
                    took_us = self._clock.monotonic_us() - began_us
                    self._call_later(pause_ms(interval_ms, took_us), turn)

        if interval_ms <= LONGEST_MS:
            first = pause_ms(interval_ms, 0) if first_ms is None else first_ms
            self._call_later(min(first, LONGEST_MS), turn)


def pause_ms(interval_ms: int, took_us: int) -> int:
    """How long a job that took this long must rest."""
    return min(max(interval_ms, SHORTEST_MS, REST * took_us // 1000), LONGEST_MS)
