"""The power fails in the middle of a stop, at each of its steps: what the next start takes for a clean stop was one.

If the marker is there, every checkpoint is right and every byte is there; if it is not, everything that was promised is
there. And a marker that a start has removed never comes back.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.manager import LogManager
from tests.simulation.disk import Disk, PowerGone
from tests.storage_kit import (
    TOPIC_ID,
    append,
    batch,
    idempotent,
    lead,
    manager,
    read_all,
    topic_config,
    values,
)

CONFIG = topic_config(segment_bytes=600, index_interval_bytes=100, segment_index_bytes=400)
KEY = ("orders", 0)
START, FLUSHED, COUNT = 5, 8, 12
CUTS_A_STEP = 3


def start(path: Path) -> LogManager:
    logs = manager(path)
    logs.open_all({KEY: TOPIC_ID}, lambda topic: CONFIG)
    return logs


def fill(path: Path) -> LogManager:
    """A log that starts at 5, with 12 records in several segments, of which 8 were flushed."""
    logs = start(path)
    partition = logs.create(*KEY, TOPIC_ID, CONFIG, 0)
    append(partition, *(batch(b"%d" % number) for number in range(FLUSHED)))
    partition.flush()
    logs.checkpoint_recovery_points()
    append(partition, *(batch(b"%d" % number) for number in range(FLUSHED, COUNT - 1)))
    append(partition, idempotent(0, b"%d" % (COUNT - 1)))
    partition.delete_records(START)
    return logs


def stop(logs: LogManager, disk: Disk, steps: int | None) -> bool:
    """Stop; whether that was finished before the power failed."""
    disk.last_step = None if steps is None else disk.steps + steps
    try:
        logs.close()
    except PowerGone:
        disk.last_step = None
        logs.close(clean=False)
        return False
    return True


@pytest.mark.parametrize("seed", range(CUTS_A_STEP))
def test_a_marker_vouches_for_all_there_is(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    disk = Disk(tmp_path / "first", monkeypatch)
    first = fill(tmp_path / "first")
    began = disk.steps
    first.close()
    clean = 0
    for steps in range(disk.steps - began + 1):
        path = tmp_path / str(steps)
        disk = Disk(path, monkeypatch)
        if stop(fill(path), disk, steps):
            clean += 1
        disk.power_cut(chance)
        logs = start(path)
        partition = logs.partitions.get(KEY)
        if partition is None:
            assert not logs.directories[0].was_clean
        elif logs.directories[0].was_clean:
            found = (partition.log_start_offset, partition.high_watermark, partition.recovery_point)
            assert found == (START, COUNT, COUNT), f"after {steps} steps"
            assert values(read_all(partition)) == [b"%d" % number for number in range(START, COUNT)]
            assert [entry.last_sequence for entry in partition.producers] == [0]
        else:
            lead(partition, 1)
            assert partition.log_end_offset >= FLUSHED and partition.log_start_offset in (0, START)
        logs.close(clean=False)
    assert clean


@pytest.mark.parametrize("seed", range(20))
def test_a_checkpoint_that_was_written_is_there(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path, monkeypatch)
    path = str(tmp_path / checkpoints.LOG_STARTS)
    checkpoints.write_offsets(path, {KEY: 4})
    checkpoints.write_offsets(path, {KEY: START})
    disk.power_cut(random.Random(seed))
    assert checkpoints.read_offsets(path) == {KEY: START}


@pytest.mark.parametrize("seed", range(20))
def test_a_marker_that_was_taken_stays_away(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise bytes that were torn after it would be relied on."""
    disk = Disk(tmp_path, monkeypatch)
    fill(tmp_path).close()
    logs = start(tmp_path)
    assert logs.directories[0].was_clean
    append(logs.create(*KEY, TOPIC_ID, CONFIG, 1), batch(b"more"))
    logs.close(clean=False)
    disk.power_cut(random.Random(seed))
    logs = start(tmp_path)
    assert not logs.directories[0].was_clean
    logs.close(clean=False)
