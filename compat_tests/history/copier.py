"""A member of the group that copies: `python -m compat_tests.history.copier NAME=VALUE ...`, so that it can be killed.

name (transactional id and static member), bootstrap, group, seed, least and most (records of a transaction), pause (the
most that it waits with one open, in seconds). What it reads it sends on, changed, in the transaction that also takes the
offsets. After a rebalance or an abort it begins again where the group has committed. It ends with its standard input;
exit code 3: it gave up.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from compat_tests.history.client import GAVE_UP, end_of_input, leave
from compat_tests.history.consuming import POLL_S, SESSION_MS, consumer_config
from compat_tests.history.events import COMMITTED
from compat_tests.history.librdkafka import basis
from compat_tests.history.producing import PATIENCE_S, GivesUp, MustAbort, patiently

SOURCE, SINK = "source", "sink"
TRANSACTION_TIMEOUT_MS = 30_000
GATHER_S = 0.5  # how long a transaction waits for records to fill it


def changed(value: bytes) -> bytes:
    return b"copy of " + value


class Copier:
    def __init__(self, given: dict[str, str]) -> None:
        self._chance = random.Random(given["seed"])
        self._least, self._most, self._pause_s = (
            int(given["least"]),
            int(given["most"]),
            float(given["pause"]),
        )
        self._producer = Producer(
            {
                **basis(given["bootstrap"]),
                "transactional.id": given["name"],
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 5,
            }
        )
        patiently(self._producer.init_transactions)
        self._failed = 0
        self._gathered: list[Message] = []
        self._consumer = Consumer(
            {
                **consumer_config(given["bootstrap"], COMMITTED),
                "group.id": given["group"],
                "group.instance.id": given["name"],
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
            }
        )
        lost: Any = {"on_assign": self._forget, "on_revoke": self._forget, "on_lost": self._forget}
        self._consumer.subscribe([SOURCE], **lost)

    def step(self) -> None:
        """One transaction, if there is something to copy."""
        self._gather(self._chance.randint(self._least, self._most))
        if not self._gathered:
            return
        patiently(lambda _timeout: self._producer.begin_transaction())
        try:
            self._copy()
            patiently(self._producer.commit_transaction)
        except MustAbort:
            self._abort()
        self._gathered.clear()

    def _gather(self, count: int) -> None:
        """One at a time, since in between the partitions may be taken away."""
        deadline = time.monotonic() + GATHER_S
        while len(self._gathered) < count and time.monotonic() < deadline:
            message = self._consumer.poll(POLL_S if not self._gathered else 0.01)
            if message is not None and message.error() is None:
                self._gathered.append(message)

    def _copy(self) -> None:
        self._failed = 0
        try:
            for message in self._gathered:
                self._producer.produce(
                    SINK,
                    changed(message.value() or b""),
                    partition=message.partition() or 0,
                    on_delivery=self._on_delivery,
                )
        except (KafkaException, BufferError) as problem:
            raise MustAbort(str(problem)) from None
        time.sleep(self._chance.uniform(0, self._pause_s))
        try:
            unsent = self._producer.flush(PATIENCE_S)
        except (KafkaException, SystemError) as problem:  # a fatal error may be raised inside a callback
            raise GivesUp(str(problem)) from None
        if unsent or self._failed:
            raise MustAbort("not all was sent")
        reached = {
            (message.topic() or "", message.partition() or 0): (message.offset() or 0) + 1
            for message in self._gathered
        }
        offsets = [TopicPartition(*place, offset) for place, offset in reached.items()]
        group = self._consumer.consumer_group_metadata()
        patiently(lambda timeout: self._producer.send_offsets_to_transaction(offsets, group, timeout))

    def _abort(self) -> None:
        try:
            patiently(self._producer.abort_transaction)
            for place in self._consumer.committed(self._consumer.assignment(), timeout=PATIENCE_S):
                if place.error:
                    raise GivesUp(str(place.error))
                place.offset = max(place.offset, 0)
                self._consumer.seek(place)
        except (MustAbort, KafkaException) as problem:
            raise GivesUp(str(problem)) from None

    def _on_delivery(self, error: object, _message: Message) -> None:
        self._failed += error is not None

    def _forget(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        """What is not committed will come again, here or at another member."""
        self._gathered.clear()


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    ended = end_of_input()
    try:
        copier = Copier(given)
        while not ended.is_set():
            copier.step()
    except GivesUp as problem:
        print(f"{given['name']} gives up: {problem}", file=sys.stderr)
        leave(GAVE_UP)
    leave(0)


if __name__ == "__main__":
    main()
