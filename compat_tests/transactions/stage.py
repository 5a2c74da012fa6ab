"""The setting of a scenario: topics, plain records, a client's program, and an observer with a client of its own."""

from __future__ import annotations

import itertools
import time
import uuid
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from .program import Program, Refused

WAIT_SECONDS = 40.0
QUIET = {"log_level": 0}  # of a broker that is killed it would complain
LONG_MS = 60_000  # a transaction that does not time out


class Stage:
    def __init__(self, broker: Any, program: Program) -> None:
        self._bootstrap = broker.bootstrap_servers
        self.ask = program.ask
        self.flavour = program.flavour
        self._unique = uuid.uuid4().hex[:8]
        self._numbers = itertools.count()
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        self._plain = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0, **QUIET})

    def name(self, what: str) -> str:
        """A name that nobody else has."""
        return f"{what}-{next(self._numbers)}-{self._unique}"

    def topic(self, partitions: int = 1) -> str:
        name = self.name("topic")
        self._admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_SECONDS)
        deadline = time.monotonic() + WAIT_SECONDS
        while name not in self._admin.list_topics(timeout=WAIT_SECONDS).topics:
            assert time.monotonic() < deadline, f"{name} is not known after {WAIT_SECONDS} s"
        return name

    def place(self) -> str:
        return f"{self.topic()}:0"

    def produce(self, place: str, *values: str) -> None:
        """Outside of transactions; acknowledged when it returns."""
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        topic, _, partition = place.rpartition(":")
        for value in values:
            self._plain.produce(topic, value.encode(), partition=int(partition), on_delivery=on_delivery)
        assert self._plain.flush(WAIT_SECONDS) == 0 and not failures, failures

    def producer(self, name: str, *of_group: str, timeout_ms: int = LONG_MS, id: str = "") -> str:
        """A producer of the client under test, initialised; returns its transactional id. `of_group`: group, topic and
        protocol of its consumer."""
        transactional_id = id or self.name("id")
        self.ask("producer", name, transactional_id, timeout_ms, *of_group)
        return transactional_id

    def transaction(self, producer: str, sent: dict[str, list[str]], end: str) -> None:
        self.ask("begin", producer)
        for place, values in sent.items():
            self.ask("send", producer, place, *values)
        self.ask(end, producer)

    def refusal(self, *commands: list[str]) -> str:
        """What the client says to the first command that it refuses."""
        for command in commands:
            try:
                self.ask(*command)
            except Refused as refused:
                return str(refused)
        raise AssertionError(f"none of {commands} was refused")

    def await_coordinator(self) -> None:
        """The one of the one partition of __transaction_state is loaded."""
        probe = Producer(
            {"bootstrap.servers": self._bootstrap, "transactional.id": self.name("probe"), **QUIET}
        )
        probe.init_transactions(WAIT_SECONDS)

    def seen(self, isolation: str, place: str, last: str) -> list[str]:
        """What a new reader of the client under test reads, up to `last`."""
        self.ask("reader", "reader", isolation, place)
        found = self.ask("take", "reader", last)
        self.ask("close", "reader")
        return found

    def committed(self, group: str, topic: str) -> int | None:
        """The group's offset of partition 0, when no transaction is about to change it."""
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            asked = self._admin.list_consumer_group_offsets([wanted], require_stable=True)
            found = asked[group].result(WAIT_SECONDS).topic_partitions[0]
            if found.error is None:
                return None if found.offset == OFFSET_INVALID else int(found.offset)
            assert found.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT, found.error
            assert time.monotonic() < deadline, f"the offset is not stable after {WAIT_SECONDS} s"
