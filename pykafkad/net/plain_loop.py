"""The loop in plain Python, with the face, the order of a pass and the bounds of ext/reactor.pyx, for
platforms without epoll. See there for what is promised.

It copies more and gathers less: file ranges are read in pieces and sent from memory.
"""

from __future__ import annotations

import heapq
import selectors
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from pykafkad.net.plain_connections import (
    ANSWER_BYTES_MAX,
    ANSWERS_MAX,
    GATHER_BYTES,
    Connection,
    Ticket,
    trouble,
)
from pykafkad.net.plain_frames import MAX_FRAME_BYTES, FrameError, Framer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.hot.reactor import Answer, Clock

__all__ = [
    "ANSWERS_MAX",
    "ANSWER_BYTES_MAX",
    "Connection",
    "FrameError",
    "Framer",
    "Listener",
    "Reactor",
    "Ticket",
    "Timer",
    "Watch",
]

ACCEPTS_PER_PASS = 64
ACCEPT_REST_MS = 100
ACCEPT_REPORT_MS = 60_000
WRITE_QUEUE_PASS_BYTES = 128 * 1024
_IN, _OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


class Timer:
    __slots__ = ("_arguments", "_callback", "_reactor")

    def __init__(self, reactor: Reactor, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._reactor, self._callback, self._arguments = reactor, callback, arguments

    @property
    def active(self) -> bool:
        return self in self._reactor._active_timers

    def cancel(self) -> None:
        self._reactor._active_timers.discard(self)


class Watch:
    def __init__(self, reactor: Reactor, fd: int, callback: Callable[[], object], events: int) -> None:
        self.fd, self._reactor, self._callback, self._events = fd, reactor, callback, events
        self._closed = False
        self._armed = True
        reactor._selector.register(fd, events, self)
        reactor.watches.add(self)

    def _fire(self) -> None:
        self._reactor._call("watch", self._callback)

    def _arm(self, on: bool) -> None:
        if on != self._armed:
            self._armed = on
            if on:
                self._reactor._selector.register(self.fd, self._events, self)
            else:
                self._reactor._selector.unregister(self.fd)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._arm(False)
            self._reactor.watches.discard(self)


class Listener(Watch):
    def __init__(
        self, reactor: Reactor, sock: socket.socket, on_accept: Callable[[Connection], bool]
    ) -> None:
        sock.setblocking(False)
        self.sock, self.owner, self._on_accept = sock, cast(Any, None), on_accept
        self._paused = self._resting = False
        self._reported_at_ms: int | None = None
        super().__init__(reactor, sock.fileno(), lambda: None, _IN)

    def _fire(self) -> None:
        for _ in range(ACCEPTS_PER_PASS):
            if self._closed or self._paused or self._resting:
                break
            try:
                self._admit(self.sock.accept()[0])
            except BlockingIOError:
                break
            except (InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:
                self._rest(error)

    def _admit(self, sock: socket.socket) -> None:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(self._reactor, sock, self)
        try:
            welcome = self._on_accept(connection)
        except Exception as error:
            self._reactor._report("on_accept", error)
            welcome = False
        if welcome and not connection.closed:
            self._reactor._admit(connection)
        else:
            connection._drop(None)

    def _rest(self, error: OSError) -> None:
        now_ms = self._reactor._monotonic_ms()
        self._resting = True
        self._rearm()
        self._reactor.call_later(ACCEPT_REST_MS, self._work)
        if self._reported_at_ms is None or now_ms - self._reported_at_ms >= ACCEPT_REPORT_MS:
            self._reported_at_ms = now_ms
            self._reactor._report("accept", error)

    def _work(self) -> None:
        self._resting = False
        self._rearm()

    def _rearm(self) -> None:
        if not self._closed:
            self._arm(not self._paused and not self._resting)

    def pause(self) -> None:
        self._paused = True
        self._rearm()

    def resume(self) -> None:
        self._paused = False
        self._rearm()

    def close(self) -> None:
        if not self._closed:
            super().close()
            self.sock.close()


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
    ) -> None:
        self.on_frame, self.on_pass_end, self.on_close, self.on_error = (
            on_frame,
            on_pass_end,
            on_close,
            on_error,
        )
        self.clock, self._max_frame_bytes = clock, max_frame_bytes
        self.connections: set[Connection] = set()
        self.watches: set[Watch] = set()
        self.passes = self.frames = self.received_bytes = self.sent_bytes = 0
        self._selector = selectors.DefaultSelector()
        self._posts: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._active_timers: set[Timer] = set()
        self._sequence = 0
        self._dirty: list[Connection] = []
        self._resuming: set[Connection] = set()
        self._writing: deque[Connection] = deque()
        self._stopping = False
        self.now_ms = self._monotonic_ms()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._wake = Watch(self, self._wake_in.fileno(), self._woken, _IN)

    # ---- what others ask for

    def listen(self, sock: socket.socket, on_accept: Callable[[Connection], bool]) -> Listener:
        return Listener(self, sock, on_accept)

    def adopt(self, sock: socket.socket) -> Connection:
        connection = Connection(self, socket.socket(sock.family, sock.type, sock.proto, sock.detach()), None)
        self._admit(connection)
        return connection

    def watch(self, fd: int, callback: Callable[[], object], *, write: bool = False) -> Watch:
        return Watch(self, fd, callback, _OUT if write else _IN)

    def call_later(self, delay_ms: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        timer = Timer(self, callback, arguments)
        self._active_timers.add(timer)
        self._sequence += 1
        heapq.heappush(self._timers, (self._exact_ms() + delay_ms, self._sequence, timer))
        return timer

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def post(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._posts.append((callback, arguments))
        self._wake_up()

    def stop(self) -> None:
        self._stopping = True
        self._wake_up()

    def run(self) -> None:
        self._stopping = False
        while not self._stopping:
            self.run_pass(-1)

    def drain(self, deadline_ms: int) -> None:
        end_ms = self._exact_ms() + deadline_ms
        for watch in list(self.watches):
            if isinstance(watch, Listener):
                watch.close()
        for connection in list(self.connections):
            connection.finish("the broker stops")
        self.run_pass(0)
        while self.connections and self._exact_ms() < end_ms:
            self.run_pass(int(end_ms - self._exact_ms()) + 1)
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
        for key, _ in events:
            if isinstance(key.data, Watch) and not key.data._closed:
                key.data._fire()
        self._run_timers()
        soon, self._soon = self._soon, []
        for callback, arguments in soon:
            self._call("call_soon", callback, *arguments)
        resuming, self._resuming = self._resuming, set()
        for connection in resuming:
            connection._take_frames()
            connection._mark()
        for key, mask in events:
            if isinstance(key.data, Connection) and not key.data.closed:
                key.data._event(mask)
        self._end_pass()
        self._flush()
        self._write_files()

    def _allowed_wait(self, timeout_ms: int) -> float | None:
        if self._soon or self._dirty or self._resuming or self._writing:
            return 0
        while self._timers and self._timers[0][2] not in self._active_timers:
            heapq.heappop(self._timers)
        if self._timers:
            left_ms = max(0, self._timers[0][0] - self._exact_ms())
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

    def _admit(self, connection: Connection) -> None:
        connection._accepted = True
        self.connections.add(connection)
        connection._wait_for(_IN)

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

    def _report(self, where: str, error: BaseException) -> None:
        if self.on_error is None:
            raise error
        self.on_error(where, error)
