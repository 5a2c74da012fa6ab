"""confluent-kafka (librdkafka): `python -m compat_tests.transactions.drivers.confluent bootstrap=HOST:PORT`."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from compat_tests.transactions.drivers import line
from compat_tests.transactions.drivers.line import Group, Place

ANSWER_SECONDS = 30.0


def values(consumer: Consumer) -> list[str]:
    got = []
    for message in consumer.consume(100, timeout=line.POLL_SECONDS):
        if (error := message.error()) is not None:
            raise KafkaException(error)
        value = message.value()
        assert value is not None
        got.append(value.decode())
    return got


def persist(call: Callable[[], object]) -> None:
    """As librdkafka asks for it: what is retriable is called again."""
    while True:
        try:
            call()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


class Transactional:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, group: Group | None) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._failures: list[KafkaError] = []
        persist(lambda: self._producer.init_transactions(ANSWER_SECONDS))
        self._consumer: Consumer | None = None
        if group is not None:
            self._consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": group.name,
                    "group.protocol": group.protocol,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            self._consumer.subscribe([group.topic])

    def begin(self) -> None:
        self._failures.clear()
        self._producer.begin_transaction()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def send(self, place: Place, values: list[str]) -> None:
        for value in values:
            self._producer.produce(place[0], value.encode(), partition=place[1], on_delivery=self._delivered)
        try:
            unsent = self._producer.flush(ANSWER_SECONDS)
        except SystemError:  # all that the binding says of a fatal error that it meets in here
            self._producer.abort_transaction(ANSWER_SECONDS)  # which raises it
            raise
        if self._failures:
            raise KafkaException(self._failures[0])
        assert unsent == 0, f"{unsent} records were never acknowledged"

    def commit(self) -> None:
        persist(lambda: self._producer.commit_transaction(ANSWER_SECONDS))

    def abort(self) -> None:
        persist(lambda: self._producer.abort_transaction(ANSWER_SECONDS))

    def consume(self) -> list[str]:
        assert self._consumer is not None
        return values(self._consumer)

    def send_offsets(self) -> None:
        consumer = self._consumer
        assert consumer is not None
        offsets = consumer.position(consumer.assignment())
        group = consumer.consumer_group_metadata()
        persist(lambda: self._producer.send_offsets_to_transaction(offsets, group, ANSWER_SECONDS))

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


class Reader:
    def __init__(self, bootstrap: str, isolation: str, place: Place) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"never joined {uuid.uuid4()}",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING)])

    def poll(self) -> list[str]:
        return values(self._consumer)

    def close(self) -> None:
        self._consumer.close()


producer = Transactional
reader = Reader

if __name__ == "__main__":
    line.serve(sys.modules[__name__])
