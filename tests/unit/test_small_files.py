"""partition.metadata and leader-epoch-checkpoint of new partitions: a thread makes them a moment later."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.storage import files, small_files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.small_files import AFTER_MS, AT_ONCE, SmallFiles
from tests.storage_kit import TOPIC_ID, Threads, append, batch, lead, manager, topic_config

CONFIG = topic_config()
NAMES = files.WHOLE
ANOTHER_ID = bytes(15) + b"x"


class Home:
    """Storage whose threads and timers the test runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = manager(path)
        self.logs.open_all({}, lambda topic: CONFIG)
        self.threads = Threads()
        self.logs.submit = self.threads.submit
        self.logs.small_files = SmallFiles(self.logs, lambda action: action())
        self.timers: list[tuple[int, Callable[[], Any]]] = []
        self.logs.call_later = lambda delay_ms, action: self.timers.append((delay_ms, action))

    def create(self, index: int = 0, topic_id: bytes = TOPIC_ID) -> Log:
        return self.logs.create("orders", index, topic_id, CONFIG, 0)

    def time_passes(self) -> None:
        (_, action), *self.timers = self.timers
        action()

    def has(self, index: int = 0) -> list[bool]:
        return [(self.path / f"orders-{index}" / name).exists() for name in NAMES]

    def epochs(self, index: int = 0) -> list[tuple[int, int]]:
        return checkpoints.read_epochs(f"{self.path}/orders-{index}")

    def topic_id(self, index: int = 0) -> bytes | None:
        return checkpoints.read_topic_id(f"{self.path}/orders-{index}")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_thread_makes_them_within_a_second(home: Home) -> None:
    log = home.create()
    assert home.has() == [False, False] and [delay for delay, _ in home.timers] == [AFTER_MS]
    assert AFTER_MS < 1_000
    home.time_passes()
    assert home.has() == [False, False]
    home.threads.all()
    assert (home.topic_id(), home.epochs()) == (TOPIC_ID, [(0, 0)])
    before = [(home.path / "orders-0" / name).stat().st_ino for name in NAMES]
    append(log, batch(b"a"))
    assert [(home.path / "orders-0" / name).stat().st_ino for name in NAMES] == before


def test_those_of_many_are_made_some_at_a_time_one_after_the_other(home: Home) -> None:
    count = 2 * AT_ONCE + 1
    for index in range(count):
        home.create(index)
    assert len(home.timers) == 1
    home.time_passes()
    turns = []
    while home.threads.waiting:
        assert len(home.threads.waiting) == 1
        home.threads.step()
        turns.append(sum(home.has(index) == [True, True] for index in range(count)))
    assert turns == [AT_ONCE, 2 * AT_ONCE, count] and not home.timers
    home.create(count)
    assert len(home.timers) == 1  # for those to come there is a timer again


def test_what_the_log_has_written_meanwhile_stays(home: Home) -> None:
    log = home.create()
    home.time_passes()
    lead(log, 3)
    append(log, batch(b"a"))
    lead(log, 4)
    append(log, batch(b"b"))
    home.threads.all()
    assert home.epochs() == [(3, 0), (4, 1)] and home.topic_id() == TOPIC_ID


def test_an_epoch_that_began_while_the_thread_was_at_it_is_written_with_the_first_record(home: Home) -> None:
    log = home.create()
    home.time_passes()
    lead(log, 3)
    home.threads.all()
    assert home.epochs() == [(0, 0)]
    append(log, batch(b"a"))
    assert home.epochs() == [(3, 0)]


def test_those_of_a_deleted_partition_are_not_made(home: Home) -> None:
    for index in range(2):
        home.create(index)
    home.logs.delete("orders", 0)
    home.time_passes()
    home.logs.delete("orders", 1)
    home.threads.all()
    assert not any(each.exists() for index in range(2) for each in home.path.glob(f"orders-{index}*/part*"))


def test_a_partition_made_again_meanwhile_says_its_own_topic_id(home: Home) -> None:
    home.create()
    home.time_passes()
    home.logs.delete("orders", 0)
    home.create(topic_id=ANOTHER_ID)
    home.threads.step()
    assert home.topic_id() == TOPIC_ID  # the thread was late; nothing is in the log yet
    home.threads.all()
    assert (home.topic_id(), home.epochs()) == (ANOTHER_ID, [(0, 0)])


def test_where_the_thread_can_make_nothing_each_log_does_it_itself(
    home: Home, monkeypatch: pytest.MonkeyPatch, said: io.StringIO
) -> None:
    for index in range(3):
        home.create(index)
        (home.path / f"orders-{index}" / NAMES[0]).touch()  # so the thread finds something in its way
    save = Log.save_files

    def fail_first(log: Log) -> None:
        if log.index == 0:
            raise MemoryError("there is none left")
        save(log)

    monkeypatch.setattr(Log, "save_files", fail_first)
    home.time_passes()
    home.threads.all()
    assert [home.topic_id(index) for index in range(3)] == [None, TOPIC_ID, TOPIC_ID]
    assert [home.has(index)[1] for index in range(3)] == [False, True, True]
    assert said.getvalue().count("MemoryError") == 1


def test_one_mishap_is_not_the_end_of_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(wanted: Any) -> None:
        raise MemoryError("there is none left")

    home.create(0)
    with monkeypatch.context() as patch:
        patch.setattr(small_files, "NewFiles", fail)
        with pytest.raises(MemoryError):
            home.time_passes()
    home.create(1)
    home.time_passes()
    home.threads.all()
    assert [home.has(index) for index in range(2)] == [[True, True]] * 2


def test_a_disk_that_fails_then_takes_its_directory_offline(
    home: Home, monkeypatch: pytest.MonkeyPatch, said: io.StringIO
) -> None:
    def fail(log: Log) -> None:
        raise OSError(5, "Input/output error")

    home.create()
    (home.path / "orders-0" / NAMES[0]).touch()
    monkeypatch.setattr(Log, "save_files", fail)
    home.time_passes()
    home.threads.all()
    assert not home.logs.directories[0].is_online and "Input/output error" in said.getvalue()
