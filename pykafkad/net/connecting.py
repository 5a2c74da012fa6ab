"""Connecting to a host and port on the loop: looked up, connected and in time, or an OSError that says why not."""

from __future__ import annotations

import errno
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.hot.reactor import Reactor, Watch
    from pykafkad.net.hosts import Found, LookUp


class Connecting:
    """One attempt. `done` is called once with the socket or the error, and not before this is made."""

    def __init__(
        self,
        reactor: Reactor,
        address: tuple[str, int],
        timeout_ms: int,
        look_up: LookUp,
        done: Callable[[socket.socket | OSError], None],
    ) -> None:
        self._reactor, self._address, self._done = reactor, address, done
        self._sock: socket.socket | None = None
        self._watch: Watch | None = None
        self._is_done = False
        late = TimeoutError(errno.ETIMEDOUT, f"no connection to {named(address)} in {timeout_ms} ms")
        self._timer = reactor.call_later(timeout_ms, self._end, late)
        look_up([address[0]], self._found)

    def cancel(self) -> None:
        """Nobody is told."""
        self._is_done = True
        self._let_go()
        if self._sock is not None:
            self._sock.close()

    def _found(self, found: Found) -> None:
        if self._is_done:
            return
        host, port = self._address
        if host not in found:
            unknown = OSError(errno.EHOSTUNREACH, f"{named(self._address)}: nobody knows that host")
            self._reactor.call_soon(self._end, unknown)
            return
        try:
            self._begin(found[host], port)
        except OSError as error:
            self._reactor.call_soon(self._end, self._told(error.errno))

    def _begin(self, address: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._sock = sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True)
        code = sock.connect_ex((address, port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        self._watch = self._reactor.watch(sock.fileno(), self._ready, write=True)

    def _ready(self) -> None:
        assert self._sock is not None
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self._end(self._told(code) if code else None)

    def _told(self, code: int | None) -> OSError:
        return OSError(code, f"no connection to {named(self._address)}: {os.strerror(code or 0)}")

    def _end(self, error: OSError | None) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._let_go()
        if error is None:
            assert self._sock is not None
            self._done(self._sock)
            return
        if self._sock is not None:
            self._sock.close()
        self._done(error)

    def _let_go(self) -> None:
        self._timer.cancel()
        if self._watch is not None:
            self._watch.close()


def named(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
