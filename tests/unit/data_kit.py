"""A broker without loop and sockets: real dispatcher, handlers and storage; tests are its clients and its clock."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from pykafkad import messages
from pykafkad.clock import ManualClock
from pykafkad.cluster import features
from pykafkad.config import BrokerConfig, TopicConfig
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.coordinator.transactions import TransactionCoordinator
from pykafkad.dispatcher import Dispatcher
from pykafkad.errors import KafkaError
from pykafkad.hot import records, wire
from pykafkad.pure.fetch_session import FetchSessions
from pykafkad.serving import ServingBroker
from pykafkad.storage.manager import LogManager
from pykafkad.workers import submit_inline

NOW_MS = 1_700_000_000_000


class Placed:
    leader = 1
    replicas = (1,)


class Topic:
    def __init__(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.name, self.id, self.partitions = name, topic_id, [Placed()] * partitions


class Image:
    supported_features = features.SUPPORTED

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topic_changes = 0
        self.offset = 0
        self.brokers: dict[int, Any] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features = self.finalized_features = {"transaction.version": 2}


class Timer:
    def __init__(self, due_ms: int, callback: Any, arguments: tuple[Any, ...]) -> None:
        self.due_ms, self.callback, self.arguments, self.cancelled = due_ms, callback, arguments, False

    def cancel(self) -> None:
        self.cancelled = True


class Ticket:
    def __init__(self) -> None:
        self.parts: Any = None
        self.is_answered = False

    def answer(self, parts: Any) -> None:
        assert not self.is_answered, "answered twice"
        self.parts, self.is_answered = parts, True


class Connection:
    def __init__(self) -> None:
        self.state: Any = None
        self.closed: str | None = None
        self.peer = ("127.0.0.1", 1)
        self.muted: list[int] = []

    def mute(self, delay_ms: int) -> None:
        self.muted.append(delay_ms)

    def defer(self) -> Ticket:
        return Ticket()

    def finish(self, reason: str | None = None) -> None:
        self.closed = reason or "closed"

    close = finish


class Desk(ServingBroker):
    """A broker that takes requests as frames and gives answers as messages."""

    def __init__(self, directory: Path, **overrides: str) -> None:
        texts = {key.replace("_", "."): text for key, text in overrides.items()}
        config = BrokerConfig.from_sources({"log.dirs": str(directory), **texts})
        self.timers: list[Timer] = []
        super().__init__(config, ManualClock(NOW_MS), Dispatcher(self), self, submit_inline)
        self.open_storage()
        self.storage.open_all({}, lambda topic: TopicConfig(self.config))
        numbers = count(1)
        self.producer_ids = count(1000)
        self.fetch_sessions = FetchSessions(10, lambda: next(numbers))
        self.image = Image()  # type: ignore[assignment]
        self.group_coordinator = GroupCoordinator(
            self.config, self.coordinator_loop, self.replicas, self.image
        )
        self.transaction_coordinator = self.new_transaction_coordinator()
        self.connection = Connection()
        self.correlation_id = 0

    def new_transaction_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            self.config,
            self.coordinator_loop,
            self.replicas,
            self.image,
            self.take_producer_id,
            lambda: self.ending_markers,
        )

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        done(next(self.producer_ids))

    def open_storage(self) -> None:
        self.storage = LogManager(self.config, self.clock, replicas=self.replicas)

    def call_later(self, delay_ms: int, callback: Any, *arguments: Any) -> Timer:
        self.timers.append(Timer(self.clock.monotonic_ms() + delay_ms, callback, arguments))
        return self.timers[-1]

    def send_answers(self) -> None:
        """There is no connection to send them to."""

    def call_between(self, callback: Any, *arguments: Any) -> None:
        self.call_soon(callback, *arguments)

    def call_soon(self, callback: Any, *arguments: Any) -> None:
        self.call_later(0, callback, *arguments)

    def advance(self, delta_ms: int) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(delta_ms)
        for timer in [timer for timer in self.timers if timer.due_ms <= self.clock.monotonic_ms()]:
            self.timers.remove(timer)
            if not timer.cancelled:
                timer.callback(*timer.arguments)

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        topic = Topic(name, name.encode().ljust(16, b"\1")[:16], partitions)
        config = TopicConfig(self.config, {key.replace("_", "."): text for key, text in configs.items()})
        for index in range(partitions):
            self.storage.create(name, index, topic.id, config, 0)
        self.image.topics[name] = self.image.topics_by_id[topic.id] = topic  # type: ignore[assignment]
        self.image.topic_changes += 1
        return topic.id

    def send(self, request: Any, version: int, client_id: str = "test") -> Any:
        """Send one frame; returns what the dispatcher returned to the loop."""
        self.correlation_id += 1
        sent = wire.request(request, version, self.correlation_id, client_id)
        assert isinstance(sent, bytes)
        frame = bytearray(sent)
        return self.dispatcher.on_frame(self.connection, frame, 4, len(frame))

    def end_pass(self) -> None:
        self._on_pass_end()

    def ask(self, request: Any, version: int, client_id: str = "test") -> Any:
        """Send one request and run its pass; returns the answer, or None while it waits (or if there is none)."""
        given = self.send(request, version, client_id)
        self.end_pass()
        return self.answer_of(given, type(request).__name__, version)

    def answer_of(self, given: Any, request: str, version: int) -> Any:
        parts = given
        while isinstance(
            parts, (Ticket, wire.Exchange)
        ):  # a large answer, or one that waits for the disk, has its own ticket
            parts = parts.parts if isinstance(parts, Ticket) else parts.encode()
        if parts is None:
            return None
        response = getattr(messages, request.replace("Request", "Response"))
        body = read_parts(parts)
        assert int.from_bytes(body[:4]) == len(body) - 4
        header = 9 if version >= response.flexible_since else 8
        return response.decode(body, version, header)


def read_parts(parts: Any) -> bytes:
    """The bytes of an answer, with its file ranges read."""
    import os

    if isinstance(parts, bytes):
        return parts
    return b"".join(
        part if isinstance(part, bytes) else os.pread(part.fd, part.size, part.offset) for part in parts
    )


def batch(*values: bytes, timestamp: int = NOW_MS, **fields: Any) -> bytes:
    return records.build([(None, value, [], timestamp) for value in values], **fields)


def produce(topic: str, index: int, data: bytes | None, acks: int = -1, topic_id: bytes = bytes(16)) -> Any:
    Request = messages.ProduceRequest
    item = Request.PartitionProduceData(index=index, records=data)
    data_of = Request.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[item])
    return Request(acks=acks, timeout_ms=1000, topic_data=[data_of])


def fetch(topic: str, *partitions: dict[str, Any], topic_id: bytes = bytes(16), **fields: Any) -> Any:
    Request = messages.FetchRequest
    asked = [Request.FetchPartition(**{"partition_max_bytes": 1 << 20, **each}) for each in partitions]
    topics = [Request.FetchTopic(topic=topic, topic_id=topic_id, partitions=asked)] if asked else []
    return Request(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics, **fields})


def values_of(partition: Any) -> list[bytes]:
    return [record.value or b"" for record in records.read(partition.records)] if partition.records else []
