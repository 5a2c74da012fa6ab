"""A raw client: whole frames over one blocking socket, encoded and decoded with pykafkad.messages.

Owns: the socket and the correlation ids. It sends nothing by itself (no metadata, no retries), so the broker gets
exactly the requests of a test or of the bench.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from pykafkad import messages
from pykafkad.hot import wire

API_VERSIONS = 18
TIMEOUT_SECONDS = 30.0


class Closed(Exception):
    """The broker closed the connection instead of answering."""


def response_class(request: Any) -> Any:
    return getattr(messages, type(request).__name__.replace("Request", "Response"))


def decode_answer(request: Any, version: int, frame: bytes) -> Any:
    """The answer in a frame (without its size), without the header and its tagged fields."""
    response = response_class(request)
    at = 4
    if request.api_key == API_VERSIONS:
        if frame[4:6] == b"\x00\x23":  # UNSUPPORTED_VERSION is answered in version 0, whatever was asked
            version = 0
    elif version >= response.flexible_since:
        if frame[4] != 0:
            raise ValueError("an answer's header with tags")
        at = 5
    return response.decode(frame, version, at)


class RawClient:
    def __init__(
        self, port: int, *, host: str = "127.0.0.1", client_id: str | None = "raw", source: str = ""
    ) -> None:
        """`source`: the address that it comes from, if that matters."""
        self.client_id = client_id
        self.correlation_id = 0
        self.socket = socket.create_connection((host, port), TIMEOUT_SECONDS, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def frame(self, request: Any, version: int) -> bytes:
        """The request as it would be sent next, size included; takes a correlation id."""
        self.correlation_id += 1
        data = wire.request(request, version, self.correlation_id, self.client_id)
        assert isinstance(data, bytes)  # a list only where there are ranges of files
        return data

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError) as error:
            raise Closed(str(error)) from None

    def receive(self) -> bytes:
        """The next frame without its size."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def ask(self, request: Any, version: int) -> Any:
        self.send(self.frame(request, version))
        answer = self.receive()
        (correlation_id,) = struct.unpack_from(">i", answer)
        if correlation_id != self.correlation_id:
            raise ValueError(f"the answer to request {correlation_id}, not to {self.correlation_id}")
        return decode_answer(request, version, answer)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.socket.recv(min(size - len(data), 1 << 20))
            except ConnectionResetError as error:
                raise Closed(str(error)) from None
            if not part:
                raise Closed(f"after {len(data)} of {size} bytes")
            data += part
        return bytes(data)
