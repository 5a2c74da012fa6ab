"""The broker's side of the control socket: where it lies, who may connect, what of a line becomes a command.

Invariants: the directory's lock decides whose the socket is, so one that lies there at a start is stale; it is gone
after a stop. Nothing of it holds the broker: it has CONNECTIONS_MAX connections at the most, of a request there are
LINE_BYTES, commands are done in slices, an answer has ANSWER_BYTES at the most, and it costs a start one socket. Where
it cannot be made (a path that is too long for the system, a directory on a strange file system), the broker says so and
serves without it.
"""

from __future__ import annotations

import os
from functools import partial

from pykafkad.control import LINE_BYTES, SOCKET
from pykafkad.logs import logger
from pykafkad.net import unix_sockets
from pykafkad.net.loop import module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.reactor import Connection, Listener
    from pykafkad.server import Broker

CONNECTIONS_MAX = 16
ANSWER_BYTES = 8 * 1024 * 1024
BACKLOG = 16

log = logger("control")


class Client:
    """Who has connected."""

    __slots__ = ("connection", "leave")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.leave: Callable[[], object] | None = None  # ends what it has begun, if it has


class ControlSocket:
    name = None  # as an owner of connections: none of Kafka's listeners

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._listener: Listener | None = None
        self._path = ""
        self._clients: set[Client] = set()

    def open(self, directory: str) -> None:
        reactor = self._broker.reactor
        path = os.path.join(directory, SOCKET)
        try:
            sock = unix_sockets.bind(path)
            sock.listen(BACKLOG)
        except OSError as error:
            log.warn(f"there is no control socket {path}: {error.strerror or error}")
            return
        self._path = path
        loop = module_of(reactor)
        protocol = loop.Protocol(
            self._on_line,
            framing=loop.TEXT_LINES,
            on_close=self._on_close,
            max_frame_bytes=LINE_BYTES,
            name="control",
        )
        self._listener = reactor.listen(sock, self._on_accept, protocol=protocol)
        self._listener.owner = self

    def close(self) -> None:
        if self._listener is None:
            return
        try:
            os.unlink(self._path)
        except OSError:
            pass
        self._listener.close()
        self._listener = None
        for client in list(self._clients):
            client.connection.close()

    def _on_accept(self, connection: Connection) -> bool:
        if not unix_sockets.is_ours(connection.fd):
            return self._refuse("a connection of another user to the control socket was refused")
        if len(self._clients) >= CONNECTIONS_MAX:
            return self._refuse(f"the control socket has {CONNECTIONS_MAX} connections: one more was refused")
        client = connection.state = Client(connection)
        self._clients.add(client)
        return True

    def _refuse(self, why: str) -> bool:
        if self._broker.quiet.allows(log, why, "control"):
            log.warn(why)
        return False

    def _on_close(self, connection: Connection, reason: str | None) -> None:
        client = connection.state
        self._clients.discard(client)
        if client.leave is not None:
            client.leave()

    def _on_line(self, connection: Connection, buffer: Any, start: int, end: int) -> Any:
        """A request: the rows of its answer are made in slices, and leave together."""
        from pykafkad.control import commands

        ticket = connection.defer()
        lines: list[bytes] = []
        work = commands.perform(
            self._broker, connection.state, bytes(memoryview(buffer)[start:end]), lines, ANSWER_BYTES
        )
        self._broker.slices.run(work, partial(self._done, ticket, lines), lambda: not connection.closed)
        return ticket

    def _done(self, ticket: Any, lines: list[bytes], result: Any) -> None:
        if isinstance(result, Exception):
            from pykafkad.control.lines import encoded

            log.exception("a command failed", result)
            lines[:] = [encoded({"end": True, "error": f"{type(result).__name__}: {result}"})]
        ticket.answer(b"".join(lines))
