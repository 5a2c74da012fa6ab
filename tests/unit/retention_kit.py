"""A log directory with one small log, and a clock: what the tests of retention share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from storage_kit import NOW_MS, TOPIC_ID, append, batch, manager, topic_config

from pykafkad.clock import ManualClock
from pykafkad.storage.partition import Partition

BATCH_BYTES = len(batch(b"x" * 100))
KEY = ("orders", 0)
NEVER = -1


def config(**overrides: Any) -> dict[str, Any]:
    """Two batches fill a segment; nothing is deleted unless a test says so."""
    wanted = {"segment_bytes": 2 * BATCH_BYTES, "retention_ms": NEVER, "file_delete_delay_ms": 1000}
    return topic_config(**(wanted | overrides))


def age_of(number: int) -> int:
    """Batches are a minute apart, the first one is the oldest."""
    return NOW_MS + number * 60_000


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock(NOW_MS)
        self.logs = manager(path, clock=self.clock)
        self.logs.open_all({}, lambda topic: config())

    def create(self, batches: int = 7, **overrides: Any) -> Partition:
        partition = self.logs.create(*KEY, TOPIC_ID, config(**overrides), 0)
        for number in range(batches):
            append(partition, batch(b"x" * 100, timestamp=age_of(number)), now_ms=age_of(number))
        self.logs.dirty.clear()
        return partition

    def check(self, after_ms: int = 0) -> list[int]:
        self.clock.advance(after_ms)
        self.logs.check_retention()
        return self.partition.bases

    @property
    def partition(self) -> Partition:
        return self.logs.partitions[KEY]

    def files(self, suffix: str = "") -> list[str]:
        return sorted(name for name in os.listdir(self.path / "orders-0") if name.endswith(suffix))

    def restart(self, *, clean: bool = True) -> Partition:
        self.logs.close(clean=clean)
        self.logs = manager(self.path, clock=self.clock)
        self.logs.open_all({KEY: TOPIC_ID}, lambda topic: config())
        return self.partition
