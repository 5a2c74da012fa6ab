"""Keeps a rate from being exceeded by much: short sleeps are added up until they are long enough to be precise."""

from __future__ import annotations

import time

LEAST_SLEEP_S = 0.002


class Throttle:
    """`target` records a second; below 0: no limit; 0: wait for ever after the first."""

    def __init__(self, target: float, start_ms: int) -> None:
        self._target = target
        self._start_ms = start_ms
        self._pause_s = 1 / target if target > 0 else float("inf")
        self._owed_s = 0.0

    def is_due(self, count: int, now_ms: int) -> bool:
        """Whether this many records by now are too many."""
        if self._target < 0:
            return False
        elapsed_s = (now_ms - self._start_ms) / 1000
        return elapsed_s > 0 and count / elapsed_s > self._target

    def rest(self) -> None:
        if self._target == 0:
            while True:
                time.sleep(3600)
        self._owed_s += self._pause_s
        if self._owed_s >= LEAST_SLEEP_S:
            time.sleep(self._owed_s)
            self._owed_s = 0.0
