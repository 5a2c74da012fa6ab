"""The delayed EndTxn: a request that its client gave up on, and that reaches the broker when the next transaction is
open.

The client sends EndTxn through a proxy that keeps it, closes the connection, ends the transaction over another one and
begins the next; then the proxy lets the old request go. With TV2 the epoch has moved on and the request is refused; with
TV1 nothing tells the broker that it is old (KIP-890).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from compat_tests.history.raw_producer import DEADLINE_S, RETRY_S, RawProducer, Versions
from compat_tests.history.recorder import Recorder
from compat_tests.raw import RawClient, decode_answer
from pykafkad import errors
from pykafkad.messages import EndTxnRequest

TRANSACTION_TIMEOUT_MS = 600_000


class Proxy:
    """Passes frames on, one connection at a time, except for EndTxn: the first one is kept, with its connection."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._kept = threading.Event()
        self._frame = b""
        self._held: socket.socket | None = None
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def keep(self) -> None:
        """Wait until there is a request to be kept."""
        assert self._kept.wait(DEADLINE_S), "no EndTxn reached the proxy"

    def release(self) -> bytes:
        """Let it go now; the frame of its answer."""
        assert self._held is not None
        held, self._held = self._held, None
        self._kept.clear()
        with held:
            held.sendall(struct.pack(">i", len(self._frame)) + self._frame)
            answer = _frame(held)
        assert answer is not None, "the broker closed the connection of the delayed request"
        return answer

    def close(self) -> None:
        self._listener.close()
        if self._held is not None:
            self._held.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            with client:
                self._pass_on(client)

    def _pass_on(self, client: socket.socket) -> None:
        upstream = socket.create_connection(self._upstream, DEADLINE_S)
        while (frame := _frame(client)) is not None:
            if struct.unpack_from(">h", frame)[0] == EndTxnRequest.api_key:
                self._frame, self._held = frame, upstream
                self._kept.set()
                return
            upstream.sendall(struct.pack(">i", len(frame)) + frame)
            if (answer := _frame(upstream)) is not None:
                client.sendall(struct.pack(">i", len(answer)) + answer)
        upstream.close()


def _frame(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, 4)
    return None if head is None else _exactly(connection, struct.unpack(">i", head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return None
        data += part
    return data


class Tried(NamedTuple):
    """What became of one old request."""

    code: int
    ended: bool  # the transaction that was open when it arrived


class Delayer:
    """A producer of one partition whose requests to end a transaction can be late."""

    def __init__(self, producer: RawProducer, proxy: Proxy, versions: Versions, key: str) -> None:
        self._producer, self._proxy, self._versions, self._key = producer, proxy, versions, key

    def try_once(self, committed: bool) -> Tried:
        """The old request would commit, or abort, what the client wants to end the other way."""
        producer = self._producer
        producer.begin()
        producer.send(self._key)
        arrive = self._end_twice(committed)
        producer.begin()
        first = producer.send(self._key)
        code = arrive()
        if code == errors.NONE:  # the end marker follows the answer
            deadline = time.monotonic() + DEADLINE_S
            while producer.last_stable_offset(self._key) == first and time.monotonic() < deadline:
                time.sleep(RETRY_S)
        ended = producer.last_stable_offset(self._key) != first
        if not ended:
            producer.send(self._key)
            producer.end(not committed)
        return Tried(code, ended)

    def _end_twice(self, committed: bool) -> Callable[[], int]:
        """End the transaction by a request that gets lost on its way, and then by another one. What is returned lets the
        lost one arrive, and gives its error code."""
        lost = self._producer.end_request(committed)
        with RawClient(self._proxy.port) as impatient:
            impatient.send(impatient.frame(lost, self._versions.end_txn))
            self._proxy.keep()
        self._producer.end(committed)
        return lambda: int(decode_answer(lost, self._versions.end_txn, self._proxy.release()).error_code)


@contextmanager
def delayer(broker: tuple[str, int], versions: Versions, key: str, recorder: Recorder) -> Iterator[Delayer]:
    with contextlib.closing(Proxy(*broker)) as proxy:
        producer = RawProducer(broker, versions, "delayed", recorder, TRANSACTION_TIMEOUT_MS)
        with contextlib.closing(producer):
            yield Delayer(producer, proxy, versions, key)
