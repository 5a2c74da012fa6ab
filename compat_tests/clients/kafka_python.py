"""kafka-python behind the common interface."""

from __future__ import annotations

import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from .face import READ_TIMEOUT_S, Got, Sent, Start

LARGEST_MESSAGE_BYTES = 1_000_000


class KafkaPython:
    sets_timestamps = True
    binary = True
    null_headers = False
    creates_partitions = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        self._admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])

    def partition_count(self, topic: str) -> int:
        (described,) = self._admin.describe_topics([topic])
        return len(described["partitions"])

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                    partition=0,
                )
                for record in records
            ]
            for future in futures:
                future.get(timeout=READ_TIMEOUT_S)
        finally:
            producer.close()

    def reader(self, topic: str, start: Start) -> KafkaPythonReader:
        return KafkaPythonReader(self._bootstrap, TopicPartition(topic, 0), start)

    def close(self) -> None:
        self._admin.close()


class KafkaPythonReader:
    def __init__(self, bootstrap: str, partition: TopicPartition, start: Start) -> None:
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        self._consumer.assign([partition])
        if start.kind == "earliest":
            self._consumer.seek_to_beginning(partition)
        elif start.kind == "latest":
            self._consumer.seek_to_end(partition)
        else:
            self._consumer.seek(partition, self._offset(partition, start))
        self._consumer.position(partition)

    def _offset(self, partition: TopicPartition, start: Start) -> int:
        if start.kind == "offset":
            return start.value
        found = self._consumer.offsets_for_times({partition: start.value})[partition]
        return int(found.offset)

    def read(self, count: int) -> list[Got]:
        got: list[Got] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(got) < count and time.monotonic() < deadline:
            for records in self._consumer.poll(timeout_ms=500, max_records=count - len(got)).values():
                got += [Got(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]
        return got

    def close(self) -> None:
        self._consumer.close()
