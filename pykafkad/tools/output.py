"""Standard output of the tools: bytes, gathered, written when they are many or when asked.

Owns the buffer (lines of a tool are written with few system calls) and the progress line that only a person
sees: it goes to standard error when that is a terminal, and nowhere otherwise.
"""

from __future__ import annotations

import os
import sys
import time

GATHER_BYTES = 64 * 1024
STDOUT = 1
PROGRESS_PAUSE_S = 0.2

_parts: list[bytes] = []
_size = 0


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


def text(value: str) -> None:
    write(value.encode(errors="replace"))


def flush() -> None:
    """Everything so far leaves the process; what pytest or a caller put in sys.stdout's place is honoured."""
    global _size
    data = b"".join(_parts)
    _parts.clear()
    _size = 0
    if not data:
        return
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        view = memoryview(data)
        while view:
            view = view[os.write(STDOUT, view) :]
    else:
        sys.stdout.write(data.decode(errors="replace"))


def discard() -> None:
    """Nobody reads any more: what is left is dropped, and Python's own flush at exit finds nothing to do."""
    global _size
    _parts.clear()
    _size = 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def error(text: str) -> None:
    """A line for standard error, behind what was said on standard output."""
    flush()
    sys.stderr.write(f"{text}\n")


class Progress:
    """A line that is written over and over, while a terminal is there to show it."""

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
        if not self.enabled:
            return
        self._at = time.monotonic() + PROGRESS_PAUSE_S
        self._shown = True
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before other lines come."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
