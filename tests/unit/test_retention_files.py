"""The files of deleted segments: their renames and removal, the effects on the log, and what may happen in between."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.storage import retention
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.manager import LogManager
from tests.storage_kit import NOW_MS, TOPIC_ID, append, batch, idempotent, lead, manager, marker, read_all
from tests.unit.retention_kit import BATCH_BYTES, KEY, Home, age_of, config


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# -- files


def test_files_are_renamed_at_once_and_go_after_the_delay(home: Home) -> None:
    partition = home.create(retention_bytes=3 * BATCH_BYTES)
    before = home.files()
    assert f"{2:020d}.snapshot" in before
    home.check()
    gone = [f"{base:020d}{suffix}" for base in (0, 2) for suffix in (".log", ".index", ".timeindex")]
    gone.append(f"{2:020d}.snapshot")
    assert home.files(".deleted") == sorted(f"{name}.deleted" for name in gone)
    assert sorted(home.files()) == sorted([*set(before) - set(gone), *(f"{name}.deleted" for name in gone)])
    home.clock.advance(999)
    home.logs.deletions.unlink_due()
    assert len(home.files(".deleted")) == len(gone)
    home.clock.advance(1)
    home.logs.deletions.unlink_due()
    assert home.files() == sorted(set(before) - set(gone))
    assert partition.bases == [4, 6]


def test_an_index_of_aborted_transactions_goes_with_its_segment(home: Home) -> None:
    partition = home.create(0, segment_bytes=1000)
    partition.context.verify_transactions = False
    append(partition, idempotent(0, b"x", transactional=True))
    partition.append_built(marker(7, 0, commit=False), NOW_MS)
    partition.commit()
    partition.roll(NOW_MS)
    append(partition, batch(b"y"))
    home.logs.dirty.clear()
    assert home.files(".txnindex") == [f"{0:020d}.txnindex"]
    partition.advance_log_start(2)
    assert home.check() == [2]
    assert f"{0:020d}.txnindex.deleted" in home.files()


def test_who_reads_may_finish(home: Home) -> None:
    partition = home.create(retention_bytes=0)
    part = partition.read(0, 1 << 20, limit_offset=7, at_least_one=True)
    assert part is not None
    before = part.read()
    home.check()
    home.clock.advance(1000)
    home.logs.deletions.unlink_due()
    assert part.read() == before and not home.files(".deleted")


def test_files_of_a_partition_that_is_deleted_meanwhile(home: Home) -> None:
    home.create(retention_bytes=0)
    home.check()
    home.logs.delete(*KEY)
    home.create(1)  # another topic of that name
    home.clock.advance(1000)
    home.logs.deletions.unlink_due()
    assert [entry.name for entry in os.scandir(home.path) if entry.is_dir()] == ["orders-0"]
    assert home.logs.online and home.partition.log_end_offset == 1


# -- effects on the log


def test_epochs_and_producers_follow(home: Home) -> None:
    partition = home.create(0, segment_bytes=2 * len(idempotent(0, b"x")))
    for number in range(4):
        lead(partition, number)
        append(partition, idempotent(2 * number, b"x"), idempotent(2 * number + 1, b"x"))
    home.logs.dirty.clear()
    partition.recovery_point = 0
    partition.advance_log_start(5)
    assert home.check() == [4, 6]
    assert partition.recovery_point == 0  # nothing was synced
    assert list(partition.epochs.entries) == [(2, 5), (3, 6)]
    known = partition.producers.producers[7]
    assert known.last_offset == 7 and known.last_sequence == 7
    partition = home.restart(clean=False)
    assert partition.log_start_offset == 4  # its checkpoint was never written
    assert partition.producers.producers[7].last_sequence == 7


def test_an_open_transaction_below_the_start_does_not_hold_anything_back(home: Home) -> None:
    partition = home.create(0, segment_bytes=1000, retention_ms=600_000)
    partition.context.verify_transactions = False
    append(partition, idempotent(0, b"x", transactional=True))
    partition.roll(NOW_MS)
    append(partition, batch(b"y", timestamp=age_of(60)), now_ms=age_of(60))
    home.logs.dirty.clear()
    assert partition.last_stable_offset == 0
    home.clock.set_wall(age_of(60))
    assert home.check() == [1]
    assert partition.last_stable_offset == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_finds_the_same(home: Home, clean: bool) -> None:
    home.create(retention_bytes=3 * BATCH_BYTES)
    home.check()
    partition = home.restart(clean=clean)
    assert (partition.bases, partition.log_start_offset, partition.log_end_offset) == ([4, 6], 4, 7)
    assert not home.files(".deleted")


def test_a_restart_after_everything_went(home: Home) -> None:
    partition = home.create(0, segment_bytes=2 * len(idempotent(0, b"x")), retention_ms=1)
    for number in range(4):
        append(partition, idempotent(number, b"x"))
    home.logs.dirty.clear()
    assert home.check(1000) == [4]
    for clean in (False, True):
        partition = home.restart(clean=clean)
        assert (partition.bases, partition.log_start_offset, partition.log_end_offset) == ([4], 4, 4)
        assert partition.append(idempotent(3, b"x"), NOW_MS).duplicate
        partition.discard()


@pytest.mark.parametrize(("kept", "possible"), [(3, {0, 2, 4}), (0, {0, 2, 4, 6, 7})])
def test_a_crash_at_any_moment_of_the_renames(
    home: Home, tmp_path_factory: pytest.TempPathFactory, kept: int, possible: set[int]
) -> None:
    """The log start is a segment earlier or later, and everything above is there."""
    home.create(retention_bytes=kept * BATCH_BYTES)
    states = tmp_path_factory.mktemp("states")
    real, count = os.rename, 0

    def rename(source: str, target: str) -> None:
        nonlocal count
        shutil.copytree(home.path, states / str(count))
        count += 1
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", rename)
        home.check()
    assert count >= 7
    starts = []
    for number in range(count):
        found = manager(states / str(number))
        found.open_all({KEY: TOPIC_ID}, lambda topic: config())
        partition = found.partitions[KEY]
        starts.append(partition.log_start_offset)
        assert [record.offset for record in read_all(partition, partition.log_start_offset)] == []
        lead(partition, 1)
        assert [record.offset for record in read_all(partition)] == list(range(starts[-1], 7))
        found.close(clean=False)
    assert starts == sorted(starts) and set(starts) == possible


def test_a_start_that_was_promised_stays_in_its_checkpoint(home: Home) -> None:
    """Even if the files show the same start: a power failure may undo their renames."""
    partition = home.create()
    path = home.path / checkpoints.LOG_STARTS
    for start, bases in ((5, [4, 6]), (6, [6])):
        partition.delete_records(start)
        home.logs.checkpoint_log_starts()
        assert path.read_text() == f"0\n1\norders 0 {start}\n"
        assert home.check() == bases
        home.logs.checkpoint_log_starts()
        assert path.read_text() == f"0\n1\norders 0 {start}\n"
    home.restart()
    home.logs.checkpoint_log_starts()
    assert path.read_text() == "0\n0\n"


def test_a_start_that_retention_made_needs_no_checkpoint(home: Home) -> None:
    home.create(retention_bytes=3 * BATCH_BYTES)
    home.check()
    home.logs.checkpoint_log_starts()
    assert (home.path / checkpoints.LOG_STARTS).read_text() == "0\n0\n"


# -- failures and neighbours


def test_a_disk_that_does_not_rename_goes_offline(home: Home, said: io.StringIO) -> None:
    home.create(retention_bytes=0)

    def rename(source: str, target: str) -> None:
        raise OSError(5, "Input/output error", source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", rename)
        home.logs.check_retention()
    assert not home.logs.online and KEY not in home.logs.partitions
    assert "is offline" in said.getvalue()


def test_a_failed_directory_is_not_touched(home: Home) -> None:
    partition = home.create(retention_bytes=0)
    partition.log_directory.fail("a test")
    assert home.check() == [0, 2, 4, 6]


def test_a_partition_that_is_being_cleaned_is_looked_at_next_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = home.create(retention_bytes=0)
    busy = [partition]
    monkeypatch.setattr(home.logs.compaction, "is_busy", lambda each: each in busy)
    assert home.check() == [0, 2, 4, 6]
    busy.clear()
    assert home.check() == [7]


def test_each_deleted_segment_is_told_with_the_reason(home: Home, said: io.StringIO) -> None:
    partition = home.create(retention_bytes=5 * BATCH_BYTES, retention_ms=600_000)
    home.check()
    assert "orders-0: segment 0 (" in said.getvalue() and "retention.bytes=" in said.getvalue()
    home.clock.set_wall(age_of(3) + 600_001)
    home.check()
    lines = [line for line in said.getvalue().splitlines() if "retention.ms=600000" in line]
    assert len(lines) == 1 and "orders-0: segment 2 (" in lines[0] and str(age_of(3)) in lines[0]
    partition.advance_log_start(6)
    home.check()
    assert "orders-0: segment 4 (" in said.getvalue() and "below the log's start" in said.getvalue()


# -- in turns


class Turns:
    """What is to be done in a later turn."""

    def __init__(self, logs: LogManager) -> None:
        self.waiting: list[Callable[[], Any]] = []
        logs.call_later = lambda delay_ms, action: self.waiting.append(action)

    def all(self) -> int:
        count = 0
        while self.waiting:
            self.waiting.pop(0)()
            count += 1
        return count


def test_many_partitions_are_looked_at_in_turns(home: Home) -> None:
    turns = Turns(home.logs)
    partitions = [
        home.logs.create(f"topic-{number}", 0, TOPIC_ID, config(retention_ms=1), 0) for number in range(250)
    ]
    for partition in partitions[::10]:
        append(partition, batch(b"x"))
    home.logs.dirty.clear()
    home.clock.advance(86_400_000)
    home.logs.check_retention()
    home.logs.check_retention()  # one round at a time
    home.logs.delete("topic-249", 0)
    assert 8 < turns.all() < 16
    assert [each.log_start_offset for each in partitions[::10]] == [1] * 25
    home.logs.check_retention()
    assert turns.all() == 2


def test_one_partitions_mishap_is_not_the_next_ones(home: Home) -> None:
    turns = Turns(home.logs)
    for name in ("first", "second"):
        append(home.logs.create(name, 0, TOPIC_ID, config(retention_ms=1), 0), batch(b"x"))
    home.logs.dirty.clear()
    home.logs.partitions["first", 0].settings.retention_ms = None  # type: ignore[assignment]
    home.clock.advance(86_400_000)
    with pytest.raises(TypeError):
        home.logs.check_retention()
    turns.all()
    assert home.logs.partitions["second", 0].log_start_offset == 1


def test_many_segments_of_one_partition_go_in_turns(home: Home) -> None:
    turns = Turns(home.logs)
    home.create(202, retention_bytes=BATCH_BYTES)
    assert len(home.partition.bases) == 101
    home.logs.check_retention()
    assert len(home.partition.bases) == 101 - 2 * retention.SEGMENTS_AT_ONCE
    turns.all()
    assert home.partition.bases == [200] and home.partition.log_start_offset == 200


def test_a_move_goes_on_while_segments_are_deleted(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    work: list[Callable[[], None]] = []
    kept = manager(*paths)
    kept.open_all({}, lambda topic: config())
    partition = kept.create(*KEY, TOPIC_ID, config(segment_bytes=40_000), 0, kept.directories[0].directory_id)
    for number in range(120):
        append(partition, batch(b"%04d" % number + b"x" * 16_000), now_ms=NOW_MS)
    kept.dirty.clear()
    submit = kept.submit
    kept.submit = lambda do, done: work.append(lambda: submit(do, done))
    assigned = []

    def note(partition: Any, directory: Any, done: Callable[[None], None]) -> None:
        assigned.append(directory)
        done(None)

    kept.moves.placement.moved = note  # type: ignore[method-assign]
    kept.moves.ask(*KEY, str(paths[1]))
    steps = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pykafkad.storage.moves.move.PIECE_BYTES", 100_000)
        patch.setattr("pykafkad.storage.moves.move.LAST_BYTES", 20_000)
        while work:
            # The segment of the next piece is deleted before a thread copies it.
            if partition.log_start_offset < 100:
                partition.advance_log_start(partition.log_start_offset + 7)
                kept.check_retention()
            work.pop(0)()
            steps += 1
    assert partition.log_directory.path == str(paths[1]) and len(kept.online) == 2
    assert [record.offset for record in read_all(partition)] == list(range(partition.log_start_offset, 120))
    kept.close()
    found = manager(*paths)
    found.open_all({KEY: TOPIC_ID}, lambda topic: config())
    moved = found.partitions[KEY]
    assert (moved.bases, moved.log_end_offset) == (partition.bases, 120)
    assert [record.offset for record in read_all(moved)] == list(range(partition.log_start_offset, 120))
    found.close()
