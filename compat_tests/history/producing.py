"""Clients that write: plain and idempotent producers, transactional ones, and those that transform what they read.

Each step() is a few operations, recorded as they happen. A client whose producer is beyond help raises GivesUp: it ends,
and another process takes its place. Whether a send without an acknowledgement was written is never guessed: `unknown`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat_tests.history.consuming import BATCH, POLL_S, consumer_config, partition, record_poll
from compat_tests.history.events import COMMITTED, IDEMPOTENT, TRANSACTIONAL
from compat_tests.history.librdkafka import basis
from compat_tests.history.recorder import Recorder

PATIENCE_S = 60.0
TRANSACTION_TIMEOUT_MS = 8000
# Of producers that ask again on another connection while a paused broker still has the first request. Transactional ones
# have more patience than a pause takes: a delayed EndTxn of TV1 is a matter of test_delayed_end.py.
IMPATIENT_MS = 1500
PATIENT_MS = TRANSACTION_TIMEOUT_MS  # librdkafka allows no more
ABORTED, SLOW, SLOW_S, MOST_SENDS = 0.2, 0.04, 3.0, 12


class GivesUp(Exception):
    """The client has to be made anew."""


class MustAbort(Exception):
    """The transaction cannot be committed any more, or shall not be."""


class Sender:
    """A producer whose sends are recorded."""

    def __init__(self, kind: str, bootstrap: str, recorder: Recorder, config: dict[str, Any]) -> None:
        self.kind = kind
        self.recorder = recorder
        self.failed = 0
        self.producer = Producer({**basis(bootstrap), "acks": "all", "linger.ms": 2, **config})

    def send(self, key: str, txn: str = "") -> None:
        value = self.recorder.new_value()
        self.recorder.record("invoke", "send", key=key, value=value, producer=self.kind, txn=txn)
        to = partition(key)
        self.producer.produce(
            to.topic, value=value, partition=to.partition, on_delivery=lambda *end: self._end(value, *end)
        )

    def flush(self) -> bool:
        """Wait for the end of all sends, be it unknown: whether all were acknowledged."""
        try:
            left = self.producer.flush(PATIENCE_S)
        except (KafkaException, SystemError) as problem:  # a fatal error may be raised inside a callback
            raise GivesUp(str(problem)) from None
        failed, self.failed = self.failed, 0
        if left:
            raise GivesUp(f"{left} sends without an end")
        return failed == 0

    def _end(self, value: str, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            self.recorder.record("unknown", "send", value=value)
            return
        offset = message.offset()
        known = offset if offset is not None and offset >= 0 else None  # not of what the broker had already
        self.recorder.record("ok", "send", value=value, offset=known)


class Untransactional:
    """A producer without transactions, plain or idempotent."""

    def __init__(
        self, kind: str, bootstrap: str, keys: list[str], recorder: Recorder, chance: random.Random
    ) -> None:
        self._keys, self._chance = keys, chance
        idempotent = kind == IDEMPOTENT
        config = {
            "enable.idempotence": idempotent,
            "max.in.flight": 5 if idempotent else 1,
            "socket.timeout.ms": IMPATIENT_MS,
            "request.timeout.ms": IMPATIENT_MS,
            "message.timeout.ms": int(PATIENCE_S * 1000),
        }
        self._sender = Sender(kind, bootstrap, recorder, config)

    def step(self) -> None:
        try:
            for _ in range(self._chance.randint(1, MOST_SENDS)):
                self._sender.send(self._chance.choice(self._keys))
        except KafkaException as problem:
            raise GivesUp(str(problem)) from None
        self._sender.flush()


class Transactions:
    """A producer that sends in transactions, some of which it aborts, or holds open for a while."""

    def __init__(
        self, bootstrap: str, keys: list[str], recorder: Recorder, chance: random.Random, name: str
    ) -> None:
        self.keys, self.chance = keys, chance
        self.recorder = recorder
        config = {
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "socket.timeout.ms": PATIENT_MS,
        }
        self.sender = Sender(TRANSACTIONAL, bootstrap, recorder, config)
        self.producer = self.sender.producer
        patiently(self.producer.init_transactions)

    def step(self) -> None:
        self.run(lambda txn: None)

    def run(self, work: Callable[[str], None], offsets: Callable[[], None] = lambda: None) -> bool:
        """One transaction of some work and some sends; whether it was committed."""
        txn = self.recorder.new_transaction()
        patiently(lambda _timeout: self.producer.begin_transaction())
        try:
            self._fill(txn, work)
            offsets()
            self._commit(txn)
        except MustAbort:
            self.recorder.record("invoke", "abort", txn=txn)
            try:
                patiently(self.producer.abort_transaction)
            except MustAbort as problem:
                raise GivesUp(str(problem)) from None
            self.recorder.record("ok", "abort", txn=txn)
            return False
        return True

    def _fill(self, txn: str, work: Callable[[str], None]) -> None:
        work(txn)
        for _ in range(self.chance.randint(1, MOST_SENDS)):
            try:
                self.sender.send(self.chance.choice(self.keys), txn)
            except KafkaException as problem:
                raise MustAbort(str(problem)) from None
        if self.chance.random() < SLOW:
            time.sleep(self.chance.uniform(0, SLOW_S))
        if not self.sender.flush():
            raise MustAbort("not all was sent")
        if self.chance.random() < ABORTED:
            raise MustAbort("as it was meant")

    def _commit(self, txn: str) -> None:
        self.recorder.record("invoke", "commit", txn=txn)
        try:
            patiently(self.producer.commit_transaction)
        except (MustAbort, GivesUp):
            self.recorder.record("unknown", "commit", txn=txn)
            raise
        self.recorder.record("ok", "commit", txn=txn)


class Transform(Transactions):
    """Reads what is committed, sends in the same transaction, and with it the offsets up to which it has read."""

    def __init__(
        self, bootstrap: str, keys: list[str], recorder: Recorder, chance: random.Random, name: str
    ) -> None:
        super().__init__(bootstrap, keys, recorder, chance, name)
        self._consumer = Consumer({**consumer_config(bootstrap, COMMITTED), "group.id": f"group of {name}"})
        self._next = self._committed()
        self._consumer.assign([_at(key, offset) for key, offset in self._next.items()])
        recorder.record("ok", "assign", positions=self._next)

    def step(self) -> None:
        reached = dict(self._next)

        def read(txn: str) -> None:
            found = self._consumer.consume(BATCH, POLL_S)
            for key, records in record_poll(self.recorder, found, COMMITTED, txn).items():
                reached[key] = records[-1][0] + 1

        def send_offsets() -> None:
            read_up_to = [_at(key, offset) for key, offset in reached.items()]
            group = self._consumer.consumer_group_metadata()
            patiently(lambda timeout: self.producer.send_offsets_to_transaction(read_up_to, group, timeout))

        if self.run(read, send_offsets):
            self._next = reached
        else:
            self._go_back()

    def _go_back(self) -> None:
        """As the client would after a crash. A seek is refused while the broker cannot be asked."""
        try:
            for key, offset in self._next.items():
                self._consumer.seek(_at(key, offset))
        except KafkaException as problem:
            raise GivesUp(str(problem)) from None
        self.recorder.record("ok", "seek", positions=self._next)

    def _committed(self) -> dict[str, int]:
        wanted = [partition(key) for key in self.keys]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = self._consumer.committed(wanted, timeout=PATIENCE_S)
            except KafkaException as problem:
                found = []
                if time.monotonic() > deadline:
                    raise GivesUp(str(problem)) from None
                time.sleep(POLL_S)
            if found and not any(one.error for one in found):
                return {f"{one.topic}:{one.partition}": max(one.offset, 0) for one in found}


def _at(key: str, offset: int) -> TopicPartition:
    place = partition(key)
    place.offset = offset
    return place


def patiently(call: Callable[[float], Any]) -> None:
    """Repeat what may be repeated, as the client library says."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            call(PATIENCE_S / 4)
            return
        except KafkaException as problem:
            error: KafkaError = problem.args[0]
            if error.txn_requires_abort():
                raise MustAbort(str(error)) from None
            if error.fatal() or not error.retriable() or time.monotonic() > deadline:
                raise GivesUp(str(error)) from None
