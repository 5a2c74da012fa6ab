"""flush.messages: acknowledged records are on the disk, the loop does not wait for it, and appends share an fsync."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.syncs import Syncs
from tests.storage_kit import manager, topic_config
from tests.unit.coordinator_kit import OFFSETS, GroupDesk, commit_request
from tests.unit.data_kit import NOW_MS, Ticket, batch, fetch, produce, values_of

PRODUCE_VERSION, FETCH_VERSION = 9, 12


class Disk:
    """In the place of the threads: work is done when a test lets it, and may fail."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.error: OSError | None = None

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((work, done))

    def run(self) -> int:
        """Do all the work that is waiting; returns how many jobs there were."""
        jobs, self.jobs = self.jobs, []
        for work, done in jobs:
            try:
                result: Any = work()
            except OSError as error:
                result = error
            done(result)
        return len(jobs)


class FlushDesk(GroupDesk):
    """A broker whose threads are a Disk, with the topic `t`."""

    def __init__(self, directory: Path, flush_messages: int = 1, **overrides: Any) -> None:
        super().__init__(directory, **overrides)
        self.disk = Disk()
        self.storage.submit = self.disk.submit
        self.create("t", 2, flush_messages=str(flush_messages))

    def begin(self, request: Any, version: int) -> Any:
        """Send a request and run its pass; returns what the dispatcher returned."""
        given = self.send(request, version)
        self.end_pass()
        return given

    def produce(self, *values: bytes, index: int = 0, acks: int = -1) -> Any:
        return self.begin(produce("t", index, batch(*values), acks), PRODUCE_VERSION)

    def flush(self) -> int:
        """Return the finished work of the disk, and end the pass in which it arrived."""
        count = self.disk.run()
        self.end_pass()
        return count

    def partition(self, index: int = 0, topic: str = "t") -> Log:
        found = self.storage.get(topic, index)
        assert found is not None
        return found

    def code(self, given: Any) -> int:
        answer = self.answer_of(given, "ProduceRequest", PRODUCE_VERSION)
        return int(answer.responses[0].partition_responses[0].error_code)


def waits(given: Any) -> bool:
    """Whether the answer's bytes are not available yet, so that the loop gets a ticket for them."""
    exchange = given.parts if isinstance(given, Ticket) else given
    ticket = exchange.encode()
    return isinstance(ticket, Ticket) and ticket.parts is None


def test_an_answer_waits_until_its_records_are_on_the_disk(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    given = desk.produce(b"a")
    assert waits(given)
    ticket = given.encode()
    partition = desk.partition()
    assert (partition.log_end_offset, partition.high_watermark, partition.flushed_offset) == (1, 0, 0)
    assert desk.flush() == 1
    assert (partition.high_watermark, partition.last_stable_offset, partition.flushed_offset) == (1, 1, 1)
    assert ticket.parts is given, "the loop gets the answer at its ticket"
    assert desk.code(given) == errors.NONE


def test_nobody_reads_what_is_not_on_the_disk(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    desk.produce(b"a")
    request = fetch("t", {"partition": 0, "fetch_offset": 0}, max_wait_ms=100)
    reader = desk.begin(request, FETCH_VERSION)
    assert isinstance(reader, Ticket) and reader.parts is None
    desk.flush()
    answer = desk.answer_of(reader, "FetchRequest", FETCH_VERSION)
    assert values_of(answer.responses[0].partitions[0]) == [b"a"]


def test_appends_go_on_and_share_the_next_flush(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    given = [desk.produce(b"%d" % number) for number in range(5)]
    assert len(desk.disk.jobs) == 1
    assert desk.flush() == 1
    assert [waits(each) for each in given] == [False, True, True, True, True]
    assert desk.partition().high_watermark == 1
    assert desk.flush() == 1
    assert not any(waits(each) for each in given)
    assert (desk.partition().high_watermark, desk.partition().flushed_offset) == (5, 5)
    assert desk.flush() == 0
    assert not desk.storage.flushing.under_way


def test_below_flush_messages_nothing_waits(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path, flush_messages=3)
    assert desk.code(desk.produce(b"0", b"1")) == errors.NONE
    assert desk.partition().high_watermark == 2
    third = desk.produce(b"2")
    fourth = desk.produce(b"3")
    assert waits(third) and waits(fourth) and desk.partition().high_watermark == 2
    assert desk.flush() == 1
    assert not waits(third) and not waits(fourth), "one more than is on the disk is no reason for a flush"
    assert (desk.partition().high_watermark, desk.partition().flushed_offset) == (4, 3)


def test_a_request_waits_for_all_of_its_partitions(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    request = produce("t", 0, batch(b"a"))
    request.topic_data[0].partition_data += produce("t", 1, batch(b"b")).topic_data[0].partition_data
    given = desk.begin(request, PRODUCE_VERSION)
    (first, second), desk.disk.jobs = desk.disk.jobs, []
    for job, still in ((first, True), (second, False)):
        job[1](job[0]())
        desk.end_pass()
        assert waits(given) is still
    assert desk.promises.held_count == 0


def test_a_duplicate_is_told_no_sooner_than_the_original(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    data = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    request = produce("t", 0, bytes(data))
    desk.begin(request, PRODUCE_VERSION)
    again = desk.begin(produce("t", 0, bytes(data)), PRODUCE_VERSION)
    assert waits(again)
    desk.flush()
    answer = desk.answer_of(again, "ProduceRequest", PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].base_offset == 0
    assert desk.partition().log_end_offset == 1


def test_without_flush_messages_nothing_is_held(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path, flush_messages=(1 << 63) - 1)
    assert desk.code(desk.produce(b"a")) == errors.NONE
    assert desk.promises.held_count == 0 and not desk.disk.jobs


def test_a_failed_flush_is_told_and_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = FlushDesk(tmp_path)
    desk.produce(b"a")
    desk.flush()
    asked = []

    def fail(fd: int) -> None:
        asked.append(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "sync_data", fail)
    partition = desk.partition()
    first, second = desk.produce(b"b"), desk.produce(b"c")
    desk.flush()
    assert [desk.code(each) for each in (first, second)] == [errors.KAFKA_STORAGE_ERROR] * 2
    assert (partition.high_watermark, partition.flushed_offset) == (1, 1)
    assert desk.storage.get("t", 0) is None and not desk.storage.online
    assert desk.code(desk.produce(b"d")) == errors.KAFKA_STORAGE_ERROR
    desk.flush()
    assert len(asked) == 1 and not desk.disk.jobs
    assert desk.promises.held_count == 0


def failing(
    asked: list[Any], meanwhile: Callable[[], None] = lambda: None, code: int = errno.EIO
) -> Callable[[Any], None]:
    """A sync that fails."""

    def fail(what: Any) -> None:
        asked.append(what)
        meanwhile()
        raise OSError(code, os.strerror(code))

    return fail


def test_what_threads_have_in_hand_when_a_sync_fails_is_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = FlushDesk(tmp_path)
    desk.produce(b"a")
    desk.flush()
    desk.produce(b"b")
    partition = desk.partition()
    desk.storage.flushing.soon(partition, 0, partition.log_end_offset)
    log_only, all_files = [job for job, _ in desk.disk.jobs]
    asked: list[Any] = []
    monkeypatch.setattr(files, "sync_data", failing(asked))
    with pytest.raises(OSError, match="Input/output error"):
        log_only()
    monkeypatch.setattr(files, "fsync_path", asked.append)
    with pytest.raises(OSError, match="a sync failed before"):
        all_files()  # though the loop has not noticed the failure yet
    assert len(asked) == 1


def test_a_roll_that_cannot_be_synced_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = FlushDesk(tmp_path, flush_messages=(1 << 63) - 1)
    desk.produce(b"a")
    partition = desk.partition()
    monkeypatch.setattr(files, "fsync_path", failing([]))
    partition.roll(NOW_MS)
    assert desk.storage.online
    desk.flush()
    assert not desk.storage.online and (partition.flushed_offset, partition.recovery_point) == (0, 0)


def test_what_could_not_be_opened_for_want_of_a_descriptor_may_be_synced_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    syncs = Syncs()
    asked: list[Any] = []
    monkeypatch.setattr(files, "fsync_path", failing(asked, code=errno.EMFILE))
    with pytest.raises(OSError, match="Too many open files"):
        syncs.path("/x/1.log")
    monkeypatch.setattr(files, "fsync_path", asked.append)
    syncs.path("/x/1.log")
    assert asked == ["/x/1.log"] * 2


def test_a_file_is_synced_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs()
    asked: list[Any] = []
    refused: list[OSError] = []

    def second() -> None:
        try:
            syncs.data("/x/1.log", 3)
        except OSError as error:
            refused.append(error)

    other = threading.Thread(target=second)

    def meanwhile() -> None:
        other.start()
        other.join(0.05)  # it would be finished by then

    monkeypatch.setattr(files, "fsync_path", failing(asked, meanwhile))
    monkeypatch.setattr(files, "sync_data", asked.append)
    with pytest.raises(OSError, match="Input/output error"):
        syncs.path("/x/1.log")
    other.join()
    assert asked == ["/x/1.log"] and len(refused) == 1


def test_other_partitions_of_the_directory_promise_nothing_either(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    first, second = desk.produce(b"a"), desk.produce(b"b", index=1)
    (job, later), desk.disk.jobs = desk.disk.jobs, []
    job[1](OSError(errno.ENOSPC, "no room"))
    desk.end_pass()
    assert [desk.code(each) for each in (first, second)] == [errors.KAFKA_STORAGE_ERROR] * 2
    later[1](None)  # it was on its way
    desk.end_pass()
    assert not desk.storage.flushing.under_way


def test_acks_0_learns_of_a_failed_flush_by_the_end_of_its_connection(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    assert desk.produce(b"a", acks=0) is None
    assert desk.connection.closed is None
    desk.disk.jobs[0][1](OSError(errno.EIO, "broken"))
    desk.end_pass()
    assert desk.connection.closed == "produce with acks=0 failed: KAFKA_STORAGE_ERROR"


def test_a_deleted_partition_keeps_nobody_waiting(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    given = desk.produce(b"a")
    desk.storage.delete("t", 0)
    desk.end_pass()
    assert desk.code(given) == errors.NONE
    assert desk.flush() >= 1
    assert all(directory.is_online for directory in desk.storage.directories)
    assert not desk.storage.flushing.under_way


def test_what_follows_a_roll_is_flushed_with_all_that_was_made_before(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    desk.create("s", 1, flush_messages="1", internal_segment_bytes="100")
    partition = desk.partition(topic="s")
    for number in range(4):
        given = desk.begin(produce("s", 0, batch(b"%d" % number)), PRODUCE_VERSION)
        assert waits(given)
        while desk.disk.jobs:
            desk.flush()
        assert not waits(given)
    assert len(partition.segments) == 4
    assert (partition.flushed_offset, partition.recovery_point) == (4, 3)


def test_the_recovery_point_stays_behind_a_segment_that_is_written_to(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    partition = desk.partition()
    desk.produce(b"a")
    (flush,), desk.disk.jobs = desk.disk.jobs, []
    partition.roll(NOW_MS)  # while the flush is under way: its index files change
    flush[1](flush[0]())
    assert (partition.flushed_offset, partition.recovery_point) == (1, 0)
    desk.flush()
    assert partition.recovery_point == 1


def test_the_first_flush_makes_the_partition_itself_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = FlushDesk(tmp_path)
    synced: list[str] = []
    plain = files.fsync_path
    monkeypatch.setattr(files, "fsync_path", lambda path: (synced.append(path), plain(path)))
    desk.produce(b"a")
    desk.flush()
    directory = desk.partition().directory
    assert synced[-2:] == [directory, str(tmp_path)]
    for name in ("00000000000000000000.log", files.PARTITION_METADATA, files.LEADER_EPOCHS):
        assert f"{directory}/{name}" in synced
    synced.clear()
    desk.produce(b"b")
    desk.flush()
    assert synced == [], "from now on the log alone"


def test_a_move_meanwhile_is_flushed_where_it_went(tmp_path: Path) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    desk = FlushDesk(tmp_path, log_dirs=",".join(map(str, paths)))
    partition = desk.partition()
    given = desk.produce(b"a")
    (flush,), desk.disk.jobs = desk.disk.jobs, []
    target = next(each for each in desk.storage.directories if each is not partition.log_directory)
    desk.storage.moves.ask("t", 0, target.path)
    while desk.disk.jobs and partition.log_directory is not target:
        desk.flush()
    assert partition.log_directory is target and waits(given)
    flush[1](flush[0]())
    desk.end_pass()
    assert waits(given), "what was synced in the old directory says nothing of the new one"
    while desk.disk.jobs:
        desk.flush()
    assert desk.code(given) == errors.NONE and partition.flushed_offset == 1


# -- groups


def committing(desk: FlushDesk, offset: int) -> Any:
    return desk.begin(commit_request("g", (0, offset)), 8)


class GroupFlushDesk(FlushDesk):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        config = self.storage.partitions[OFFSETS, 0].settings.config
        self.storage.configure(OFFSETS, 1, FlushedConfig(config))

    def code_of_commit(self, given: Any) -> int:
        answer = self.answer_of(given, "OffsetCommitRequest", 8)
        return int(answer.topics[0].partitions[0].error_code)


class FlushedConfig:
    """A topic's config with flush.messages=1."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __getitem__(self, name: str) -> Any:
        return 1 if name == "flush.messages" else self.config[name]


def ask_offsets(desk: FlushDesk) -> Any:
    kind = messages.OffsetFetchRequest
    group = kind.OffsetFetchRequestGroup(group_id="g", topics=None)
    return desk.begin(kind(groups=[group], require_stable=False), 8)


def test_a_commit_waits_and_so_does_who_would_see_it(tmp_path: Path) -> None:
    desk = GroupFlushDesk(tmp_path)
    first = committing(desk, 5)
    reader = ask_offsets(desk)
    second = committing(desk, 6)
    assert waits(first) and waits(reader) and waits(second)
    desk.flush()
    assert not waits(first) and not waits(reader) and waits(second)
    later = ask_offsets(desk)
    assert waits(later), "it would see the second commit"
    desk.flush()
    assert not waits(later) and not waits(second)
    assert desk.code_of_commit(first) == desk.code_of_commit(second) == errors.NONE
    assert not desk.coordinator_loop.uncommitted
    assert not waits(ask_offsets(desk))


def test_a_commit_whose_flush_fails_is_refused(tmp_path: Path) -> None:
    desk = GroupFlushDesk(tmp_path)
    committed, reader = committing(desk, 5), ask_offsets(desk)
    desk.disk.jobs[0][1](OSError(errno.EIO, "broken"))
    desk.end_pass()
    assert desk.code_of_commit(committed) == errors.NOT_COORDINATOR
    answer = desk.answer_of(reader, "OffsetFetchRequest", 8)
    assert answer.groups[0].error_code == errors.NOT_COORDINATOR
    assert not desk.coordinator_loop.uncommitted


# -- start and stop


def test_a_clean_stop_finishes_what_a_flush_had_begun(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    desk.produce(b"a")
    desk.storage.close()
    found = checkpoints.read_offsets(str(tmp_path / checkpoints.RECOVERY_POINTS))
    assert found["t", 0] == 1


def test_a_start_knows_what_was_flushed(tmp_path: Path) -> None:
    desk = FlushDesk(tmp_path)
    desk.produce(b"a")
    desk.storage.close()
    assert flushed_at_start(tmp_path) == 1
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / checkpoints.RECOVERY_POINTS).unlink()
    assert flushed_at_start(tmp_path) == 0, "of what a crash left nobody knows"


def flushed_at_start(directory: Path) -> int:
    logs = manager(directory)
    logs.open_all({("t", 0): b"t" + bytes([1]) * 15}, lambda topic: topic_config())
    partition = logs.get("t", 0)
    assert partition is not None
    flushed = partition.flushed_offset
    logs.close()
    return flushed
