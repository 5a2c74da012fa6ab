"""A partition moves between log directories while it is written to, compacted, shortened by retention and flushed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from pykafkad.testing import Broker
from tests.moves_kit import home_of, move, wait_until_at

SECONDS = 30
MOVES = 4
KEYS = 20
VALUE_BYTES = 500
OFTEN = {
    "log.cleaner.backoff.ms": 50,
    "log.initial.task.delay.ms": 50,
    "log.retention.check.interval.ms": 50,
    "log.segment.delete.delay.ms": 100,
}
SMALL = {"internal.segment.bytes": 16_384, "index.interval.bytes": 512}


class Producer(threading.Thread):
    """Produces batches of one record with rotating keys; `newest` has the offset of each key's last acknowledged
    record.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.broker = broker
        self.newest: dict[bytes, int] = {}
        self.count = 0
        self.trouble = ""
        self.done = False
        self.start()

    def run(self) -> None:
        with self.broker.client() as client:
            while not self.done and not self.trouble:
                key = b"%d" % (self.count % KEYS)
                value = b"%08d" % self.count + b"x" * VALUE_BYTES
                batch = records.build([(key, value, [], int(time.time() * 1000))])
                item = ProduceRequest.PartitionProduceData(index=0, records=batch)
                topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[item])]
                answer = client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
                found = answer.responses[0].partition_responses[0]
                if found.error_code or found.base_offset != self.count:
                    self.trouble = f"error {found.error_code}, offset {found.base_offset} for {self.count}"
                self.newest[key] = self.count
                self.count += 1
                time.sleep(0.0005)  # the disk is shared with others

    def finish(self) -> None:
        self.done = True
        self.join(SECONDS)
        assert not self.trouble, self.trouble


def log_start(client: Any) -> int:
    kind = ListOffsetsRequest
    item = kind.ListOffsetsPartition(partition_index=0, timestamp=-2)
    answer = client.call(kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name="t", partitions=[item])]), 6)
    return int(answer.topics[0].partitions[0].offset)


def everything(client: Any) -> dict[int, bytes]:
    """Offset -> value, of all records."""
    found: dict[Any, Any] = {}
    offset = log_start(client)
    while True:
        item = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 24)
        topics = [FetchRequest.FetchTopic(topic="t", partitions=[item])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics)
        answer = client.call(request, 12).responses[0].partitions[0]
        if answer.error_code == errors.OFFSET_OUT_OF_RANGE and not found:
            offset = log_start(client)  # retention was faster
            continue
        assert answer.error_code == errors.NONE
        if not answer.records:
            assert offset == answer.high_watermark
            return found
        found |= {each.offset: each.value for each in records.read(answer.records) if each.offset >= offset}
        offset = records.scan(answer.records)[-1].last_offset + 1


POLICIES: dict[str, dict[str, object]] = {
    "compact": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01, "segment.ms": 1000},
    "delete": {"cleanup.policy": "delete", "retention.bytes": 100_000},
    "compact,delete": {
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": 0.01,
        "retention.bytes": 400_000,
    },
}


@pytest.mark.parametrize(
    ("policy", "flush"), [("compact", False), ("delete", False), ("compact,delete", True)]
)
def test_nothing_is_lost_while_it_moves_and_is_tidied(tmp_path: Path, policy: str, flush: bool) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    topic = {**SMALL, **POLICIES[policy], **({"flush.messages": 1} if flush else {})}
    with Broker(config={"log.dirs": ",".join(paths), **OFTEN}) as broker:
        broker.create_topic("t", 1, topic)
        producer = Producer(broker)
        with broker.client() as client:
            for _ in range(MOVES):
                target = next(path for path in paths if path != home_of(client))
                move(client, target)
                wait_until_at(client, target)
                at_least = producer.count + 300  # some segments, for the cleaner and retention
                deadline = time.monotonic() + SECONDS
                while producer.count < at_least and not producer.trouble:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
            producer.finish()
            deadline = time.monotonic() + SECONDS
            while len(everything(client)) == producer.count:
                assert time.monotonic() < deadline, "nothing is tidied"
            check(client, producer, policy)
        broker.kill()
        broker.restart()
        with broker.client() as client:
            check(client, producer, policy)
        text = broker.log_text()
        assert "offline" not in text and "Traceback" not in text


def check(client: Any, producer: Producer, policy: str) -> None:
    found, start = everything(client), log_start(client)
    for offset, value in found.items():
        assert int(value[:8]) == offset, "a record under another's offset"
    assert max(found) == producer.count - 1
    if policy == "delete":
        assert list(found) == list(range(min(found), producer.count))
    else:
        assert all(offset in found for offset in producer.newest.values() if offset >= start)
