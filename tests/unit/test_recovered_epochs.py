"""What the torture of brokers found: leader epochs, time indexes and moves after crashes and damage."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from storage_kit import append, batch, new_partition, open_partition, read_all, values

from pykafkad.hot import records

LOG = f"{0:020d}.log"


def test_epochs_never_fall_in_a_log_whose_last_batch_claims_a_later_one(tmp_path: Path) -> None:
    """Appended under the metadata's epoch, what follows would be taken for the damage by the next recovery."""
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
        partition.become_leader(count)
        assert partition.leader_epoch == count  # clients are compared with the metadata's
        assert append(partition, batch(b"%d" % count)) == [count]
        partition.close(clean=False)
    partition = open_partition(tmp_path, clean=False)
    partition.become_leader(5)
    assert values(read_all(partition)) == [b"%d" % each for each in range(5)]
    assert not (home / f"{LOG}.corrupt").exists()


def test_epochs_cover_a_start_that_a_crash_brought_back(tmp_path: Path) -> None:
    """DeleteRecords cut them off; the start's checkpoint was not written when the broker was killed."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"0"), batch(b"1"))
    partition.become_leader(1)
    append(partition, batch(b"2"), batch(b"3"))
    partition.become_leader(2)
    append(partition, batch(b"4"))
    partition.advance_log_start(3)
    append(partition, batch(b"5"))
    partition.close(clean=False)
    partition = open_partition(tmp_path, clean=False)
    assert partition.log_start_offset == 0
    assert partition.epochs.entries == [(0, 0), (1, 2), (2, 4)]


def test_a_time_index_that_points_outside_of_its_segment_is_made_anew(tmp_path: Path) -> None:
    """Whatever is appended later could not be entered behind it, and the broker could not even stop."""
    partition = new_partition(tmp_path)
    append(partition, batch(b"0"), batch(b"1"))
    partition.close()
    path = tmp_path / "orders-0" / f"{0:020d}.timeindex"
    for damage in (struct.pack(">qi", 5, 1 << 30), struct.pack(">qi", 5, -7), b"\x01" * 5):
        path.write_bytes(damage)
        partition = open_partition(tmp_path)
        partition.become_leader(1)
        append(partition, batch(b"more"))
        partition.close()
        assert os.stat(path).st_size % 12 == 0
