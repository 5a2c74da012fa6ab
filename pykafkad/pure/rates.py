"""A rate over the last windows of time, as Kafka's quotas measure it (SimpleRate over SampledStat there).

Invariant: at most `windows` samples, each of one window; what is older does not count. The caller passes the time.
"""

from __future__ import annotations

from collections import deque


class Rate:
    __slots__ = ("_samples", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows, self._window_ms = windows, window_ms
        self._samples: deque[list[int]] = deque()  # [when it began, how much]

    def record(self, amount: int, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0])
            if len(samples) > self._windows:
                samples.popleft()
        samples[-1][1] += amount

    def per_second(self, now_ms: int) -> float:
        """A short time counts as one whole window."""
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._windows * self._window_ms:
            samples.popleft()
        if not samples:
            return 0.0
        elapsed_ms = max(now_ms - samples[0][0], self._window_ms)
        return sum(amount for _, amount in samples) * 1000 / elapsed_ms
