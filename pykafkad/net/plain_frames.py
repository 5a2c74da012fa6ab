"""Framing in plain Python, for net/plain_loop.py; ext/c/reactor_frames.c is the same in C.

A frame is an int32 length and then that many bytes. Memory grows with the bytes received, never with the
length announced. A frame once given out lies in a buffer that is never written again.
"""

from __future__ import annotations

HEAD_BYTES = 4
MAX_FRAME_BYTES = 104857600
_HTTP = {b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PATC", b"TRAC", b"PRI "}


class FrameError(ValueError):
    """No frame can begin like this; the text says why."""


def trouble(head: bytes, max_frame_bytes: int) -> str:
    """Why no frame can begin with that head, for the log."""
    length = int.from_bytes(head, "big", signed=True)
    guess = "an HTTP request" if head in _HTTP else "a TLS handshake" if head[:2] == b"\x16\x03" else None
    if guess:
        return f"{guess} on a port that speaks the Kafka protocol in plain text"
    if length < 0:
        return f"Invalid receive (size = {length})"
    return f"Invalid receive (size = {length} larger than {max_frame_bytes})"


class Frames:
    """What a connection received and has not handed out: whole frames, and the start of the next."""

    __slots__ = ("_at", "_bytes", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._bytes = bytearray()
        self._at = 0

    def add(self, data: bytes) -> None:
        if self._at:
            self._bytes = self._bytes[self._at :]  # a new buffer: frames of the old one may still be in use
            self._at = 0
        self._bytes += data

    def whole(self) -> bool:
        """There is a whole frame. Raises FrameError where there can be none."""
        have = len(self._bytes) - self._at - HEAD_BYTES
        if have < 0:
            return False
        head = bytes(self._bytes[self._at : self._at + HEAD_BYTES])
        length = int.from_bytes(head, "big", signed=True)
        if not 0 <= length <= self.max_frame_bytes:
            raise FrameError(trouble(head, self.max_frame_bytes))
        return have >= length

    def take(self) -> tuple[bytearray, int, int]:
        """The whole frame that is there: buffer, start, end of its body."""
        start = self._at + HEAD_BYTES
        end = start + int.from_bytes(self._bytes[self._at : start], "big")
        taken, self._at = self._bytes, end
        if end == len(taken):
            self._bytes, self._at = bytearray(), 0
        return taken, start, end


class Framer:
    """Bytes in, bodies of frames out; the face of hot.reactor.Framer."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._frames = Frames(max_frame_bytes)

    @property
    def kept_bytes(self) -> int:
        """Memory held for a frame that is not whole yet."""
        return len(self._frames._bytes)

    def feed(self, data: bytes) -> list[bytes]:
        self._frames.add(data)
        bodies = []
        while self._frames.whole():
            buffer, start, end = self._frames.take()
            bodies.append(bytes(buffer[start:end]))
        return bodies
