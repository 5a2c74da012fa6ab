"""Connections of the plain Python loop: frames in, answers out in their order. See net/plain_loop.py."""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from pykafkad.net.plain_frames import FrameError, Frames

if TYPE_CHECKING:
    from pykafkad.hot.reactor import Answer, FileRange, Parts
    from pykafkad.net.plain_loop import Listener, Reactor

ANSWERS_MAX = 128
ANSWER_BYTES_MAX = 1024 * 1024
RECEIVE_CHUNK_BYTES = 64 * 1024
GATHER_BYTES = 64 * 1024
GATHER_PARTS = 64
_GONE = {errno.ECONNRESET, errno.EPIPE}
_IN, _OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


def trouble(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _why(error: OSError) -> str | None:
    """A peer that went away is no trouble."""
    return None if error.errno in _GONE else error.strerror


def _weight(answer: Answer) -> int:
    if isinstance(answer, bytes):
        return len(answer)
    return sum(len(part) for part in answer if isinstance(part, bytes)) if isinstance(answer, list) else 0


class Ticket:
    __slots__ = ("answered", "connection", "parts")

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection
        self.answered = False
        self.parts: Answer = None

    def answer(self, parts: Answer) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            self.answered = True
            if not connection.closed:
                self.parts = parts
                connection._pending_bytes += _weight(parts)
                connection._mark()


class _Part:
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


class Connection:
    def __init__(self, reactor: Reactor, sock: socket.socket, listener: Listener | None) -> None:
        sock.setblocking(False)
        self.reactor, self.listener, self.state = reactor, listener, cast(Any, None)
        self._sock = sock
        self._name = _peer(sock)
        self._frames = Frames(reactor._max_frame_bytes)
        self._pending: list[Answer | Ticket] = []
        self._pending_bytes = self._out_bytes = self._out_answers = 0
        self._out: deque[_Part] = deque()
        self.received_at_ms = reactor.now_ms
        self.closed = self.throttled = self._finishing = self._accepted = self._dirty = False
        self._queued = self._blocked = self._holding = False
        self._reason: str | None = None
        self._interest = 0

    @property
    def fd(self) -> int:
        return self._sock.fileno()

    @property
    def peer(self) -> tuple[str, int]:
        return self._name

    @property
    def queued_bytes(self) -> int:
        return self._out_bytes + self._pending_bytes

    @property
    def queued_answers(self) -> int:
        return self._out_answers + len(self._pending)

    def defer(self) -> Ticket:
        return Ticket(self)

    def close(self, reason: str | None = None) -> None:
        self._drop(reason)

    def finish(self, reason: str | None = None) -> None:
        if not self.closed and not self._finishing:
            self._finishing, self._holding = True, False
            self._reason = reason
            self._mark()

    # ---- in

    def _event(self, mask: int) -> None:
        if mask & _OUT and self._blocked:
            self._blocked = False
            self._queue()
        if mask & _IN and not (self._finishing or self.throttled or self._holding):
            try:
                data = self._sock.recv(RECEIVE_CHUNK_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                return self._drop(_why(error))
            if not data:
                return self.finish()
            self.received_at_ms = self.reactor.now_ms
            self.reactor.received_bytes += len(data)
            self._frames.add(data)
            self._take_frames()

    def _take_frames(self) -> None:
        """Handles the frames that are there, up to the bound on answers; the rest waits."""
        self._holding = False
        try:
            while not self.closed and not self._finishing and self._frames.whole():
                if self._is_full():
                    self._holding = True
                    return self._mark()
                self._take_frame(*self._frames.take())
        except FrameError as error:
            self.finish(str(error))

    def _take_frame(self, buffer: bytearray, start: int, end: int) -> None:
        self.reactor.frames += 1
        try:
            answer = self.reactor.on_frame(self, buffer, start, end)
        except Exception as error:
            return self.finish(trouble(error))
        if answer is not None and not self.closed:
            self._pending.append(answer)
            if not isinstance(answer, Ticket):
                self._pending_bytes += _weight(answer)
            self._mark()

    # ---- out

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.reactor._dirty.append(self)

    def _is_full(self) -> bool:
        return self.queued_answers >= ANSWERS_MAX or self.queued_bytes >= ANSWER_BYTES_MAX

    def _is_half_empty(self) -> bool:
        return self.queued_answers <= ANSWERS_MAX // 2 and self.queued_bytes <= ANSWER_BYTES_MAX // 2

    def _resolve(self) -> None:
        """Hands over the answers whose turn has come; encodes those still objects, whether it has or not."""
        waiting, turns = False, 0
        for i, place in enumerate(self._pending):
            if isinstance(place, Ticket) and not place.answered:
                waiting = True
                continue
            answer = place.parts if isinstance(place, Ticket) else place
            if answer is not None and not isinstance(answer, (bytes, list)):
                try:
                    encoded: Any = answer.encode()
                except Exception as error:
                    self._pending, self._pending_bytes = [], 0
                    return self.finish(trouble(error))
                if isinstance(encoded, Ticket):
                    self._pending[i] = encoded
                    waiting = True
                    continue
                answer = encoded
                self._pending_bytes += _weight(answer)
            if waiting:
                self._pending[i] = answer
            else:
                self._pending_bytes -= _weight(answer)
                self._push(answer)
                turns = i + 1
        del self._pending[:turns]

    def _push(self, answer: Parts | None) -> None:
        parts = [answer] if isinstance(answer, bytes) else answer or []
        rows = [row for row in map(_Part, parts) if row.left]
        if rows:
            rows[-1].last = True
            self._out.extend(rows)
            self._out_answers += 1
            self._out_bytes += sum(row.left for row in rows if row.bytes is not None)

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            self.reactor._writing.append(self)

    def _pump(self, budget: int, *, files: bool) -> int:
        """Sends up to budget bytes; gives what is left of the budget."""
        try:
            while (
                self._out and budget > 0 and not self._blocked and (files or self._out[0].bytes is not None)
            ):
                data = self._gather(budget)
                sent = self._sock.send(data)
                self._blocked = sent < len(data)
                budget -= sent
                self._advance(sent)
        except (BlockingIOError, InterruptedError):
            self._blocked = True
        except OSError as error:
            self._drop(_why(error))
        self.received_at_ms = self.reactor.now_ms
        return budget

    def _gather(self, budget: int) -> bytes | memoryview:
        head = self._out[0].read(min(budget, GATHER_BYTES))
        rest = budget - len(head)
        pieces: list[bytes | memoryview] = [head]
        for part in list(self._out)[1:GATHER_PARTS] if len(head) == self._out[0].left else ():
            if part.bytes is None or part.left > rest:
                break
            pieces.append(part.read(part.left))
            rest -= part.left
        return b"".join(pieces) if len(pieces) > 1 else head

    def _advance(self, sent: int) -> None:
        self.reactor.sent_bytes += sent
        while sent:
            part = self._out[0]
            taken = min(part.left, sent)
            part.left -= taken
            part.offset += taken
            sent -= taken
            self._out_bytes -= taken if part.bytes is not None else 0
            if not part.left:
                self._out_answers -= part.last
                self._out.popleft()

    def _settle(self) -> None:
        """Decides, at the end of a pass, what this connection waits for."""
        if self.closed:
            return
        if self._finishing and not self._pending and not self._out:
            return self._drop(self._reason)
        if self._out and not self._blocked:
            self._queue()
        self.throttled = not self._is_half_empty() if self.throttled else self._is_full()
        if self._holding and not self.throttled:
            self.reactor._resuming.add(self)
        reads = not (self.throttled or self._finishing)
        self._wait_for((_IN if reads else 0) | (_OUT if self._blocked else 0))

    def _wait_for(self, interest: int) -> None:
        if interest == self._interest:
            return
        selector = self.reactor._selector
        if not interest:
            selector.unregister(self._sock)
        elif not self._interest:
            selector.register(self._sock, interest, self)
        else:
            selector.modify(self._sock, interest, self)
        self._interest = interest

    def _drop(self, reason: str | None) -> None:
        if self.closed:
            return
        self._wait_for(0)
        self.closed, self._holding = True, False
        self._sock.close()
        self._pending, self._pending_bytes, self._out_bytes, self._out_answers = [], 0, 0, 0
        self._out.clear()
        if self._accepted:
            self.reactor.connections.discard(self)
            self.reactor._call("on_close", self.reactor.on_close, self, reason)


def _peer(sock: socket.socket) -> tuple[str, int]:
    try:
        name = sock.getpeername()
    except OSError:
        return "", 0
    return (name[0].removeprefix("::ffff:"), name[1]) if isinstance(name, tuple) else ("", 0)
