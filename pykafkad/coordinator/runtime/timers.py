"""The timers of a shard: those that are waiting, and those that are due.

A timer that is set again and again, as that of a session is, only moves its deadline; the loop's timer is set anew when
it fires too early. Invariants: a timer that is set becomes due once; after cancel_all() none does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.pure.effects import TimerKey


class Timer:
    __slots__ = ("deadline_ms", "due_ms", "handle")

    def __init__(self, deadline_ms: int, handle: Any) -> None:
        self.deadline_ms = self.due_ms = deadline_ms
        self.handle = handle  # the loop's timer, set for due_ms


class Timers:
    __slots__ = ("_loop", "_on_due", "_waiting", "due")

    def __init__(self, loop: CoordinatorLoop, on_due: Callable[[], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._waiting: dict[TimerKey, Timer] = {}
        self.due: dict[TimerKey, None] = {}

    def set(self, timers: Iterable[tuple[TimerKey, int | None]]) -> None:
        """Set timers to go off after a delay in ms; a delay of None cancels the timer."""
        now_ms = self._loop.clock.monotonic_ms()
        for key, delay_ms in timers:
            timer = self._waiting.get(key)
            if timer is None and self.due:
                self.due.pop(key, None)
            if delay_ms is None:
                if timer is not None:
                    timer.handle.cancel()
                    del self._waiting[key]
                continue
            deadline_ms = now_ms + delay_ms
            if timer is not None and timer.due_ms <= deadline_ms:
                timer.deadline_ms = deadline_ms
                continue
            if timer is not None:
                timer.handle.cancel()
            handle = self._loop.call_later(delay_ms, self._on_timer, key)
            self._waiting[key] = Timer(deadline_ms, handle)

    def _on_timer(self, key: TimerKey) -> None:
        timer = self._waiting[key]
        left_ms = timer.deadline_ms - self._loop.clock.monotonic_ms()
        if left_ms > 0:
            timer.due_ms = timer.deadline_ms
            timer.handle = self._loop.call_later(left_ms, self._on_timer, key)
            return
        del self._waiting[key]
        self.due[key] = None
        self._on_due()

    def take_due(self) -> TimerKey:
        """Remove and return the timer that has been due for longest."""
        key = next(iter(self.due))
        del self.due[key]
        return key

    def cancel_all(self) -> None:
        for timer in self._waiting.values():
            timer.handle.cancel()
        self._waiting.clear()
        self.due.clear()
