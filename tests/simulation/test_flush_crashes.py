"""flush.messages through power failures: whatever the high watermark has passed, and so was acknowledged, is there.

The fsyncs finish when the run says so, several appends after they were asked for, or never if the power fails first.
SEED=n replays one run, RUNS=n makes more of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from pykafkad.workers import submit_inline
from tests.simulation.test_log_crashes import RUNS, SEEDS, STEPS, Run
from tests.storage_kit import TOPIC_ID, manager, topic_config


class Later:
    """The threads: each job is done, and its result returned in order, when its time has come."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((work, done))

    def some(self) -> None:
        for _ in range(self.chance.randint(0, len(self.jobs))):
            work, done = self.jobs.pop(self.chance.randrange(min(2, len(self.jobs))))
            done(work())


class FlushRun(Run):
    def __init__(self, path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, flush_messages: int) -> None:
        self.config = topic_config(
            segment_bytes=3000,
            index_interval_bytes=400,
            segment_index_bytes=400,
            segment_ms=5_000,
            flush_messages=flush_messages,
        )
        self.later = Later(random.Random(seed + 1))
        self.found = 0
        super().__init__(path, seed, monkeypatch, self.config)

    def start(self) -> LogManager:
        self.later.jobs.clear()
        logs = manager(self.path)
        logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: self.config)
        logs.submit = self.later.submit
        logs.context.flush_soon = self.roll_at_once
        return logs

    def roll_at_once(self, partition: Log, start: int, end: int) -> None:
        """If the power fails before a rolled segment is synced, records written after it might survive it. That would
        leave a gap among records that were not acknowledged, which Kafka keeps, and so do we."""
        self.logs.submit = submit_inline
        self.logs.flushing.soon(partition, start, end)
        self.logs.submit = self.later.submit

    def step(self) -> None:
        self.later.some()
        self.logs.commit()  # the end of the pass in which the flushes returned
        self.note_promise()
        super().step()
        self.note_promise()

    def restart(self) -> None:
        super().restart()
        self.found = len(self.appended)  # is served at once, whether or not it is on the disk

    def note_promise(self) -> None:
        """What the high watermark has passed is promised, except for the last records, which need no flush of their
        own."""
        partition = self.partition
        unflushed = partition.settings.flush_messages - 1
        if partition.high_watermark > self.found:
            self.flushed = max(self.flushed, partition.high_watermark - unflushed)
        assert partition.recovery_point <= partition.flushed_offset
        assert partition.high_watermark <= max(self.found, partition.flushed_offset + unflushed)

    def check_committed(self) -> None:
        assert self.partition.flushed_offset <= len(self.appended)


@pytest.mark.parametrize("flush_messages", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_survives_every_power_cut(
    seed: int, flush_messages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"replay with SEED={seed}")
    run = FlushRun(tmp_path, seed, monkeypatch, flush_messages)
    for _ in range(STEPS):
        run.step()
    run.crash()
    run.logs.close()


def test_most_of_the_runs_acknowledge_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = FlushRun(tmp_path, SEEDS[0], monkeypatch, 1)
    most = 0
    for _ in range(STEPS):
        run.step()
        most = max(most, run.flushed)
    run.logs.close()
    assert most > 20 and RUNS > 0
