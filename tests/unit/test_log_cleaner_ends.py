"""What may interrupt a cleaning: deletion, moves, errors, crashes at any step of a swap, the end of the broker."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from tests.cleaner_kit import COMPACTED, DAY_MS, Home, contents, fill, mark, names, put
from tests.storage_kit import NOW_MS, lead, marker, open_partition, read_all


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def begin(home: Home, partition: Log) -> None:
    """Begin a cleaning whose first step the thread has not done yet."""
    fill(partition, [("a", "1"), ("b", "1"), ("a", "2")])
    home.timers.advance(15_000)
    assert home.cleaner.is_busy(partition)


def leftovers(home: Home) -> list[str]:
    return [str(path) for root in home.paths for path in root.rglob("*.cleaned")]


EVERY_STEP = pytest.mark.parametrize("steps", [0, 1])


# -- interruptions


@EVERY_STEP
def test_a_deleted_topic_stays_deleted(home: Home, steps: int) -> None:
    partition = home.create()
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    home.manager.delete("orders", 0)
    home.finish()
    assert home.cleaner.running == 0
    assert not leftovers(home)
    assert not Path(partition.directory).exists()


@EVERY_STEP
def test_a_topic_of_the_same_name_is_another_one(home: Home, steps: int) -> None:
    partition = home.create()
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    home.manager.delete("orders", 0)
    again = home.create()
    fill(again, [("x", "1"), ("x", "2")])
    home.finish()
    home.clean()
    assert contents(again) == [(1, "x", "2")]
    assert not leftovers(home)


@EVERY_STEP
def test_segments_that_went_meanwhile_do_not_come_back(home: Home, steps: int) -> None:
    partition = home.create(cleanup_policy=["compact", "delete"])
    fill(partition, [("a", "1")])
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    partition.retire(1, NOW_MS)
    home.finish()
    assert contents(partition) == [(2, "b", "1"), (3, "a", "2")]
    assert partition.bases == [1, 4]
    assert not leftovers(home)


@EVERY_STEP
def test_a_follower_that_is_cut_makes_the_cleaner_let_go(home: Home, steps: int) -> None:
    """What the cleaner has read may be what the leader does not have."""
    partition = home.create()
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    partition.truncate(1, lambda: True, lambda error: None)
    home.finish()
    assert contents(partition) == [(0, "a", "1")] and partition.log_end_offset == 1
    assert home.cleaner.running == 0 and not leftovers(home)


def test_output_whose_segments_have_gone_meanwhile_is_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the thread's work and the turn of the loop in which it comes back."""
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    fill(partition, [("a", "3"), ("a", "4")])
    there: list[list[str]] = []

    def between(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        result = work()
        if leftovers(home) and not there:
            there.append(leftovers(home))
            partition.retire(1, NOW_MS)
        done(result)

    monkeypatch.setattr("tests.storage_kit.submit_inline", between)
    home.timers.advance(15_000)
    home.threads.step()
    home.threads.step()
    assert there and not home.cleaner.is_uncleanable(partition)
    home.threads.step()
    assert not leftovers(home) and contents(partition) == [(2, "a", "3"), (3, "a", "4")]


def test_retention_waits_for_the_cleaner(home: Home) -> None:
    partition = home.create(cleanup_policy=["compact", "delete"], retention_ms=1000)
    begin(home, partition)
    home.clock.advance(DAY_MS)
    home.manager.check_retention()
    assert len(partition.segments) == 2
    home.finish()
    home.manager.check_retention()
    assert contents(partition) == []


@EVERY_STEP
def test_a_move_makes_the_cleaner_let_go(tmp_path: Path, steps: int) -> None:
    home = Home(tmp_path / "a", tmp_path / "b")
    partition = home.create()
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    target = next(each for each in home.manager.online if each is not partition.log_directory)
    home.manager.moves.ask("orders", 0, target.path)
    home.finish()
    assert partition.log_directory is target
    assert not leftovers(home)
    home.clean()
    assert contents(partition) == [(1, "b", "1"), (2, "a", "2")]


def test_a_partition_under_way_is_not_begun_with(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", tmp_path / "b")
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    target = next(each for each in home.manager.online if each is not partition.log_directory)
    jobs: list[Callable[[], None]] = []
    home.manager.submit = lambda work, done: jobs.append(lambda: done(work()))
    home.manager.moves.ask("orders", 0, target.path)
    home.clean()
    assert len(contents(partition)) == 2
    while jobs:
        jobs.pop(0)()
    home.clean()
    while jobs:
        jobs.pop(0)()
    assert contents(partition) == [(1, "a", "2")]


def test_what_is_known_of_a_partition_moves_with_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", tmp_path / "b")
    partition = home.create()
    begin(home, partition)
    home.finish()
    home.cleaner.uncleanable.add(partition)
    source = partition.log_directory
    target = next(each for each in home.manager.online if each is not source)
    home.manager.moves.ask("orders", 0, target.path)
    assert home.cleaner.is_uncleanable(partition)
    moved = checkpoints.read_offsets(f"{target.path}/{checkpoints.CLEANED}")
    left = checkpoints.read_offsets(f"{source.path}/{checkpoints.CLEANED}")
    assert (moved, left) == ({("orders", 0): 3}, {})


def test_a_log_goes_on_while_it_is_cleaned(home: Home) -> None:
    partition = home.create()
    begin(home, partition)
    put(partition, ("a", "3"))
    home.threads.step()
    partition.roll(NOW_MS)
    put(partition, ("b", "2"))
    home.threads.all()
    assert contents(partition) == [(1, "b", "1"), (2, "a", "2"), (3, "a", "3"), (4, "b", "2")]
    assert partition.bases == [0, 3, 4]


def test_who_reads_meanwhile_reads_what_was_there(home: Home) -> None:
    partition = home.create()
    begin(home, partition)
    part = partition.read(0, 1 << 20, limit_offset=3, at_least_one=True)
    assert part is not None
    home.finish()
    home.timers.advance(1000)
    home.manager.deletions.unlink_due()
    assert [record.offset for record in records.read(part.read())] == [0, 1, 2]


# -- the end of the broker


@EVERY_STEP
def test_a_stop_does_not_wait_for_a_cleaning(home: Home, steps: int) -> None:
    partition = home.create()
    begin(home, partition)
    for _ in range(steps):
        home.threads.step()
    home.manager.compaction.stop()
    home.threads.all()
    assert home.cleaner.running == 0
    assert not leftovers(home)
    assert len(contents(partition)) == 3
    home.timers.advance(DAY_MS)
    assert not home.threads.waiting
    home.manager.close()
    home.start()
    home.clean()
    assert len(contents(home.manager.partitions["orders", 0])) == 2


# -- errors


def damage(partition: Log, position: int = 65) -> None:
    """Flip a bit of the first record of a closed segment."""
    path = partition.segments[0].path
    data = bytearray(Path(path).read_bytes())
    data[position] ^= 1
    Path(path).write_bytes(data)


def test_a_damaged_log_is_told_and_left_alone_while_others_are_cleaned(home: Home, said: io.StringIO) -> None:
    bad, good = home.create("bad"), home.create("good")
    for partition in (bad, good):
        fill(partition, [("a", "1"), ("a", "2")])
    damage(bad)
    home.clean(3)
    assert len(contents(good)) == 1
    assert home.cleaner.is_uncleanable(bad)
    assert home.manager.directories[0].is_online
    assert list(home.cleaner.uncleanable) == [bad]
    told = [line for line in said.getvalue().splitlines() if "bad-0" in line]
    assert len(told) == 1
    assert "position 0" in told[0]
    assert not leftovers(home)


def test_a_deleted_log_is_not_uncleanable_any_more(home: Home) -> None:
    bad = home.create("bad")
    fill(bad, [("a", "1"), ("a", "2")])
    damage(bad)
    home.clean()
    home.manager.delete("bad", 0)
    again = home.create("bad")
    fill(again, [("a", "1"), ("a", "2")])
    home.clean()
    assert len(contents(again)) == 1


def test_a_start_tries_again(home: Home) -> None:
    bad = home.create()
    fill(bad, [("a", "1"), ("a", "2")])
    damage(bad)
    home.clean()
    damage(bad)
    home.clean()
    assert len(contents(bad)) == 2
    home.restart()
    home.clean()
    assert len(contents(home.manager.partitions["orders", 0])) == 1


@pytest.mark.parametrize("what", ["os.rename", "pykafkad.storage.files.fsync_path"])
def test_a_disk_that_fails_in_a_swap_takes_the_directory_offline(
    home: Home, said: io.StringIO, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    partition = home.create()
    begin(home, partition)

    def fail(path: str, *arguments: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(what, fail)
    home.threads.all()
    monkeypatch.undo()
    assert not home.manager.directories[0].is_online
    assert home.manager.get("orders", 0) is None
    assert "orders-0 could not be cleaned: [Errno 5]" in said.getvalue()
    assert home.cleaner.running == 0


def test_a_disk_that_cannot_be_written_takes_the_directory_offline(home: Home) -> None:
    partition = home.create()
    begin(home, partition)
    home.threads.step()
    Path(partition.directory, "00000000000000000000.log.cleaned").mkdir()
    home.threads.all()
    assert not home.manager.directories[0].is_online


def test_a_bug_costs_one_partition_its_cleanings(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = home.create()
    begin(home, partition)

    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pykafkad.storage.cleaning.cleaning.group", fail)
    home.threads.all()
    assert home.cleaner.is_uncleanable(partition)
    assert home.manager.directories[0].is_online


def test_no_memory_is_not_the_disks_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])

    def no_memory(size: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("pykafkad.storage.cleaning.cleaning.KeyMap", no_memory)
    home.clean()
    assert home.cleaner.is_uncleanable(partition)
    assert home.manager.directories[0].is_online


# -- crashes


def scene(home: Home) -> Log:
    """Three segments, with an aborted transaction, that are cleaned into one, and a fourth one that stays."""
    partition = home.create()
    put(partition, ("a", "1"), ("b", "1"))
    partition.roll(NOW_MS)
    rows: list[tuple[bytes, bytes, list[Any], int]] = [(b"a", b"no", [], NOW_MS)]
    for sequence in range(2):
        data = records.build(
            rows, producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        partition.append(bytearray(data), NOW_MS, verified=True)
    mark(partition, marker(7, 0, commit=False))
    fill(partition, [("a", "2"), ("c", "1")])
    fill(partition, [("b", "2"), ("c", "2")])
    put(partition, ("d", "1"))
    return partition


def committed(partition: Log) -> dict[str, tuple[int, str]]:
    """The newest committed record of each key, as a consumer with read_committed sees them."""
    found: dict[str, tuple[int, str]] = {}
    aborted = {2, 3}
    for offset, key, value in contents(partition):
        if offset not in aborted and key is not None and value is not None and key.isalpha():
            found[key] = (offset, value)
    return found


def copies_of_every_step(home: Home, copies: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directory as it is before each change of a name, and after the last one."""
    found: list[Path] = []
    root = home.paths[0]

    def watch(name: str) -> None:
        real = getattr(os, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            target = copies / str(len(found))
            shutil.copytree(root, target)
            found.append(target)
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, watched)

    for name in ("rename", "replace", "unlink"):
        watch(name)
    home.finish()
    home.timers.advance(1000)
    home.manager.deletions.unlink_due()
    monkeypatch.undo()
    found.append(copies / "end")
    shutil.copytree(root, found[-1])
    return found


def test_a_crash_at_any_step_of_a_swap_loses_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = scene(home)
    before = committed(partition)
    assert before == {"a": (5, "2"), "b": (7, "2"), "c": (8, "2"), "d": (9, "1")}
    home.timers.advance(15_000)
    copies = copies_of_every_step(home, tmp_path / "copies", monkeypatch)
    assert committed(partition) == before
    assert len(copies) > 30
    for step, copy in enumerate(copies):
        for clean in (False, True):
            path = copy.with_name(f"{copy.name}-{clean}")
            shutil.copytree(copy, path)
            config = {key.replace(".", "_"): value for key, value in COMPACTED.items()}
            found = open_partition(path, clean=clean, **config)
            lead(found, 0)
            assert committed(found) == before, f"step {step}, clean={clean}"
            assert found.log_end_offset == 10
            assert sorted(found.bases) == found.bases
            left = [
                name for name in names(found) if name.endswith((files.CLEANED, files.SWAP, files.DELETED))
            ]
            assert left == [], f"step {step}"
            offsets = [record.offset for record in read_all(found)]
            assert offsets == sorted(set(offsets)), f"step {step}"
            check_aborted(found, step)


def check_aborted(partition: Log, step: int) -> None:
    """Aborted transactions are reported exactly as long as some of their records are left."""
    part = partition.read(0, 1 << 20, limit_offset=10, at_least_one=True)
    assert part is not None
    told = partition.aborted_transactions(0, part)
    producers = [batch for batch in records.scan(part.read()) if batch.producer_id == 7]
    has_marker = any(batch.is_control and batch.count for batch in producers)
    if told:
        assert has_marker or part.file.path != partition.segments[0].path, f"step {step}"
    if any(batch.count and not batch.is_control for batch in producers):
        assert told == [(7, 2)], f"step {step}"


def test_the_new_files_take_their_names_in_an_order_that_can_be_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = scene(home)
    home.timers.advance(15_000)
    done: list[tuple[str, str]] = []
    rename = os.rename

    def watched(source: str, target: str) -> None:
        rename(source, target)
        if os.path.dirname(source) == partition.directory:
            done.append((os.path.basename(source), os.path.basename(target)))

    monkeypatch.setattr(os, "rename", watched)
    home.finish()
    monkeypatch.undo()
    kinds = [(Path(source).suffix, Path(target).suffix) for source, target in done]
    first_deleted = next(slot for slot, (_, target) in enumerate(kinds) if target == files.DELETED)
    last_deleted = max(slot for slot, (_, target) in enumerate(kinds) if target == files.DELETED)
    assert set(kinds[:first_deleted]) == {(files.CLEANED, files.SWAP)}
    assert all(target == files.DELETED for _, target in kinds[first_deleted : last_deleted + 1])
    assert all(source == files.SWAP for source, _ in kinds[last_deleted + 1 :])
    assert len(kinds[:first_deleted]) == len(kinds[last_deleted + 1 :]) == 4, "log, two indexes, aborted"
    assert partition.bases == [0, 9]
