"""Bugs in recovery that the torture found: leader epochs, time indexes, gaps."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from pykafkad.cluster.replicas import of
from pykafkad.hot import records
from pykafkad.storage.log.log import Log
from pykafkad.storage.log.settings import LogSettings
from pykafkad.storage.recovery import recovery
from tests.storage_kit import (
    NOW_MS,
    append,
    batch,
    lead,
    log_in,
    new_partition,
    open_partition,
    read_all,
    topic_config,
    values,
)

LOG = f"{0:020d}.log"


def test_epochs_never_fall_in_a_log_whose_last_batch_claims_a_later_one(tmp_path: Path) -> None:
    """Otherwise the records that are appended next, in the metadata's epoch, would look damaged to the next recovery."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"0"), batch(b"1"))
    partition.close(clean=False)
    home = tmp_path / "orders-0"
    last = records.scan((home / LOG).read_bytes())[-1]
    with open(home / LOG, "r+b") as file:
        file.seek(last.position + 12)
        file.write((128).to_bytes(4, "big"))
    for count in (2, 3, 4):
        partition = open_partition(tmp_path, clean=False)
        lead(partition, count)
        assert of(partition).leader_epoch == count  # clients are compared with the metadata's
        assert append(partition, batch(b"%d" % count)) == [count]
        partition.close(clean=False)
    partition = open_partition(tmp_path, clean=False)
    lead(partition, 5)
    assert values(read_all(partition)) == [b"%d" % each for each in range(5)]
    assert not (home / f"{LOG}.corrupt").exists()


def test_epochs_cover_a_start_that_a_crash_brought_back(tmp_path: Path) -> None:
    """DeleteRecords removed these epochs; the new log start was not checkpointed when the broker was killed."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"0"), batch(b"1"))
    lead(partition, 1)
    append(partition, batch(b"2"), batch(b"3"))
    lead(partition, 2)
    append(partition, batch(b"4"))
    partition.advance_log_start(3)
    append(partition, batch(b"5"))
    partition.close(clean=False)
    partition = open_partition(tmp_path, clean=False)
    assert partition.log_start_offset == 0
    assert list(partition.epochs.entries) == [(0, 0), (1, 2), (2, 4)]


def test_epochs_are_found_again_where_all_that_are_known_lie_behind_the_end(tmp_path: Path) -> None:
    """The log start was raised and checkpointed; a power failure lost the records up to there."""
    partition = new_partition(tmp_path)
    append(partition, *(batch(b"%d" % number) for number in range(4)))
    partition.advance_log_start(3)
    append(partition, batch(b"4"))
    partition.close(clean=False)
    path = tmp_path / "orders-0" / LOG
    os.truncate(path, records.scan(path.read_bytes())[2].position)
    partition = open_partition(tmp_path, clean=False)
    assert (partition.log_start_offset, partition.log_end_offset) == (0, 2)
    lead(partition, 7)
    assert list(partition.epochs.entries) == [(0, 0), (7, 2)]


def test_a_time_index_that_points_outside_of_its_segment_is_made_anew(tmp_path: Path) -> None:
    """Later entries could not be appended after it, and the broker could not even stop."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"0"), batch(b"1"))
    partition.close()
    path = tmp_path / "orders-0" / f"{0:020d}.timeindex"
    for damage in (struct.pack(">qi", 5, 1 << 30), struct.pack(">qi", 5, -7), b"\x01" * 5):
        path.write_bytes(damage)
        partition = open_partition(tmp_path)
        lead(partition, 1)
        append(partition, batch(b"more"))
        partition.close()
        assert os.stat(path).st_size % 12 == 0


@pytest.mark.parametrize("kept", [0, 1], ids=["all of it", "its end"])
def test_a_power_cut_takes_the_end_of_a_log_only(kept: int, tmp_path: Path) -> None:
    """A segment that was closed and not synced is lost, later ones are not: they are removed, too."""
    home, size = rolled(tmp_path)
    os.truncate(home / f"{4:020d}.log", kept * size)
    partition = open_partition(tmp_path, clean=False, recovery_point=4)
    assert values(read_all_of(partition)) == [b"%d" % each for each in range(4 + kept)]
    assert (home / f"{8:020d}.log.corrupt").exists()


@pytest.mark.parametrize("known_by", ["policy", "checkpoint", "recovery point"])
def test_what_a_cleaner_took_out_is_no_hole(known_by: str, tmp_path: Path) -> None:
    home, size = rolled(tmp_path)
    os.truncate(home / f"{4:020d}.log", size)
    settings = LogSettings(topic_config(cleanup_policy=["compact" if known_by == "policy" else "delete"]))
    partition = log_in(tmp_path, "orders", 0, settings)
    hints = recovery.Hints(
        clean=False,
        now_ms=NOW_MS,
        recovery_point=8 if known_by == "recovery point" else 0,
        log_start_offset=0,
        high_watermark=0,
        expiration_ms=86_400_000,
    )
    hints.is_cleaned = known_by == "checkpoint"
    recovery.load(partition, hints)
    assert values(read_all_of(partition)) == [b"%d" % each for each in range(12) if not 5 <= each < 8]


def rolled(path: Path) -> tuple[Path, int]:
    """Three segments of four batches each; returns the size of a batch."""
    partition = new_partition(path, segment_bytes=300)
    for number in range(12):
        append(partition, batch(b"%d" % number))
    partition.close(clean=False)
    assert partition.bases == [0, 4, 8]
    return path / "orders-0", partition.segments[0].size // 4


def read_all_of(partition: Log) -> list[records.Record]:
    lead(partition, 1)
    return read_all(partition)


def in_segments(tmp_path: Path, count: int) -> Path:
    """That many batches of one record, three in a segment, as a kill leaves them; returns the partition's directory."""
    partition = new_partition(tmp_path, segment_bytes=3 * len(batch(b"0")))
    for number in range(count):
        append(partition, batch(b"%d" % number))
    partition.close(clean=False)
    return tmp_path / "orders-0"


def move_batch(path: Path, slot: int, by: int) -> None:
    """Change its base offset, which is not under its checksum."""
    data = bytearray(path.read_bytes())
    at = records.scan(data)[slot].position
    struct.pack_into(">q", data, at, struct.unpack_from(">q", data, at)[0] + by)
    path.write_bytes(data)


@pytest.mark.parametrize(("slot", "by", "kept"), [(1, 1, [0, 1]), (2, 1, [0, 1]), (0, 3, [0])])
def test_a_batch_that_is_further_on_than_it_was_ends_the_log(
    tmp_path: Path, slot: int, by: int, kept: list[int]
) -> None:
    """Otherwise the records at its new offset, in its segment or in the next one, would be missing in the middle."""
    home = in_segments(tmp_path, 8)
    move_batch(home / LOG, slot, by)
    partition = open_partition(tmp_path, clean=False)
    lead(partition, 1)
    assert values(read_all(partition)) == [b"%d" % each for each in kept]
    assert len(partition.segments) == 1


def test_a_page_that_was_written_twice_is_no_end_of_the_log(tmp_path: Path) -> None:
    home = in_segments(tmp_path, 8)
    data = (home / LOG).read_bytes()
    again = records.scan(data)[1]
    (home / LOG).write_bytes(data + data[again.position : again.position + again.size])
    partition = open_partition(tmp_path, clean=False)
    lead(partition, 1)
    assert values(read_all(partition)) == [b"%d" % each for each in range(8)]
