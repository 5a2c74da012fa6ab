"""Requests that wait: for one of their partitions to advance, or for their time to run out.

A waiter is asked again once a pass at most, however many of its partitions moved, and only then: nothing polls.
`attempt(expired)` answers and returns True, or returns False to go on waiting (never when expired).
Invariant: a waiter stands in the `waiters` of each of its partitions and has a running timer, or is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafkad.storage.partition import Partition


class Timer(Protocol):
    def cancel(self) -> None: ...


class Waiter:
    __slots__ = ("attempt", "partitions", "timer", "woken")

    def __init__(self, attempt: Callable[[bool], bool], partitions: list[Partition]) -> None:
        self.attempt = attempt
        self.partitions = partitions
        self.woken = False
        self.timer: Timer | None = None


class Waiting:
    def __init__(self, call_later: Callable[..., Timer]) -> None:
        self._call_later = call_later
        self.woken: list[Waiter] = []
        self._waiters: set[Waiter] = set()

    @property
    def count(self) -> int:
        return len(self._waiters)

    def wait(
        self, partitions: Iterable[Partition], max_wait_ms: int, attempt: Callable[[bool], bool]
    ) -> Waiter:
        waiter = Waiter(attempt, list(partitions))
        for partition in waiter.partitions:
            partition.waiters.append(waiter)
        waiter.timer = self._call_later(max_wait_ms, self._expire, waiter)
        self._waiters.add(waiter)
        return waiter

    def advanced(self, partition: Partition) -> None:
        """The partition's high watermark or its fate changed: its waiters are asked at the end of the pass."""
        for waiter in partition.waiters:
            if not waiter.woken:
                waiter.woken = True
                self.woken.append(waiter)

    def ask_woken(self) -> None:
        """At the end of a pass in which some were woken."""
        woken, self.woken = self.woken, []
        for waiter in woken:
            waiter.woken = False
            if waiter.timer is not None and waiter.attempt(False):
                self.cancel(waiter)

    def cancel(self, waiter: Waiter) -> None:
        if waiter.timer is None:
            return
        waiter.timer.cancel()
        waiter.timer = None
        self._waiters.discard(waiter)
        for partition in waiter.partitions:
            partition.waiters.remove(waiter)

    def expire_all(self) -> None:
        """The broker stops: all are answered with what there is."""
        for waiter in list(self._waiters):
            self._expire(waiter)

    def _expire(self, waiter: Waiter) -> None:
        if waiter.timer is not None:
            self.cancel(waiter)
            waiter.attempt(True)
