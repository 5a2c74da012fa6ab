"""Timers, watched descriptors and listeners of the plain Python loop: what it calls besides connections."""

from __future__ import annotations

import errno
import os
import selectors
import socket
from typing import Any, cast

from pykafkad.net.plain_connections import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as RawSocket
    from collections.abc import Callable

    from pykafkad.net.plain_loop import Reactor
    from pykafkad.net.plain_protocol import Protocol, Transport

ACCEPTS_PER_PASS = 64
ACCEPT_REST_MS = 100
ACCEPT_REPORT_MS = 60_000
FOREVER_MS = 100 * 365 * 24 * 60 * 60 * 1000
_IN, _OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


def waited_ms(delay_ms: float) -> float:
    """The milliseconds from now until a timer fires, whatever number a config or a client gives."""
    return min(delay_ms, FOREVER_MS) if delay_ms > 0 else 0


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
        self,
        reactor: Reactor,
        sock: RawSocket,
        on_accept: Callable[[Connection], bool],
        protocol: Protocol,
        transport: Transport | None,
    ) -> None:
        sock.setblocking(False)
        self._protocol, self._transport = protocol, transport
        self.sock, self.owner, self._on_accept = sock, cast(Any, None), on_accept
        self._paused = self._resting = False
        self._reported_at_ms: int | None = None
        super().__init__(reactor, sock.fileno(), lambda: None, _IN)

    def _fire(self) -> None:
        for _ in range(ACCEPTS_PER_PASS):
            if self._closed or self._paused or self._resting:
                break
            try:
                fd = self.sock._accept()[0]  # type: ignore[attr-defined]  # it has it, as socket.socket's accept() shows
                self._admit(socket.socket(fileno=fd))
                if fd >= self._reactor.descriptors_max:  # the lowest that was free
                    self._rest(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            except BlockingIOError:
                break
            except (InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:
                self._rest(error)

    def _admit(self, sock: socket.socket) -> None:
        connection = Connection(self._reactor, sock, self, self._protocol)
        try:
            welcome = self._on_accept(connection)
        except Exception as error:
            self._reactor._report("on_accept", error)
            welcome = False
        if welcome and not connection.closed:
            self._reactor._admit(connection, self._transport)
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
        if not self._reactor._has_descriptors():
            self._reactor.call_later(ACCEPT_REST_MS, self._work)
            return
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
