"""A transactional producer on a raw socket: it sends what it is told, in the versions that it is told, and records it.

Stock clients in Python speak the first transaction version alone; this one speaks both. A request whose answer is lost
is sent again as it was over a new connection, which the broker must recognise.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from compat_tests.differential.requests import batch, list_offsets
from compat_tests.history.events import TRANSACTIONAL
from compat_tests.history.producing import ABORTED, MOST_SENDS, SLOW, SLOW_S, TRANSACTION_TIMEOUT_MS, GivesUp
from compat_tests.history.recorder import Recorder
from compat_tests.raw import Closed, RawClient
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
RECONNECT_S = 0.1
COMMITTED_LEVEL, LATEST = 1, -1
PASSING = {
    errors.CONCURRENT_TRANSACTIONS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
}


class Versions(NamedTuple):
    """Of the requests whose versions tell the broker which transaction version a client speaks."""

    produce: int
    end_txn: int


TV1, TV2 = Versions(produce=11, end_txn=4), Versions(produce=12, end_txn=5)


class Refused(Exception):
    """The broker's error is not one that passes."""

    def __init__(self, code: int) -> None:
        super().__init__(errors.NAMES.get(code, str(code)))
        self.code = code


class RawProducer:
    def __init__(
        self, broker: tuple[str, int], versions: Versions, name: str, recorder: Recorder, timeout_ms: int
    ) -> None:
        self._broker = broker
        self._client: RawClient | None = None
        self._versions, self._recorder, self._name = versions, recorder, name
        self._sequences: dict[str, int] = {}
        self._added: set[str] = set()
        self._txn = ""
        self._begin_session(timeout_ms)

    def begin(self) -> None:
        self._txn = self._recorder.new_transaction()
        self._added.clear()

    def send(self, key: str) -> int:
        """Send the next value; its offset."""
        if self._versions is TV1 and key not in self._added:
            patiently(lambda: self._add_partition(key))
            self._added.add(key)
        value = self._recorder.new_value()
        self._recorder.record("invoke", "send", key=key, value=value, txn=self._txn, producer=TRANSACTIONAL)
        request = self._produce(key, value)
        answer = patiently(
            lambda: self.ask(request, self._versions.produce).responses[0].partition_responses[0]
        )
        if answer.error_code:
            raise Refused(answer.error_code)
        self._sequences[key] = self._sequences.get(key, 0) + 1
        offset = int(answer.base_offset)
        self._recorder.record("ok", "send", value=value, offset=offset if offset >= 0 else None)
        return offset

    def end(self, committed: bool) -> None:
        op: Any = "commit" if committed else "abort"
        self._recorder.record("invoke", op, txn=self._txn)
        request = self.end_request(committed)
        answer = patiently(lambda: self.ask(request, self._versions.end_txn))
        self._recorder.record("unknown" if answer.error_code else "ok", op, txn=self._txn)
        if answer.error_code:
            raise Refused(answer.error_code)
        if self._versions is TV2:  # each end gives the next epoch, in which the sequences begin anew
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    def end_request(self, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self._name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=committed,
        )

    def last_stable_offset(self, key: str) -> int:
        topic, number = _place(key)
        request = list_offsets(topic, (number, LATEST), isolation_level=COMMITTED_LEVEL)
        return int(self.ask(request, 7).topics[0].partitions[0].offset)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, request: Any, version: int) -> Any:
        """Sent again, as it was, for as long as the broker is away."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                if self._client is None:
                    self._client = RawClient(self._broker[1], host=self._broker[0])
                return self._client.ask(request, version)
            except (Closed, OSError):
                self.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(RECONNECT_S)

    # -- requests

    def _begin_session(self, timeout_ms: int) -> None:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self._name])
        patiently(lambda: self.ask(find, 4).coordinators[0])
        request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=timeout_ms)
        answer = patiently(lambda: self.ask(request, 4))
        if answer.error_code:
            raise Refused(answer.error_code)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def _add_partition(self, key: str) -> Any:
        kind = AddPartitionsToTxnRequest
        topic, number = _place(key)
        request = kind(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic, partitions=[number])],
        )
        answer = self.ask(request, 3)
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        return _Coded(result.partition_error_code)

    def _produce(self, key: str, value: str) -> ProduceRequest:
        records = batch(
            value.encode(),
            timestamp=int(time.time() * 1000),  # an old record would be deleted by retention
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(key, 0),
            transactional=True,
        )
        kind = ProduceRequest
        name, number = _place(key)
        part = kind.PartitionProduceData(index=number, records=records)
        topic = kind.TopicProduceData(name=name, partition_data=[part])
        return kind(transactional_id=self._name, acks=-1, timeout_ms=10_000, topic_data=[topic])


class _Coded(NamedTuple):
    error_code: int


def _place(key: str) -> tuple[str, int]:
    topic, _, number = key.rpartition(":")
    return topic, int(number)


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask again as long as the answer's error is one that passes."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := ask()).error_code in PASSING:
        if time.monotonic() > deadline:
            raise Refused(answer.error_code)
        time.sleep(RETRY_S)
    return answer


class RawTransactions:
    """A client for a history: transactions of the second version, some of them aborted, some held open for a while."""

    def __init__(
        self, bootstrap: str, keys: list[str], recorder: Recorder, chance: random.Random, name: str
    ) -> None:
        self._keys, self._chance = keys, chance
        try:
            self._producer = RawProducer(_place(bootstrap), TV2, name, recorder, TRANSACTION_TIMEOUT_MS)
        except (Refused, OSError, Closed) as problem:
            raise GivesUp(str(problem)) from None

    def step(self) -> None:
        try:
            self._producer.begin()
            for _ in range(self._chance.randint(1, MOST_SENDS)):
                self._producer.send(self._chance.choice(self._keys))
            if self._chance.random() < SLOW:
                time.sleep(self._chance.uniform(0, SLOW_S))
            self._producer.end(self._chance.random() >= ABORTED)
        except (Refused, OSError, Closed) as problem:
            raise GivesUp(str(problem)) from None
