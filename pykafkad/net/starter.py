"""A broker that ends with whoever started it.

Owns what is known of the starter: it holds the other end of the broker's standard input, and the end of that input is
the end of the starter, however it came. No signal is needed for that, no process id can be mistaken for another, and
any language can do it. What the starter left for the broker to remove is removed then, and only then.
"""

from __future__ import annotations

import os
import sys

from pykafkad.errors import StartupError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.hot.reactor import Reactor

STDIN = 0
READ_BYTES = 4096  # what comes means nothing and is thrown away


class Starter:
    """Whoever holds the other end of standard input, and the directory that is removed with it, if there is one."""

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._watched = False
        self.is_gone = False

    def watch(self, reactor: Reactor, stop: Callable[[str], object]) -> None:
        """Call `stop` with the reason once standard input has ended."""
        if sys.stdin is None:
            raise StartupError("--until-eof: standard input is closed")

        def readable() -> None:
            self._read()
            if self.is_gone:
                watch.close()
                stop("standard input ended")

        try:
            watch = reactor.watch(STDIN, readable)
        except OSError as problem:
            raise StartupError(
                f"--until-eof: standard input has to be a pipe, a socket or a terminal: {problem.strerror}"
            ) from problem
        self._watched = True

    def _read(self) -> None:
        try:
            self.is_gone = not os.read(STDIN, READ_BYTES)
        except OSError:  # a socket or terminal that was cut off
            self.is_gone = True

    def clean_up(self) -> None:
        """Remove the directory if the starter is gone: it may have gone while nobody watched."""
        import select

        poll = select.poll()  # which knows of no greatest descriptor
        poll.register(STDIN, select.POLLIN)
        while self._watched and not self.is_gone and poll.poll(0):
            self._read()
        if self.is_gone and self._directory is not None:
            from shutil import rmtree

            rmtree(self._directory, ignore_errors=True)
