"""Random histories of a log that is retained, with power cuts and kills, against a model of what must survive.

As test_log_crashes, and besides: segments are deleted by age and size, clients delete records, fsync happens some time
later or not at all before the power goes, and a power cut undoes the last renames that no fsync of their directory
followed. Afterwards the log starts where it did or earlier, never below what the checkpoint said, and whatever lies
between start and end is what was appended there. SEED=n replays one run, RUNS=n makes more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from storage_kit import TOPIC_ID, manager, read_all, topic_config
from test_log_crashes import SEEDS, STEPS, Disk, Run

from pykafkad.storage import checkpointing
from pykafkad.storage.manager import LogManager, submit_inline

CONFIG = topic_config(
    segment_bytes=3000,
    index_interval_bytes=400,
    segment_index_bytes=400,
    segment_ms=5_000,
    retention_bytes=8_000,
    retention_ms=20_000,
)
KEY = ("orders", 0)


class RenamingDisk(Disk):
    """Remembers which renames nobody has made durable yet."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, monkeypatch)
        self.renamed: list[tuple[str, str]] = []
        real_rename, sync_file = os.rename, os.fsync

        def rename(source: str, target: str) -> None:
            real_rename(source, target)
            self.synced[target] = self.synced.pop(source, b"")
            self.renamed.append((source, target))

        def fsync(fd: int) -> None:
            path = os.readlink(f"/proc/self/fd/{fd}")
            self.renamed = [each for each in self.renamed if os.path.dirname(each[0]) != path]
            sync_file(fd)

        self.undo = real_rename
        monkeypatch.setattr(os, "rename", rename)
        monkeypatch.setattr(os, "fsync", fsync)

    def power_cut(self, chance: random.Random) -> None:
        kept = chance.randint(0, len(self.renamed))
        for source, target in reversed(self.renamed[kept:]):
            if os.path.exists(target):  # else a start has removed it since
                self.undo(target, source)
                self.synced[source] = self.synced.pop(target, b"")
        self.renamed.clear()
        super().power_cut(chance)


class RetainedRun(Run):
    def __init__(self, path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.promised_start = self.seen_start = 0
        self.deleted = 0
        self.lost: set[int] = set()  # offsets that no record has
        self.work: list[Callable[[], None]] = []
        super().__init__(path, seed, monkeypatch)
        before, self.disk = self.disk, RenamingDisk(path, monkeypatch)
        self.disk.synced.update(before.synced)

    def start(self) -> LogManager:
        self.work.clear()  # what threads had before them died with the process
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
        """What retention alone did may be undone by a power cut; what a client asked for may not."""
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
        """What is there is what was appended there. Of what was not flushed the end of a closed segment may be
        missing, though the next one has its name: recovery knows no gap from one that compaction left."""
        survived = read_all(self.partition)
        offsets = [record.offset for record in survived]
        assert offsets == sorted(set(offsets)) and set(offsets) <= set(range(start, end))
        assert [record.value for record in survived] == [self.appended[offset] for offset in offsets]
        missing = set(range(start, end)) - set(offsets) - self.lost
        assert not any(offset < self.flushed for offset in missing)
        self.lost |= missing

    def check_lookups(self) -> None:
        """Not asked for: the log does not begin with its first record."""


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
