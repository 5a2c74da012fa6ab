"""What pipelines ask of a cluster: topics, their ends, and that records be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pykafkad import errors
from pykafkad.net.client import Cluster
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.plan.ends import Record
from pykafkad.tools import admin
from pykafkad.tools.admin import EARLIEST, LATEST, Partition, TopicDescription
from pykafkad.tools.fetching import READ_COMMITTED
from pykafkad.tools.producer import Producer

TIMEOUT_MS = 10_000
"""How long a call may take before whoever made it hears of that."""


class Broker:
    """One cluster, by its bootstrap servers. What it cannot do is a KafkaError, ClientError or OSError."""

    def __init__(self, bootstrap: str, configs: Mapping[str, str] | None = None) -> None:
        self.bootstrap, self.configs = bootstrap, dict(configs or {})
        self.cluster: Cluster = admin.connect_to(
            bootstrap, self.configs, client_id="pykafkad-sql", timeout_ms=TIMEOUT_MS
        )
        self._producer: Producer | None = None

    # --- topics

    def topics(self) -> list[TopicDescription]:
        return sorted(admin.list_topics(self.cluster), key=lambda topic: topic.name)

    def topic(self, name: str) -> TopicDescription | None:
        """The topic; None if there is none of that name."""
        (row,) = self.cluster.attempt("describeTopics", lambda: self.cluster.metadata([name])).topics
        if row.error_code in (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.INVALID_TOPIC_EXCEPTION):
            return None
        return next(iter(admin.described({name: admin._described(row)}).values()))

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """Every partition of the topics; StatementError for a topic that is not there."""
        found = []
        for name in dict.fromkeys(topics):
            topic = self.topic(name)
            if topic is None:
                raise StatementError(f"Kafka topic does not exist: {name}")
            found += [(name, partition.index) for partition in topic.partitions]
        return found

    def create(self, name: str, partitions: int, replicas: int | None, configs: Mapping[str, str]) -> None:
        admin.create_topic(
            self.cluster,
            name,
            partitions=partitions,
            replication_factor=replicas,
            assignment={},
            configs=configs,
        )

    def delete(self, name: str) -> None:
        admin.delete_topics(self.cluster, [name])

    # --- offsets

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self._offsets(partitions, EARLIEST)

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offsets behind what may be read of them now."""
        return self._offsets(partitions, LATEST)

    def _offsets(self, partitions: Iterable[Partition], which: int) -> dict[Partition, int]:
        found = admin.list_offsets(self.cluster, dict.fromkeys(partitions, which), isolation=READ_COMMITTED)
        clean = {}
        for partition, offset in found.items():
            if isinstance(offset, errors.KafkaError):
                raise offset
            clean[partition] = offset
        return clean

    # --- writing

    def send(self, record: Record, done: Callable[[Exception | None], object] | None = None) -> None:
        if self._producer is None:
            waits = {"linger.ms": "0", "max.block.ms": str(TIMEOUT_MS)}
            self._producer = Producer(self.bootstrap, {**waits, **self.configs})
        self._producer.send(
            record.topic,
            record.key,
            record.value,
            record.headers,
            timestamp_ms=max(0, record.time),
            done=done,
        )

    def flush(self) -> None:
        """Waits until everything sent was taken, or refused."""
        if self._producer is not None:
            self._producer.flush()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self.cluster.close()
