"""Random histories of a log with retention, with power failures and kills, against a model of what must survive.

As test_log_crashes, and in addition: segments are deleted by age and size, clients delete records, the power may fail
before an fsync is done, and a power failure undoes the last renames that no fsync of their directory followed.
Afterwards the log starts where it did or earlier, never below what the checkpoint has, and all records between start
and end are as they were appended. SEED=n replays one run, RUNS=n makes more of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.storage.checkpoints import checkpointing
from pykafkad.storage.manager import LogManager
from pykafkad.workers import submit_inline
from tests.simulation.test_log_crashes import SEEDS, STEPS, Run
from tests.storage_kit import TOPIC_ID, manager, read_all, topic_config

CONFIG = topic_config(
    segment_bytes=3000,
    index_interval_bytes=400,
    segment_index_bytes=400,
    segment_ms=5_000,
    retention_bytes=8_000,
    retention_ms=20_000,
)
KEY = ("orders", 0)


class RetainedRun(Run):
    def __init__(self, path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.promised_start = self.seen_start = 0
        self.deleted = 0
        self.lost: set[int] = set()  # offsets without a record
        self.work: list[Callable[[], None]] = []
        super().__init__(path, seed, monkeypatch)

    def start(self) -> LogManager:
        self.work.clear()  # work of the threads died with the process
        logs = manager(self.path)
        logs.open_all({KEY: TOPIC_ID}, lambda topic: CONFIG)
        logs.configure(*KEY[:1], 1, CONFIG)
        logs.submit = self.submit
        return logs

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.work.append(lambda: submit_inline(work, done))

    def work_on(self) -> None:
        for _ in range(self.chance.randint(0, len(self.work))):
            self.work.pop(0)()

    def step(self) -> None:
        action = self.chance.random()
        if action < 0.08:
            self.logs.clock.set_wall(self.now_ms)  # type: ignore[attr-defined]
            before = len(self.partition.bases)
            self.logs.check_retention()
            self.deleted += before - len(self.partition.bases)
        elif action < 0.12:
            self.partition.delete_records(
                self.chance.randint(self.partition.log_start_offset, self.partition.high_watermark)
            )
        elif action < 0.15:
            start = self.stated_start()
            self.logs.checkpointing.write("log-start-offset-checkpoint", lambda: self.promise(start))
        elif action < 0.3:
            self.work_on()
        else:
            super().step()
        self.seen_start = self.partition.log_start_offset

    def stated_start(self) -> int:
        """Deletions by retention may be undone by a power failure, those by clients may not."""
        return checkpointing.log_start_of(self.partition) or 0

    def promise(self, start: int) -> None:
        self.promised_start = max(self.promised_start, start)

    def stop(self) -> None:
        self.seen_start = self.partition.log_start_offset
        while self.work:
            self.work.pop(0)()
        self.promise(self.stated_start())
        super().stop()

    def restart(self) -> None:
        self.logs = self.start()
        self.epoch += 1
        self.logs.create(*KEY, TOPIC_ID, CONFIG, self.epoch)
        start, end = self.partition.log_start_offset, self.partition.log_end_offset
        assert self.promised_start <= start <= max(self.seen_start, self.promised_start)
        assert end >= self.flushed, f"{self.flushed - end} flushed records are lost"
        self.compare(start, end)
        del self.appended[end:]
        self.seen_start = start
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.partition.producers}
        names = os.listdir(self.partition.directory)
        assert not any(name.endswith(".deleted") for name in names)

    def compare(self, start: int, end: int) -> None:
        """Records that are there are as they were appended. Without a flush the end of a closed segment may be missing
        although the next segment exists: recovery cannot tell such a gap from one that compaction left."""
        survived = read_all(self.partition)
        offsets = [record.offset for record in survived]
        assert offsets == sorted(set(offsets)) and set(offsets) <= set(range(start, end))
        assert [record.value for record in survived] == [self.appended[offset] for offset in offsets]
        missing = set(range(start, end)) - set(offsets) - self.lost
        assert not any(offset < self.flushed for offset in missing)
        self.lost |= missing

    def check_lookups(self) -> None:
        """Not checked here: the log does not begin with its first record."""


@pytest.mark.parametrize("seed", SEEDS)
def test_retention_and_power_cuts(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"replay with SEED={seed}")
    run = RetainedRun(tmp_path, seed, monkeypatch)
    for _ in range(2 * STEPS):
        run.step()
    run.crash()
    run.stop()
    run.logs.close()


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_retention_and_kills(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies, the machine does not."""
    print(f"replay with SEED={seed}")
    run = RetainedRun(tmp_path, seed, monkeypatch)
    run.disk.power_cut = lambda chance: None  # type: ignore[method-assign]
    for _ in range(2 * STEPS):
        run.step()
        run.flushed = len(run.appended)
    run.crash()
    run.logs.close()
    assert run.deleted > 5
