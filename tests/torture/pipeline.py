"""A client with several requests in flight on one connection, like a busy producer."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any, Self

from pykafkad import messages
from pykafkad.hot import wire
from pykafkad.testing.client import Client


class Pipeline(Client):
    """`send` now, `receive` later: answers come in the order of the requests."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, client_id="torture")
        self._under_way: deque[tuple[Any, int]] = deque()

    def __enter__(self) -> Self:
        return self

    def send(self, request: Any, version: int) -> None:
        self._correlation_id += 1
        frame = wire.request(request, version, self._correlation_id, self.client_id)
        assert isinstance(frame, bytes)
        self._under_way.append((type(request), version))
        self._socket.sendall(frame)

    def receive(self) -> Any:
        answer = self._receive()
        request, version = self._under_way.popleft()
        (correlation_id,) = struct.unpack_from(">i", answer)
        assert correlation_id == self._correlation_id - len(self._under_way), (
            "answers in the order of requests"
        )
        response: Any = getattr(messages, request.__name__.replace("Request", "Response"))
        return response.decode(answer, version, 5 if version >= response.flexible_since else 4)
