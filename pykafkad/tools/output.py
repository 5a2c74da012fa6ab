"""Standard output of the tools: bytes that are collected, and written when they are many or on request.

Owns the buffer (the lines of a tool are written with few system calls) and the progress line for users: it goes to
standard error if that is a terminal, and nowhere otherwise, and is erased before anything else is written.
"""

from __future__ import annotations

import os
import sys
import time

GATHER_BYTES = 64 * 1024
STDOUT, STDERR = 1, 2
PROGRESS_PAUSE_S = 0.2


class Unwritable(Exception):
    """Standard output cannot be written to; str() says why."""


class Unread(Unwritable):
    """Nobody reads it any more."""


_parts: list[bytes] = []
_size = 0
_progress: Progress | None = None  # the one that is shown


def write(data: bytes) -> None:
    """Some bytes for standard output."""
    global _size
    _parts.append(data)
    _size += len(data)
    if _size >= GATHER_BYTES:
        flush()


def line(text: str = "") -> None:
    """A line of text for standard output."""
    write(f"{text}\n".encode(errors="replace"))


def json_document(value: object) -> None:
    """The only thing that a tool with --json writes to standard output."""
    import json

    line(json.dumps(value, indent=2, ensure_ascii=False))


def text(value: str) -> None:
    write(value.encode(errors="replace"))


def flush() -> None:
    """Write everything so far; if pytest or a caller has replaced sys.stdout, to that."""
    global _size
    data = b"".join(_parts)
    _parts.clear()
    _size = 0
    if not data:
        return
    _erase_progress()
    if sys.stdout is sys.__stdout__:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(STDOUT, view) :]
            except BrokenPipeError as problem:
                raise Unread from problem
            except OSError as problem:
                raise Unwritable(f"standard output: {problem.strerror}") from problem
    else:
        sys.stdout.write(data.decode(errors="replace"))


def discard() -> None:
    """Nobody reads the output any more: drop what is left, so that Python's own flush at exit has nothing to do."""
    global _size
    _parts.clear()
    _size = 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def check_read() -> None:
    """Unread if whoever read standard output has gone, as `head` does after its lines."""
    from pykafkad.net.connection import abandoned

    if sys.stdout is sys.__stdout__ and abandoned(STDOUT):
        raise Unread


def error(text: str) -> None:
    """A line for standard error, after everything so far was written to standard output."""
    flush()
    _erase_progress()
    sys.stderr.write(f"{text}\n")


def _erase_progress() -> None:
    if _progress is not None:
        _progress.clear()


def mend_streams() -> None:
    """A stream that was closed before the program started must not become a socket's descriptor; what is written to
    standard error then goes nowhere."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= STDERR:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, for as long as the program runs


class Progress:
    """A line that is overwritten again and again, if standard error is a terminal."""

    __slots__ = ("_at", "_shown", "enabled")

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled and sys.stderr.isatty()
        self._at = 0.0
        self._shown = False

    @property
    def due(self) -> bool:
        """Whether it is time to show something new."""
        return self.enabled and time.monotonic() >= self._at

    def show(self, text: str) -> None:
        global _progress
        if not self.enabled:
            return
        _progress = self
        self._at = time.monotonic() + PROGRESS_PAUSE_S
        self._shown = True
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        global _progress
        _progress = None
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
