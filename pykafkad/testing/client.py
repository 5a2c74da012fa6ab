"""A small client: one request, one answer, over one blocking socket.

Owns nothing but the socket and the correlation ids. The test kit creates topics with it, so that users need no client
library for that.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from pykafkad import messages
from pykafkad.hot import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

API_VERSIONS = 18
TIMEOUT_SECONDS = 30.0


class Client:
    """One connection; `client.call(request, version)` gives the answer decoded."""

    def __init__(self, host: str, port: int, *, client_id: str | None = "pykafkad.testing") -> None:
        self.client_id = client_id
        self._correlation_id = 0
        self._socket = socket.create_connection((host, port), TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, request: Any, version: int) -> Any:
        """Send a request and wait for its answer; ConnectionError if the broker closes the connection instead."""
        self._correlation_id += 1
        frame = wire.request(request, version, self._correlation_id, self.client_id)
        self._socket.sendall(frame if isinstance(frame, bytes) else b"".join(frame))  # type: ignore[arg-type]
        answer = self._receive()
        (correlation_id,) = struct.unpack_from(">i", answer)
        if correlation_id != self._correlation_id:
            raise ConnectionError(f"the answer to {correlation_id} came for request {self._correlation_id}")
        name = type(request).__name__.replace("Request", "Response")
        response: Any = getattr(messages, name)
        # a flexible header ends with tagged fields, of which brokers send none; that of ApiVersions is never flexible
        tags = version >= response.flexible_since and request.api_key != API_VERSIONS
        return response.decode(answer, version, 5 if tags else 4)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
