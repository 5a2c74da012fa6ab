"""Requests that wait until one of their partitions advances, or their time is up.

A waiter is asked at most once in a pass, however many of its partitions have advanced, and only then: nothing polls.
`attempt(expired, moved)` answers and returns True, or returns False to continue waiting (never if expired); `moved` are
the partitions that have advanced since it was last asked. If many waiters are woken at once, a pass asks some of them.
If an attempt raises, `failed(error)` is called and the waiter is done; the others are asked all the same. Invariant: a
waiter is in the `waiters` of each of its partitions and has a running timer, or is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from pykafkad.cluster.replica import NOBODY_WAITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pykafkad.cluster.replica import Replica, Tail
    from pykafkad.pure.fetch_session import Session

    Moved = dict[Any, None]  # used as an ordered set, of what is waited for: replicas, or ends of their logs
    Attempt = Callable[[bool, Moved], bool]

    class Timer(Protocol):
        def cancel(self) -> None: ...


# How much is asked at the end of a pass, in partitions of those that are asked; each waiter counts as some at least.
PARTITIONS_IN_A_PASS = 1024
PARTITIONS_OF_ANY = 16


class Waiter:
    __slots__ = (
        "attempt",
        "failed",
        "is_follower",
        "moved",
        "owner",
        "partitions",
        "request",
        "timer",
        "what",
    )

    def __init__(self, attempt: Attempt, failed: Callable[[Exception], None], partitions: list[Any]) -> None:
        self.attempt = attempt
        self.failed = failed
        self.partitions = partitions
        self.moved: Moved = {}  # those that have advanced; if there are any, it is in `woken`
        self.timer: Timer | None = None
        self.is_follower = False
        self.owner: set[Waiter] | None = None  # those of its connection, of which it is one until it is done
        self.request: object = None  # the fetch that waits, for those who want to know
        self.what = "Fetch"  # or what else waits


class Waiting:
    """`send_answers`: those given so far, at the end of a pass and before others are asked."""

    def __init__(
        self, call_later: Callable[..., Timer], send_answers: Callable[[], None] = lambda: None
    ) -> None:
        self._call_later = call_later
        self._send_answers = send_answers
        self.woken: deque[Waiter] = deque()
        self._waiters: set[Waiter] = set()

    @property
    def count(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter]:
        return iter(list(self._waiters))

    def wait(
        self,
        partitions: Iterable[Replica | Tail | Session],
        max_wait_ms: int,
        attempt: Attempt,
        failed: Callable[[Exception], None],
        moved: Iterable[Replica | Tail | Session] = (),
    ) -> Waiter:
        """Begin to wait. `moved` are partitions that have advanced since the request was looked at."""
        waiter = Waiter(attempt, failed, list(partitions))
        for partition in waiter.partitions:
            if partition.waiters is NOBODY_WAITS:
                partition.waiters = {}
            partition.waiters[waiter] = None
        waiter.timer = self._call_later(max_wait_ms, self._expire, waiter)
        self._waiters.add(waiter)
        for partition in moved:
            self._wake(waiter, partition)
        return waiter

    def advanced(self, partition: Replica | Tail | Session) -> None:
        """The partition's high watermark advanced, or it was deleted or failed: its waiters are asked at the end of the
        pass."""
        for waiter in partition.waiters:
            self._wake(waiter, partition)

    def _wake(self, waiter: Waiter, partition: Replica | Tail | Session) -> None:
        if not waiter.moved:
            self.woken.append(waiter)
        waiter.moved[partition] = None

    def ask_woken(self) -> None:
        """Called at the end of a pass in which waiters were woken."""
        left = PARTITIONS_IN_A_PASS
        while self.woken and left > 0:
            waiter = self.woken.popleft()
            left -= PARTITIONS_OF_ANY + len(waiter.partitions)
            moved, waiter.moved = waiter.moved, {}
            if waiter.timer is not None:
                self._ask(waiter, moved)
                if waiter.is_follower and self.woken:
                    # It writes what it gets, and others wait for that: it begins while we go on.
                    self._send_answers()
        if self.woken:
            self._call_later(0, nothing)  # so that the next pass begins at once

    def _ask(self, waiter: Waiter, moved: Moved) -> None:
        try:
            if waiter.attempt(False, moved):
                self.cancel(waiter)
        except Exception as error:
            self.cancel(waiter)
            waiter.failed(error)

    def cancel(self, waiter: Waiter) -> None:
        if waiter.timer is None:
            return
        waiter.timer.cancel()
        waiter.timer = None
        self._waiters.discard(waiter)
        if waiter.owner is not None:
            waiter.owner.discard(waiter)
        for partition in waiter.partitions:
            partition.waiters.pop(waiter, None)  # a request may name it twice

    def expire_all(self) -> None:
        """The broker stops: every request is answered with what there is."""
        for waiter in list(self._waiters):
            self._expire(waiter)

    def _expire(self, waiter: Waiter) -> None:
        if waiter.timer is not None:
            self.cancel(waiter)
            try:
                waiter.attempt(True, {})
            except Exception as error:
                waiter.failed(error)


def nothing() -> None:
    pass
