"""The log: append and commit as in a Produce, finding an offset as in a Fetch, starting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.clock import ManualClock
from pykafkad.cluster.replicas import Replicas
from pykafkad.config import BrokerConfig, TopicConfig
from pykafkad.hot import records
from pykafkad.hot.index import OffsetIndex
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager

NOW_MS = 1_700_000_000_000
BATCHES = 16  # a commit
TOPIC_ID = bytes(range(16))


@pytest.fixture
def logs(tmp_path: Path) -> LogManager:
    config = BrokerConfig.from_sources({"log.dirs": str(tmp_path)})
    clock = ManualClock(NOW_MS)
    manager = LogManager(config, clock, replicas=Replicas(config, clock, lambda replica: None))
    manager.open_all({}, lambda topic: TopicConfig(config))
    return manager


def new(logs: LogManager, index: int = 0) -> Log:
    return logs.create("orders", index, TOPIC_ID, TopicConfig(logs.config), 0)


def batch(sequence: int = -1) -> memoryview:
    options: dict[str, Any] = {}
    if sequence >= 0:
        options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence}
    return memoryview(bytearray(records.build([(None, b"v" * 100, [], NOW_MS)], **options)))


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_sixteen_appends(benchmark: Any, logs: LogManager, idempotent: bool) -> None:
    """The budget is 2.5 µs an append, without validation."""
    partition = new(logs)
    sequence = 0

    def fresh() -> tuple[tuple[list[memoryview]], dict[str, Any]]:
        nonlocal sequence
        logs.commit()
        sent = [batch(sequence + each if idempotent else -1) for each in range(BATCHES)]
        sequence += BATCHES
        return (sent,), {}

    def append(sent: list[memoryview]) -> None:
        for each in sent:
            partition.append(each, NOW_MS)

    benchmark.pedantic(append, setup=fresh, rounds=2000)


@pytest.mark.parametrize("count", [1, BATCHES, 256])
def test_commit(benchmark: Any, logs: LogManager, count: int) -> None:
    partition = new(logs)

    def queued() -> None:
        for _ in range(count):
            partition.append(batch(), NOW_MS)

    benchmark.pedantic(logs.commit, setup=queued, rounds=500)


@pytest.fixture
def filled(logs: LogManager) -> Log:
    partition = new(logs)
    for each in range(20_000):
        partition.append(batch(), NOW_MS)
        if each % 100 == 99:
            logs.commit()
    logs.commit()
    return partition


def test_read_somewhere(benchmark: Any, filled: Log) -> None:
    """By index and a short walk over batch headers."""
    offsets = iter(range(7, 10**9, 7919))

    def read() -> object:
        offset = next(offsets) % 20_000
        return filled.read(offset, 1 << 20, limit_offset=filled.high_watermark, at_least_one=True)

    assert benchmark(read) is not None


def test_read_at_the_tail(benchmark: Any, filled: Log) -> None:
    """As for a consumer that keeps up: no index, no walk."""
    end = filled.high_watermark
    assert benchmark(filled.read, end - 100, 1 << 20, limit_offset=end, at_least_one=True) is not None


def test_index_lookup(benchmark: Any, tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path), 0, 10 << 20, fresh=True)
    for slot in range(1_000_000):
        index.append(slot * 40, slot * 4096)
    assert benchmark(index.position_of, 27_182_818) == 27_182_818 // 40 * 4096


def test_create_a_partition(benchmark: Any, logs: LogManager) -> None:
    indexes = iter(range(10**9))
    benchmark.pedantic(lambda: new(logs, next(indexes)), rounds=500)
