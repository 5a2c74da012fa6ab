"""A null TLS and a protocol of lines, for either loop: what tests give it in place of plain bytes and Kafka's frames.

For the C loop they are in seams/seams.c, compiled when first wanted; for the plain loop, and for the peers of tests, they
are here. `veil` changes every byte. `records` is what TLS asks of a loop: a handshake whose greeting is more than a
socket takes at once, records that are taken only when they are whole, a question every ASK_EVERY_BYTES after which it
sends nothing before the other side has answered, and an orderly end without which the stream was cut.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import selectors
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pykafkad.net import plain_loop
from pykafkad.net.plain_frames import Frame, FrameError
from tests.reactor_kit import Loop, Peer

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).parent / "seams" / "seams.c"
KINDS = ["veil", "records"]
MASK = bytes(byte ^ 0x5A for byte in range(256))
HEAD_BYTES = 3
RECORD_BYTES = 4096
HELD_BYTES = 64 * 1024
GREETING_RECORDS = 150
ASK_EVERY_BYTES = 30 * 1000
IN, OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


# ---- for the C loop


@functools.cache
def library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "seams.so"
        command = [os.environ.get("CC", "cc"), "-O1", "-g", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC"]
        subprocess.run([*command, f"-I{ROOT / 'ext' / 'c'}", "-o", path, SOURCE], check=True)
        return ctypes.CDLL(str(path))


def capsule(symbol: str, name: bytes) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name_kept = NAMES.setdefault(name, ctypes.create_string_buffer(name))  # a capsule does not keep it
    return new(
        ctypes.cast(getattr(library(), symbol), ctypes.c_void_p),
        ctypes.cast(name_kept, ctypes.c_char_p),
        None,
    )


NAMES: dict[bytes, Any] = {}


# ---- for both


def join(loop: Loop, kind: str, **options: Any) -> tuple[Peer, Any]:
    """A peer that speaks like that, and its connection."""
    ours, theirs = socket.socketpair()
    connection = loop.reactor.adopt(theirs, transport=transport(loop.reactor, kind), **options)
    sock: Any = ours if kind == "plain" else PeerSocket(ours, kind, client=True)
    return loop.join(sock), connection


def transport(reactor: Any, kind: str, *, client: bool = False) -> Any:
    """For that loop; None: plain bytes."""
    if kind == "plain":
        return None
    if isinstance(reactor, plain_loop.Reactor):
        return SeamTransport(kind, client=client)
    return capsule("records_of_client" if client and kind == "records" else kind, b"pykafkad.transport")


def lines_framing(reactor: Any) -> Any:
    return lines if isinstance(reactor, plain_loop.Reactor) else capsule("lines", b"pykafkad.framing")


def lines(data: bytearray, start: int, max_frame_bytes: int) -> Frame | int:
    """A frame is a line with its end; one that begins with "!" cannot be."""
    if data.startswith(b"!", start):
        raise FrameError("no line begins like this")
    end = data.find(b"\n", start)
    size = (end if end >= 0 else len(data)) - start
    if size > max_frame_bytes:
        raise FrameError(f"Invalid receive (size = {size} larger than {max_frame_bytes})")
    return Frame(start, end + 1) if end >= 0 else -1


class Machine:
    """What one side of `veil` or `records` knows; bytes in, bytes out, no socket."""

    def __init__(self, kind: str, *, client: bool) -> None:
        self.records, self.client = kind == "records", client
        self.established = not self.records
        self.waits = self.ended = self.has_finished = False
        self.since_asked = 0
        self.raw, self.plain, self.out = bytearray(), bytearray(), bytearray()
        self.asked = self.answered = self.greeted = 0
        if self.records and client:
            self.put("H")

    def put(self, kind: str, payload: bytes = b"") -> None:
        self.out += (kind.encode() + len(payload).to_bytes(2, "big") + payload).translate(MASK)

    def feed(self, data: bytes) -> None:
        data = data.translate(MASK)
        if not self.records:
            self.plain += data
            return
        self.raw += data
        while len(self.raw) >= HEAD_BYTES:
            end = HEAD_BYTES + int.from_bytes(self.raw[1:HEAD_BYTES], "big")
            if len(self.raw) < end:
                break
            kind, payload = chr(self.raw[0]), bytes(self.raw[HEAD_BYTES:end])
            del self.raw[:end]
            self.take(kind, payload)

    def take(self, kind: str, payload: bytes) -> None:
        if kind == "D" and self.established:
            self.plain += payload
            if len(self.plain) >= HELD_BYTES:
                self.waits = False  # the answer may be behind bytes that nobody takes before others have left
        elif kind == "R" and self.established:
            self.answered += 1
            self.put("K")
        elif kind == "K" and self.established:
            self.waits = False
        elif kind == "C":
            self.ended = True
        elif kind == "H" and not self.established and self.client:
            self.established = True
            self.put("F")
        elif kind == "H" and not self.established:
            for _ in range(GREETING_RECORDS - 1):
                self.put("P", bytes(RECORD_BYTES))
            self.put("H")
        elif kind == "F" and not self.established and not self.client:
            self.established = True
        elif kind == "P" and not self.established and self.client:
            self.greeted += 1
        else:
            raise OSError(errno.EPROTO, "no record can be like this")

    def seal(self, data: bytes | memoryview) -> int:
        """How many of these bytes it takes now."""
        if not self.established or len(self.out) >= HELD_BYTES:
            return 0
        if not self.records:
            taken = bytes(data[: HELD_BYTES - len(self.out)])
            self.out += taken.translate(MASK)
            return len(taken)
        at = 0
        while at < len(data) and len(self.out) < HELD_BYTES and not self.waits:
            piece = bytes(data[at : at + RECORD_BYTES])
            self.put("D", piece)
            at += len(piece)
            self.since_asked += len(piece)
            if self.since_asked >= ASK_EVERY_BYTES:
                self.put("R")
                self.asked += 1
                self.since_asked, self.waits = 0, len(self.plain) < HELD_BYTES
        return at


class Session:
    """One side over a socket: a session for the plain loop, and the socket of a test's peer."""

    def __init__(self, sock: socket.socket, kind: str, *, client: bool) -> None:
        self.sock, self.machine = sock, Machine(kind, client=client)
        self.failed = False

    # -- for the loop

    @property
    def wants(self) -> int:
        machine = self.machine
        needs = (not machine.established or machine.waits) and len(machine.plain) < HELD_BYTES
        return (OUT if machine.out else 0) | (IN if needs else 0)

    @property
    def bars(self) -> int:
        return IN | OUT if not self.machine.established else OUT if self.machine.waits else 0

    @property
    def ready(self) -> bool:
        return self.machine.established and bool(self.machine.plain or self.machine.ended)

    def attend(self) -> None:
        self.flush()
        if self.wants & IN:
            self.pull()
            self.flush()

    def finish(self) -> bool:
        if self.failed:
            return True
        machine = self.machine
        if machine.records and machine.established and not machine.has_finished:
            machine.has_finished = True
            machine.put("C")
        try:
            self.flush()
        except OSError:
            return True
        return not machine.out

    # -- as a socket

    def recv(self, size: int, flags: int = 0) -> bytes:
        machine = self.machine
        try:
            while not machine.plain and not machine.ended:
                self.pull()
        finally:
            if not self.failed:
                self.flush()
        taken = bytes(machine.plain[:size])
        del machine.plain[:size]
        return taken

    def send(self, data: bytes | memoryview) -> int:
        taken = 0
        self.flush()
        while taken < len(data) and not self.machine.out:
            sealed = self.machine.seal(data[taken:])
            if not sealed:
                break
            taken += sealed
            self.flush()
        if not taken:
            raise BlockingIOError
        return taken

    def close(self) -> None:
        pass

    # -- the socket itself

    def pull(self) -> None:
        data = self.sock.recv(HELD_BYTES)
        if not data:
            if self.machine.records:
                self.failed = True
                raise OSError(errno.EPROTO, "the stream was cut")
            self.machine.ended = True
            return
        try:
            self.machine.feed(data)
        except OSError:
            self.failed = True
            raise

    def flush(self) -> None:
        out = self.machine.out
        while out:
            try:
                sent = self.sock.send(out)
            except BlockingIOError:
                return
            del out[:sent]


class PeerSocket(Session):
    """The socket of a test's peer, which speaks like this to the loop."""

    def setblocking(self, flag: bool) -> None:
        self.sock.setblocking(flag)

    def fileno(self) -> int:
        return self.sock.fileno()

    def recv(self, size: int, flags: int = 0) -> bytes:
        try:
            return super().recv(size)
        except BlockingIOError:
            raise
        except OSError as error:
            raise ConnectionResetError(error.errno, error.strerror) from None

    def close(self) -> None:
        if not self.failed and self.sock.fileno() >= 0:
            self.finish()
        self.sock.close()


class SeamTransport:
    """What the plain loop is given."""

    def __init__(self, kind: str, *, client: bool) -> None:
        self.kind, self.client = kind, client

    def open(self, sock: socket.socket) -> Session:
        return Session(sock, self.kind, client=self.client)
