"""The files of many new partitions are made by a thread, before their logs are made on the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.slices import Slices
from pykafkad.storage import files
from pykafkad.storage.manager import LogManager
from pykafkad.storage.preparing import FILES
from tests.storage_kit import TOPIC_ID, Threads, append, batch, manager, read_all, topic_config
from tests.unit.metadata_fakes import FakeStorage, Hasty, Later, creatable, create, open_broker

CONFIG = topic_config()
KEYS = [("orders", index) for index in range(3)]


class Home:
    """Storage whose threads the test runs, and the partitions of a topic to be prepared in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs: LogManager = manager(path)
        self.logs.open_all({}, lambda topic: CONFIG)
        self.threads = Threads()
        self.logs.submit = self.threads.submit
        self.wanted = [(key, self.logs.directories[0].directory_id) for key in KEYS]
        self.through = 0

    def prepare(self) -> None:
        def done() -> None:
            self.through += 1

        self.logs.prepare(self.wanted, done)

    def create(self, index: int) -> Any:
        return self.logs.create("orders", index, TOPIC_ID, CONFIG, 0)

    def names(self) -> list[str]:
        """Of the partitions' directories, with those set aside or about to be deleted."""
        return sorted(each.name for each in self.path.iterdir() if each.name.startswith("orders"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_thread_makes_the_files_and_the_log_takes_them(home: Home) -> None:
    home.prepare()
    assert (home.names(), home.through) == ([], 0)
    home.threads.all()
    assert (home.names(), home.through) == (["orders-0", "orders-1", "orders-2"], 1)
    before = [(home.path / "orders-1" / name).stat().st_ino for name in FILES]
    partition = home.create(1)
    assert [(home.path / "orders-1" / name).stat().st_ino for name in FILES] == before
    assert append(partition, batch(b"a")) == [0] and len(read_all(partition)) == 1
    assert home.names() == ["orders-0", "orders-1", "orders-2"]


def test_a_log_that_is_made_before_the_thread_begins_is_left_alone(home: Home) -> None:
    home.prepare()
    partition = home.create(0)
    append(partition, batch(b"a"))
    home.threads.all()
    assert [record.value for record in read_all(partition)] == [b"a"]
    assert home.names() == ["orders-0", "orders-1", "orders-2"] and home.through == 1


def test_what_the_thread_makes_of_a_partition_that_is_deleted_meanwhile_is_removed(home: Home) -> None:
    home.prepare()
    home.create(0)
    home.logs.delete("orders", 0)
    home.threads.all()
    assert "orders-0" not in home.names() and home.through == 1


def test_what_no_log_has_taken_is_removed(home: Home) -> None:
    home.prepare()
    home.threads.all()
    home.create(2)
    home.logs.take_back(home.wanted)
    assert home.names() == ["orders-2"]


@pytest.mark.parametrize("name", [FILES[0], files.PARTITION_METADATA])
def test_what_has_a_byte_or_another_file_in_it_is_not_removed(home: Home, name: str) -> None:
    home.prepare()
    home.threads.all()
    (home.path / "orders-0" / name).write_bytes(b"x")
    home.logs.take_back(home.wanted)
    assert home.names() == ["orders-0"]
    assert len(list((home.path / "orders-0").iterdir())) >= len(FILES)


def test_what_was_there_before_is_set_aside_as_ever(home: Home) -> None:
    (home.path / "orders-0").mkdir()
    (home.path / "orders-0" / FILES[0]).write_bytes(b"of another topic")
    home.prepare()
    home.threads.all()
    assert home.create(0).log_end_offset == 0
    stray = [name for name in home.names() if files.is_marked(name, "stray")]
    assert len(stray) == 1
    assert (home.path / stray[0] / FILES[0]).read_bytes() == b"of another topic"


def test_two_that_prepare_the_same_make_it_once(home: Home) -> None:
    """A topic that is deleted and created again while its files are made."""
    home.prepare()
    home.prepare()
    home.threads.all()
    home.logs.take_back(home.wanted)
    assert (home.names(), home.through) == ([], 2)
    assert home.create(0).log_end_offset == 0 and home.names() == ["orders-0"]


def test_where_the_thread_can_make_nothing_the_log_is_made_all_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str) -> None:
        raise OSError(28, "No space left on device")

    home.prepare()
    with monkeypatch.context() as patched:
        patched.setattr("os.mkdir", full)
        home.threads.all()
    assert (home.names(), home.through) == ([], 1)
    assert home.create(0).log_end_offset == 0


@pytest.mark.parametrize("made", range(len(FILES) + 1))
def test_a_start_serves_what_was_prepared_before_a_crash(tmp_path: Path, made: int) -> None:
    (tmp_path / "orders-0").mkdir()
    for name in FILES[:made]:
        (tmp_path / "orders-0" / name).touch()
    logs = manager(tmp_path)
    assert logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG) == []
    partition = logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
    assert append(partition, batch(b"a")) == [0]
    assert [record.value for record in read_all(partition)] == [b"a"]


# -- the metadata's side


class SlowDisk(FakeStorage):
    """Notes what is prepared, and is through with it when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Any] = []

    def prepare(self, wanted: Any, done: Any) -> None:
        self.events.append(f"prepare {len(wanted)}")
        self.pending.append(done)

    def take_back(self, wanted: Any) -> None:
        self.events.append(f"take back {len(wanted)}")


def test_many_partitions_are_prepared_some_at_a_time_and_then_created(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    create(broker, creatable("wide", 100))
    later.all()
    assert storage.events == ["prepare 64"]
    storage.pending.pop()()
    later.all()
    assert storage.events[1:-2] == [f"create wide-{index}" for index in range(64)]
    assert storage.events[-2:] == ["take back 64", "prepare 36"]
    storage.pending.pop()()
    later.all()
    assert len(storage.partitions) == 100 and storage.events[-1] == "take back 36"


def test_few_partitions_wait_for_no_thread(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, storage=storage)
    create(broker, creatable("narrow", 7))
    later.all()
    assert storage.events == [f"create narrow-{index}" for index in range(7)]


def test_what_is_prepared_for_a_topic_that_is_deleted_meanwhile_is_taken_back(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    create(broker, creatable("wide", 100))
    later.all()
    broker.controller.delete_topics([broker.image.topics["wide"].id], lambda errors: None)
    later.all()
    assert "wide" not in broker.image.topics
    storage.pending.pop()()
    later.all()
    assert storage.events == ["prepare 64", "take back 64"]
