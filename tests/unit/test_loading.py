"""The start with many logs: by threads if there is much to walk, with the same result as without, and interruptible."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pykafkad import logs
from pykafkad.clock import ManualClock
from pykafkad.errors import StartupError
from pykafkad.hot import records
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager, StorageOffline
from pykafkad.storage.recovery import loading, recovery
from pykafkad.workers import submit_inline
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    broker_config,
    idempotent,
    lead,
    log_manager,
    read_all,
    state,
    topic_config,
    values,
)

COUNT = 20
PARTITIONS = 6
LOG = f"{0:020d}.log"
EVERY = {("orders", index): TOPIC_ID for index in range(PARTITIONS)}


def in_threads(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    """A submit other than the inline one, so that the manager uses threads."""
    submit_inline(work, done)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    stream = StringIO()
    monkeypatch.setattr(logs, "_stream", stream)
    return stream


@pytest.fixture(params=["threads", "inline"])
def submit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(loading, "LARGE_BYTES", 1)
    return in_threads if request.param == "threads" else None


def opened(*paths: Path, submit: Any = None, **overrides: Any) -> LogManager:
    manager = log_manager(broker_config(*paths, **overrides), ManualClock(NOW_MS), submit)
    assert manager.open_all(EVERY, lambda topic: topic_config(segment_bytes=300)) == []
    return manager


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory of partitions with 20 batches each, as a killed broker leaves it."""
    path = tmp_path / "data"
    manager = log_manager(broker_config(path), ManualClock(NOW_MS))
    manager.open_all({}, lambda topic: topic_config())
    for index in range(PARTITIONS):
        partition = manager.create("orders", index, TOPIC_ID, topic_config(segment_bytes=300), 0)
        for sequence in range(COUNT):
            partition.append(idempotent(sequence, b"%d-%02d" % (index, sequence)), NOW_MS)
    manager.commit()
    manager.close(clean=False)
    return path


def flip(path: Path, number: int) -> None:
    """Flip a bit in the value of that batch."""
    position = records.scan(path.read_bytes())[number].position
    with open(path, "r+b") as file:
        file.seek(position + 70)
        file.write(b"\xff")


def whole(partition: Log, count: int = COUNT) -> None:
    lead(partition, 1)
    expected = [b"%d-%02d" % (partition.index, each) for each in range(count)]
    assert values(read_all(partition)) == expected
    assert [entry.last_sequence for entry in partition.producers] == [count - 1]


def test_everything_is_recovered(home: Path, submit: Any) -> None:
    manager = opened(home, submit=submit)
    for partition in manager:
        whole(partition)
    assert len(list(manager)) == PARTITIONS


def test_damage_is_cut_out_of_its_own_partition(home: Path, submit: Any) -> None:
    flip(home / "orders-2" / LOG, 2)
    flip(home / "orders-4" / f"{8:020d}.log", 1)
    manager = opened(home, submit=submit)
    kept = {2: 2, 4: 9}
    for partition in manager:
        whole(partition, kept.get(partition.index, COUNT))


def test_recovery_points_are_lowered_for_all_that_must_be_walked_again(home: Path, submit: Any) -> None:
    points = home / checkpoints.RECOVERY_POINTS
    checkpoints.write_offsets(str(points), dict.fromkeys(EVERY, 18))
    for index in range(PARTITIONS):
        (home / f"orders-{index}" / f"{4:020d}.index").unlink()
    manager = opened(home, submit=submit)
    assert checkpoints.read_offsets(str(points)) == dict.fromkeys(EVERY, 4)
    for partition in manager:
        whole(partition)


def test_a_directory_that_cannot_be_read_is_offline_and_the_others_are_there(
    home: Path, submit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    log_manager(broker_config(home, other), ManualClock(NOW_MS)).close(clean=False)
    for index in (3, 4, 5):
        shutil.move(home / f"orders-{index}", other)
    load = recovery.load

    def broken(partition: Log, hints: recovery.Hints) -> None:
        if partition.index == 4:
            raise OSError(errno.EIO, "Input/output error")
        load(partition, hints)

    monkeypatch.setattr(recovery, "load", broken)
    manager = opened(home, other, submit=submit)
    assert [directory.is_online for directory in manager.directories] == [True, False]
    assert sorted(partition.index for partition in manager) == [0, 1, 2]


def test_how_far_it_is_is_told(home: Path, lines: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PROGRESS_MS", 0)
    opened(home, submit=in_threads)
    told = [line.partition("INFO [recovery] ")[2] for line in lines.getvalue().splitlines()]
    assert told[0] == f"{home} was not stopped cleanly: {PARTITIONS} partition(s) are recovered"
    assert told[1] == f"recovered 1 of {PARTITIONS} partitions, walked 0.0 MiB of 0.0 MiB"
    assert told[-1] == f"{PARTITIONS} partition(s) recovered, 0.0 MiB walked in 0 ms"


def test_a_clean_start_is_silent_and_walks_nothing(
    home: Path, lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(home).close()
    lines.truncate(0)
    monkeypatch.setattr(loading, "Recovery", None)
    flip(home / "orders-2" / LOG, 2)
    manager = opened(home, submit=in_threads)
    assert manager.partitions["orders", 2].log_end_offset == COUNT
    assert "recover" not in lines.getvalue()


def test_only_what_is_worth_it_goes_to_a_thread(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("a thread for so little")

    monkeypatch.setattr(loading, "start_new_thread", never)
    assert len(list(opened(home, submit=in_threads))) == PARTITIONS


def test_as_many_threads_as_the_config_says_a_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    def start(function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        started.append(arguments)
        function(*arguments)

    monkeypatch.setattr(loading, "LARGE_BYTES", 1)
    monkeypatch.setattr(loading, "start_new_thread", start)
    opened(home, submit=in_threads, num_recovery_threads_per_data_dir=4)
    assert len(started) == 4


def test_a_start_that_is_given_up_leaves_no_thread_at_work(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def endless(partition: Log, hints: recovery.Hints) -> None:
        try:
            while True:
                hints.walked(1)
        finally:
            ended.append(partition.name)

    def interrupted(self: loading.Recovery, wait: bool = False) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "LARGE_BYTES", 1)
    monkeypatch.setattr(recovery, "load", endless)
    monkeypatch.setattr(loading.Recovery, "_take_results", interrupted)
    manager = log_manager(broker_config(home), ManualClock(NOW_MS), in_threads)
    with pytest.raises(KeyboardInterrupt):
        manager.open_all(EVERY, lambda topic: topic_config())
    assert len(ended) <= 2, "those that were begun, and no other"
    manager.close(clean=False)
    assert not (home / ".kafka_cleanshutdown").exists()


def test_what_no_partition_alone_is_to_blame_for_ends_the_start(
    home: Path, submit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = recovery.load
    begun: list[int] = []

    def refused(partition: Log, hints: recovery.Hints) -> None:
        begun.append(partition.index)
        if len(begun) == 2:
            raise StartupError("this is no log of ours")
        load(partition, hints)

    monkeypatch.setattr(recovery, "load", refused)
    manager = log_manager(broker_config(home), ManualClock(NOW_MS), submit)
    with pytest.raises(StartupError, match="no log of ours"):
        manager.open_all(EVERY, lambda topic: topic_config())
    assert manager.online and not manager.loaded
    manager.close(clean=False)


@pytest.mark.parametrize("submit", [None, in_threads], ids=["inline", "threads"])
def test_a_mistake_of_ours_costs_one_partition(
    home: Path, submit: Any, lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, the partition is neither served nor created anew, and the others are served."""
    load = recovery.load

    def broken(partition: Log, hints: recovery.Hints) -> None:
        if partition.index == 1:
            raise AssertionError("our mistake")
        load(partition, hints)

    monkeypatch.setattr(loading, "LARGE_BYTES", 1)
    monkeypatch.setattr(recovery, "load", broken)
    manager = opened(home, submit=submit)
    assert sorted(partition.index for partition in manager) == [0, 2, 3, 4, 5]
    assert "ERROR [recovery] " in lines.getvalue() and "our mistake" in lines.getvalue()
    before = state(home / "orders-1")
    with pytest.raises(StorageOffline, match="could not be loaded"):
        manager.create("orders", 1, TOPIC_ID, topic_config(), 1)
    assert state(home / "orders-1") == before
    assert all(directory.is_online for directory in manager.directories)


def test_bytes_to_walk_are_those_from_the_recovery_points_segment_on(home: Path) -> None:
    directory = home / "orders-0"
    sizes = [os.stat(path).st_size for path in sorted(directory.glob("*.log"))]
    assert loading.bytes_to_walk(str(directory), 0) == sum(sizes)
    assert loading.bytes_to_walk(str(directory), 9) == sum(sizes[2:])
    assert loading.bytes_to_walk(str(directory), 9999) == sizes[-1]
