"""A log directory with one small log, and a clock, for the tests of retention."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pykafkad.clock import ManualClock
from pykafkad.storage.log.log import Log
from tests.storage_kit import NOW_MS, TOPIC_ID, append, batch, manager, topic_config

BATCH_BYTES = len(batch(b"x" * 100))
KEY = ("orders", 0)
NEVER = -1


def config(**overrides: Any) -> dict[str, Any]:
    """Two batches fill a segment. Nothing is deleted unless a test sets a limit."""
    wanted = {"segment_bytes": 2 * BATCH_BYTES, "retention_ms": NEVER, "file_delete_delay_ms": 1000}
    return topic_config(**(wanted | overrides))


def age_of(number: int) -> int:
    """The age of a batch: they are a minute apart, and the first one is the oldest."""
    return NOW_MS + number * 60_000


class Home:
    def __init__(self, path: Path, **overrides: Any) -> None:
        self.path = path
        self.clock = ManualClock(NOW_MS)
        self.logs = manager(path, clock=self.clock, **overrides)
        self.logs.open_all({}, lambda topic: config())

    def create(self, batches: int = 7, **overrides: Any) -> Log:
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
    def partition(self) -> Log:
        return self.logs.partitions[KEY]

    def files(self, suffix: str = "") -> list[str]:
        return sorted(name for name in os.listdir(self.path / "orders-0") if name.endswith(suffix))

    def restart(self, *, clean: bool = True) -> Log:
        self.logs.close(clean=clean)
        self.logs = manager(self.path, clock=self.clock)
        self.logs.open_all({KEY: TOPIC_ID}, lambda topic: config())
        return self.partition
