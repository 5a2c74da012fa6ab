"""Producer snapshots: what is written of producers, what is read again, and which file is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.hot.records import crc32c
from pykafkad.pure.producer_state import ProducerEntry, ProducerState
from pykafkad.storage.log import snapshots
from pykafkad.storage.log.snapshots import SnapshotError

NOW_MS, EXPIRATION_MS = 1_000_000, 60_000


def entry(producer_id: int, *, transaction_start: int = -1, timestamp: int = NOW_MS) -> ProducerEntry:
    made = ProducerEntry(producer_id)
    made.epoch, made.coordinator_epoch = 3, 5
    made.last_timestamp, made.transaction_start = timestamp, transaction_start
    made.batches.append((7, 9, 42, 2, timestamp))  # its first and last sequence, last offset and delta
    return made


def shown(entries: list[ProducerEntry]) -> list[tuple[object, ...]]:
    return [
        (
            each.producer_id,
            each.epoch,
            each.last_sequence,
            each.last_offset,
            each.last_offset_delta,
            each.last_timestamp,
            each.coordinator_epoch,
            each.transaction_start,
            list(each.batches),
        )
        for each in entries
    ]


def snapshot(version: int, count: int, rows: bytes) -> bytes:
    behind = count.to_bytes(4, "big", signed=True) + rows
    return version.to_bytes(2, "big") + crc32c(behind).to_bytes(4, "big") + behind


def test_producers_are_read_as_they_were_written() -> None:
    entries = [entry(1), entry(1 << 40, transaction_start=40)]
    data = snapshots.encode(entries)
    assert len(data) == 10 + 2 * 46 and data[:2] == b"\0\1" and data[6:10] == b"\0\0\0\2"
    assert shown(snapshots.decode(data)) == shown(entries)
    assert snapshots.decode(snapshots.encode([])) == []


def test_a_producer_without_batches_has_none_afterwards() -> None:
    made = ProducerEntry(4)
    (read,) = snapshots.decode(snapshots.encode([made]))
    assert list(read.batches) == [] and read.producer_id == 4
    first = entry(5)
    first.batches.clear()
    first.batches.append((0, 0, 0, 0, NOW_MS))
    (read,) = snapshots.decode(snapshots.encode([first]))
    assert [batch[2] for batch in read.batches] == [0], "the first offset of a log is one"


def test_a_last_batch_that_goes_round_begins_before_the_largest_sequence() -> None:
    made = entry(1)
    made.batches.clear()
    made.batches.append(((1 << 31) - 1, 1, 42, 2, NOW_MS))
    (read,) = snapshots.decode(snapshots.encode([made]))
    assert list(read.batches) == list(made.batches)


ROW = snapshots.encode([entry(1)])[10:]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes"),
        (snapshots.encode([])[:9], "9 bytes"),
        (snapshot(2, 0, b""), "version 2"),
        (snapshot(0, 0, b""), "version 0"),
        (snapshot(1, 1, ROW)[:-1], "a checksum that does not match"),
        (snapshot(1, 1, ROW)[:6] + b"\0\0\0\2" + ROW, "a checksum that does not match"),
        (snapshot(1, 2, ROW), "2 entries in 56 bytes"),
        (snapshot(1, 1, ROW[:-1]), "1 entries in 55 bytes"),
        (snapshot(1, -1, ROW), "-1 entries in 56 bytes"),
    ],
)
def test_what_is_no_whole_snapshot_is_not_believed(data: bytes, why: str) -> None:
    with pytest.raises(SnapshotError) as refused:
        snapshots.decode(data)
    assert str(refused.value) == why


def test_what_lies_behind_the_entries_is_left_alone() -> None:
    assert len(snapshots.decode(snapshot(1, 1, ROW + b"more"))) == 1


def saved(directory: Path, offset: int, *entries: ProducerEntry) -> Path:
    path = directory / f"{offset:020d}.snapshot"
    path.write_bytes(snapshots.encode(entries))
    return path


def load(directory: Path, known: list[int]) -> ProducerState:
    producers = ProducerState()
    snapshots.load_newest(str(directory), known, producers, 17, NOW_MS, EXPIRATION_MS)
    return producers


def test_the_newest_whole_one_counts_and_damaged_ones_go(tmp_path: Path) -> None:
    saved(tmp_path, 10, entry(1))
    whole, damaged = saved(tmp_path, 20, entry(2)), saved(tmp_path, 30, entry(3))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    known = [10, 20, 30, 40]  # of the last the file is gone
    producers = load(tmp_path, known)
    assert list(producers.producers) == [2]
    assert (producers.end_offset, producers.snapshot_offset, known) == (20, 20, [10, 20])
    assert whole.exists() and not damaged.exists()


def test_without_one_nothing_is_known_from_the_logs_start_on(tmp_path: Path) -> None:
    saved(tmp_path, 10).write_bytes(b"damaged")
    known = [10]
    producers = load(tmp_path, known)
    assert not producers.producers and known == []
    assert (producers.end_offset, producers.snapshot_offset) == (17, 17)


def test_producers_that_expired_meanwhile_are_forgotten_unless_their_transaction_is_open(
    tmp_path: Path,
) -> None:
    long_ago = NOW_MS - EXPIRATION_MS - 1
    saved(
        tmp_path,
        50,
        entry(1, timestamp=long_ago),
        entry(2, timestamp=long_ago, transaction_start=44),
        entry(3, transaction_start=41),
        entry(4),
    )
    producers = load(tmp_path, [50])
    assert sorted(producers.producers) == [2, 3, 4]
    assert list(producers.ongoing.items()) == [(41, 3), (44, 2)], "in the order in which they began"


def test_a_snapshot_is_written_once_for_each_end(tmp_path: Path) -> None:
    saved(tmp_path, 10, entry(1))
    producers = load(tmp_path, [10])
    snapshots.write(str(tmp_path), producers)
    assert snapshots.offsets(path.name for path in tmp_path.iterdir()) == [10]
    producers.end_offset = 12
    for _ in range(2):
        snapshots.write(str(tmp_path), producers)
        assert snapshots.offsets(path.name for path in tmp_path.iterdir()) == [10, 12]
        (tmp_path / f"{10:020d}.snapshot").touch()
    assert producers.snapshot_offset == 12
    snapshots.remove(str(tmp_path), 10)
    assert snapshots.offsets(["x.snapshot", "00000000000000000012.snapshot", "1.log"]) == [12]
    assert not (tmp_path / f"{10:020d}.snapshot").exists()
