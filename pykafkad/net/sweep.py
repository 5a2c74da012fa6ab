"""Closes connections that are idle, or that send a request too slowly.

Owns what follows from `connections.max.idle.ms`, and the rate at which a request that has begun must arrive: without that
a byte a second would keep a connection and its memory for ever. A connection that the loop does not read from (because
its answers are not taken, or its request waits for memory) is not expected to send anything. Many connections are looked
at, and closed, in slices.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.hot.reactor import Connection, Reactor
    from pykafkad.slices import Run, Work


IDLE_PAUSE_MS = 1_000  # between two looks at who has been idle for too long, at least
IDLE_LOOKS = 20  # looks in connections.max.idle.ms: how much longer than that a connection may idle
SLOW_PAUSE_MS = 10_000  # between two looks at unfinished frames
SLOW_BYTES_PER_S = 4 * 1024  # what must come of a frame
SLOW_MS = 60_000  # in the mean of so long
SLOW_CROWDED_MS = 10_000  # or so long, while other frames wait for its memory
LOOKED_AT = 64  # connections, between two moments at which others may have their turn


class Sweep:
    def __init__(self, reactor: Reactor, idle_ms: int, run: Run) -> None:
        """`run(work, done)`: Slices.run, or the like."""
        self._reactor = reactor
        self._idle_ms = idle_ms  # below zero: idling is no fault
        self._run = run
        # Of each unfinished frame: when it began, when it was looked at, and how much of it there was.
        self._marks: dict[Connection, tuple[int, int, int]] = {}

    def begin(self) -> None:
        if self._idle_ms >= 0:
            self._reactor.call_later(self._idle_ms, self._look_for_idle)
        self._reactor.call_later(SLOW_PAUSE_MS, self._look_for_slow)

    # -- idle ones

    def _look_for_idle(self) -> None:
        self._run(self._close_idle(), self._idle_closed)

    def _close_idle(self) -> Work:
        """Closes them; when the one that comes next was active."""
        now_ms = oldest_ms = self._reactor.now_ms
        for number, connection in enumerate(list(self._reactor.connections)):
            idle_ms = now_ms - connection.received_at_ms
            if idle_ms >= self._idle_ms:
                connection.close(f"idle for {idle_ms} ms (connections.max.idle.ms)")
            else:
                oldest_ms = min(oldest_ms, connection.received_at_ms)
            if number % LOOKED_AT == LOOKED_AT - 1:
                yield None
        return oldest_ms

    def _idle_closed(self, oldest_ms: Any) -> None:
        pause_ms = max(IDLE_PAUSE_MS, self._idle_ms // IDLE_LOOKS)
        if not isinstance(oldest_ms, Exception):
            pause_ms = max(oldest_ms + self._idle_ms - self._reactor.now_ms, pause_ms)
        self._reactor.call_later(pause_ms, self._look_for_idle)
        if isinstance(oldest_ms, Exception):
            raise oldest_ms

    # -- slow ones

    def _look_for_slow(self) -> None:
        self._run(self._close_slow(), self._slow_closed)

    def _close_slow(self) -> Work:
        marks = {}
        for number, connection in enumerate(list(self._reactor.unfinished)):
            mark = self._mark_of(connection)
            if mark is not None:
                marks[connection] = mark
            if number % LOOKED_AT == LOOKED_AT - 1:
                yield None
        self._marks = marks

    def _mark_of(self, connection: Connection) -> tuple[int, int, int] | None:
        """The one to compare with at the next look; the connection is closed if too little has come since the last."""
        if not connection.frame_bytes:  # while others had their turn, it has become whole
            return None
        now_ms = self._reactor.now_ms
        mark = connection.frame_began_ms, now_ms, connection.frame_bytes
        before = self._marks.get(connection)
        if before is None or before[0] != mark[0] or not connection.receiving:
            return mark
        elapsed_ms, come = now_ms - before[1], mark[2] - before[2]
        if elapsed_ms < (SLOW_CROWDED_MS if self._reactor.crowded else SLOW_MS):
            return before
        if come * 1000 >= SLOW_BYTES_PER_S * elapsed_ms:
            return mark
        connection.close(f"only {come} bytes of its frame came in {elapsed_ms} ms")
        return None

    def _slow_closed(self, result: Any) -> None:
        self._reactor.call_later(SLOW_PAUSE_MS, self._look_for_slow)
        if isinstance(result, Exception):
            raise result
