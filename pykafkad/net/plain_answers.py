"""Answers of the plain Python loop: their size in memory, their parts, and the places of those that are given later."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.reactor import Answer, FileRange
    from pykafkad.net.plain_connections import Connection


def weight(answer: Answer | Ticket) -> int:
    if isinstance(answer, bytes):
        return len(answer)
    if answer is None or isinstance(answer, Ticket):
        return 0
    if isinstance(answer, list):
        return sum(len(part) for part in answer if isinstance(part, bytes))
    return answer.weigh()


class Ticket:
    __slots__ = ("answered", "connection", "parts", "waits")

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection
        self.answered = False
        self.parts: Answer = None
        self.waits: set[Ticket] | None = None  # the connection's set of those that it waits for

    def answer(self, parts: Answer) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            self.answered = True
            if not connection.closed:
                self.parts = parts
                if self.waits is not None:
                    self.waits.discard(self)
                connection._mark()


class Part:
    """A piece of an answer: bytes, or what is left of a file range."""

    __slots__ = ("bytes", "last", "left", "offset", "range")

    def __init__(self, part: bytes | FileRange) -> None:
        self.last = False
        self.bytes: memoryview | None = None
        self.range: FileRange | None = None
        if isinstance(part, bytes):
            self.bytes, self.left, self.offset = memoryview(part), len(part), 0
        else:
            self.range, self.left, self.offset = part, part.size, part.offset

    def read(self, size: int) -> bytes | memoryview:
        if self.bytes is not None:
            return self.bytes[self.offset : self.offset + size]
        assert self.range is not None
        data = os.pread(self.range.fd, min(size, self.left), self.offset)
        if not data:
            raise ConnectionAbortedError(errno.EIO, "a file got shorter while it was being sent")
        return data
