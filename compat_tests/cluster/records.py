"""Producing and reading with librdkafka, while brokers come and go: each record is followed to its end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

DELIVERY_S = 90.0
READ_S = 60.0
PAUSE_S = 0.005


class Writer:
    """Writes numbered values to a topic from a thread of its own, as long as it is asked to."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, **config: object) -> None:
        settings = {
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": int(DELIVERY_S * 1000),
            **config,
        }
        # A broker that is away is tried again soon: librdkafka's own pause grows to ten seconds.
        quick = {"reconnect.backoff.max.ms": 500, "topic.metadata.refresh.interval.ms": 1000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap, **quick, **settings})
        self._topic, self._partitions = topic, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: list[str] = []
        self.failed: list[str] = []
        self.sent = 0

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.send()
            self._producer.poll(PAUSE_S)
        self._producer.flush(DELIVERY_S)

    def send(self) -> None:
        value = f"value-{self.sent}"
        self._producer.produce(
            self._topic,
            value,
            partition=self.sent % self._partitions,
            on_delivery=lambda *end: self._end(value, *end),
        )
        self.sent += 1

    def _end(self, value: str, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(value)
        else:
            self.failed.append(f"{value}: {error}")

    def goes_on(self, count: int = 50, seconds: float = DELIVERY_S) -> float:
        """Wait for that many more acknowledgements; how long it took."""
        began, wanted = time.monotonic(), len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            took = time.monotonic() - began
            assert took < seconds, (
                f"{len(self.acknowledged)} acknowledged, {wanted} wanted; failed {self.failed[-3:]}"
            )
            time.sleep(PAUSE_S)
        return time.monotonic() - began


def read_all(bootstrap: str, topic: str, partitions: int, isolation: str = "read_committed") -> list[str]:
    """Every value of the topic, partition by partition, up to its end as it is now."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "nobody",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "log_level": 0,
    }
    consumer = Consumer(config)
    try:
        ends: dict[int, int] = {}
        for index in range(partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=READ_S)
            if high > low:
                ends[index] = high
        consumer.assign([TopicPartition(topic, index, 0) for index in ends])
        return _until(consumer, topic, ends)
    finally:
        consumer.close()


def _until(consumer: Consumer, topic: str, ends: dict[int, int]) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + READ_S
    while ends:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            found.append((message.value() or b"").decode())
        for place in consumer.position([TopicPartition(topic, index) for index in ends]):
            if place.offset >= ends.get(place.partition, 1 << 62):
                del ends[place.partition]
        assert time.monotonic() < deadline, (
            f"{topic}: {len(found)} read, and these are not at their ends: {ends}"
        )
    return found


def check_nothing_lost(writer: Writer, found: list[str]) -> None:
    """Each acknowledged value is there, once."""
    assert not writer.failed, writer.failed[:3]
    counts = Counter(found)
    lost = [value for value in writer.acknowledged if value not in counts]
    twice = [value for value, count in counts.items() if count > 1]
    assert not lost, f"{len(lost)} of {len(writer.acknowledged)} acknowledged values are lost: {lost[:5]}"
    assert not twice, f"{len(twice)} values are there more than once: {twice[:5]}"
