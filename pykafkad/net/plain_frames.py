"""Framing in plain Python, for net/plain_loop.py; ext/c/reactor_frames.c is the same in C.

A framing says what bytes of a stream make a frame. Kafka's are here: an int32 length and then that many bytes; and lines
of text, which the control socket speaks. Memory grows with the bytes received, never with the length announced. A frame
once given out lies in a buffer that is never written again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

HEAD_BYTES = 4
START_MAX_BYTES = 32 * 1024  # within these a framing must say how long its frame is
MAX_FRAME_BYTES = 104857600
_HTTP = {b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PATC", b"TRAC", b"PRI "}
_PRODUCE = bytes(2)  # the API key with which such a request begins


class FrameError(ValueError):
    """No frame can be like this; the text says why."""


class Frame(NamedTuple):
    """A whole frame: where its body is. The next one begins at its end."""

    start: int
    end: int
    appends: bool = False  # another such frame may follow it in the same pass, as a Produce follows a Produce


# Given the bytes, where a frame begins among them, and how large it may be: the frame; or, where it is not whole yet,
# where it ends at the least (nothing more can be said below that; -1: that is not known). Raises FrameError.
Framing = Callable[[bytearray, int, int], Frame | int]


def kafka_answer(data: bytearray, start: int, max_frame_bytes: int) -> Frame | int:
    body = start + HEAD_BYTES
    if len(data) < body:
        return -1
    head = data[start:body]
    length = int.from_bytes(head, "big", signed=True)
    if not 0 <= length <= max_frame_bytes:
        raise FrameError(trouble(bytes(head), max_frame_bytes))
    end = body + length
    return Frame(body, end) if end <= len(data) else end


def kafka_request(data: bytearray, start: int, max_frame_bytes: int) -> Frame | int:
    found = kafka_answer(data, start, max_frame_bytes)
    if isinstance(found, Frame) and data.startswith(_PRODUCE, found.start, found.end):
        return found._replace(appends=True)
    return found


def text_line(data: bytearray, start: int, max_frame_bytes: int) -> Frame | int:
    """A frame is a line with its end."""
    end = data.find(b"\n", start)
    length = (end if end >= 0 else len(data)) - start
    if length > max_frame_bytes:
        raise FrameError(f"Invalid receive (size = {length} larger than {max_frame_bytes})")
    return Frame(start, end + 1) if end >= 0 else -1


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

    __slots__ = ("_at", "_bytes", "_framing", "max_frame_bytes")

    def __init__(self, framing: Framing, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._framing = framing
        self.max_frame_bytes = max_frame_bytes
        self._bytes = bytearray()
        self._at = 0

    def add(self, data: bytes) -> None:
        if self._at:
            self._bytes = self._bytes[self._at :]  # a new buffer: frames of the old one may still be in use
            self._at = 0
        self._bytes += data

    @property
    def have(self) -> int:
        """Bytes that were not handed out."""
        return len(self._bytes) - self._at

    @property
    def wanted(self) -> int:
        """Bytes of the frame that has begun, as far as its framing can tell; 0: that is not known yet."""
        found = self._framing(self._bytes, self._at, self.max_frame_bytes)
        end = found.end if isinstance(found, Frame) else found
        return max(end - self._at, 0)

    def whole(self) -> Frame | None:
        """The whole frame that is there. Raises FrameError where there can be none."""
        found = self._framing(self._bytes, self._at, self.max_frame_bytes)
        if isinstance(found, Frame):
            return found
        if found < 0 and self.have > START_MAX_BYTES:
            raise FrameError(f"Invalid receive (size = {self.have} larger than {self.max_frame_bytes})")
        return None

    def take(self, frame: Frame) -> bytearray:
        """The buffer with the whole frame that is there."""
        taken, self._at = self._bytes, frame.end
        if frame.end == len(taken):
            self._bytes, self._at = bytearray(), 0
        return taken


class Framer:
    """Bytes in, bodies of frames out; the face of hot.reactor.Framer."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._frames = Frames(kafka_request, max_frame_bytes)

    @property
    def kept_bytes(self) -> int:
        """Memory held for a frame that is not whole yet."""
        return len(self._frames._bytes)

    def feed(self, data: bytes) -> list[bytes]:
        self._frames.add(data)
        bodies = []
        while frame := self._frames.whole():
            bodies.append(bytes(self._frames.take(frame)[frame.start : frame.end]))
        return bodies
