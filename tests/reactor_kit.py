"""A loop whose passes a test runs, whose clock it moves, and whose peers are sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pykafkad.clock import ManualClock
from pykafkad.net import plain_loop
from pykafkad.net.loop import reactor_module

LOOPS: list[ModuleType] = list(dict.fromkeys([reactor_module(), plain_loop]))
LOOP_NAMES = [module.__name__ for module in LOOPS]
PASSES_MAX = 20_000  # a test that needs more than this hangs


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def body_of(buffer: Any, start: int, end: int) -> bytes:
    return bytes(memoryview(buffer)[start:end])


def echo(connection: Any, buffer: Any, start: int, end: int) -> bytes:
    return frame(body_of(buffer, start, end))


class FileRange:
    """A range of a file that stays open as long as this object lives."""

    def __init__(self, path: Path, offset: int, size: int) -> None:
        self._file = path.open("rb")
        self.offset, self.size = offset, size

    @property
    def fd(self) -> int:
        return self._file.fileno()


class Encodable:
    def __init__(self, encode: Callable[[], Any], weight: int = 0) -> None:
        self.encode = encode
        self.weigh = lambda: weight


class Peer:
    """The other end of a connection."""

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        self.loop, self.sock = loop, sock
        sock.setblocking(False)
        self.unsent = b""
        self.received = bytearray()
        self.at_end = False

    def send(self, *bodies: bytes) -> None:
        self.send_bytes(b"".join(map(frame, bodies)))

    def send_bytes(self, data: bytes) -> None:
        self.unsent += data
        self.push()

    def push(self) -> None:
        while self.unsent:
            try:
                self.unsent = self.unsent[self.sock.send(self.unsent) :]
            except BlockingIOError:
                return
            except OSError:
                self.unsent = b""

    def pull(self, limit: int = 1 << 30) -> None:
        while limit > 0 and not self.at_end:
            try:
                data = self.sock.recv(min(limit, 1 << 20))
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            self.at_end = not data
            self.received += data
            limit -= len(data)

    def bodies(self, count: int) -> list[bytes]:
        """Run passes until that many frames have arrived, and take them."""
        self.loop.until(lambda: self.frames_here() >= count or self.at_end)
        taken = [self._take() for _ in range(min(count, self.frames_here()))]
        assert len(taken) == count, f"{count} frames wanted, {len(taken)} came before the end"
        return taken

    def ends(self) -> None:
        """Run passes until the broker closes the connection."""
        self.loop.until(lambda: self.at_end)

    def frames_here(self) -> int:
        at = count = 0
        while at + 4 <= len(self.received):
            at += 4 + int.from_bytes(self.received[at : at + 4], "big")
            count += at <= len(self.received)
        return count

    def _take(self) -> bytes:
        end = 4 + int.from_bytes(self.received[:4], "big")
        body = bytes(self.received[4:end])
        del self.received[:end]
        return body


class Loop:
    """A reactor, with all calls that it made to its owner."""

    def __init__(self, module: ModuleType, on_frame: Callable[..., Any] = echo, **options: Any) -> None:
        self.clock = options.pop("clock", None) or ManualClock()
        self.closed: list[tuple[Any, str | None]] = []
        self.errors: list[tuple[str, BaseException]] = []
        self.peers: list[Peer] = []
        self.on_close: Callable[[Any], object] = lambda connection: None
        self.reactor = module.Reactor(
            on_frame,
            options.pop("on_pass_end", None),
            self._on_close,
            clock=self.clock,
            on_error=lambda where, error: self.errors.append((where, error)),
            **options,
        )

    def _on_close(self, connection: Any, reason: str | None) -> None:
        self.closed.append((connection, reason))
        self.on_close(connection)

    @property
    def reasons(self) -> list[str | None]:
        return [reason for _, reason in self.closed]

    def peer(self) -> tuple[Peer, Any]:
        ours, theirs = socket.socketpair()
        connection = self.reactor.adopt(theirs)
        return self.join(ours), connection

    def join(self, sock: socket.socket) -> Peer:
        peer = Peer(self, sock)
        self.peers.append(peer)
        return peer

    def turn(self, passes: int = 1) -> None:
        for _ in range(passes):
            self.reactor.run_pass(0)

    def until(self, there: Callable[[], bool], *, reading: bool = True) -> None:
        for _ in range(PASSES_MAX):
            for peer in self.peers:
                peer.push()
                if reading:
                    peer.pull()
            if there():
                return
            self.reactor.run_pass(1)
        raise AssertionError("the loop never came to it")

    def close(self) -> None:
        self.reactor.close()
        for peer in self.peers:
            peer.sock.close()
