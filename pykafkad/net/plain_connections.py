"""Connections of the plain Python loop: frames in, answers out in their order. See net/plain_loop.py."""

from __future__ import annotations

import errno
import selectors
import socket
from collections import deque
from typing import Any, cast

from pykafkad.net.plain_answers import Part, Ticket, weight
from pykafkad.net.plain_frames import Frame, FrameError, Frames
from pykafkad.net.plain_holds import HOLD_HEAD_BYTES
from pykafkad.net.plain_protocol import BROKERS_PROTOCOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.reactor import Answer, Parts
    from pykafkad.net.plain_loop import Listener, Reactor
    from pykafkad.net.plain_protocol import Protocol, Session, Transport

ALL_ANSWERS_BYTES_MAX = 256 * 1024 * 1024
RECEIVE_CHUNK_BYTES = 64 * 1024
GATHER_BYTES = 64 * 1024
GATHER_PARTS = 64
TURN_US = 200  # how long a connection's requests are done in one pass, before others have their turn
_GONE = {errno.ECONNRESET, errno.EPIPE}
_IN, _OUT = selectors.EVENT_READ, selectors.EVENT_WRITE


def trouble(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _why(error: OSError) -> str | None:
    """A peer that went away is no trouble."""
    return None if error.errno in _GONE else error.strerror


class Connection:
    def __init__(
        self, reactor: Reactor, sock: socket.socket, listener: Listener | None, protocol: Protocol
    ) -> None:
        sock.setblocking(False)
        self.reactor, self.listener, self.state = reactor, listener, cast(Any, None)
        self.protocol = protocol
        self._sock = sock
        self._stream: socket.socket | Session = sock  # how its bytes travel
        self._session: Session | None = None  # the same, where it is more than the socket
        self._name = _peer(sock)
        self._frames = Frames(protocol._framing, protocol._max_frame_bytes)
        self._pending: list[Answer | Ticket] = []
        self._pending_bytes = self._out_bytes = self._out_answers = 0
        self._out: deque[Part] = deque()
        self.received_at_ms = reactor.now_ms
        self.closed = self.throttled = self._finishing = self._accepted = self._dirty = False
        self._queued = self._blocked = self._holding = False
        # The request is not done, so the next frame waits for its answer; or the connection is muted.
        self._parked: set[Any] = set()
        self._delayed: set[Ticket] = set()  # it is done, and more of Produce may be done before its answer
        self._produced_in = -1  # the pass of the last Produce
        self._turn_in = -1  # that of its last turn
        self._turn_began_us = 0
        self._counted_bytes = 0
        self._reason: str | None = None
        self.frame_began_ms = 0
        self._interest = 0
        self._reads = True

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

    @property
    def receiving(self) -> bool:
        return self._reads and not self._holding

    @property
    def frame_bytes(self) -> int:
        return 0 if self._holding else self._frames.have

    def defer(self) -> Ticket:
        return Ticket(self)

    def close(self, reason: str | None = None) -> None:
        self._drop(reason)

    def finish(self, reason: str | None = None) -> None:
        if not self.closed and not self._finishing:
            self._finishing, self._holding = True, False
            self._reason = reason
            self.reactor._room.leave(self)
            self._mark()

    # ---- in

    def _event(self, mask: int) -> None:
        if self._session is not None and mask & self._session.wants:
            return self._attend(self._session)
        if mask & _OUT and self._blocked:
            self._blocked = False
            self._queue()
        if mask & _IN and self._reads and not (self._finishing or self.throttled or self._holding):
            self._receive()

    def _attend(self, session: Session) -> None:
        """The event is for the transport alone."""
        try:
            session.attend()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            return self._drop(_why(error))
        self._mark()

    def _receive(self) -> None:
        if not self.reactor._room.has_room(self):
            return self.reactor._room.wait(self)
        try:
            data = self._stream.recv(RECEIVE_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return self._mark()
        except OSError as error:
            return self._drop(_why(error))
        if not data:
            return self.finish()
        self.received_at_ms = self.reactor.now_ms
        self.reactor.received_bytes += len(data)
        self._frames.add(data)
        self._take_frames()
        if self._session is not None:
            self._mark()  # it may hold more, or want the socket

    def mute(self, delay_ms: float) -> None:
        """Begins no more requests for so long: a client that exceeded a quota waits, whether it wants to or not
        (KIP-219)."""
        if not self.closed:
            muted = object()
            self._parked.add(muted)
            self.reactor.call_later(delay_ms, self._unmute, muted)

    def _unmute(self, muted: object) -> None:
        self._parked.discard(muted)
        self._mark()

    def _take_frames(self) -> None:
        """Handles the frames that are there and whose time has come; the rest waits."""
        self._holding = False
        frames = self.reactor.frames
        self._take_whole_frames()
        self.reactor._room.follow(self, same_frame=frames == self.reactor.frames)

    def _take_whole_frames(self) -> None:
        try:
            while not self.closed and not self._finishing and (frame := self._frames.whole()):
                if self._is_full() or not self._may_take(frame):
                    self._holding = True
                    return self._mark()
                if frame.appends:
                    self._produced_in = self.reactor.passes
                self._take_frame(self._frames.take(frame), frame.start, frame.end)
        except FrameError as error:
            self.finish(str(error))

    def _may_take(self, frame: Frame) -> bool:
        if self._parked:
            return False
        if frame.appends:
            return True
        return not self._delayed and self._produced_in != self.reactor.passes and self._has_turn()

    def _has_turn(self) -> bool:
        """Whoever sends many requests at once does not have others wait until all of them are done."""
        if self._turn_in != self.reactor.passes:
            self._turn_in, self._turn_began_us = self.reactor.passes, self.reactor.holds.mark_us
        return self.reactor.holds.mark_us - self._turn_began_us < TURN_US

    def _take_frame(self, buffer: bytearray, start: int, end: int) -> None:
        self.reactor.frames += 1
        try:
            answer = self.protocol.on_frame(self, buffer, start, end)
            if answer is not None and not self.closed:
                if self._pending:
                    self._pending_bytes += weight(answer)
                self._pending.append(answer)
                if isinstance(answer, Ticket):
                    self._await(answer, self._parked)
        except Exception as error:
            return self.finish(trouble(error))
        finally:
            self.reactor.holds.end(self.protocol.name, self._frame_detail(buffer, start, end))
        self._mark()

    def _frame_detail(self, buffer: bytearray, start: int, end: int) -> Any:
        if self.protocol.name != BROKERS_PROTOCOL:
            return self.protocol.on_frame, (self,)
        return self, bytes(memoryview(buffer)[start : min(end, start + HOLD_HEAD_BYTES)]), end - start

    def _await(self, ticket: Ticket, waiting: set[Ticket]) -> None:
        if not ticket.answered and ticket.waits is None:
            ticket.waits = waiting
            waiting.add(ticket)

    # ---- out

    def send(self, parts: Answer) -> None:
        if not self.closed and not self._finishing:
            self._pending.append(parts)
            self._pending_bytes += weight(parts)
            self._mark()

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.reactor._dirty.append(self)

    def _is_full(self) -> bool:
        answers_max, bytes_max = self.protocol._answers_max, self.protocol._answer_bytes_max
        return self.queued_answers >= answers_max or self.queued_bytes >= bytes_max

    def _is_half_empty(self) -> bool:
        answers_max, bytes_max = self.protocol._answers_max, self.protocol._answer_bytes_max
        return self.queued_answers <= answers_max // 2 and self.queued_bytes <= bytes_max // 2

    def _resolve(self) -> None:
        """Hands over the answers whose turn has come; encodes those still objects, whether it has or not."""
        waiting, turns, left_bytes = False, 0, 0
        for i, place in enumerate(self._pending):
            if isinstance(place, Ticket) and not place.answered:
                waiting = True
                continue
            answer: Any = place
            if isinstance(place, Ticket):
                answer, place.parts = (
                    place.parts,
                    None,
                )  # which may know this ticket: they would keep each other
            if answer is not None and not isinstance(answer, (bytes, list)):
                try:
                    encoded: Any = answer.encode()
                except Exception as error:
                    self._pending, self._pending_bytes = [], 0
                    return self.finish(trouble(error))
                if isinstance(encoded, Ticket):
                    self._pending[i] = encoded
                    self._await(encoded, self._delayed)
                    waiting = True
                    continue
                answer = encoded
            if waiting:
                self._pending[i] = answer
                left_bytes += weight(answer)
            else:
                self._push(answer)
                turns = i + 1
        self._pending_bytes = left_bytes
        del self._pending[:turns]

    def _push(self, answer: Parts | None) -> None:
        parts = [answer] if isinstance(answer, bytes) else answer or []
        rows = [row for row in map(Part, parts) if row.left]
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
                sent = self._stream.send(data)
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
        if self._finishing and not self._pending and not self._out and self._has_said_goodbye():
            return self._drop(self._reason)
        if self._out and not self._blocked:
            self._queue()
        self._count_bytes(self.queued_bytes)
        self.throttled = not self._is_half_empty() if self.throttled else self._is_full()
        waits = bool(self._parked) and self._frames.have > 0
        if self._holding:
            frame = self._frames.whole()
            waits = bool(self._parked or (self._delayed and not (frame and frame.appends)))
            if not waits and not self.throttled:
                self.reactor._resuming.add(self)
        self._reads = not (waits or self.throttled or self._finishing or self in self.reactor._room.waiting)
        interest = (_IN if self._reads else 0) | (_OUT if self._blocked else 0)
        self._wait_for(interest if self._session is None else self._with_transport(self._session, interest))

    def _with_transport(self, session: Session, interest: int) -> int:
        """What the socket is asked for, where the transport needs it, too; and what the transport holds is received."""
        if session.bars & _IN:
            self._reads = False
        if session.ready and self._reads and not self._holding:
            self.reactor._ready[self] = None
        return interest & ~session.bars | session.wants

    def _has_said_goodbye(self) -> bool:
        return self._session is None or self._session.finish()

    def _count_bytes(self, now: int) -> None:
        self.reactor.answer_bytes += now - self._counted_bytes
        self._counted_bytes = now

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
        self.reactor._room.leave(self)
        if self._session is not None:
            self._session.finish()
            self._session.close()
        self._sock.close()
        self._pending, self._pending_bytes, self._out_bytes, self._out_answers = [], 0, 0, 0
        self._count_bytes(0)
        self._out.clear()
        if self._accepted:
            self.reactor.connections.discard(self)
            self.reactor._call("on_close", self.protocol.on_close or self.reactor.on_close, self, reason)

    def _open_session(self, transport: Transport | None) -> None:
        """None: plain bytes."""
        if transport is not None:
            try:
                self._stream = self._session = transport.open(self._sock)
            except OSError as error:
                self._drop(_why(error))


def _peer(sock: socket.socket) -> tuple[str, int]:
    try:
        name = sock.getpeername()
    except OSError:
        return "", 0
    return (name[0].removeprefix("::ffff:"), name[1]) if isinstance(name, tuple) else ("", 0)
