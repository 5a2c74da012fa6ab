"""Random histories of one partition with power failures, against a model of what must survive.

A power failure keeps what was fsynced and, of everything that came after that, an arbitrary part (disk.py). What was
acknowledged and flushed must be there afterwards, nothing may be there that was not appended, and the log must
continue. SEED=n replays one run, RUNS=n makes more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.slices import finish
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from tests.simulation.disk import Disk
from tests.storage_kit import NOW_MS, TOPIC_ID, manager, marker, read_all, topic_config

RUNS = int(os.environ.get("RUNS", "40"))
STEPS = 120
FOUND_BUGS = [20_261_167, 20_261_172, 20_261_213, 20_261_513, 20_261_646, 20_261_701]
SEEDS = [20_261_118 + run for run in range(RUNS)] + FOUND_BUGS
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
CONFIG = topic_config(segment_bytes=3000, index_interval_bytes=400, segment_index_bytes=400, segment_ms=5_000)


class Run:
    """One history: what was appended, and what of it was promised."""

    def __init__(
        self, path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any] = CONFIG
    ) -> None:
        self.config = config
        self.chance = random.Random(seed)
        self.path = path
        self.disk = Disk(path, monkeypatch)
        self.appended: list[bytes] = []  # by offset; every record has its own value
        self.flushed = 0
        self.sequences: dict[int, int] = {}
        self.now_ms = NOW_MS
        self.epoch = 0
        self.serial = 0
        self.logs = self.start()
        self.logs.create("orders", 0, TOPIC_ID, config, self.epoch)

    @property
    def partition(self) -> Log:
        partition = self.logs.get("orders", 0)
        assert partition is not None
        return partition

    def start(self) -> LogManager:
        logs = manager(self.path)
        logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG)
        return logs

    def step(self) -> None:
        action = self.chance.random()
        if action < 0.75:
            self.append()
        elif action < 0.85:
            self.partition.flush()
            self.flushed = self.partition.log_end_offset
            self.logs.checkpoint_recovery_points()
        elif action < 0.90:
            self.now_ms += self.chance.randrange(8_000)
        elif action < 0.93:
            self.logs.checkpoint_high_watermarks()
        elif action < 0.96:
            self.stop()
        else:
            self.crash()

    def append(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            values = [self.value() for _ in range(self.chance.randint(1, 5))]
            producer_id = self.chance.choice([-1, -1, 1, 2, 3])
            try:
                appended = self.partition.append(self.batch(values, producer_id), self.now_ms)
            except KafkaError:
                # The producer state may have lost its last batches: the producer begins with a new epoch.
                assert producer_id >= 0
                continue
            assert appended.base_offset == len(self.appended)
            self.appended += values
            if producer_id >= 0:
                self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(values)
        assert self.logs.commit() == []
        self.check_committed()

    def check_committed(self) -> None:
        assert self.partition.high_watermark == len(self.appended)

    def value(self) -> bytes:
        self.serial += 1
        return b"%d " % self.serial + b"x" * self.chance.choice([0, 5, 50, 300])

    def batch(self, values: list[bytes], producer_id: int) -> bytearray:
        timed: list[Any] = [(None, value, [], self.now_ms + self.chance.randrange(50)) for value in values]
        if producer_id < 0:
            return bytearray(records.build(timed, codec=self.chance.choice(["none", "gzip"])))
        sequence = self.sequences.get(producer_id, 0)
        return bytearray(
            records.build(timed, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        )

    def stop(self) -> None:
        self.logs.close()
        self.flushed = len(self.appended)
        self.restart()

    def crash(self) -> None:
        self.logs.close(clean=False)
        self.disk.power_cut(self.chance)
        self.restart()

    def restart(self) -> None:
        self.logs = self.start()
        self.epoch += 1
        self.logs.create("orders", 0, TOPIC_ID, self.config, self.epoch)
        survived = [record.value for record in read_all(self.partition)]
        assert len(survived) >= self.flushed, f"{self.flushed - len(survived)} flushed records are lost"
        assert survived == self.appended[: len(survived)]
        del self.appended[len(survived) :]
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.partition.producers}
        self.check_lookups()

    def check_lookups(self) -> None:
        """Indexes are right: each offset is found, and so is each timestamp."""
        partition = self.partition
        for offset in range(0, len(self.appended), 7):
            part = partition.read(offset, 1, limit_offset=len(self.appended), at_least_one=True)
            assert part is not None
            found = [record.value for record in records.read(part.read()) if record.offset == offset]
            assert found == [self.appended[offset]]
        newest = max((record.timestamp for record in read_all(partition)), default=None)
        found_newest = finish(partition.max_timestamp_offset())
        assert (found_newest and found_newest[1]) == newest


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_flushed_survives_every_power_cut(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"replay with SEED={seed}")
    run = Run(tmp_path, seed, monkeypatch)
    for _ in range(STEPS):
        run.step()
    run.crash()
    run.stop()
    run.logs.close()


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_a_kill_loses_nothing_acknowledged(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies, the machine does not: everything that was written is there, flushed or not."""
    print(f"replay with SEED={seed}")
    run = Run(tmp_path, seed, monkeypatch)
    run.disk.power_cut = lambda chance: None  # type: ignore[method-assign]
    for _ in range(STEPS):
        run.step()
        run.flushed = len(run.appended)
    run.crash()
    run.logs.close()


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_transactions_come_out_of_a_crash_as_they_went_in(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    print(f"replay with SEED={seed}")
    chance = random.Random(seed)
    logs = manager(tmp_path)
    logs.open_all({}, lambda topic: CONFIG)
    partition = logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
    open_since: dict[int, int] = {}
    aborted: list[tuple[int, int]] = []
    sequences = dict.fromkeys(range(5), 0)
    for _ in range(200):
        producer_id = chance.randrange(5)
        if producer_id in open_since and chance.random() < 0.4:
            commit = chance.random() < 0.5
            partition.append_built(marker(producer_id, 0, commit), NOW_MS)
            start = open_since.pop(producer_id)
            if not commit:
                aborted.append((producer_id, start))
        else:
            sent = records.build(
                [(None, b"v" * chance.randrange(200), [], NOW_MS)],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequences[producer_id],
                transactional=True,
            )
            sequences[producer_id] += 1
            base = partition.append(bytearray(sent), NOW_MS, verified=True).base_offset
            open_since.setdefault(producer_id, base)
        if chance.random() < 0.5:
            logs.commit()
    logs.commit()
    before = state_of(partition)
    logs.close(clean=False)
    logs = manager(tmp_path)
    logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG)
    again = logs.create("orders", 0, TOPIC_ID, CONFIG, 1)
    assert again.last_stable_offset == min(open_since.values(), default=again.high_watermark)
    assert state_of(again) == before
    found: set[tuple[int, int]] = set()
    for base in again.bases:
        part = again.read(base, 1 << 20, limit_offset=again.high_watermark, at_least_one=True)
        assert part is not None
        found |= set(again.aborted_transactions(base, part))
    assert found == set(aborted)
    logs.close()


def state_of(partition: Log) -> list[tuple[object, ...]]:
    return sorted(
        (entry.producer_id, entry.epoch, entry.last_sequence, entry.last_offset, entry.transaction_start)
        for entry in partition.producers
    )
