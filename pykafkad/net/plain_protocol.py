"""What a listener or a connection of the plain loop is given besides its socket; ext/reactor_protocol.pxi is the same.

A protocol says which bytes make a frame, and who is called with one. A transport says how bytes travel: open() gives a
session for a connection's socket, which has the part of ext/c/reactor_transport.h.
"""

from __future__ import annotations

import sys
from typing import Protocol as Face

from pykafkad.net.plain_frames import MAX_FRAME_BYTES, Framing, kafka_answer, kafka_request, text_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.reactor import Answer
    from pykafkad.net.plain_answers import Ticket
    from pykafkad.net.plain_connections import Connection

ANSWERS_MAX = 128
ANSWER_BYTES_MAX = 1024 * 1024
BROKERS_PROTOCOL = "on_frame"
KAFKA_REQUESTS: Framing = kafka_request
KAFKA_ANSWERS: Framing = kafka_answer
TEXT_LINES: Framing = text_line


class Protocol:
    def __init__(
        self,
        on_frame: Callable[[Any, bytearray, int, int], Answer | Ticket],
        *,
        framing: Framing = KAFKA_REQUESTS,
        on_close: Callable[[Connection, str | None], object] | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        name: str = BROKERS_PROTOCOL,
        asks: bool = False,
    ) -> None:
        self.on_frame, self.on_close, self.name = on_frame, on_close, name
        self._framing, self._max_frame_bytes = framing, max_frame_bytes
        # Who asks reads the answers whatever it has not sent yet: the other side may not read before they are taken.
        self._answers_max = sys.maxsize if asks else ANSWERS_MAX
        self._answer_bytes_max = sys.maxsize if asks else ANSWER_BYTES_MAX


class Session(Face):
    """How the bytes of one connection travel. What fails raises OSError, whose text is for the log."""

    wants: int  # events that it needs the socket for, whatever the connection waits for
    bars: int  # events that are of no use to the connection before the transport has received something
    ready: bool  # recv() would give bytes that the socket does not announce

    def recv(self, size: int) -> bytes: ...
    def send(self, data: bytes | memoryview) -> int: ...
    def attend(self) -> None: ...
    def finish(self) -> bool: ...
    def close(self) -> None: ...


class Transport(Face):
    def open(self, sock: socket.socket) -> Session: ...
