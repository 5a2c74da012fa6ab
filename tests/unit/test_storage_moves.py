"""Partitions that move between log directories: during writes, stops, crashes, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from pykafkad.storage.moves import move, moves
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    Counted,
    Threads,
    append,
    batch,
    idempotent,
    lead,
    manager,
    marker,
    read_all,
    topic_config,
    values,
)

CONFIG = topic_config(segment_bytes=4000, index_interval_bytes=100, file_delete_delay_ms=1000)
KEY = ("orders", 0)


class Home:
    """Two log directories, a manager over them, and the directories according to the metadata."""

    def __init__(self, path: Path) -> None:
        self.paths = [path / "a", path / "b"]
        self.assigned: dict[tuple[str, int], bytes] = {}
        self.start()

    def start(self, **overrides: Any) -> LogManager:
        self.threads = Threads()
        self.logs = manager(*self.paths, **overrides)
        self.logs.submit = self.threads.submit
        self.logs.open_all(dict.fromkeys(self.assigned, TOPIC_ID), lambda topic: CONFIG, self)
        for partition in self.logs:
            lead(partition, 1)
        self.threads.all()
        self.logs.moves.resume()
        return self.logs

    def directory_of(self, topic: str, index: int) -> bytes:
        return self.assigned[topic, index]

    def moved(self, partition: Log, directory: Any, done: Callable[[Any], None]) -> None:
        self.assigned[partition.topic, partition.index] = directory.directory_id
        done(None)

    def create(self, topic: str = "orders") -> Log:
        directory = self.logs.directories[0].directory_id
        self.assigned[topic, 0] = directory
        return self.logs.create(topic, 0, TOPIC_ID, CONFIG, 0, directory)

    def move(self, to: int, topic: str = "orders") -> None:
        self.logs.moves.ask(topic, 0, str(self.paths[to]))

    def names(self, which: int) -> list[str]:
        """The names of the partitions' directories, without the random parts of their suffixes."""
        found = [entry.name for entry in os.scandir(self.paths[which]) if entry.is_dir()]
        return sorted(name if "." not in name else f"{name[:8]}-{name.rpartition('-')[2]}" for name in found)

    def crash(self) -> None:
        """The process ends; what it wrote is there."""
        self.logs.close(clean=False)

    @property
    def partition(self) -> Log:
        return self.logs.partitions[KEY]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def fill(partition: Log, count: int, size: int = 500) -> None:
    for number in range(count):
        append(partition, batch(b"%d" % number + b"x" * size))
    partition.context.dirty.clear()


def where(partition: Log) -> str:
    return os.path.basename(partition.log_directory.path)


def test_a_partition_moves(home: Home) -> None:
    partition = home.create()
    fill(partition, 30)
    append(partition, idempotent(0, b"idempotent"))
    before, read = partition.log_end_offset, values(read_all(partition))
    assert len(partition.segments) > 3
    home.logs.commit()
    home.move(1)
    assert home.names(1) == ["orders-0-future"] and where(partition) == "a"
    home.threads.all()
    assert (home.names(0), home.names(1)) == (["orders-0-delete"], ["orders-0"])
    assert home.partition is partition and where(partition) == "b"
    assert (partition.log_end_offset, values(read_all(partition))) == (before, read)
    assert not list(home.logs.moves)


def test_what_is_written_meanwhile_moves_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "PIECE_BYTES", 3000)
    monkeypatch.setattr(move, "LAST_BYTES", 700)
    partition = home.create()
    fill(partition, 20)
    home.move(1)
    steps = 0
    while home.threads.waiting:
        if steps < 12:
            fill(partition, 3)
        home.threads.step()
        steps += 1
    assert steps > 20 and where(partition) == "b"
    assert values(read_all(partition)) == values(read_all(partition, 0))
    assert partition.log_end_offset == len(read_all(partition)) == 20 + 36
    append(partition, batch(b"afterwards"))
    home.logs.close()
    again = home.start()
    assert values(read_all(again.partitions[KEY]))[-1] == b"afterwards"
    assert len(read_all(again.partitions[KEY])) == 57


def test_what_is_copied_at_once_is_so_many_bytes_of_the_first_files(home: Home) -> None:
    partition = home.create()
    fill(partition, 20)
    home.move(1)
    (moving,) = home.logs.moves
    sizes = [segment.size for segment in partition.segments]
    for limit in (sizes[0] - 1, sizes[0], sizes[0] + 1, sum(sizes[:2]), sum(sizes) + 1):
        pieces = moving.missing(limit)
        assert sum(end - start for _, start, end in pieces) == min(limit, sum(sizes))
        assert all(end > start for _, start, end in pieces)


@pytest.mark.parametrize("bytes_behind", [500, 2500])
def test_the_last_bytes_are_copied_by_the_loop_if_they_are_few(
    home: Home, monkeypatch: pytest.MonkeyPatch, bytes_behind: int
) -> None:
    """However long the file is that they belong to."""
    monkeypatch.setattr(move, "LAST_BYTES", 1000 * move.LITTLE)
    jobs: list[list[str]] = []
    copy = move.copy

    def noted(source: str, target: str, pieces: list[move.Piece]) -> list[move.Piece]:
        jobs.append([name for name, _, _ in pieces if name.endswith(".log")])
        return copy(source, target, pieces)

    monkeypatch.setattr(move, "copy", noted)
    partition = home.create()
    fill(partition, 6)
    home.move(1)
    home.threads.step()
    before, size = len(jobs), partition.log_end_offset
    fill(partition, 1, bytes_behind)
    home.threads.all()
    assert where(partition) == "b" and len(read_all(partition)) == size + 1
    by_threads = any(jobs[before:-1])
    assert (by_threads, bool(jobs[-1])) == ((False, True) if bytes_behind < 1000 else (True, False))


def test_a_batch_that_is_queued_is_written_first(home: Home) -> None:
    partition = home.create()
    fill(partition, 2)
    home.move(1)
    partition.append(batch(b"queued"), NOW_MS)
    home.threads.step()  # synced: what is left is the switch
    for _ in range(5):
        if home.threads.waiting:
            home.threads.step()
    assert where(partition) == "a"
    home.logs.commit()
    home.threads.all()
    assert where(partition) == "b" and values(read_all(partition))[-1] == b"queued"


def test_who_reads_may_finish(home: Home) -> None:
    partition = home.create()
    fill(partition, 5)
    found = partition.read(0, 1 << 20, limit_offset=5, at_least_one=True)
    assert found is not None
    before = found.read()
    home.move(1)
    home.threads.all()
    assert found.read() == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_move_begins_anew_after_a_stop(home: Home, clean: bool) -> None:
    fill(home.create(), 30)
    home.move(1)
    home.threads.step()
    if clean:
        home.logs.moves.stop()
        home.threads.all()
        home.logs.close()
        (copy,) = home.paths[1].glob("*-future")
        assert not list(copy.iterdir())  # Kafka would rely on it after a clean stop
    else:
        home.crash()
    home.start()
    assert where(home.partition) == "a" and len(read_all(home.partition)) == 30
    home.threads.all()
    assert where(home.partition) == "b" and len(read_all(home.partition)) == 30
    assert "orders-0-future" not in home.names(1)


def test_a_crash_between_the_copy_and_the_end_of_the_original(home: Home) -> None:
    """Both have the partition's name; the one in the metadata's directory has everything."""
    partition = home.create()
    fill(partition, 10)
    home.move(1)
    while where(partition) == "a":
        home.threads.step()
    append(partition, batch(b"to the new one"))
    assert "orders-0" in home.names(0) and "orders-0" in home.names(1)
    home.crash()
    home.start()
    assert where(home.partition) == "b" and values(read_all(home.partition))[-1] == b"to the new one"
    assert home.names(0) == ["orders-0-delete"]


def test_a_crash_before_the_copy_has_the_name(home: Home) -> None:
    """The metadata has the target already, but the original is what counts."""
    partition = home.create()
    fill(partition, 10)
    home.move(1)
    while home.assigned[KEY] != home.logs.directories[1].directory_id:
        home.threads.step()
        if home.assigned[KEY] == home.logs.directories[1].directory_id:
            break
    if where(partition) == "a":
        append(partition, batch(b"to the old one"))
    home.crash()
    count = partition.log_end_offset
    home.start()
    assert len(read_all(home.partition)) == count


def test_two_directories_and_no_word_of_which_is_right(home: Home) -> None:
    fill(home.create(), 1)
    home.logs.close()
    os.makedirs(home.paths[1] / "orders-0")
    home.assigned[KEY] = bytes(range(16))
    with pytest.raises(errors.StartupError, match="orders-0 lies in two log directories"):
        home.start()


def test_back_to_where_it_is_ends_the_move(home: Home) -> None:
    fill(home.create(), 30)
    home.move(1)
    home.move(0)
    home.threads.all()
    assert (home.names(0), home.names(1)) == (["orders-0"], ["orders-0-delete"])
    assert not list(home.logs.moves) and len(read_all(home.partition)) == 30


def test_a_second_wish_for_the_same_directory_changes_nothing(home: Home) -> None:
    fill(home.create(), 3)
    home.move(1)
    home.move(1)
    home.threads.all()
    assert home.names(1) == ["orders-0"]


def test_a_deleted_partition_does_not_arrive(home: Home) -> None:
    fill(home.create(), 30)
    home.move(1)
    home.logs.delete("orders", 0)
    home.threads.all()
    assert (home.names(0), home.names(1)) == (["orders-0-delete"], ["orders-0-delete"])


def test_two_copy_at_a_time(home: Home) -> None:
    for number in range(4):
        fill(home.create(f"t{number}"), 5)
    for number in range(4):
        home.move(1, f"t{number}")
    assert len(home.threads.waiting) == 2
    home.threads.all()
    assert home.names(1) == ["t0-0", "t1-0", "t2-0", "t3-0"]


def test_what_is_given_up_makes_room_when_its_thread_is_back(home: Home) -> None:
    topics = ("t0", "t1", "t2")
    for topic in topics:
        fill(home.create(topic), 5)
        home.move(1, topic)
    moves = [home.logs.moves.get(topic, 0) for topic in topics]
    home.logs.moves.cancel("t0", 0, "nobody wants it")
    assert [each.started for each in moves if each is not None] == [True, True, False]
    assert len(home.threads.waiting) == 2
    home.threads.step()
    assert [each.started for each in moves if each is not None] == [True, True, True]
    home.threads.all()
    assert [where(home.logs.partitions[topic, 0]) for topic in topics] == ["a", "b", "b"]


def test_progress_is_shown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "PIECE_BYTES", 3000)
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    partition = home.create()
    fill(partition, 30)
    home.move(1)
    shown = home.logs.moves.get(*KEY)
    assert shown is not None and (shown.size, shown.lag) == (0, 30)
    lags = []
    while home.logs.moves.get(*KEY) is not None:
        lags.append(shown.lag)
        home.threads.step()
    assert lags == sorted(lags, reverse=True) and lags[0] == 30 and lags[-1] == 0
    assert shown.size == partition.size


def test_what_is_missing_is_told_to_an_index_entry(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = home.create()
    fill(partition, 30)
    home.threads.all()
    size = partition.segments[0].size // (partition.bases[1] - partition.bases[0])
    monkeypatch.setattr(move, "PIECE_BYTES", 2 * size)
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    home.move(1)
    shown = home.logs.moves.get(*KEY)
    assert shown is not None
    for copied in (0, 2, 4, 6):
        assert 0 <= shown.lag - (30 - copied) <= 1, "the last entry may be of a batch that is not whole"
        home.threads.step()


def test_checkpoints_know_the_partition_before_it_arrives(home: Home) -> None:
    partition = home.create()
    fill(partition, 10)
    partition.delete_records(4)
    home.move(1)
    while where(partition) == "a":
        home.threads.step()
    path = f"{home.paths[1]}/{checkpoints.LOG_STARTS}"
    assert checkpoints.read_offsets(path) == {KEY: 4}
    assert partition.recovery_point == 0  # until all of it was synced where it is now
    home.threads.all()
    assert partition.recovery_point == 10


def test_a_target_that_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home.create(), 30)
    home.move(1)
    monkeypatch.setattr(
        os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    home.threads.all()
    assert [each.is_online for each in home.logs.directories] == [True, False]
    assert where(home.partition) == "a" and not list(home.logs.moves)
    with pytest.raises(KafkaError) as refused:
        home.move(1)
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR


def test_while_a_directory_is_offline_nothing_moves(tmp_path: Path) -> None:
    """There may be another copy in it."""
    home = Home(tmp_path)
    home.logs.close()
    home.paths.append(tmp_path / "c")
    home.start()
    home.create()
    home.logs.directories[2].fail("the disk is gone")
    with pytest.raises(KafkaError) as refused:
        home.move(1)
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR and not list(home.logs.moves)


def test_a_move_that_the_metadata_does_not_take_is_given_up(
    home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(home.create(), 3)
    full = KafkaError(errors.KAFKA_STORAGE_ERROR, "no room")
    home.moved = lambda partition, directory, done: done(full)  # type: ignore[method-assign]
    home.move(1)
    home.threads.all()
    assert where(home.partition) == "a" and not list(home.logs.moves)
    assert "the metadata could not be written" in capfd.readouterr().err


def test_the_name_of_what_moved_is_synced_too() -> None:
    synced: list[str] = []
    parent: Any = SimpleNamespace(path="/logs", syncs=SimpleNamespace(path=synced.append))
    moves.sync_all(parent, "/logs/orders-0", [])
    assert synced[-1] == "/logs" and "/logs/orders-0" in synced


@pytest.mark.parametrize(
    ("topic", "path", "code"),
    [
        ("orders", "/nowhere", errors.LOG_DIR_NOT_FOUND),
        ("never", "{b}", errors.UNKNOWN_TOPIC_OR_PARTITION),
        ("n" * 214, "{b}", errors.INVALID_TOPIC_EXCEPTION),
        ("orders", "{cordoned}", errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refusals(tmp_path: Path, topic: str, path: str, code: int) -> None:
    home = Home(tmp_path)
    home.create()
    named = path.format(b=home.paths[1], cordoned=home.paths[0])
    home.logs.config["cordoned.log.dirs"] = [str(home.paths[0])]
    with pytest.raises(KafkaError) as refused:
        home.logs.moves.ask(topic, 0, named)
    assert refused.value.code == code


def test_a_rate_is_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    def later(delay_ms: int, action: Callable[[], Any]) -> None:
        waits.append(delay_ms)
        home.logs.clock.advance(delay_ms)  # type: ignore[attr-defined]
        action()

    home.logs.call_later = later
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    home.logs.config.dynamic[move.RATE] = "100000"
    partition = home.create()
    fill(partition, 400)
    home.logs.clock.advance(3_600_000)  # type: ignore[attr-defined]
    home.move(1)
    home.threads.all()
    assert where(partition) == "b" and 1_500 < sum(waits) < 2_500


def test_a_rate_of_a_byte_a_second_holds_no_thread_and_may_be_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[tuple[int, Callable[[], Any]]] = []
    home.logs.call_later = lambda delay_ms, action: later.append((delay_ms, action))
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    home.logs.config.dynamic[move.RATE] = "1"
    partition = home.create()
    fill(partition, 400)
    home.move(1)
    for _ in range(5):
        home.threads.all()
        ((delay_ms, action),) = later
        assert delay_ms == move.PAY_MS and where(partition) == "a"
        later.clear()
        home.logs.clock.advance(delay_ms)  # type: ignore[attr-defined]
        action()
    home.logs.config.dynamic[move.RATE] = str((1 << 63) - 1)
    while later:
        delay_ms, action = later.pop()
        home.logs.clock.advance(delay_ms)  # type: ignore[attr-defined]
        action()
        home.threads.all()
    assert where(partition) == "b"


def test_transactions_go_along(home: Home) -> None:
    partition = home.create()
    data = batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(data, NOW_MS, verified=True)
    partition.append_built(marker(9, 0, commit=False), NOW_MS)
    home.logs.commit()
    home.move(1)
    home.threads.all()
    found = partition.read(0, 1 << 20, limit_offset=2, at_least_one=True)
    assert found is not None and partition.aborted_transactions(0, found) == [(9, 0)]
    assert os.path.exists(f"{partition.directory}/{0:020d}.txnindex")


def test_a_segment_without_records_moves_too(home: Home) -> None:
    """Compaction may leave such a segment; its file is needed by the next cleaning."""
    partition = home.create()
    fill(partition, 30)
    first = partition.segments[0]
    first.release()
    os.truncate(first.path, 0)
    partition.segments[0] = type(first)(
        partition.directory, first.base_offset, first.offset_index, first.time_index, 0
    )
    home.move(1)
    home.threads.all()
    assert where(partition) == "b"
    assert all(os.path.exists(segment.path) for segment in partition.segments)


def test_a_move_back_waits_until_the_original_is_gone(home: Home) -> None:
    partition = home.create()
    fill(partition, 5)
    home.move(1)
    while where(partition) == "a":
        home.threads.step()
    assert home.names(0) == ["orders-0"]  # what it was moved from is there until the copy is on the disk
    home.move(0)
    home.threads.all()
    assert where(partition) == "a" and all(directory.is_online for directory in home.logs.directories)
    assert home.names(0) == ["orders-0", "orders-0-delete"] and len(read_all(partition)) == 5


# -- many of them


MANY = 40


def test_what_a_move_takes_does_not_depend_on_how_many_there_are(home: Home) -> None:
    topics = [f"t{number}" for number in range(MANY)]
    partitions = [home.create(topic) for topic in topics]
    for partition in partitions:
        append(partition, batch(b"a"))
    home.logs.moves._moves = moves = Counted()
    home.logs.partitions = served = Counted(home.logs.partitions)
    for topic in topics:
        home.move(1, topic)
    for topic in topics[MANY // 2 :]:
        home.logs.moves.cancel(topic, 0, "it is deleted")
    while home.threads.waiting:
        home.threads.step()
    assert [where(partition) for partition in partitions] == ["b"] * (MANY // 2) + ["a"] * (MANY // 2)
    assert moves.walks + served.walks == 0 and not moves
    assert [each.partition_count for each in home.logs.directories] == [MANY // 2, MANY // 2]


def test_the_loop_looks_at_no_file_of_thousands_of_segments_that_does_not_change(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = home.create()
    fill(partition, 400)
    partition.recovery_point = partition.log_end_offset  # they were synced when they were rolled
    assert len(partition.segments) > 50
    switch, stat, seen = move.Move._switch, os.stat, []
    missing, offset_name, looked_at = move.Move.missing, files.offset_name, []

    def counted(self: move.Move, limit: int) -> list[move.Piece]:
        with monkeypatch.context() as patch:
            patch.setattr(files, "offset_name", lambda *name: looked_at.append(name) or offset_name(*name))
            return missing(self, limit)

    monkeypatch.setattr(move.Move, "missing", counted)

    class Bases(list[int]):
        def __contains__(self, base: object) -> bool:
            raise AssertionError("that looks at all of them, for each of them")

    def watched(self: move.Move) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(partition, "bases", Bases(partition.bases))
            patch.setattr(
                os, "stat", lambda path, *rest, **named: seen.append(path) or stat(path, *rest, **named)
            )
            switch(self)

    monkeypatch.setattr(move.Move, "_switch", watched)
    home.move(1)
    home.threads.all()
    assert where(partition) == "b" and seen
    assert len([path for path in seen if str(path).endswith("index")]) == 0
    assert len(seen) < 10
    assert len(looked_at) < 3 * len(partition.segments), "at the beginning twice, then the last one"
    expected = sorted(os.listdir(home.paths[1] / "orders-0"))
    assert len([name for name in expected if name.endswith(".index")]) == len(partition.segments)


def test_two_copy_at_a_time_in_the_order_in_which_they_were_asked_for(home: Home) -> None:
    topics = [f"t{number}" for number in range(6)]
    for topic in topics:
        home.create(topic)
    for topic in topics:
        home.move(1, topic)
    assert [each.partition.topic for each in home.logs.moves if each.started] == topics[:2]
    home.logs.moves.cancel("t2", 0, "somebody thought better of it")
    home.logs.moves.cancel("t0", 0, "and of this one")
    home.threads.all()
    moved = [name for name in topics if where(home.logs.partitions[name, 0]) == "b"]
    assert moved == ["t1", "t3", "t4", "t5"]


@pytest.mark.parametrize("step", ["missing", "lengths", "_copied_some", "_settle", "_switch"])
def test_a_mistake_of_ours_ends_one_move_and_none_of_the_others(
    home: Home, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    topics = [f"t{number}" for number in range(4)]
    for topic in topics:
        fill(home.create(topic), 3)
    real = getattr(move.Move, step)

    def broken(one: move.Move, *arguments: Any) -> Any:
        if one.partition.topic in ("t0", "t1"):
            raise RuntimeError("our mistake")
        return real(one, *arguments)

    monkeypatch.setattr(move.Move, step, broken)
    for topic in topics:
        home.move(1, topic)
    home.threads.all()
    assert [where(home.logs.partitions[topic, 0]) for topic in topics] == ["a", "a", "b", "b"]
    assert not list(home.logs.moves) and len(home.logs.online) == 2
    assert [name for name in home.names(1) if not name.endswith("delete")] == ["t2-0", "t3-0"]


def test_files_that_are_gone_end_a_move_and_no_directory(home: Home) -> None:
    partition, other = home.create(), home.create("other")
    fill(partition, 5)
    os.rename(partition.directory, f"{partition.directory}.gone")
    home.move(1)
    home.move(1, "other")
    home.threads.all()
    assert len(home.logs.online) == 2 and not list(home.logs.moves)
    assert (where(partition), where(other)) == ("a", "b")


def test_a_disk_that_fails_ends_its_directory(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fd: int, size: int, offset: int) -> bytes:
        raise OSError(5, "Input/output error")

    partition = home.create()
    fill(partition, 5)
    monkeypatch.setattr(move, "LAST_BYTES", 100)
    monkeypatch.setattr(os, "pread", broken)
    home.move(1)
    home.threads.all()
    assert [each.is_online for each in home.logs.directories] == [False, True]


def test_a_piece_leaves_nothing_behind_its_end(tmp_path: Path) -> None:
    """A file beside the segments may have become shorter since it was copied."""
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "source/name").write_bytes(b"abcdef")
    (tmp_path / "target/name").write_bytes(b"........")
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    assert move.copy(source, target, [("gone", 0, 9), ("name", 1, 4)]) == [("name", 1, 4)]
    assert (tmp_path / "target/name").read_bytes() == b".bcd"
    with pytest.raises(move.SourceError, match="ends at 6, not at 7"):
        move.copy(source, target, [("name", 0, 7)])


def test_a_copy_is_on_the_disk_before_the_metadata_names_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    sync = files.fsync_path
    monkeypatch.setattr(files, "fsync_path", lambda path: (synced.add(path), sync(path))[1])
    partition = home.create()
    fill(partition, 1, size=3900)
    fill(partition, 30)
    home.threads.all()
    assert partition.bases[:2] == [0, 1]
    assigned = home.moved
    seen: list[set[str]] = []

    def moved(partition: Log, directory: Any, done: Callable[[Any], None]) -> None:
        seen.append({os.path.basename(path) for path in synced if "-future" in path})
        synced.clear()
        assigned(partition, directory, done)

    monkeypatch.setattr(home, "moved", moved)
    home.move(1)
    home.threads.all()
    logs = {f"{base:020d}.log" for base in partition.bases}
    assert len(logs) > 3 and logs < seen[0] and any(name.endswith("-future") for name in seen[0])
    again = {os.path.basename(path) for path in synced if path.startswith(partition.directory)}
    assert logs < again and {"orders-0", "partition.metadata", "leader-epoch-checkpoint"} < again


@pytest.mark.parametrize("which", [0, 1])
def test_a_move_is_over_when_one_of_its_directories_is_offline(home: Home, which: int) -> None:
    partition = home.create()
    fill(partition, 5)
    home.move(1)
    home.logs.directories[which].fail("pulled out")
    home.logs.drop_offline()
    assert not list(home.logs.moves)
    assert home.logs.get(*KEY) is (partition if which else None)
    assert home.names(1) == (["orders-0-future"] if which else ["orders-0-delete"])
    home.threads.all()
    assert home.logs.directories[1 - which].is_online and home.names(0) == ["orders-0"]


def test_a_directory_in_which_no_copy_can_begin_is_offline(home: Home) -> None:
    partition, other = home.create(), home.create("other")
    fill(partition, 5)
    home.move(1, "other")
    os.rename(home.paths[1], home.paths[1].with_name("gone"))
    with pytest.raises(KafkaError) as refused:
        home.move(1)
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR
    assert [each.is_online for each in home.logs.directories] == [True, False]
    assert not list(home.logs.moves), "nor does the one that was under way go on"
    assert home.partition is partition and where(other) == "a"


def test_a_copy_of_nothing_that_is_known_is_left_alone(home: Home) -> None:
    for name in ("gone-0", "no partition"):
        (home.paths[1] / files.marked_directory(name, "future")).mkdir()
    before = sorted(os.listdir(home.paths[1]))
    partition = home.create()
    fill(partition, 3)
    home.logs.close(clean=False)
    home.start()
    assert not list(home.logs.moves)
    assert [name for name in before if "-future" in name] == sorted(
        name for name in os.listdir(home.paths[1]) if "-future" in name
    )


@pytest.mark.parametrize("call", ["listdir", "stat"])
def test_an_original_that_cannot_be_read_is_the_fault_of_its_directory(
    home: Home, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies beside the segments is looked at by a thread first, and by the loop once more."""
    real = getattr(os, call)
    partition = home.create()
    fill(partition, 5)

    def broken(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).startswith(partition.directory):
            raise OSError(5, "Input/output error")
        return real(path, *arguments, **options)

    home.move(1)
    monkeypatch.setattr(os, call, broken)
    home.threads.all()
    assert [each.is_online for each in home.logs.directories] == [False, True]
    assert not list(home.logs.moves)


# -- the checkpoints of a copy


def test_a_checkpoint_vouches_for_a_copy_only_when_it_is_on_the_disk(home: Home) -> None:
    """If the copy got the original's recovery point, a start after a power failure would rely on torn bytes."""
    partition = home.create()
    fill(partition, 30)
    partition.flush()
    end = partition.log_end_offset
    points = checkpoints.RECOVERY_POINTS
    source, target = home.logs.directories
    assert partition.recovery_point > partition.bases[0] and len(partition.bases) > 2
    said = partition.recovery_point
    home.move(1)
    while where(partition) == "a":
        assert home.logs.checkpointing.offsets_of(source, points) == {KEY: said}
        assert home.logs.checkpointing.offsets_of(target, points) == {KEY: 0}
        home.threads.step()
    assert home.logs.checkpointing.offsets_of(source, points) == {}
    assert home.logs.checkpointing.offsets_of(target, points) == {KEY: partition.bases[0]}
    assert partition.flushed_offset == partition.bases[0] == 0
    home.threads.all()
    assert home.logs.checkpointing.offsets_of(target, points) == {KEY: end}


def test_a_sync_of_the_original_says_nothing_of_the_copy(home: Home) -> None:
    """The flush was in progress when the partition changed to its new directory."""
    partition = home.create()
    fill(partition, 30)
    home.logs.flushing.soon(partition, 0, partition.log_end_offset)
    sync = home.threads.waiting.pop()
    home.move(1)
    while where(partition) == "a":
        home.threads.step()
    sync()
    assert partition.recovery_point == partition.flushed_offset == 0
