"""confluent-kafka (librdkafka) behind the common interface."""

from __future__ import annotations

from typing import Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from .face import READ_TIMEOUT_S, Got, Sent, Start


class Confluent:
    sets_timestamps = True
    binary = True
    null_headers = True
    creates_partitions = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config or {})
        self._admin.create_topics([wanted])[topic].result(READ_TIMEOUT_S)

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=READ_TIMEOUT_S).topics[topic].partitions)

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        failures: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.codec": codec,
                "enable.idempotence": idempotent,
                "acks": "all",
            }
        )

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        for record in records:
            timestamp: dict[str, Any] = (
                {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            )
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=0,
                on_delivery=on_delivery,
                **timestamp,
            )
        unsent = producer.flush(READ_TIMEOUT_S)
        assert not failures, failures
        assert unsent == 0, f"{unsent} records were never acknowledged"

    def reader(self, topic: str, start: Start) -> ConfluentReader:
        return ConfluentReader(self._bootstrap, topic, start)

    def close(self) -> None:
        pass


class ConfluentReader:
    def __init__(self, bootstrap: str, topic: str, start: Start) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "never joined", "enable.auto.commit": False}
        )
        offset = self._offset(topic, start)
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def _offset(self, topic: str, start: Start) -> int:
        partition = TopicPartition(topic, 0)
        if start.kind == "earliest":
            return OFFSET_BEGINNING
        if start.kind == "offset":
            return start.value
        if start.kind == "latest":  # asked here, so that the position is fixed when the reader is returned
            return int(self._consumer.get_watermark_offsets(partition, timeout=READ_TIMEOUT_S)[1])
        partition.offset = start.value
        (found,) = self._consumer.offsets_for_times([partition], timeout=READ_TIMEOUT_S)
        return OFFSET_END if found.offset < 0 else int(found.offset)

    def read(self, count: int) -> list[Got]:
        got: list[Got] = []
        while len(got) < count:
            messages = self._consumer.consume(count - len(got), timeout=READ_TIMEOUT_S)
            if not messages:
                break
            for message in messages:
                assert message.error() is None, message.error()
                offset, headers = message.offset(), message.headers()
                assert offset is not None
                got.append(
                    Got(
                        offset,
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        tuple(cast(list[Any], headers or [])),
                    )
                )
        return got

    def close(self) -> None:
        self._consumer.close()
