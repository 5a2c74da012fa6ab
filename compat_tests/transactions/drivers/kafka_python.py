"""kafka-python: `python -m compat_tests.transactions.drivers.kafka_python bootstrap=HOST:PORT`."""

from __future__ import annotations

import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from compat_tests.transactions.drivers import line
from compat_tests.transactions.drivers.line import Group, Place

ANSWER_SECONDS = 30.0
CLOSE_SECONDS = 5.0
# 3.0.12 never completes a rejoin that takes longer than a poll, and sends no heartbeat after it.
JOIN_SECONDS = 1.0


def values(consumer: KafkaConsumer, seconds: float) -> list[str]:
    polled = consumer.poll(timeout_ms=int(seconds * 1000))
    return [record.value.decode() for records in polled.values() for record in records]


class Transactional:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, group: Group | None) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=int(ANSWER_SECONDS * 1000),
            reconnect_backoff_max_ms=500,
        )
        self._producer.init_transactions()
        self._consumer: KafkaConsumer | None = None
        if group is not None:
            self._consumer = KafkaConsumer(
                group.topic,
                bootstrap_servers=bootstrap,
                group_id=group.name,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, place: Place, values: list[str]) -> None:
        sent = [self._producer.send(place[0], value.encode(), partition=place[1]) for value in values]
        for future in sent:
            future.get(ANSWER_SECONDS)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        """After some refusals it asks for a new epoch by itself, and ends nothing before that is answered."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._producer.abort_transaction()  # type: ignore[no-any-return]
            except KafkaError as error:
                if "BUMPING_PRODUCER_EPOCH" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(line.POLL_SECONDS)

    def consume(self) -> list[str]:
        assert self._consumer is not None
        return values(self._consumer, JOIN_SECONDS)

    def send_offsets(self) -> None:
        consumer = self._consumer
        assert consumer is not None
        offsets: dict[TopicPartition, OffsetAndMetadata] = {
            partition: OffsetAndMetadata(consumer.position(partition), "", -1)
            for partition in consumer.assignment()
        }
        self._producer.send_offsets_to_transaction(offsets, consumer.group_metadata())

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._producer.close(CLOSE_SECONDS)


class Reader:
    def __init__(self, bootstrap: str, isolation: str, place: Place) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            isolation_level=isolation,
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
        )
        partition = TopicPartition(*place)
        self._consumer.assign([partition])
        self._consumer.seek(partition, 0)

    def poll(self) -> list[str]:
        return values(self._consumer, line.POLL_SECONDS)

    def close(self) -> None:
        self._consumer.close()


producer = Transactional
reader = Reader

if __name__ == "__main__":
    line.serve(sys.modules[__name__])
