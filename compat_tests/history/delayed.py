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
from typing import Any, NamedTuple

from compat_tests.differential.requests import batch, list_offsets
from compat_tests.history.events import TRANSACTIONAL
from compat_tests.history.recorder import Recorder
from compat_tests.raw import RawClient, decode_answer
from pykafkad import errors
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

DEADLINE_S = 60.0
RETRY_S = 0.005
TRANSACTION_TIMEOUT_MS = 600_000
COMMITTED_LEVEL, LATEST = 1, -1
PASSING = {
    errors.CONCURRENT_TRANSACTIONS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.NOT_ENOUGH_REPLICAS,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
}


class Versions(NamedTuple):
    """Of the requests whose versions tell the broker which transaction version a client speaks."""

    produce: int
    end_txn: int


TV1, TV2 = Versions(produce=11, end_txn=4), Versions(produce=12, end_txn=5)


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


class RawProducer:
    """A transactional producer of one partition that sends what it is told and records it."""

    def __init__(
        self, broker: tuple[str, int], proxy: Proxy, versions: Versions, key: str, recorder: Recorder
    ) -> None:
        self._client = RawClient(broker[1], host=broker[0])
        self._proxy, self._versions, self._recorder = proxy, versions, recorder
        self._key = key
        self._topic, _, number = key.rpartition(":")
        self._partition = int(number)
        self._name = f"delayed {recorder.process}"
        self._sequence = 0
        self._txn = ""
        self._begin_session()

    def begin(self) -> int:
        """Begin a transaction, which is to send its first record; its offset."""
        self._txn = self._recorder.new_transaction()
        if self._versions is TV1:
            patiently(self._add_partition)
        return self.send()

    def send(self) -> int:
        value = self._recorder.new_value()
        self._recorder.record(
            "invoke", "send", key=self._key, value=value, txn=self._txn, producer=TRANSACTIONAL
        )
        offset: int = patiently(lambda: self._produce(value)).base_offset
        self._sequence += 1
        self._recorder.record("ok", "send", value=value, offset=offset)
        return offset

    def end(self, committed: bool) -> int:
        """End the transaction; the error code."""
        op: Any = "commit" if committed else "abort"
        self._recorder.record("invoke", op, txn=self._txn)
        answer = patiently(lambda: self._client.ask(self._end(committed), self._versions.end_txn))
        if answer.error_code == errors.NONE:
            self._take(answer)
        self._recorder.record("fail" if answer.error_code else "ok", op, txn=self._txn)
        return int(answer.error_code)

    def end_twice(self, committed: bool) -> Callable[[], int]:
        """End the transaction by a request that gets lost on its way, and then by another one. What is returned lets the
        lost one arrive, and gives its error code."""
        lost = self._end(committed)
        with RawClient(self._proxy.port) as impatient:
            impatient.send(impatient.frame(lost, self._versions.end_txn))
            self._proxy.keep()
        assert self.end(committed) == errors.NONE
        return lambda: int(decode_answer(lost, self._versions.end_txn, self._proxy.release()).error_code)

    def last_stable_offset(self) -> int:
        request = list_offsets(self._topic, (self._partition, LATEST), isolation_level=COMMITTED_LEVEL)
        return int(self._client.ask(request, 7).topics[0].partitions[0].offset)

    def close(self) -> None:
        self._client.close()

    # -- requests

    def _begin_session(self) -> None:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self._name])
        patiently(lambda: self._client.ask(find, 4).coordinators[0])
        request = InitProducerIdRequest(
            transactional_id=self._name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        answer = patiently(lambda: self._client.ask(request, 4))
        assert answer.error_code == errors.NONE, errors.NAMES[answer.error_code]
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def _take(self, answer: Any) -> None:
        """With TV2 each end gives the next epoch, in which the sequence begins anew."""
        if self._versions is TV2:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequence = 0

    def _add_partition(self) -> Any:
        kind = AddPartitionsToTxnRequest
        request = kind(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                kind.AddPartitionsToTxnTopic(name=self._topic, partitions=[self._partition])
            ],
        )
        answer = self._client.ask(request, 3)
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        return _Coded(result.partition_error_code)

    def _produce(self, value: str) -> Any:
        records = batch(
            value.encode(),
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        kind = ProduceRequest
        part = kind.PartitionProduceData(index=self._partition, records=records)
        topic = kind.TopicProduceData(name=self._topic, partition_data=[part])
        request = kind(transactional_id=self._name, acks=-1, timeout_ms=10_000, topic_data=[topic])
        answer = self._client.ask(request, self._versions.produce).responses[0].partition_responses[0]
        assert answer.error_code in PASSING | {errors.NONE}, errors.NAMES[answer.error_code]
        return answer

    def _end(self, committed: bool) -> Any:
        return EndTxnRequest(
            transactional_id=self._name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=committed,
        )


class _Coded(NamedTuple):
    error_code: int


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask again as long as the answer's error is one that passes."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := ask()).error_code in PASSING:
        assert time.monotonic() < deadline, errors.NAMES[answer.error_code]
        time.sleep(RETRY_S)
    return answer


@contextmanager
def raw_producer(
    broker: tuple[str, int], versions: Versions, key: str, recorder: Recorder
) -> Iterator[RawProducer]:
    proxy = Proxy(*broker)
    try:
        producer = RawProducer(broker, proxy, versions, key, recorder)
        with contextlib.closing(producer):
            yield producer
    finally:
        proxy.close()


class Tried(NamedTuple):
    """What became of one old request."""

    code: int
    ended: bool  # the transaction that was open when it arrived


def try_once(producer: RawProducer, committed: bool) -> Tried:
    """The old request would commit, or abort, what the client wants to end the other way."""
    producer.begin()
    arrive = producer.end_twice(committed)
    first = producer.begin()
    code = arrive()
    if code == errors.NONE:  # the end marker follows the answer
        deadline = time.monotonic() + DEADLINE_S
        while producer.last_stable_offset() == first and time.monotonic() < deadline:
            time.sleep(RETRY_S)
    ended = producer.last_stable_offset() != first
    if not ended:
        producer.send()
        assert producer.end(not committed) == errors.NONE
    return Tried(code, ended)
