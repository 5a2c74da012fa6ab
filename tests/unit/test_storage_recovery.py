"""Starts after a crash and with damaged files: what Kafka was measured to do, and where we do better."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad.hot import records
from pykafkad.slices import finish
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log import snapshots
from pykafkad.storage.log.log import Log
from pykafkad.storage.recovery import recovery, splitting
from tests.storage_kit import (
    NOW_MS,
    append,
    batch,
    idempotent,
    lead,
    marker,
    new_partition,
    open_partition,
    read_all,
    values,
)

COUNT = 20
LOG = f"{0:020d}.log"
INDEX = f"{0:020d}.index"
TIME_INDEX = f"{0:020d}.timeindex"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A log of 20 batches of one record each, as kill -9 leaves it."""
    partition = new_partition(tmp_path, index_interval_bytes=300)
    for sequence in range(COUNT):
        append(partition, idempotent(sequence, b"v%02d" % sequence))
    partition.close(clean=False)
    return tmp_path / "orders-0"


def recovered(home: Path, **options: Any) -> Log:
    partition = open_partition(home.parent, clean=False, index_interval_bytes=300, **options)
    lead(partition, 1)
    return partition


def expect(partition: Log, count: int) -> None:
    """There are exactly the first `count` records, and the log continues after them."""
    assert partition.log_end_offset == count
    assert values(read_all(partition)) == [b"v%02d" % each for each in range(count)]
    assert append(partition, idempotent(count, b"next")) == [count]
    assert values(read_all(partition))[-1] == b"next"
    assert os.stat(partition.active.path).st_size == partition.active.size


def positions(home: Path) -> list[int]:
    return [each.position for each in records.scan((home / LOG).read_bytes())]


def patch(path: Path, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


def test_nothing_is_lost_by_a_kill(home: Path) -> None:
    expect(recovered(home), COUNT)


def test_recovered_indexes_are_those_of_a_clean_stop(home: Path, tmp_path: Path) -> None:
    twin = new_partition(tmp_path / "twin", index_interval_bytes=300)
    for sequence in range(COUNT):
        append(twin, idempotent(sequence, b"v%02d" % sequence))
    twin.close()
    recovered(home)
    for name in (INDEX, TIME_INDEX):
        assert (home / name).read_bytes() == Path(twin.directory, name).read_bytes()


@pytest.mark.parametrize("kept", [0, 4, 10, 14, 17, 19, 45, 61, -1])
def test_a_torn_last_batch_goes(home: Path, kept: int) -> None:
    last = positions(home)[-1]
    size = (home / LOG).stat().st_size
    os.truncate(home / LOG, size - 1 if kept < 0 else last + kept)
    expect(recovered(home), COUNT - 1)


@pytest.mark.parametrize("tail", [bytes(4096), random.Random(1).randbytes(100)], ids=["zeroes", "noise"])
def test_garbage_behind_the_end_goes(home: Path, tail: bytes) -> None:
    with open(home / LOG, "ab") as file:
        file.write(tail)
    expect(recovered(home), COUNT)
    assert (home / f"{LOG}.corrupt").exists() == bool(tail.strip(b"\0"))


def test_an_old_batch_behind_the_end_costs_only_itself(home: Path) -> None:
    data = (home / LOG).read_bytes()
    old = records.scan(data)[5]
    with open(home / LOG, "ab") as file:
        file.write(data[old.position : old.position + old.size])
    expect(recovered(home), COUNT)


DAMAGE: dict[str, Callable[[Path, int], None]] = {
    "lower base offset": lambda log, at: patch(log, at, (3).to_bytes(8, "big")),
    "flipped bit": lambda log, at: patch(log, at + 70, b"\xff"),
    "giant length": lambda log, at: patch(log, at + 8, b"\x7f\xff\xff\xff"),
    "negative length": lambda log, at: patch(log, at + 8, b"\xff\xff\xff\xff"),
    "unknown magic": lambda log, at: patch(log, at + 16, b"\x09"),
    "higher leader epoch": lambda log, at: patch(log, at + 12, (99).to_bytes(4, "big")),
    "far offset": lambda log, at: patch(log, at, (1 << 40).to_bytes(8, "big")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_the_log_ends_at_the_first_damaged_batch(home: Path, damage: Callable[[Path, int], None]) -> None:
    at = positions(home)[10]
    whole = (home / LOG).read_bytes()
    damage(home / LOG, at)
    partition = recovered(home)
    assert list(partition.epochs.entries) == [(0, 0), (1, 10)]
    expect(partition, 10)
    aside = (home / f"{LOG}.corrupt").read_bytes()
    assert len(aside) == len(whole) - at and aside[80:] == whole[at + 80 :]


def test_a_zeroed_hole_ends_the_log_and_keeps_the_rest_aside(home: Path) -> None:
    where = positions(home)
    patch(home / LOG, where[3], bytes(where[8] - where[3]))
    expect(recovered(home), 3)
    assert len(records.scan((home / f"{LOG}.corrupt").read_bytes()[where[8] - where[3] :])) == 12


def test_an_emptied_log(home: Path) -> None:
    os.truncate(home / LOG, 0)
    expect(recovered(home), 0)


INDEX_DAMAGE: dict[str, Callable[[Path], object]] = {
    "index gone": lambda home: (home / INDEX).unlink(),
    "index noise": lambda home: (home / INDEX).write_bytes(random.Random(2).randbytes(80)) and None,
    "index of a strange size": lambda home: (home / INDEX).write_bytes(bytes(13)) and None,
    "time index gone": lambda home: (home / TIME_INDEX).unlink(),
    "time index noise": lambda home: (
        (home / TIME_INDEX).write_bytes(random.Random(3).randbytes(120)) and None
    ),
    "transaction index noise": lambda home: (home / f"{0:020d}.txnindex").write_bytes(b"x" * 35) and None,
    "epochs gone": lambda home: (home / "leader-epoch-checkpoint").unlink(),
    "epochs empty": lambda home: (home / "leader-epoch-checkpoint").write_bytes(b"") and None,
    "epochs garbage": lambda home: (home / "leader-epoch-checkpoint").write_bytes(b"\xffgarbage") and None,
    "snapshot noise": lambda home: (home / f"{COUNT:020d}.snapshot").write_bytes(b"noise") and None,
    "half checkpoint": lambda home: (home / "leader-epoch-checkpoint.tmp").write_bytes(b"0\n7") and None,
    "index without log": lambda home: (home / f"{50:020d}.index").write_bytes(bytes(8)) and None,
}


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("damage", INDEX_DAMAGE.values(), ids=INDEX_DAMAGE)
def test_what_can_be_made_anew_is(home: Path, damage: Callable[[Path], object], clean: bool) -> None:
    if clean:
        recovered(home).close()
    damage(home)
    partition = open_partition(home.parent, clean=clean, index_interval_bytes=300)
    lead(partition, 1)
    assert partition.epochs.epoch_at(5) == 0
    expect(partition, COUNT)
    assert not (home / f"{50:020d}.index").exists()


@pytest.mark.parametrize("hint", ["recovery_point", "high_watermark", "log_start_offset"])
def test_checkpoints_beyond_the_data_are_clamped(home: Path, hint: str) -> None:
    partition = open_partition(home.parent, clean=False, **cast(Any, {hint: 9999}))
    if hint == "log_start_offset":  # all data is below the log start: the log begins there, empty
        assert (partition.log_start_offset, partition.log_end_offset, partition.bases) == (9999, 9999, [9999])
    else:
        assert (partition.log_start_offset, partition.log_end_offset) == (0, COUNT)
        assert partition.recovery_point <= COUNT and partition.high_watermark <= COUNT


def test_the_active_segment_is_walked_whatever_the_recovery_point(home: Path) -> None:
    patch(home / LOG, positions(home)[10] + 70, b"\xff")
    expect(recovered(home, recovery_point=COUNT), 10)


def test_a_log_start_within_the_log_is_kept(home: Path) -> None:
    partition = recovered(home, log_start_offset=7)
    assert partition.log_start_offset == 7
    assert partition.epochs.entries[0] == (0, 7)
    assert values(read_all(partition)) == [b"v%02d" % each for each in range(7, COUNT)]


# -- several segments


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """20 batches in segments of four."""
    partition = new_partition(tmp_path, segment_bytes=300)
    for sequence in range(COUNT):
        append(partition, idempotent(sequence, b"v%02d" % sequence))
    partition.close(clean=False)
    return tmp_path / "orders-0"


def test_segments_below_the_recovery_point_are_believed(rolled: Path) -> None:
    patch(rolled / LOG, 70, b"\xff")
    partition = recovered(rolled, recovery_point=8)
    assert partition.log_end_offset == COUNT
    assert partition.bases == [0, 4, 8, 12, 16]


def test_indexes_that_are_made_anew_are_no_longer_than_what_is_in_them(rolled: Path) -> None:
    for path in [*rolled.glob("*.index"), *rolled.glob("*.timeindex")]:
        path.unlink()
    partition = recovered(rolled, segment_bytes=300)
    closed = partition.segments[:-1]
    assert len(closed) == 4
    for segment in closed:
        for suffix, index, size in (
            ("index", segment.offset_index, 8),
            ("timeindex", segment.time_index, 12),
        ):
            assert (rolled / f"{segment.base_offset:020d}.{suffix}").stat().st_size == index.entries * size
    expect(partition, COUNT)


def test_segments_behind_a_damaged_batch_are_set_aside(rolled: Path) -> None:
    patch(rolled / f"{4:020d}.log", 70, b"\xff")
    partition = recovered(rolled)
    assert partition.bases == [0, 4]
    expect(partition, 4)
    kept = sorted(path.name for path in rolled.glob("*.corrupt"))
    assert kept == [f"{base:020d}.log.corrupt" for base in (4, 8, 12, 16)]
    stale = {f"{base:020d}.snapshot" for base in (8, 12, 16)}
    assert not stale & set(os.listdir(rolled))


def test_noise_between_segments_costs_nothing(rolled: Path) -> None:
    with open(rolled / f"{4:020d}.log", "ab") as file:
        file.write(b"noise" * 20)
    expect(recovered(rolled, segment_bytes=300), COUNT)


def test_a_missing_index_of_an_old_segment_is_made_anew_after_a_clean_stop(rolled: Path) -> None:
    recovered(rolled, segment_bytes=300).close()
    (rolled / f"{8:020d}.index").unlink()
    partition = open_partition(rolled.parent, segment_bytes=300)
    lead(partition, 1)
    expect(partition, COUNT)


def test_snapshots_are_kept_as_kafka_keeps_them(rolled: Path) -> None:
    partition = recovered(rolled, segment_bytes=300)
    partition.close()
    (rolled / f"{7:020d}.snapshot").write_bytes((rolled / f"{8:020d}.snapshot").read_bytes())
    (rolled / f"{99:020d}.snapshot").write_bytes((rolled / f"{8:020d}.snapshot").read_bytes())
    open_partition(rolled.parent, segment_bytes=300)
    assert snapshots.offsets(os.listdir(rolled)) == [4, 8, 12, 16, COUNT] or snapshots.offsets(
        os.listdir(rolled)
    ) == [4, 8, 12, 16]


def test_a_damaged_snapshot_falls_back_to_the_one_before(rolled: Path) -> None:
    recovered(rolled).close()
    for base in (COUNT, 16):
        patch(rolled / f"{base:020d}.snapshot", 12, b"\xff")
    partition = open_partition(rolled.parent, segment_bytes=300)
    lead(partition, 1)
    expect(partition, COUNT)


def flip_epoch(log: Path, number: int, epoch: int) -> None:
    patch(log, records.scan(log.read_bytes())[number].position + 12, epoch.to_bytes(4, "big"))


@pytest.mark.parametrize("number", [0, 3], ids=["first batch of its segment", "last batch of its segment"])
def test_an_epoch_that_falls_in_the_next_segment_rose_wrongly_in_this_one(rolled: Path, number: int) -> None:
    last = 7 if number == 3 else 4
    flip_epoch(rolled / f"{4:020d}.log", number, 99)
    if number == 0:  # the others of its segment as well: the damage shows only with the next segment
        for each in (1, 2, 3):
            flip_epoch(rolled / f"{4:020d}.log", each, 99)
    partition = recovered(rolled, segment_bytes=300)
    assert list(partition.epochs.entries) == [(0, 0), (1, last)]
    expect(partition, last)
    kept = sorted(path.name for path in rolled.glob("*.corrupt"))
    assert kept == [f"{base:020d}.log.corrupt" for base in (4, 8, 12, 16)]
    assert snapshots.offsets(os.listdir(rolled))[-1] <= last + 1


def test_epochs_that_rise_over_segments_are_kept(rolled: Path) -> None:
    for base, epoch in ((8, 3), (12, 3), (16, 7)):
        for number in range(4):
            flip_epoch(rolled / f"{base:020d}.log", number, epoch)
    partition = open_partition(rolled.parent, clean=False, segment_bytes=300)
    assert partition.log_end_offset == COUNT
    assert list(partition.epochs.entries) == [(0, 0), (3, 8), (7, 16)]


def test_one_line_says_what_is_kept_and_what_is_lost(
    rolled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = rolled / f"{4:020d}.log"
    position = records.scan(damaged.read_bytes())[1].position
    lost = damaged.stat().st_size - position
    patch(damaged, position + 70, b"\xff")
    recovered(rolled)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition("WARN [recovery] ")[2] == (
        f"{damaged}: a checksum that does not match at byte {position}: offsets below 5 are kept, {lost} bytes are set"
        f" aside in {4:020d}.log.corrupt, 3 later segment(s) from 8 on are set aside"
    )


def test_epochs_that_were_read_from_the_log_are_written_with_the_next_batch(rolled: Path) -> None:
    recovered(rolled, segment_bytes=300).close()
    (rolled / "leader-epoch-checkpoint").write_bytes(b"damaged")
    partition = open_partition(rolled.parent, recovery_point=COUNT, high_watermark=COUNT, segment_bytes=300)
    partition.listener.lead(partition.epochs.latest, None)
    append(partition, idempotent(COUNT, b"next"))
    assert checkpoints.read_epochs(str(rolled)) == list(partition.epochs.entries) != []


def test_what_is_cut_off_is_set_aside_and_synced_before(
    rolled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = rolled / f"{4:020d}.log"
    size = damaged.stat().st_size
    there: list[tuple[str, int]] = []
    monkeypatch.setattr(
        recovery, "fsync_path", lambda path: there.append((os.path.basename(path), damaged.stat().st_size))
    )
    patch(damaged, records.scan(damaged.read_bytes())[1].position + 70, b"\xff")
    recovered(rolled)
    assert there == [(f"{4:020d}.log.corrupt", size)] and damaged.stat().st_size < size


def test_what_is_set_aside_can_be_put_back_together(rolled: Path) -> None:
    before = b"".join(path.read_bytes() for path in sorted(rolled.glob("*.log")))
    damaged = rolled / f"{4:020d}.log"
    position = records.scan(damaged.read_bytes())[1].position
    patch(damaged, position + 16, b"\x09")
    recovered(rolled)
    kept = b"".join(path.read_bytes() for path in sorted(rolled.glob("*.log")))
    aside = b"".join(path.read_bytes() for path in sorted(rolled.glob("*.corrupt")))
    assert len(kept + aside) == len(before)
    assert (kept + aside).replace(b"\x09", b"\x02") == before.replace(b"\x09", b"\x02")


def test_a_believed_segment_that_is_damaged_does_not_keep_the_broker_down(rolled: Path) -> None:
    """Below the recovery point nothing is walked; but without snapshots the producers are read from there."""
    patch(rolled / LOG, 8, b"\x7f\xff\xff\xff")
    for path in rolled.glob("*.snapshot"):
        path.unlink()
    partition = recovered(rolled, recovery_point=8, segment_bytes=300)
    assert (partition.log_end_offset, partition.bases) == (COUNT, [0, 4, 8, 12, 16])
    assert append(partition, idempotent(COUNT, b"next")) == [COUNT]


@pytest.mark.parametrize(("base", "point"), [(0, 0), (4, 4), (8, 9), (12, 9)])
def test_what_is_made_anew_below_the_recovery_point_is_not_on_the_disk_any_more(
    rolled: Path, base: int, point: int
) -> None:
    (rolled / f"{base:020d}.index").unlink()
    partition = recovered(rolled, recovery_point=9, segment_bytes=300)
    assert (partition.recovery_point, partition.flushed_offset) == (point, point)
    expect(partition, COUNT)


@pytest.mark.parametrize("clean", [True, False])
def test_a_transaction_that_ended_before_the_start_holds_nobody_back(tmp_path: Path, clean: bool) -> None:
    partition = new_partition(tmp_path)
    partition.append(idempotent(0, b"a", transactional=True), NOW_MS, verified=True)
    partition.append_built(marker(7, 0, True), NOW_MS)
    append(partition, batch(b"b"))
    partition.close(clean=clean)
    for mark, stable in ((3, 3), (1, 0)):
        again = open_partition(tmp_path, clean=False, recovery_point=0, high_watermark=mark)
        assert (again.high_watermark, again.last_stable_offset) == (mark, stable)
        again.close(clean=False)


def test_an_entry_of_another_segment_makes_a_transaction_index_anew(rolled: Path) -> None:
    recovered(rolled, segment_bytes=300).close()
    name = rolled / f"{8:020d}.txnindex"
    name.write_bytes(bytes(2) + b"".join(each.to_bytes(8, "big") for each in (7, 1, 2, 3)))
    partition = open_partition(rolled.parent, segment_bytes=300)
    lead(partition, 1)
    assert not name.exists()
    expect(partition, COUNT)


def test_a_log_that_begins_behind_its_end_has_no_producers(rolled: Path) -> None:
    partition = recovered(rolled, log_start_offset=50, segment_bytes=300)
    assert (partition.bases, partition.log_start_offset, partition.log_end_offset) == ([50], 50, 50)
    assert not list(partition.producers) and not list(partition.epochs.entries[:-1])
    assert {path.name for path in rolled.glob("*.snapshot")} <= {f"{50:020d}.snapshot"}
    assert append(partition, idempotent(0, b"of a new one", epoch=0)) == [50]


@pytest.mark.parametrize("start", [0, 35])
def test_a_directory_without_a_log_begins_at_the_logs_start(tmp_path: Path, start: int) -> None:
    (tmp_path / "orders-0").mkdir()
    partition = open_partition(tmp_path, clean=False, log_start_offset=start)
    lead(partition, 0)
    assert (partition.bases, partition.log_start_offset, partition.log_end_offset) == ([start], start, start)
    assert append(partition, batch(b"first")) == [start]


# -- offsets too far from the segment's name

FAR = 3 << 31


def far_log(tmp_path: Path, *offsets: int, base: int = 0) -> Path:
    """A partition whose segment has a batch at each of these offsets, as old versions of the cleaner left them."""
    if not (tmp_path / "orders-0").exists():
        new_partition(tmp_path).close(clean=False)
    path = tmp_path / "orders-0" / f"{base:020d}.log"
    path.write_bytes(
        b"".join(batch(b"%d" % offset, base_offset=offset, leader_epoch=0) for offset in offsets)
    )
    return path


def offsets_of(partition: Log) -> list[int]:
    lead(partition, 1)
    return [record.offset for record in read_all(partition)]


def test_a_segment_that_reaches_too_far_is_split(tmp_path: Path) -> None:
    far_log(tmp_path, 0, 5, FAR, FAR + 7, 2 * FAR, 2 * FAR + 1)
    partition = open_partition(tmp_path, clean=False, cleanup_policy=["compact"])
    assert partition.bases == [0, FAR, 2 * FAR]
    assert offsets_of(partition) == [0, 5, FAR, FAR + 7, 2 * FAR, 2 * FAR + 1]
    assert not [
        path for path in (tmp_path / "orders-0").iterdir() if "." in path.suffix and "sw" in path.name
    ]
    assert append(partition, batch(b"next")) == [2 * FAR + 2]


def test_a_split_stops_before_the_next_segment(tmp_path: Path) -> None:
    far_log(tmp_path, 0, 5, FAR)
    far_log(tmp_path, FAR + 10, base=FAR + 10)
    partition = open_partition(tmp_path, clean=False, cleanup_policy=["compact"])
    assert partition.bases == [0, FAR, FAR + 10]
    assert offsets_of(partition) == [0, 5, FAR, FAR + 10]


@pytest.mark.parametrize(
    "suffix", [".cleaned", ".swap", ""], ids=["copying", "before the cut", "before the end"]
)
def test_a_split_that_was_cut_short_is_done_again(tmp_path: Path, suffix: str) -> None:
    whole = far_log(tmp_path, 0, 5, FAR, FAR + 7)
    data = whole.read_bytes()
    tail = data[records.scan(data)[2].position :]
    (tmp_path / "orders-0" / f"{FAR:020d}.log{suffix}").write_bytes(
        tail[: 20 if suffix == ".cleaned" else None]
    )
    partition = open_partition(tmp_path, clean=False, cleanup_policy=["compact"])
    assert partition.bases == [0, FAR]
    assert offsets_of(partition) == [0, 5, FAR, FAR + 7]
    assert sorted(path.name for path in (tmp_path / "orders-0").glob("*.log*")) == [LOG, f"{FAR:020d}.log"]


def test_a_segment_is_cut_before_what_was_cut_off_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a crash between the two would leave the records twice."""
    segment = far_log(tmp_path, 0, 5, FAR, FAR + 7)
    begin = records.scan(segment.read_bytes())[2].position
    there: list[tuple[int, list[str]]] = []
    synced: list[str] = []

    def replace(source: str, target: str) -> None:
        if target == str(segment.with_name(f"{FAR:020d}.log")):
            there.append((segment.stat().st_size, [os.path.basename(path) for path in synced]))
        rename(source, target)

    rename = os.replace
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(splitting, "fsync_path", synced.append)
    open_partition(tmp_path, clean=False, cleanup_policy=["compact"])
    assert there == [(begin, [f"{FAR:020d}.log.cleaned", "orders-0", LOG])]
    assert os.path.basename(synced[-1]) == "orders-0"


def test_one_last_batch_with_a_far_offset_is_a_damaged_one(tmp_path: Path) -> None:
    far_log(tmp_path, 0, 5, FAR)
    partition = open_partition(tmp_path, clean=False)
    assert (partition.bases, partition.log_end_offset) == ([0], 6)
    assert (tmp_path / "orders-0" / f"{LOG}.corrupt").exists()


# -- cleanings cut short


def clean_segment(rolled: Path, base: int, suffix: str) -> None:
    """What a cleaning of two segments from `base` on would have written: one record less."""
    data = (rolled / f"{base:020d}.log").read_bytes()
    second = records.scan(data)[1].position
    following = (rolled / f"{base + 4:020d}.log").read_bytes()
    (rolled / f"{base:020d}.log{suffix}").write_bytes(data[second:] + following)
    for index in ("index", "timeindex"):
        shutil.copy(rolled / f"{base:020d}.{index}", rolled / f"{base:020d}.{index}{suffix}")


def test_unfinished_output_is_thrown_away(rolled: Path) -> None:
    clean_segment(rolled, 4, ".cleaned")
    (rolled / f"{0:020d}.log.deleted").write_bytes(b"old")
    partition = recovered(rolled, segment_bytes=300)
    expect(partition, COUNT)
    assert not [name for name in os.listdir(rolled) if name.endswith((".cleaned", ".deleted"))]


def test_finished_output_replaces_what_it_covers(rolled: Path) -> None:
    clean_segment(rolled, 4, ".swap")
    partition = recovered(rolled, segment_bytes=300)
    assert partition.bases == [0, 4, 12, 16]
    expected = [b"v%02d" % each for each in range(COUNT) if each != 4]
    assert values(read_all(partition)) == expected
    assert not list(rolled.glob("*.swap"))


def test_finished_output_without_indexes_does_not_take_those_of_what_it_replaces(rolled: Path) -> None:
    clean_segment(rolled, 4, ".swap")
    for suffix in ("index", "timeindex"):
        (rolled / f"{4:020d}.{suffix}.swap").unlink()
        (rolled / f"{4:020d}.{suffix}").write_bytes(b"of the old one" * 24)
    partition = recovered(rolled, recovery_point=16, segment_bytes=300)
    expected = [b"v%02d" % each for each in range(COUNT) if each != 4]
    assert values(read_all(partition)) == expected
    assert finish(partition.offset_for_timestamp(NOW_MS)) == (0, NOW_MS, 0)


def test_finished_output_with_nothing_in_it_replaces_the_segment_of_its_name(rolled: Path) -> None:
    (rolled / f"{4:020d}.log.swap").write_bytes(b"")
    (rolled / f"{4:020d}.log").unlink()
    partition = recovered(rolled, segment_bytes=300, cleanup_policy=["compact"])
    assert values(read_all(partition)) == [b"v%02d" % each for each in range(COUNT) if not 4 <= each < 8]


def test_a_rename_of_finished_output_that_was_cut_short_is_finished(rolled: Path) -> None:
    clean_segment(rolled, 4, ".swap")
    os.replace(rolled / f"{4:020d}.log.swap", rolled / f"{4:020d}.log")
    for name in (f"{4:020d}.index", f"{4:020d}.timeindex", f"{8:020d}.log"):
        (rolled / name).unlink()
    partition = recovered(rolled, segment_bytes=300)
    assert partition.bases == [0, 4, 12, 16] and not list(rolled.glob("*.swap"))


def test_output_of_a_split_that_was_not_finished_is_thrown_away(rolled: Path) -> None:
    clean_segment(rolled, 4, ".cleaned")
    clean_segment(rolled, 8, ".swap")
    expect(recovered(rolled, segment_bytes=300), COUNT)


# -- clean stops


def test_even_after_a_clean_stop_the_end_must_be_a_whole_batch(home: Path) -> None:
    recovered(home).close()
    os.truncate(home / LOG, positions(home)[-1] + 61)
    partition = open_partition(home.parent, index_interval_bytes=300)
    lead(partition, 1)
    assert partition.log_end_offset == COUNT - 1
    assert append(partition, batch(b"next")) == [COUNT - 1]
    assert len(read_all(partition)) == COUNT


@pytest.mark.parametrize("kept", [0.0, 0.1, 1.0, 1.5, 7.5, 18.5])
def test_a_log_that_was_cut_after_a_clean_stop_ends_with_its_last_whole_batch(
    home: Path, kept: float
) -> None:
    recovered(home).close()
    starts = positions(home)
    size = starts[int(kept)] + int(kept % 1 * (starts[1] - starts[0]))
    os.truncate(home / LOG, size)
    partition = open_partition(home.parent, recovery_point=COUNT, index_interval_bytes=300)
    lead(partition, 1)
    expect(partition, int(kept))


def test_after_a_clean_stop_a_damaged_batch_is_served_as_it_is(home: Path) -> None:
    """As in Kafka. A consumer notices it by the checksum, and so does the scrubber."""
    recovered(home).close()
    patch(home / LOG, positions(home)[10] + 70, b"\xff")
    data = (home / LOG).read_bytes()
    partition = open_partition(home.parent, index_interval_bytes=300)
    lead(partition, 1)
    assert partition.log_end_offset == COUNT
    part = partition.read(0, 1 << 20, limit_offset=COUNT, at_least_one=True)
    assert part is not None and part.read() == data
    assert append(partition, idempotent(COUNT, b"next")) == [COUNT]


def test_an_index_that_points_beside_the_batches_says_nothing_about_the_end(home: Path) -> None:
    """The log is not truncated because of it: the segment is walked, and its indexes are created anew."""
    recovered(home).close()
    whole = (home / INDEX).read_bytes()
    offset, position = int.from_bytes(whole[-8:-4], "big"), int.from_bytes(whole[-4:], "big")
    for wrong in ((offset, position + 1), (offset - 2, position), (offset, position - 72)):
        (home / INDEX).write_bytes(whole[:-8] + b"".join(each.to_bytes(4, "big") for each in wrong))
        partition = open_partition(home.parent, index_interval_bytes=300)
        assert partition.log_end_offset == COUNT
        lead(partition, 0)
        partition.close()
        assert (home / INDEX).read_bytes() == whole or wrong == (offset, position - 72)
    assert not (home / f"{LOG}.corrupt").exists()


def test_a_clean_start_reads_only_the_end_of_the_log(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, *(batch(b"x" * 1000) for _ in range(500)))
    partition.close()
    path = Path(partition.active.path)
    size = path.stat().st_size
    patch(path, 0, bytes(size - 20_000))  # not looked at
    partition = open_partition(tmp_path)
    assert partition.log_end_offset == 500


def test_an_old_format_log_is_recovered(golden: Path, tmp_path: Path) -> None:
    import gzip
    import json

    with gzip.open(golden / "batches" / "valid.jsonl.gz") as file:
        vectors = [json.loads(line) for line in file]
    old = [each for each in vectors if each["name"].startswith(("v0-", "v1-"))]
    old = [each for each in old if "base-offset" not in each["name"]]  # too far from the base offset 0
    assert len(old) > 10
    for number, vector in enumerate(old):
        partition = new_partition(tmp_path / str(number))
        path = Path(partition.active.path)
        partition.close(clean=False)
        path.write_bytes(bytes.fromhex(vector["hex"]))
        partition = open_partition(tmp_path / str(number), clean=False)
        lead(partition, 1)
        batches = records.scan(path.read_bytes())
        if not batches:
            print(vector["name"], records.scan(bytes.fromhex(vector["hex"])))
        assert partition.log_end_offset == batches[-1].last_offset + 1, vector["name"]
        assert len(read_all(partition)) == len(list(records.read(path.read_bytes()))), vector["name"]


def test_timestamps_are_found_after_recovery(home: Path) -> None:
    partition = recovered(home)
    assert finish(partition.max_timestamp_offset()) == (0, NOW_MS, 0)
    assert finish(partition.offset_for_timestamp(NOW_MS)) == (0, NOW_MS, 0)
