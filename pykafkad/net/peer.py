"""A connection to another broker, on the loop: requests out, answers in, without a thread and without waiting.

Owns the connection, the correlation ids, and the requests that are not answered yet, of which there is a bound. Several
are under way at once. Each ask() is followed by exactly one call of its `done`, later, with the answer or with the
OSError that ended it, and these calls come in the order of the asks. A request that is not answered in time ends the
connection, as in Kafka's NetworkClient: what is behind it would be as late. Whoever wants another calls connect() again.

net/connection.py does the same blocking, for tools.
"""

from __future__ import annotations

import errno
from collections import deque

from pykafkad.hot import wire
from pykafkad.net.answers import read_answer, response_type
from pykafkad.net.connecting import Connecting, named
from pykafkad.net.loop import module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.reactor import Connection, Reactor, Timer, Transport
    from pykafkad.hot.wire import Message
    from pykafkad.net.hosts import LookUp

    Done = Callable[[Any], object]  # given the answer, or an OSError

CONNECT_TIMEOUT_MS = 10_000  # socket.connection.setup.timeout.ms
REQUEST_TIMEOUT_MS = 30_000  # request.timeout.ms
UNDER_WAY_MAX = 100
ANSWER_BYTES_MAX = 104857600
CORRELATION_IDS = 1 << 31


class TooManyUnderWay(RuntimeError):
    """Whoever asks this much has to wait until some of it is answered (Peer.is_full)."""


class Asked:
    """A request that is not answered yet."""

    __slots__ = ("correlation_id", "done", "response", "timer", "version")

    def __init__(
        self, correlation_id: int, response: type[Message], version: int, done: Done, timer: Timer
    ) -> None:
        self.correlation_id, self.response, self.version = correlation_id, response, version
        self.done, self.timer = done, timer


class Peer:
    def __init__(
        self,
        reactor: Reactor,
        address: tuple[str, int],
        client_id: str,
        look_up: LookUp,
        *,
        transport: Transport = None,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        under_way_max: int = UNDER_WAY_MAX,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        on_lost: Callable[[OSError], object] | None = None,
    ) -> None:
        """`on_lost` is told when a connection, or an attempt at one, has failed; after those who asked were."""
        self.address = address
        self._reactor, self._client_id, self._look_up = reactor, client_id, look_up
        self._transport, self._on_lost = transport, on_lost
        self._connect_timeout_ms, self._request_timeout_ms = connect_timeout_ms, request_timeout_ms
        self._under_way_max = under_way_max
        loop = module_of(reactor)
        self._protocol = loop.Protocol(
            self._on_answer,
            framing=loop.KAFKA_ANSWERS,
            on_close=self._on_close,
            max_frame_bytes=answer_bytes_max,
            name="answer",
            asks=True,
        )
        self._next_correlation_id = 0
        self._asked: deque[Asked] = deque()
        self._unsent: list[Any] = []  # what was asked while it connects
        self._connecting: Connecting | None = None
        self._connection: Connection | None = None
        self._reason: str | None = None  # why the connection was closed

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def under_way(self) -> int:
        return len(self._asked)

    @property
    def is_full(self) -> bool:
        return len(self._asked) >= self._under_way_max

    # -- what others ask for

    def connect(self) -> None:
        """Begins to, unless it is connected or does already; what is asked meanwhile is sent then."""
        if self._connection is None and self._connecting is None:
            self._connecting = Connecting(
                self._reactor, self.address, self._connect_timeout_ms, self._look_up, self._connected
            )

    def ask(self, request: Message, version: int, done: Done, *, timeout_ms: int | None = None) -> None:
        """Sends a request that has an answer."""
        if self.is_full:
            raise TooManyUnderWay(f"{len(self._asked)} requests to {named(self.address)} are under way")
        if self._connection is None and self._connecting is None:
            error = ConnectionError(errno.ENOTCONN, f"not connected to {named(self.address)}")
            self._reactor.call_soon(done, error)
            return
        correlation_id = self._next_correlation_id
        frame: Any = wire.request(request, version, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) % CORRELATION_IDS
        wait_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        response = response_type(request)
        timer = self._reactor.call_later(wait_ms, self._late, response, wait_ms)
        self._asked.append(Asked(correlation_id, response, version, done, timer))
        if self._connection is None:
            self._unsent.append(frame)
        else:
            self._connection.send(frame)

    def close(self) -> None:
        """What is under way ends with an error, and nobody else is told."""
        self._fail(ConnectionError(errno.ECONNABORTED, f"the connection to {named(self.address)} was closed"))

    # -- what the loop calls

    def _connected(self, result: socket.socket | OSError) -> None:
        self._connecting = None
        if isinstance(result, OSError):
            self._lose(result)
            return
        connection = self._reactor.adopt(result, protocol=self._protocol, transport=self._transport)
        if connection.closed:
            self._lose(self._closed(self._reason))
            return
        self._connection = connection
        unsent, self._unsent = self._unsent, []
        for frame in unsent:
            connection.send(frame)

    def _on_answer(self, connection: Connection, buffer: Any, start: int, end: int) -> None:
        if connection is not self._connection:
            return
        if not self._asked:
            return connection.close("an answer that nobody waits for")
        asked = self._asked[0]
        try:
            answer = read_answer(asked.response, asked.version, asked.correlation_id, buffer, start, end)
        except Exception as error:
            return connection.close(f"an answer that cannot be read: {error}")
        self._asked.popleft()
        asked.timer.cancel()
        try:
            asked.done(answer)
        except Exception as error:
            self._reactor.call_soon(_raise, error)  # which the loop reports; other answers go their way

    def _late(self, response: type[Message], waited_ms: int) -> None:
        name = response.__name__.removesuffix("Response")
        text = f"{name} was not answered by {named(self.address)} in {waited_ms} ms"
        self._lose(TimeoutError(errno.ETIMEDOUT, text))

    def _on_close(self, connection: Connection, reason: str | None) -> None:
        self._reason = reason
        if connection is self._connection:
            self._lose(self._closed(reason))

    def _closed(self, reason: str | None) -> OSError:
        why = "" if reason is None else f": {reason}"
        return ConnectionError(errno.ECONNRESET, f"the connection to {named(self.address)} ended{why}")

    # -- the end

    def _lose(self, error: OSError) -> None:
        self._fail(error)
        if self._on_lost is not None:
            self._reactor.call_soon(self._on_lost, error)

    def _fail(self, error: OSError) -> None:
        connection, self._connection = self._connection, None
        connecting, self._connecting = self._connecting, None
        asked, self._asked = self._asked, deque()
        self._unsent.clear()
        if connecting is not None:
            connecting.cancel()
        if connection is not None:
            connection.close(str(error))
        for each in asked:
            each.timer.cancel()
            self._reactor.call_soon(each.done, error)  # one that fails takes no other's place


def _raise(error: Exception) -> None:
    raise error
