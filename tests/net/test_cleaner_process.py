"""The log cleaner in the program: it runs by itself, obeys configs at once, and is stopped and killed in the middle."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pykafkad.hot import records
from pykafkad.messages import FetchRequest, IncrementalAlterConfigsRequest, ProduceRequest
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.testing import Broker
from pykafkad.testing.client import Client

TOPIC, BROKER = 2, 4
SECONDS = 20
NOW_MS = 1_700_000_000_000
KEYS = 50
SMALL = {
    "log.cleanup.policy": "compact",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": "1048576",
    "log.retention.ms": "-1",
}


def produce(client: Client, start: int, count: int, size: int = 1000) -> None:
    """Batches of ten records, with consecutive keys."""
    for first in range(start, start + count, 10):
        rows: Any = [
            (b"%d" % (n % KEYS), b"%d" % n + b"x" * size, [], NOW_MS) for n in range(first, first + 10)
        ]
        item = ProduceRequest.PartitionProduceData(index=0, records=records.build(rows))
        topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[item])]
        answer = client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
        part = answer.responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (0, first)


def consume(client: Client, offset: int = 0) -> dict[int, tuple[bytes, int]]:
    """Offset -> key and number, of all that is there."""
    found: dict[int, tuple[bytes, int]] = {}
    while True:
        part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic="t", partitions=[part])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])
        answer = client.call(request, 12).responses[0].partitions[0]
        assert answer.error_code == 0
        data = bytes(answer.records or b"")
        if not data:
            return found
        for record in records.read(data):
            assert record.key is not None and record.value is not None
            found[record.offset] = bytes(record.key), int(bytes(record.value).rstrip(b"x"))
        offset = records.scan(data)[-1].last_offset + 1


def alter(client: Client, resource_type: int, name: str, **configs: str) -> None:
    kind = IncrementalAlterConfigsRequest
    entries = [
        kind.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=entries)
    (answer,) = client.call(kind(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer


def clean_up_to(broker: Broker) -> int:
    offsets = checkpoints.read_offsets(os.path.join(broker.data, checkpoints.CLEANED))
    return offsets.get(("t", 0), 0)


def active_base(broker: Broker) -> int:
    return max(int(path.stem) for path in Path(broker.data, "t-0").glob("*.log"))


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check(found: dict[int, tuple[bytes, int]], end: int) -> None:
    """All records are as they were, and the newest of each key is there."""
    assert all(number == offset and key == b"%d" % (offset % KEYS) for offset, (key, number) in found.items())
    assert set(range(end - KEYS, end)) <= set(found)


def test_it_cleans_by_itself_and_goes_on_after_a_kill() -> None:
    with Broker(["t"], SMALL) as broker:
        end = 0
        for turn in range(3):
            with broker.client() as client:
                produce(client, end, 3000)
                end += 3000
                wait_until(lambda: clean_up_to(broker) == active_base(broker) > 0)
                found = consume(client)
            check(found, end)
            assert len(found) < 1500, "the active segment has a thousand"
            if turn == 0:
                broker.kill()
                broker.start()
            elif turn == 1:
                broker.restart()


def test_a_kill_in_the_middle_of_a_throttled_cleaning() -> None:
    config = {**SMALL, "log.cleaner.io.max.bytes.per.second": "6000000"}
    with Broker(["t"], config) as broker:
        for turn in range(2):
            with broker.client() as client:
                produce(client, turn * 3000, 3000)
            wait_until(lambda: bool(list(Path(broker.data, "t-0").glob("*.cleaned"))))
            broker.kill()
            broker.start()
            with broker.client() as client:
                check(consume(client), (turn + 1) * 3000)


def test_a_stop_in_the_middle_of_a_throttled_cleaning_is_clean() -> None:
    config = {**SMALL, "log.cleaner.io.max.bytes.per.second": "100000"}
    with Broker(["t"], config) as broker:
        with broker.client() as client:
            produce(client, 0, 3000)
        wait_until(lambda: "cleaner" in thread_states(broker))
        began = time.monotonic()
        broker.stop()
        assert time.monotonic() - began < 3
        assert Path(broker.data, ".kafka_cleanshutdown").exists()
        assert clean_up_to(broker) == 0
        assert not list(Path(broker.data, "t-0").glob("*.cleaned"))


def thread_states(broker: Broker) -> str:
    """The first pass shows only in an additional thread; by then a second has passed."""
    threads = os.listdir(f"/proc/{broker.pid}/task")
    return "cleaner" if len(threads) > 1 and time.monotonic() - broker_started(broker) > 2 else ""


def broker_started(broker: Broker) -> float:
    ticks = int(Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_a_rate_and_a_policy_count_at_once() -> None:
    config = {**SMALL, "log.cleaner.io.max.bytes.per.second": "1000", "log.cleanup.policy": "delete"}
    with Broker(["t"], config) as broker, broker.client() as client:
        produce(client, 0, 3000)
        alter(client, TOPIC, "t", cleanup_policy="compact")
        time.sleep(1.5)
        assert clean_up_to(broker) == 0, "at that rate it takes an hour"
        alter(client, BROKER, "", log_cleaner_io_max_bytes_per_second="100000000")
        wait_until(lambda: clean_up_to(broker) == active_base(broker))
        check(consume(client), 3000)
