"""One blocking connection to a broker: requests out, answers in, in order.

Owns the socket, the correlation ids, what versions of each API both sides know (KIP-35) and the requests that
are not answered yet. Several may be under way: `send` now, `receive` later, oldest first. A deadline is given
to each wait; a connection that breaks or is late is closed, and its owner makes a new one.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from struct import Struct

from pykafkad import __version__, errors, messages
from pykafkad.hot import wire
from pykafkad.net.answers import read_answer, response_type
from pykafkad.net.reaching import NoAnswer, NotKafka

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.hot.wire import Message

SIZE = Struct(">i")
API_VERSIONS_NAMED = 3  # since this version the client says what it is
ANSWER_BYTES_MAX = 1 << 30
VERSIONS_BYTES_MAX = 1 << 20  # of a first answer: a larger size is no size but another protocol
CONNECT_TIMEOUT_S = 10.0


class UnsupportedVersion(errors.KafkaError):
    """The broker has no version of an API that we could use."""

    def __init__(self, api: str) -> None:
        super().__init__(errors.UNSUPPORTED_VERSION, f"The node does not support {api}")


def constant_name(request: Message) -> str:
    """ListOffsetsRequest: LIST_OFFSETS, the name that Kafka's texts have for an API."""
    name = type(request).__name__.removesuffix("Request")
    return "".join("_" + letter if letter.isupper() else letter for letter in name).lstrip("_").upper()


class Connection:
    """A socket to one broker. ConnectionError or TimeoutError: it is of no use any more."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        send_bytes: int = -1,
        receive_bytes: int = -1,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._correlation_id = 0
        self._waiting: deque[tuple[int, Any, int]] = deque()  # correlation id, type of the answer, version
        self.versions: dict[int, tuple[int, int]] = {}
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except UnicodeError as problem:  # of a label that is too long for a host name
            raise socket.gaierror(str(problem)) from problem
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        if send_bytes > 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        if receive_bytes > 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    @property
    def under_way(self) -> int:
        return len(self._waiting)

    def fileno(self) -> int:
        return self._socket.fileno()

    def learn_versions(self, deadline: float) -> None:
        """Ask what the broker serves; one that does not know our question answers in its version 0."""
        request = messages.ApiVersionsRequest(
            client_software_name="pykafkad", client_software_version=__version__
        )
        for version in (API_VERSIONS_NAMED, 0):
            answer = self._first_answer(request, version, deadline)
            code = int.from_bytes(answer[4:6], "big")
            if code == errors.UNSUPPORTED_VERSION and version:
                self._waiting.clear()
                continue
            response = self._decode(answer)
            if response.error_code:
                raise errors.KafkaError(response.error_code)
            self.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
            return

    def _first_answer(self, request: Message, version: int, deadline: float) -> memoryview:
        """Until it is there, nobody knows whether the other side is a broker."""
        try:
            self._send(request, version)
            return self._receive(deadline, VERSIONS_BYTES_MAX)
        except NotKafka:
            raise
        except TimeoutError as problem:
            raise NoAnswer("does not answer") from problem
        except ConnectionError as problem:
            raise NoAnswer("closes them without an answer") from problem

    def version_for(self, request: Message, at_most: int = 1 << 15) -> int:
        """The newest version that both sides know."""
        lowest, highest = self.versions.get(request.api_key, (0, -1))
        version: int = min(highest, request.max_version, at_most)
        if version < max(lowest, request.min_version):
            raise UnsupportedVersion(constant_name(request))
        return version

    def call(self, request: Message, deadline: float, *, at_most: int = 1 << 15) -> Any:
        """Ask and wait, with nothing else under way."""
        self.send(request, deadline, at_most=at_most)
        return self.receive(deadline)

    def send(
        self, request: Message, deadline: float, *, at_most: int = 1 << 15, answered: bool = True
    ) -> int:
        """Send it in the newest version; the version it went out in. Produce with acks=0 is not answered."""
        version = self.version_for(request, at_most)
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))
        self._send(request, version)
        if not answered:
            self._waiting.pop()
        return version

    def receive(self, deadline: float) -> Any:
        """The answer to the oldest request."""
        return self._decode(self._receive(deadline))

    def _send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        frame = wire.request(request, version, self._correlation_id, self._client_id)
        self._waiting.append((self._correlation_id, response_type(request), version))
        for part in frame if isinstance(frame, list) else (frame,):
            self._socket.sendall(part)  # type: ignore[arg-type]

    def _receive(self, deadline: float, bytes_max: int = ANSWER_BYTES_MAX) -> memoryview:
        head = self._exactly(SIZE.size, deadline)
        (size,) = SIZE.unpack(head)
        if not 4 <= size <= bytes_max:
            raise NotKafka(bytes(head))
        return memoryview(self._exactly(size, deadline))

    def _exactly(self, size: int, deadline: float) -> bytearray:
        found = bytearray(size)
        view = memoryview(found)
        while view:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError(f"{self.host}:{self.port} closed the connection")
            view = view[count:]
        return found

    def _decode(self, answer: memoryview) -> Any:
        expected, response, version = self._waiting.popleft()
        return read_answer(response, version, expected, answer)

    @property
    def has_answer(self) -> bool:
        """Whether an answer has begun to arrive."""
        return bool(self._waiting) and bool(readable([self.fileno()], 0))

    def close(self) -> None:
        self._socket.close()


def abandoned(descriptor: int) -> bool:
    """Whether nobody reads what is written to a pipe, socket or terminal any more."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)  # errors and a hang-up are told in any case
    return bool(poll.poll(0))


def readable(descriptors: Sequence[int], timeout_s: float | None) -> list[int]:
    """Those that can be read from, after waiting for one as long as that; None: for ever."""
    import select

    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if timeout_s is None else max(0, int(timeout_s * 1000 + 0.999)))
    return [descriptor for descriptor, _ in found]
