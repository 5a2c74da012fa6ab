"""A partition moves between log directories while a producer writes to it, and the broker is killed meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from pykafkad.hot import records
from pykafkad.messages import (
    FetchRequest,
    ProduceRequest,
)
from pykafkad.testing import Broker
from tests.moves_kit import home_of, move, wait_until_at

SECONDS = 20
PAUSE_SECONDS = 0.001  # the disk is shared with others
VALUE_BYTES = 5_000


def produce(client: Any, number: int) -> Any:
    value = b"%08d" % number + b"x" * VALUE_BYTES
    batch = records.build([(None, value, [], 1_700_000_000_000)])
    item = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[item])]
    answer = client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    return answer.responses[0].partition_responses[0]


class Producer(threading.Thread):
    """One record after the other; `acknowledged` counts them."""

    def __init__(self, broker: Broker, start: int) -> None:
        super().__init__(daemon=True)
        self.broker = broker
        self.acknowledged = start
        self.done = False
        self.start()

    def run(self) -> None:
        try:
            with self.broker.client() as client:
                while not self.done:
                    answer = produce(client, self.acknowledged)
                    assert answer.error_code == 0
                    self.acknowledged = answer.base_offset + 1
                    time.sleep(PAUSE_SECONDS)
        except ConnectionError:
            pass

    def finish(self) -> int:
        self.done = True
        self.join(SECONDS)
        return self.acknowledged


def everything(client: Any) -> list[int]:
    found: list[int] = []
    while True:
        item = FetchRequest.FetchPartition(partition=0, fetch_offset=len(found), partition_max_bytes=1 << 24)
        topics = [FetchRequest.FetchTopic(topic="t", partitions=[item])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics)
        answer = client.call(request, 12).responses[0].partitions[0]
        if len(found) >= answer.high_watermark:
            return found
        found += [
            int((each.value or b"")[:8]) for each in records.read(answer.records) if each.offset >= len(found)
        ]


def two_directories(tmp_path: Path) -> tuple[list[str], Broker]:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    return paths, Broker(config={"log.dirs": ",".join(paths), "log.segment.bytes": "1048576"})


def test_nothing_is_lost_while_it_moves_to_and_fro(tmp_path: Path) -> None:
    paths, made = two_directories(tmp_path)
    with made as broker:
        broker.create_topic("t", 1)
        producer = Producer(broker, 0)
        with broker.client() as client:
            for _ in range(6):
                target = next(path for path in paths if path != home_of(client))
                move(client, target)
                wait_until_at(client, target)
                time.sleep(0.05)
            acknowledged = producer.finish()
            assert everything(client) == list(range(acknowledged))


def test_a_kill_while_it_moves(tmp_path: Path) -> None:
    paths, made = two_directories(tmp_path)
    with made as broker:
        broker.create_topic("t", 1)
        acknowledged = 0
        for pause in (0.0, 0.005, 0.01, 0.02, 0.04, 0.08):
            producer = Producer(broker, acknowledged)
            with broker.client() as client:
                deadline = time.monotonic() + SECONDS
                while producer.acknowledged < acknowledged + 20 and time.monotonic() < deadline:
                    time.sleep(0.005)
                target = next(path for path in paths if path != home_of(client))
                move(client, target)
            time.sleep(pause)
            broker.kill()
            told = producer.finish()
            broker.restart()
            with broker.client() as client:
                wait_until_at(client, target)  # the start continues the move
                found = everything(client)
            assert found == list(range(len(found))) and told <= len(found) <= told + 1
            acknowledged = len(found)
