"""Connections that send requests: one after the other, pipelined, without reading, cut in the middle; several at a
time.

A Line has its requests and its manner, and notes what became of each request (`Fate`). `run` advances them all until
they are done or it has taken too long. A line whose connection is closed opens another one for the rest of its
requests. Owns the sockets; random choices are made in plans.py alone.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pykafkad.hot.wire import WireError
from tests.storm.asked import Request

ONE, PIPELINE, UNREAD, HANGUP, PIECES = "one", "pipeline", "unread", "hangup", "pieces"
MANNERS = (ONE, PIPELINE, UNREAD, HANGUP, PIECES)
LINGER_MS = 80  # how long to wait for answers that are allowed to wait
ANSWER_SECONDS = 10.0  # how long for others, on a machine with other work
UNREAD_MS = 100
RECEIVE_BYTES = 1 << 18
ANSWER_MAX = 1 << 30
SIZE = struct.Struct(">i")
RESET = struct.pack("ii", 1, 0)

Learn = Callable[[Any, Any], None]


@dataclass
class Fate:
    """What became of a request that was sent."""

    request: Request
    outcome: str = ""  # "", answered, waits, none, closed, refused, garbled, late
    detail: str = ""
    port: int = 0
    took_ms: float = 0.0
    size: int = 0


@dataclass
class Line:
    manner: str
    requests: list[Request]
    piece: int = 7  # bytes at a time, of PIECES
    cut: float = 1.0  # the part of its bytes that is sent, of HANGUP
    fates: list[Fate] = field(default_factory=list)


class Talk:
    """A line in progress."""

    def __init__(self, line: Line, address: tuple[str, int], learn: Learn, answer_seconds: float) -> None:
        self.answer_seconds = answer_seconds
        self.line = line
        self.manner = line.manner
        self.address = address
        self.learn = learn
        self.rest = deque(line.requests)
        self.asked: deque[tuple[Fate, float]] = deque()
        self.out = bytearray()
        self.came = bytearray()
        self.socket: socket.socket | None = None
        self.done = False
        self.last = time.monotonic()

    # -- the connection

    def open(self) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.line.manner == UNREAD:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(5)
        try:
            self.socket.connect(self.address)
        except OSError as error:
            return self._give_up("refused", str(error))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self._ask()

    def _ask(self) -> None:
        """Choose what is sent next: one request, or all of them."""
        at_a_time = 1 if self.manner in (ONE, PIECES) else len(self.rest)
        while self.rest and at_a_time:
            request = self.rest.popleft()
            fate = Fate(request, port=self.port)
            self.line.fates.append(fate)
            self.out += request.frame()
            if request.is_answered or request.is_changed:
                self.asked.append((fate, time.monotonic()))
            else:
                fate.outcome = "none"
            at_a_time -= 1
        if self.line.manner == HANGUP:
            del self.out[max(1, int(len(self.out) * self.line.cut)) :]
        self.last = time.monotonic()

    def wants(self) -> int:
        reads = self.line.manner not in (UNREAD, HANGUP)
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.out else 0)

    # -- turning

    def write(self) -> None:
        assert self.socket is not None
        size = self.line.piece if self.line.manner == PIECES and len(self.out) < 2000 else len(self.out)
        try:
            sent = self.socket.send(memoryview(self.out)[:size])
        except BlockingIOError:
            return
        except OSError:
            return self._closed("")
        del self.out[:sent]
        self.last = time.monotonic()

    def read(self) -> None:
        assert self.socket is not None
        try:
            part = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            return self._closed(type(error).__name__)
        if not part:
            return self._closed("")
        self.last = time.monotonic()
        self.came += part
        while len(self.came) >= 4 and not self.done:
            (size,) = SIZE.unpack_from(self.came)
            if not 4 <= size <= ANSWER_MAX:
                return self._give_up("garbled", f"an answer of {size} bytes")
            if len(self.came) < 4 + size:
                return
            frame = bytes(self.came[4 : 4 + size])
            del self.came[: 4 + size]
            self._answered(frame)
        if not self.asked and not self.out and not self.done:
            self._next()

    def _answered(self, frame: bytes) -> None:
        (number,) = SIZE.unpack_from(frame)
        while self.asked:
            fate, asked = self.asked.popleft()
            if fate.request.is_changed and any(other.request.number == number for other, _ in self.asked):
                fate.outcome = "none"  # its changed bytes make it a request without an answer
                continue
            if fate.request.number == number or fate.request.is_changed:
                fate.took_ms, fate.size = (time.monotonic() - asked) * 1000, len(frame)
                return self._judge(fate, frame)
            fate.outcome = "skipped"
        self._give_up("garbled", f"an answer to {number}, which was not asked")

    def _judge(self, fate: Fate, frame: bytes) -> None:
        fate.outcome = "answered"
        if fate.request.is_changed:
            return
        try:
            answer = fate.request.answer(frame)
        except (WireError, ValueError) as problem:
            fate.outcome, fate.detail = "garbled", str(problem)
            return
        self.learn(fate.request.message, answer)

    def _next(self) -> None:
        if self.rest:
            self._ask()
        else:
            self.close()

    def tick(self, now: float) -> None:
        """Decide what it means that nothing arrives."""
        silent_ms = (now - self.last) * 1000
        manner = self.line.manner
        if manner == HANGUP:
            if not self.out or silent_ms > UNREAD_MS:
                self._hang_up()
        elif manner == UNREAD:
            if silent_ms > UNREAD_MS:
                self._leave("unread")
        elif not self.asked and not self.out:
            self._next()
        elif self.asked and silent_ms > LINGER_MS and self.asked[0][0].request.may_wait:
            self._leave("waits")
        elif silent_ms > self.answer_seconds * 1000:
            self._give_up("late", f"no answer in {self.answer_seconds:.0f} s")

    # -- ends

    def _hang_up(self) -> None:
        assert self.socket is not None
        if self.line.cut > 0.5:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._leave("unread")

    def _leave(self, outcome: str) -> None:
        """Close this connection; requests behind the one that waits are sent on another."""
        first = True
        again = []
        for fate, _ in self.asked:
            if first or outcome == "unread":
                fate.outcome = outcome
            else:
                self.line.fates.remove(fate)
                again.append(fate.request)
            first = False
        self._anew(again)

    def _closed(self, why: str) -> None:
        """The broker closed the connection. If several requests were in flight it is not known which one was the
        reason: they are sent again, one at a time."""
        if self.line.manner in (UNREAD, HANGUP):
            return self._leave("unread")
        if len(self.asked) > 1 and self.manner == PIPELINE:
            self.manner = ONE
            for fate, _ in self.asked:
                self.line.fates.remove(fate)
            return self._anew([fate.request for fate, _ in self.asked])
        under_way = [fate for fate, _ in self.asked]
        unanswered = [fate for fate in self.line.fates if fate.port == self.port and fate.outcome == "none"]
        if unanswered:  # a Produce with acks=0 that fails has no other answer
            unanswered[-1].outcome = "hung up"
            for fate in under_way:
                self.line.fates.remove(fate)
            return self._anew([fate.request for fate in under_way])
        for fate in under_way[:1]:
            fate.outcome, fate.detail = "closed", why
        self._anew([])

    def _anew(self, again: Sequence[Request]) -> None:
        self.rest.extendleft(reversed(again))
        self._shut()
        if self.rest and self.line.manner not in (UNREAD, HANGUP):
            self.open()
        else:
            self.done = True

    def _give_up(self, outcome: str, detail: str) -> None:
        if self.asked:
            fate = self.asked[0][0]
        else:
            fate = Fate(self.rest[0] if self.rest else self.line.requests[-1])
            self.line.fates.append(fate)
        fate.outcome, fate.detail = outcome, detail
        for other, _ in self.asked:
            other.outcome = other.outcome or "dropped"
        self.close()

    def stop(self) -> None:
        """Another line is late; whether this one would be is not known."""
        for fate, _ in self.asked:
            fate.outcome = "dropped"
        self.close()

    def _shut(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self.asked.clear()
        self.out.clear()
        self.came.clear()

    def close(self) -> None:
        self._shut()
        self.done = True


def run(
    lines: Sequence[Line],
    address: tuple[str, int],
    learn: Learn,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    seconds: float = 60.0,
) -> None:
    """Run all of them at once, until each is done."""
    talks = [Talk(line, address, learn, answer_seconds) for line in lines]
    for talk in talks:
        talk.open()
    deadline = time.monotonic() + seconds
    while talks:
        with selectors.DefaultSelector() as selector:
            idle = True
            for talk in talks:
                wants = talk.wants()
                if talk.socket is not None and wants:
                    selector.register(talk.socket, wants, talk)
                    idle = False
            ready = selector.select(0.01) if not idle else []
        if idle:
            time.sleep(0.005)
        for key, events in ready:
            turn(key.data, events)
        now = time.monotonic()
        for talk in talks:
            if not talk.done:
                talk.tick(now) if now < deadline else talk.stop()
            if any(fate.outcome == "late" for fate in talk.line.fates[-1:]):
                deadline = min(deadline, now + 1)  # shorter for those behind it
        talks = [talk for talk in talks if not talk.done]


def turn(talk: Talk, events: int) -> None:
    if events & selectors.EVENT_WRITE and talk.out:
        talk.write()
    if events & selectors.EVENT_READ and not talk.done and talk.socket is not None:
        talk.read()
