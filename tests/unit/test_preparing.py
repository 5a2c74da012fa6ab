"""The files of many new partitions are made by a thread, before their logs are made on the loop."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from pykafkad.slices import Slices
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import NewPartition
from pykafkad.storage.manager import LogManager
from pykafkad.storage.preparing import EMPTY, FILES, Preparation
from tests.storage_kit import TOPIC_ID, Threads, append, batch, manager, read_all, topic_config
from tests.unit.metadata_fakes import FakeStorage, Hasty, Later, creatable, create, open_broker

CONFIG = topic_config()
KEYS = [("orders", index) for index in range(3)]


class Home:
    """Storage whose threads the test runs, and the partitions of a topic to be prepared in it."""

    def __init__(self, path: Path, *, many: bool) -> None:
        self.path = path
        self.many = many
        self.logs: LogManager = manager(path)
        self.logs.open_all({}, lambda topic: CONFIG)
        self.threads = Threads()
        self.logs.submit = self.threads.submit
        self.through = 0

    def wanted(self, topic_id: bytes = TOPIC_ID) -> list[NewPartition]:
        directory_id = self.logs.directories[0].directory_id
        return [NewPartition(key, topic_id, 0, directory_id) for key in KEYS]

    def prepare(self, topic_id: bytes = TOPIC_ID) -> Preparation:
        """By a thread of their own, or by the one that writes their records."""

        def done() -> None:
            self.through += 1

        def made(result: object) -> None:
            preparation.through()
            done()

        if self.many:
            return self.logs.prepare(self.wanted(topic_id), done)
        preparation = self.logs.preparation(self.wanted(topic_id))
        self.threads.submit(preparation.make, made)
        return preparation

    def save(self) -> None:
        """The moment after which a thread makes the small files is over, and it has."""
        self.logs.small_files.make()
        self.threads.all()

    def put(self, index: int, data: bytes) -> None:
        """A directory that looks like one of a partition, with this in its log."""
        path = self.path / f"orders-{index}"
        path.mkdir()
        (path / FILES[0]).write_bytes(data)

    def create(self, index: int, epoch: int = 0) -> Any:
        return self.logs.create("orders", index, TOPIC_ID, CONFIG, epoch)

    def text(self, index: int, name: str) -> str:
        return (self.path / f"orders-{index}" / name).read_text()

    def names(self) -> list[str]:
        """Of the partitions' directories, with those set aside or about to be deleted."""
        return sorted(each.name for each in self.path.iterdir() if each.name.startswith("orders"))


@pytest.fixture(params=[False, True], ids=["few", "many"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Home:
    return Home(tmp_path, many=request.param)


@pytest.fixture
def few(tmp_path: Path) -> Home:
    return Home(tmp_path, many=False)


def test_the_thread_makes_the_files_and_the_log_takes_them(home: Home) -> None:
    made = EMPTY if home.many else FILES
    home.prepare()
    assert (home.names(), home.through) == ([], 0)
    home.threads.all()
    assert (home.names(), home.through) == (["orders-0", "orders-1", "orders-2"], 1)
    before = [(home.path / "orders-1" / name).stat().st_ino for name in made]
    partition = home.create(1)
    home.save()
    assert [(home.path / "orders-1" / name).stat().st_ino for name in made] == before
    assert append(partition, batch(b"a")) == [0] and len(read_all(partition)) == 1
    assert checkpoints.read_topic_id(partition.directory) == TOPIC_ID
    assert home.text(1, files.LEADER_EPOCHS) == "0\n1\n0 0\n"
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


def test_a_log_that_is_made_while_the_thread_is_at_it_says_its_own_epoch_at_the_end(few: Home) -> None:
    preparation = few.logs.preparation(few.wanted())
    preparation.make()
    few.create(0, epoch=3)
    few.save()
    assert few.text(0, files.LEADER_EPOCHS) == "0\n1\n3 0\n" and few.names().count("orders-0") == 1
    (few.path / "orders-0" / files.LEADER_EPOCHS).write_text("0\n1\n0 0\n")  # the thread was at it still
    preparation.through()
    few.save()
    assert few.text(0, files.LEADER_EPOCHS) == "0\n1\n3 0\n"


def test_a_log_that_begins_in_a_later_epoch_than_was_prepared_says_so(home: Home) -> None:
    home.prepare()
    home.threads.all()
    append(home.create(0, epoch=3), batch(b"a"))
    assert home.text(0, files.LEADER_EPOCHS) == "0\n1\n3 0\n"


def test_what_was_prepared_for_a_topic_of_the_same_name_says_this_topics_id(home: Home) -> None:
    home.prepare(topic_id=bytes(15) + b"x")
    home.threads.all()
    partition = home.create(0)
    home.save()
    assert checkpoints.read_topic_id(partition.directory) == TOPIC_ID
    assert home.names().count("orders-0") == 1 and not any("stray" in name for name in home.names())


def test_one_who_takes_back_leaves_what_another_has_prepared_since(home: Home) -> None:
    first = home.prepare()
    home.threads.all()
    home.create(0)
    home.logs.delete("orders", 0)
    home.prepare()
    home.threads.all()
    first.take_back()
    assert "orders-0" in home.names()


def test_what_no_log_has_taken_is_removed(home: Home) -> None:
    preparation = home.prepare()
    home.threads.all()
    home.create(2)
    preparation.take_back()
    assert home.names() == ["orders-2"]


@pytest.mark.parametrize("name", [FILES[0], files.offset_name(0, files.SNAPSHOT)])
def test_what_has_a_record_or_another_file_in_it_is_not_removed(home: Home, name: str) -> None:
    preparation = home.prepare()
    home.threads.all()
    (home.path / "orders-0" / name).write_bytes(b"x")
    preparation.take_back()
    assert home.names() == ["orders-0"]
    assert len(list((home.path / "orders-0").iterdir())) >= len(EMPTY if home.many else FILES)


@pytest.mark.parametrize("is_begun", [True, False])
def test_what_was_there_before_is_not_removed(home: Home, is_begun: bool) -> None:
    home.put(0, b"")
    preparation = home.logs.preparation(home.wanted())
    if is_begun:
        preparation.make()
    preparation.through()
    preparation.take_back()
    assert home.names() == ["orders-0"]


@pytest.mark.parametrize("is_through", [True, False])
def test_what_was_there_before_is_set_aside_as_ever(home: Home, is_through: bool) -> None:
    home.put(0, b"of another topic")
    home.prepare()
    if is_through:
        home.threads.all()
    assert home.create(0).log_end_offset == 0
    home.threads.all()
    stray = [name for name in home.names() if files.is_marked(name, "stray")]
    assert len(stray) == 1
    assert (home.path / stray[0] / FILES[0]).read_bytes() == b"of another topic"


def test_two_that_prepare_the_same_make_it_once(home: Home) -> None:
    """A topic that is deleted and created again while its files are made."""
    first = home.prepare()
    assert not home.prepare()  # there is nothing that is left to make
    home.threads.all()
    first.take_back()
    assert (home.names(), home.through) == ([], 2)
    assert home.create(0).log_end_offset == 0 and home.names() == ["orders-0"]


def test_where_the_thread_can_make_nothing_the_log_is_made_all_the_same(home: Home) -> None:
    home.prepare()
    away = home.path.rename(home.path.with_name("away"))
    home.threads.all()
    away.rename(home.path)
    assert (home.names(), home.through) == ([], 1)
    assert home.create(0).log_end_offset == 0


@pytest.mark.parametrize("made", range(len(FILES) + 1))
def test_a_start_serves_what_was_prepared_before_a_crash(tmp_path: Path, made: int) -> None:
    manager(tmp_path).close()
    (tmp_path / "orders-0").mkdir()
    for name in FILES[:made]:
        (tmp_path / "orders-0" / name).touch()  # the small ones too: what they say may not be on the disk
    logs = manager(tmp_path)
    assert logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG) == []
    partition = logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
    assert append(partition, batch(b"a")) == [0]
    assert [record.value for record in read_all(partition)] == [b"a"]


# -- the metadata's side


class Prepared:
    """What a thread makes, which the test says when it is through."""

    def __init__(self, storage: SlowDisk, wanted: Any) -> None:
        self.storage, self.count = storage, len(wanted)
        storage.prepared.update(new.key for new in wanted)

    def make(self) -> None:
        self.storage.events.append(f"make {self.count}")

    def through(self) -> None:
        """The test counts what is made."""

    def take_back(self) -> None:
        self.storage.events.append(f"take back {self.count}")


class SlowDisk(FakeStorage):
    """Notes what is prepared, and is through with it when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Any] = []
        self.prepared: set[Any] = set()

    def preparation(self, wanted: Any) -> Any:
        return Prepared(self, [new for new in wanted if new.key not in self.prepared])

    def prepare(self, wanted: Any, done: Any) -> Any:
        preparation = self.preparation(wanted)
        if preparation.count:
            self.events.append(f"prepare {preparation.count}")
            self.pending.append(done)
        else:
            done()
        return preparation


def test_many_partitions_are_prepared_some_at_a_time_and_then_created(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    create(broker, creatable("wide", 100))
    later.all()
    # The first by the thread that writes the records, and the next while those before them are opened.
    assert storage.events == ["make 8", "prepare 56", "prepare 36"]
    storage.pending.pop(0)()
    later.all()
    assert storage.events[3:-1] == [f"create wide-{index}" for index in range(64)]
    assert storage.events[-1] == "take back 56"
    storage.pending.pop()()
    later.all()
    assert len(storage.partitions) == 100 and storage.events[-2:] == ["take back 36", "take back 8"]


def test_the_cycle_collector_does_not_walk_many_partitions_again_and_again(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    frozen = gc.get_freeze_count()
    try:
        create(broker, creatable("narrow", 7))
        later.all()
        assert gc.get_freeze_count() <= frozen
        create(broker, creatable("wide", 100))
        later.all()
        storage.pending.pop(0)()
        later.all()
        assert gc.get_freeze_count() > frozen + 64
    finally:
        gc.unfreeze()


def test_few_partitions_are_made_by_the_thread_that_writes_their_records(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, storage=storage)
    create(broker, creatable("narrow", 7))
    later.all()
    created = [f"create narrow-{index}" for index in range(7)]
    assert storage.events == ["make 7", *created, "take back 7"]


def test_many_small_topics_are_prepared_together(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    create(broker, *(creatable(f"small-{number}", 1) for number in range(20)))
    later.all()
    assert storage.events == ["make 8", "prepare 12"]


def test_where_the_records_cannot_be_written_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, storage=storage)
    monkeypatch.setattr(broker.log, "write", full)
    create(broker, creatable("narrow", 7))
    later.all()
    assert storage.events == ["take back 7"]


def test_what_is_prepared_for_a_topic_that_is_deleted_meanwhile_is_taken_back(tmp_path: Path) -> None:
    later, storage = Later(), SlowDisk()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()), storage)
    create(broker, creatable("wide", 100))
    later.all()
    broker.controller.delete_topics([broker.image.topics["wide"].id], lambda errors: None)
    later.all()
    assert "wide" not in broker.image.topics
    while storage.pending:
        storage.pending.pop()()
        later.all()
    assert storage.events == [
        *("make 8", "prepare 56", "prepare 36"),
        *("take back 56", "take back 36", "take back 8"),
    ]


def test_what_a_thread_writes_is_what_a_log_would_write(tmp_path: Path) -> None:
    home = Home(tmp_path / "prepared", many=False)
    home.prepare()
    home.threads.all()
    other = Home(tmp_path / "made", many=False)
    prepared, made = home.create(0), other.create(0)
    made.save_files()
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        assert home.text(0, name) == other.text(0, name) != ""
    assert list(prepared.epochs.entries) == list(made.epochs.entries) == [(0, 0)]
    for each in (home, other):
        each.logs.close()
