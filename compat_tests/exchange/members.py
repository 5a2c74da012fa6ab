"""Real clients (librdkafka) in the turns: members of groups that continue where they were, and transactions.

Owns: how far each group has read, and what a ledger that is written in transactions has.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

if TYPE_CHECKING:
    from compat_tests.exchange.world import World

SECONDS = 60
GROUPS = {"classic-readers": "classic", "new-readers": "consumer"}
LEDGER = "ledger"


class Readers:
    """One member of each group reads the new records of the topic, and commits."""

    def __init__(self, world: World, topic: str) -> None:
        self.world = world
        self.topic = topic
        self.read: dict[str, dict[int, int]] = {group: {} for group in GROUPS}  # records, by partition

    def go_on(self) -> None:
        for group in GROUPS:
            self._go_on(group)

    def _go_on(self, group: str) -> None:
        done = self.read[group]
        expected = {
            index: [value for _, _, value in rows[done.get(index, 0) :]]
            for (topic, index), rows in self.world.records.items()
            if topic == self.topic
        }
        found = read_group(self.world.home.bootstrap, group, self.topic, sum(map(len, expected.values())))
        assert {index: found.get(index, []) for index in expected} == expected, group
        for index, values in expected.items():
            done[index] = done.get(index, 0) + len(values)
            if values:
                self.world.offsets.setdefault(group, {})[self.topic, index] = done[index]


def read_group(bootstrap: str, group: str, topic: str, count: int) -> dict[int, list[bytes]]:
    """Read this many records from the group's offsets on, and no more; what was read is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": GROUPS[group],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    found: dict[int, list[bytes]] = {}
    deadline = time.monotonic() + SECONDS
    try:
        consumer.subscribe([topic])
        while count > 0 and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                partition, value = message.partition(), message.value()
                assert partition is not None and value is not None
                found.setdefault(partition, []).append(value)
                count -= 1
        if found:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


class Ledger:
    """A topic written by transactions: committed records are read, aborted ones are not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.committed: list[bytes] = []

    def write(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.world.home.bootstrap, "transactional.id": "bookkeeper", "linger.ms": 0}
        )
        producer.init_transactions(SECONDS)
        for kept in (True, False, True):
            producer.begin_transaction()
            for number in range(3):
                value = b"turn %d, %d, %s" % (self.world.turns, number, b"kept" if kept else b"gone")
                producer.produce(LEDGER, value=value, partition=0)
                if kept:
                    self.committed.append(value)
            producer.flush(SECONDS)
            producer.commit_transaction(SECONDS) if kept else producer.abort_transaction(SECONDS)

    def check(self) -> None:
        assert read_committed(self.world.home.bootstrap, LEDGER) == {LEDGER: self.committed}


def read_committed(bootstrap: str, *topics: str) -> dict[str, list[bytes]]:
    """What is committed in the first partition of each topic, up to where the first open transaction begins."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: dict[str, list[bytes]] = {topic: [] for topic in topics}
    left = set(topics)
    deadline = time.monotonic() + SECONDS
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
        while left:
            assert time.monotonic() < deadline, f"the ends of {left} were not reached"
            message = consumer.poll(1)
            if message is None:
                continue
            topic, error, value = message.topic(), message.error(), message.value()
            assert topic is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(topic)
            else:
                assert value is not None
                found[topic].append(value)
    finally:
        consumer.close()
    return found
