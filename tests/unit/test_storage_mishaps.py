"""One unexpected exception, a bug of ours or a lack of memory, in each periodic job of storage: it is logged, and the
job runs again.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.clock import ManualClock
from pykafkad.pure.producer_state import ProducerState
from pykafkad.storage import flushing
from pykafkad.storage.checkpoints import checkpointing, checkpoints
from pykafkad.storage.cleaning.cleaner_run import Run
from pykafkad.storage.cleaning.cleaning import Cleaning
from pykafkad.storage.cleaning.compaction import Compaction
from pykafkad.storage.log import lookups
from pykafkad.storage.manager import LogManager
from pykafkad.storage.recovery import scrubber
from tests.cleaner_kit import Home as CleanerHome
from tests.cleaner_kit import write
from tests.storage_kit import NOW_MS, TOPIC_ID, Threads, append, batch, manager, topic_config
from tests.unit.retention_kit import Home as RetentionHome

CONFIG = topic_config()


class Once:
    """Raises an exception at the first call (or at each call with one argument), and is the real function otherwise."""

    def __init__(self, real: Callable[..., Any], *, only: object = None) -> None:
        self.real = real
        self.only = only
        self.raised = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if self.only in arguments if self.only is not None else not self.raised:
            self.raised += 1
            raise MemoryError("there is none left")
        return self.real(*arguments, **options)

    def __get__(self, one: Any, kind: Any) -> Callable[..., Any]:
        return lambda *arguments, **options: self(one, *arguments, **options)


def once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, **options: Any) -> Once:
    found = Once(getattr(owner, name), **options)
    monkeypatch.setattr(owner, name, found)
    return found


def start(path: Path, threads: Threads | None = None, **overrides: Any) -> LogManager:
    logs = manager(path, clock=ManualClock(NOW_MS), **overrides)
    logs.open_all({}, lambda topic: CONFIG)
    if threads is not None:
        logs.submit = threads.submit
    return logs


def run_all(threads: Threads) -> int:
    """Run everything; returns how many exceptions reached the loop, which logs them."""
    told = 0
    while threads.waiting:
        try:
            threads.step()
        except MemoryError:
            told += 1
    return told


# -- checkpoints


@pytest.mark.parametrize("where", ["write_offsets", "offsets_of"])
def test_a_checkpoint_is_written_next_time(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads()
    logs = start(tmp_path, threads)
    append(logs.create("orders", 0, TOPIC_ID, CONFIG, 0), batch(b"a"))
    owner = checkpoints if where == "write_offsets" else checkpointing.Checkpointing
    broken = once(monkeypatch, owner, where)
    told = 0
    try:
        logs.checkpoint_high_watermarks()
    except MemoryError:
        told += 1
    told += run_all(threads)
    assert told == broken.raised == 1
    logs.checkpoint_high_watermarks()
    assert run_all(threads) == 0
    assert checkpoints.read_offsets(str(tmp_path / checkpoints.HIGH_WATERMARKS)) == {("orders", 0): 1}
    logs.submit = lambda work, done: done(work())
    logs.close()


def test_everybody_who_waits_for_a_checkpoint_is_told(tmp_path: Path, said: io.StringIO) -> None:
    threads = Threads()
    logs = start(tmp_path, threads)
    told: list[str] = []

    def broken() -> None:
        raise ValueError("our mistake")

    logs.checkpointing.write(checkpoints.LOG_STARTS, lambda: told.append("a"))
    for done in (lambda: told.append("b"), broken, lambda: told.append("c")):
        logs.checkpointing.write(checkpoints.LOG_STARTS, done)
    threads.all()
    assert told == ["a", "b", "c"] and said.getvalue().count("our mistake") == 1
    logs.close(clean=False)


# -- flushing


def test_who_waits_for_a_checkpoint_of_no_directory_is_told(tmp_path: Path) -> None:
    logs = start(tmp_path)
    logs.directories[0].fail("pulled out")
    told: list[str] = []
    logs.checkpointing.write(checkpoints.LOG_STARTS, lambda: told.append("over"))
    assert told == ["over"]
    logs.close()


def test_a_deleted_partition_is_in_no_checkpoint(tmp_path: Path) -> None:
    logs = start(tmp_path)
    one, other = (logs.create(name, 0, TOPIC_ID, CONFIG, 0) for name in ("one", "other"))
    for log in (one, other):
        append(log, *(batch(b"v") for _ in range(3)))
        log.roll(NOW_MS)
        log.delete_records(2)
    logs.checkpoint_log_starts()
    logs.checkpoint_recovery_points()

    def said() -> list[dict[tuple[str, int], int]]:
        names = (checkpoints.LOG_STARTS, checkpoints.RECOVERY_POINTS)
        return [checkpoints.read_offsets(f"{tmp_path}/{name}") for name in names]

    assert said() == [{("one", 0): 2, ("other", 0): 2}, {("one", 0): 3, ("other", 0): 3}]
    logs.delete("one", 0)
    assert said() == [{("other", 0): 2}, {("other", 0): 3}]
    logs.close()


def test_a_flush_that_is_due_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, later = Threads(), []
    logs = start(tmp_path, threads)
    logs.call_later = lambda delay_ms, action: later.append((delay_ms, action))
    broken = once(monkeypatch, lookups, "sync_files")
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(flush_messages=1), 0)
    append(partition, batch(b"a"))
    logs.commit()
    assert run_all(threads) == broken.raised == 1 and partition.high_watermark == 0
    ((delay_ms, action),) = later
    assert delay_ms == flushing.RETRY_MS and not partition.is_dirty  # and no fsync in every pass
    action()
    while partition.is_dirty:
        logs.commit()
        run_all(threads)
    assert partition.high_watermark == 1 and logs.directories[0].is_online
    logs.close(clean=False)


def test_a_flush_that_cannot_even_begin_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = start(tmp_path)
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(flush_messages=1), 0)
    once(monkeypatch, flushing, "all_files")
    with pytest.raises(MemoryError):
        logs.flushing.due(partition)
    assert partition not in logs.flushing.under_way
    append(partition, batch(b"a"))
    logs.commit()
    assert partition.high_watermark == 1
    logs.close()


def test_flush_ms_goes_on_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = start(tmp_path)
    config = topic_config(flush_ms=1)
    partitions = [logs.create(name, 0, TOPIC_ID, config, 0) for name in "abc"]
    for partition in partitions:
        append(partition, batch(b"v"))
    logs.clock.advance(10)  # type: ignore[attr-defined]
    once(monkeypatch, flushing, "all_files", only=partitions[0])
    logs.flushing.aged()
    assert [partition.flushed_offset for partition in partitions] == [0, 1, 1]
    monkeypatch.undo()
    logs.clock.advance(10)  # type: ignore[attr-defined]
    logs.flushing.aged()
    logs.close(clean=False)


def test_flush_ms_asks_once_until_it_is_done(tmp_path: Path) -> None:
    """However short log.flush.scheduler.interval.ms is, and however slow the disk."""
    threads = Threads()
    logs = start(tmp_path, threads)
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(flush_ms=0), 0)
    append(partition, batch(b"a"))
    for _ in range(100):
        logs.clock.advance(10)  # type: ignore[attr-defined]
        logs.flushing.aged()
    assert len(threads.waiting) == 1
    threads.all()
    append(partition, batch(b"b"))
    logs.flushing.aged()
    threads.all()
    assert partition.flushed_offset == 2
    logs.close(clean=False)


# -- all partitions, one after the other


def test_producers_of_the_others_expire(
    tmp_path: Path, said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = start(tmp_path)
    partitions = [logs.create(name, 0, TOPIC_ID, CONFIG, 0) for name in "abc"]
    seen: list[ProducerState] = []

    def expire(producers: ProducerState, now_ms: int, expiration_ms: int) -> None:
        seen.append(producers)
        if producers is partitions[0].producers:
            raise MemoryError

    monkeypatch.setattr(ProducerState, "remove_expired", expire)
    logs.expire_producers()
    assert len(seen) == 3 and said.getvalue().count("MemoryError") == 1
    logs.close(clean=False)


def test_retention_goes_on_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = RetentionHome(tmp_path)
    later: list[Callable[[], None]] = []
    home.logs.call_later = lambda delay_ms, action: later.append(action)
    home.create(retention_ms=1)
    other = home.logs.create("other", 0, TOPIC_ID, topic_config(retention_ms=1, segment_bytes=200), 0)
    append(other, batch(b"x" * 100), batch(b"y" * 100))
    home.clock.advance(86_400_000)
    broken = once(monkeypatch, type(home.logs.retention), "apply", only=home.partition)
    with pytest.raises(MemoryError):
        home.logs.check_retention()
    while later:
        later.pop(0)()
    assert broken.raised == 1 and other.bases == [2]
    monkeypatch.undo()
    home.logs.check_retention()
    assert home.partition.bases == [7]


# -- the cleaner


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "_indexed"),
        (Run, "_next_group"),
        (Run, "_swap"),
        (Cleaning, "index"),
        (Cleaning, "rewrite"),
        (Cleaning, "sync_directory"),
        (Cleaning, "close"),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_a_cleaning_that_goes_wrong_is_over_and_the_next_log_is_cleaned(
    owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = CleanerHome(tmp_path)
    for topic in ("a", "b"):
        partition = home.create(topic, segment_bytes=400)
        for _ in range(20):
            partition.append(batch(b"v" * 100), NOW_MS)
            write(partition)
    broken = once(monkeypatch, owner, name)
    for _ in range(4):
        try:
            home.clean()
        except MemoryError:
            home.finish()
    monkeypatch.undo()
    assert broken.raised == 1 and home.cleaner.running == 0
    bad = sum(home.cleaner.is_uncleanable(partition) for partition in home.manager)
    clean = [partition.first_dirty_offset is not None for partition in home.manager]
    assert bad <= 1 and sum(clean) >= 2 - bad
    assert not any(home.cleaner.is_busy(partition) for partition in home.manager)
    home.manager.close(clean=False)


def test_the_cleaner_looks_around_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = CleanerHome(tmp_path)
    broken = once(monkeypatch, Compaction, "turn")
    with pytest.raises(MemoryError):
        home.timers.advance(15_000)
    turns: list[int] = []
    broken.real = lambda compaction: turns.append(1)
    home.timers.advance(60_000)
    assert len(turns) == 4
    home.manager.close(clean=False)


# -- the scrubber


def test_the_scrubber_passes_over_what_it_cannot_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = start(tmp_path, pykafkad_scrub_max_bytes_per_second=1 << 20)
    for name in "abc":
        append(logs.create(name, 0, TOPIC_ID, CONFIG, 0), batch(b"v"))
    logs.config["pykafkad.scrub.max.bytes.per.second"] = 1 << 20
    broken = once(monkeypatch, scrubber, "Inspection")
    for _ in range(3):
        logs.clock.advance(1_000)  # type: ignore[attr-defined]
        logs.scrub()
    assert broken.raised == 1 and logs.scrubber.scrubbed_bytes > 0 and logs.scrubber.passes >= 2
    logs.close(clean=False)
