"""The loop in plain Python, with the face, the order of a pass and the bounds of ext/reactor.pyx, for
platforms without epoll. See there for what is promised.

It copies more and gathers less: file ranges are read in pieces and sent from memory. A pass has no budget of time, and
connections come in any order.
"""

from __future__ import annotations

import heapq
import os
import selectors
import socket
import time
from collections import deque

from pykafkad.net.plain_answers import Ticket
from pykafkad.net.plain_connections import (
    ALL_ANSWERS_BYTES_MAX,
    GATHER_BYTES,
    Connection,
    trouble,
)
from pykafkad.net.plain_frames import MAX_FRAME_BYTES, FrameError, Framer
from pykafkad.net.plain_holds import Holds
from pykafkad.net.plain_protocol import (
    ANSWER_BYTES_MAX,
    ANSWERS_MAX,
    KAFKA_ANSWERS,
    KAFKA_REQUESTS,
    TEXT_LINES,
    Protocol,
)
from pykafkad.net.plain_room import UNFINISHED_BYTES_MAX, FrameRoom
from pykafkad.net.plain_watch import (
    ACCEPT_REPORT_MS,
    ACCEPT_REST_MS,
    ACCEPTS_PER_PASS,
    FOREVER_MS,
    Listener,
    Timer,
    Watch,
    waited_ms,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as RawSocket
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.reactor import Answer, Clock
    from pykafkad.net.plain_protocol import Transport

__all__ = [
    "ACCEPTS_PER_PASS",
    "ACCEPT_REPORT_MS",
    "ACCEPT_REST_MS",
    "ALL_ANSWERS_BYTES_MAX",
    "ANSWERS_MAX",
    "ANSWER_BYTES_MAX",
    "FOREVER_MS",
    "KAFKA_ANSWERS",
    "KAFKA_REQUESTS",
    "MAX_FRAME_BYTES",
    "TEXT_LINES",
    "UNFINISHED_BYTES_MAX",
    "Connection",
    "FrameError",
    "Framer",
    "Listener",
    "Protocol",
    "Reactor",
    "Ticket",
    "Timer",
    "Watch",
]

WRITE_QUEUE_PASS_BYTES = 128 * 1024
SLEEP_MAX_MS = 1 << 30  # in one go
_IN, _OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


class Reactor:
    def __init__(
        self,
        on_frame: Callable[[Connection, Any, int, int], Answer | Ticket],
        on_pass_end: Callable[[], object] | None = None,
        on_close: Callable[[Connection, str | None], object] | None = None,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        clock: Clock | None = None,
        on_error: Callable[[str, BaseException], object] | None = None,
        on_hold: Callable[[str, int, Any], object] | None = None,
        max_unfinished_bytes: int = UNFINISHED_BYTES_MAX,
    ) -> None:
        self.holds = Holds(on_hold)
        self.answer_bytes = 0  # of all connections, not yet taken
        self.protocol = Protocol(on_frame, max_frame_bytes=max_frame_bytes)
        self.on_pass_end, self.on_close, self.on_error = on_pass_end, on_close, on_error
        self.clock = clock
        self._room = FrameRoom(max_unfinished_bytes, max_frame_bytes)
        self.connections: set[Connection] = set()
        self.watches: set[Watch] = set()
        self.passes = self.frames = self.received_bytes = self.sent_bytes = 0
        self._selector = selectors.DefaultSelector()
        self._posts: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._between: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._goes_on = False  # something was done after the answers had left: the next pass begins at once
        self._timers: list[tuple[float, int, Timer]] = []
        self._active_timers: set[Timer] = set()
        self._sequence = 0
        self._dirty: list[Connection] = []
        self._resuming: set[Connection] = set()
        self._ready: dict[Connection, None] = {}  # whose transport holds bytes
        self._writing: deque[Connection] = deque()
        self.descriptors_max = 2**31 - 1  # from here on they are kept for others than connections
        self.now_ms = self._monotonic_ms()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._wake = Watch(self, self._wake_in.fileno(), self._woken, _IN)

    @property
    def unfinished(self) -> dict[Connection, None]:
        return self._room.unfinished

    @property
    def unfinished_bytes(self) -> int:
        return self._room.used

    @property
    def crowded(self) -> bool:
        return bool(self._room.waiting)

    # ---- what others ask for

    def listen(
        self,
        sock: RawSocket,
        on_accept: Callable[[Connection], bool],
        *,
        protocol: Protocol | None = None,
        transport: Transport | None = None,
    ) -> Listener:
        return Listener(self, sock, on_accept, self._expect(protocol), transport)

    def adopt(
        self, sock: RawSocket, *, protocol: Protocol | None = None, transport: Transport | None = None
    ) -> Connection:
        own = socket.socket(sock.family, sock.type, sock.proto, sock.detach())
        connection = Connection(self, own, None, self._expect(protocol))
        self._admit(connection, transport)
        return connection

    def _expect(self, protocol: Protocol | None) -> Protocol:
        """Frames as large as this protocol's may come."""
        if protocol is None:
            return self.protocol
        self._room.expect(protocol._max_frame_bytes)
        return protocol

    def watch(self, fd: int, callback: Callable[[], object], *, write: bool = False) -> Watch:
        return Watch(self, fd, callback, _OUT if write else _IN)

    def call_later(self, delay_ms: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        timer = Timer(self, callback, arguments)
        self._active_timers.add(timer)
        self._sequence += 1
        heapq.heappush(self._timers, (self._exact_ms() + waited_ms(delay_ms), self._sequence, timer))
        return timer

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def call_between(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._between.append((callback, arguments))

    def post(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._posts.append((callback, arguments))
        self._wake_up()

    @property
    def spins(self) -> bool:
        return False

    def stop(self) -> None:
        self._stopping = True
        self._wake_up()

    def run(self) -> None:
        self._stopping = False
        while not self._stopping:
            self.run_pass(-1)

    def drain(self, deadline_ms: int) -> None:
        end_ms = self._exact_ms() + waited_ms(deadline_ms)
        for watch in list(self.watches):
            if isinstance(watch, Listener):
                watch.close()
        for connection in list(self.connections):
            connection.finish("the broker stops")
        self.run_pass(0)
        while self.connections and self._exact_ms() < end_ms:
            self.run_pass(int(min(end_ms - self._exact_ms(), SLEEP_MAX_MS)) + 1)
        for connection in list(self.connections):
            connection.close("the broker stops")

    def close(self) -> None:
        for connection in list(self.connections):
            connection._drop(None)
        for watch in list(self.watches):
            watch.close()
        self._active_timers.clear()
        self._timers.clear()
        self._wake_in.close()
        self._wake_out.close()
        self._selector.close()

    # ---- one pass

    def run_pass(self, timeout_ms: int = 0) -> None:
        events = self._selector.select(self._allowed_wait(timeout_ms))
        self.passes += 1
        self.now_ms = self._monotonic_ms()
        self.holds.begin()
        for key, _ in events:
            if isinstance(key.data, Watch) and not key.data._closed:
                key.data._fire()
        self._run_timers()
        soon, self._soon = self._soon, []
        for callback, arguments in soon:
            self._call("call_soon", callback, *arguments)
        for key, mask in events:
            if isinstance(key.data, Connection) and not key.data.closed:
                key.data._event(mask)
        resuming, self._resuming = self._resuming, set()
        for connection in resuming:
            connection._take_frames()
            connection._mark()
        ready, self._ready = self._ready, {}
        for connection in ready:
            if not connection.closed and connection._reads and not connection._holding:
                connection._receive()
        self._end_pass()
        self.holds.end("on_pass_end", (self.on_pass_end, ()))
        self._flush()
        if self.answer_bytes > ALL_ANSWERS_BYTES_MAX:
            self._relieve()
        self._write_files()
        self._room.let_on()
        self._goes_on = bool(self._between)
        if self._between:
            callback, arguments = self._between.popleft()
            self._call("call_between", callback, *arguments)

    def _relieve(self) -> None:
        """Memory for answers is used up: whoever leaves the most of it unread is closed."""
        most = max(self.connections, key=lambda each: each._counted_bytes, default=None)
        if most is not None:
            most._drop(
                f"{most._counted_bytes} bytes of answers are not taken, and all connections together may leave "
                f"{ALL_ANSWERS_BYTES_MAX}"
            )

    def _allowed_wait(self, timeout_ms: int) -> float | None:
        if self._soon or self._goes_on or self._dirty or self._resuming or self._ready or self._writing:
            return 0
        while self._timers and self._timers[0][2] not in self._active_timers:
            heapq.heappop(self._timers)
        if self._timers:
            left_ms = min(max(0, self._timers[0][0] - self._exact_ms()), SLEEP_MAX_MS)
            return (left_ms if timeout_ms < 0 else min(left_ms, timeout_ms)) / 1000
        return None if timeout_ms < 0 else timeout_ms / 1000

    def _run_timers(self) -> None:
        limit, now_ms = self._sequence, self._exact_ms()
        while self._timers and self._timers[0][0] <= now_ms and self._timers[0][1] <= limit:
            timer = heapq.heappop(self._timers)[2]
            if timer in self._active_timers:
                self._active_timers.discard(timer)
                self._call("timer", timer._callback, *timer._arguments)

    def _woken(self) -> None:
        try:
            while self._wake_in.recv(4096):
                pass
        except BlockingIOError:
            pass
        for _ in range(len(self._posts)):
            callback, arguments = self._posts.popleft()
            self._call("post", callback, *arguments)

    def _end_pass(self) -> None:
        if self.on_pass_end is None:
            return
        try:
            self.on_pass_end()
        except Exception as error:
            for connection in self._dirty:
                connection._drop("the pass failed: " + trouble(error))
            self._report("on_pass_end", error)

    def send_answers(self) -> None:
        """Those there are, now. For on_pass_end alone."""
        self._flush()

    def _flush(self) -> None:
        while self._dirty:
            dirty, self._dirty = self._dirty, []
            for connection in dirty:
                connection._dirty = False
                if connection.closed:
                    continue
                try:
                    connection._resolve()
                except Exception as error:
                    connection._drop(trouble(error))
                self.holds.end("answers", (self.protocol.on_frame, ()))
                if not connection._queued and not connection._blocked:
                    connection._pump(GATHER_BYTES, files=False)
                connection._settle()

    def _write_files(self) -> None:
        budget = WRITE_QUEUE_PASS_BYTES
        while self._writing and budget > 0:
            connection = self._writing[0]
            if not connection.closed:
                budget = connection._pump(budget, files=True)
            if connection.closed or connection._blocked or not connection._out:
                self._writing.popleft()
                connection._queued = False
            connection._settle()
        self._flush()

    # ---- small things

    def _admit(self, connection: Connection, transport: Transport | None) -> None:
        connection._accepted = True
        self.connections.add(connection)
        connection._open_session(transport)
        if not connection.closed:
            connection._settle()

    def _has_descriptors(self) -> bool:
        """Whether the next descriptor would be one that connections may have."""
        try:
            fd = os.dup(self._wake_in.fileno())
        except OSError:
            return False
        os.close(fd)
        return fd < self.descriptors_max

    def _wake_up(self) -> None:
        try:
            self._wake_out.send(b"\0")
        except BlockingIOError:
            pass  # it has not yet read those before

    def _exact_ms(self) -> float:
        return time.monotonic() * 1000 if self.clock is None else self.clock.monotonic_ms()

    def _monotonic_ms(self) -> int:
        return int(self._exact_ms())

    def _call(self, where: str, callback: Callable[..., object] | None, *arguments: Any) -> None:
        if callback is not None:
            try:
                callback(*arguments)
            except Exception as error:
                self._report(where, error)
            self.holds.end(where, (callback, arguments))

    def _report(self, where: str, error: BaseException) -> None:
        """Where this goes wrong, too, there is nobody left to tell: the loop goes on."""
        if self.on_error is None:
            raise error
        try:
            self.on_error(where, error)
        except Exception:
            pass
