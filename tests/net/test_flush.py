"""A disk that syncs slowly: producers who were promised a flush wait for it, and nobody else does."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records, wire
from pykafkad.messages import FetchRequest, ProduceRequest, ProduceResponse
from pykafkad.testing import Broker
from tests.strace_kit import Injected, needs_strace, wait_until

DELAY_SECONDS = 0.5
PRODUCERS = 10
VERSION = 9

pytestmark = needs_strace


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """With the topics `synced`, whose records are flushed one by one, and `plain`."""
    with Broker(topics=["plain"], data=tmp_path / "data") as made:
        made.create_topic("synced", 1, {"flush.messages": 1})
        with made.client() as client:
            for topic in ("synced", "plain"):
                assert produce(client, topic) == (errors.NONE, 0)
        yield made


def slow(broker: Broker) -> Injected:
    path = f"{broker.data}/synced-0/{0:020d}.log"
    return Injected(broker, "fdatasync,fsync", f"delay_enter={int(DELAY_SECONDS * 1e6)}", path)


def request(topic: str, value: bytes = b"v") -> Any:
    batch = records.build([(None, value, [], int(time.time() * 1000))])
    item = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[item])]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def produce(client: Any, topic: str) -> tuple[int, int]:
    found = client.call(request(topic), VERSION).responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def high_watermark(client: Any, topic: str) -> int:
    item = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[item])]
    asked = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
    return int(client.call(asked, 12).responses[0].partitions[0].high_watermark)


class Producer(threading.Thread):
    """Produces one record; notes when it was acknowledged, and its offset."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.client = broker.client()
        self.offset = -1
        self.seconds = 0.0
        self.start()

    def run(self) -> None:
        began = time.monotonic()
        with self.client:
            code, self.offset = produce(self.client, "synced")
        assert code == errors.NONE
        self.seconds = time.monotonic() - began


def test_the_loop_serves_others_and_appends_share_a_sync(broker: Broker) -> None:
    with broker.client() as client, slow(broker) as injected:
        first = Producer(broker)
        wait_until(lambda: bool(injected.calls) or not first.is_alive(), "nothing is synced")
        others = [Producer(broker) for _ in range(PRODUCERS)]
        quickest = min(timed(lambda: produce(client, "plain")) for _ in range(5))
        assert quickest < DELAY_SECONDS / 5
        for each in (first, *others):
            each.join()
        assert first.seconds >= DELAY_SECONDS
        assert len(injected.calls) <= 4, "ten appends asked for ten syncs"
        assert sorted(each.offset for each in (first, *others)) == list(range(1, PRODUCERS + 2))
        assert high_watermark(client, "synced") == PRODUCERS + 2


def timed(action: Any) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def test_nobody_reads_what_is_not_synced(broker: Broker) -> None:
    with broker.client() as client, slow(broker) as injected:
        began = time.monotonic()
        producer = Producer(broker)
        looks = 0
        while True:
            mark = high_watermark(client, "synced")
            if time.monotonic() - began >= DELAY_SECONDS:
                break  # the sync may be done already
            assert mark == 1
            looks += 1
        producer.join()
        assert looks and injected.calls
        assert producer.offset == 1 and high_watermark(client, "synced") == 2


def test_answers_of_a_connection_keep_their_order(broker: Broker) -> None:
    topics = ["plain", "synced", "plain", "synced", "plain"]
    frames = [wire.request(request(topic), VERSION, number, "test") for number, topic in enumerate(topics)]
    with slow(broker), socket.create_connection((broker.host, broker.port), 20) as connection:
        connection.sendall(
            b"".join(bytes(frame) if isinstance(frame, bytes) else joined(frame) for frame in frames)
        )
        stream = connection.makefile("rb")
        for number, topic in enumerate(topics):
            answer = stream.read(int.from_bytes(stream.read(4)))
            assert int.from_bytes(answer[:4]) == number
            found = ProduceResponse.decode(answer, VERSION, 5).responses[0]
            assert (found.name, found.partition_responses[0].error_code) == (topic, errors.NONE)


def joined(parts: list[Any]) -> bytes:
    return b"".join(bytes(part) for part in parts)


def test_a_stop_waits_for_what_was_promised(broker: Broker) -> None:
    with slow(broker) as injected:
        producer = Producer(broker)
        wait_until(lambda: bool(injected.calls) or not producer.is_alive(), "nothing is synced")
        assert broker.stop() == 0
        producer.join()
        assert producer.offset == 1
    assert os.path.exists(f"{broker.data}/.kafka_cleanshutdown")
    broker.start()
    with broker.client() as client:
        assert high_watermark(client, "synced") == 2
