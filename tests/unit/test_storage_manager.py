"""Log directories: locks, identities, clean stops, placement, failures, checkpoints, deletion."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.errors import KafkaError
from pykafkad.hot.segment import limit_open_files
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    Counted,
    append,
    batch,
    broker_config,
    idempotent,
    lead,
    log_manager,
    manager,
    read_all,
    topic_config,
    values,
    watch,
)

CONFIG = topic_config(file_delete_delay_ms=1000)


def start(*paths: Path, known: dict[tuple[str, int], bytes] | None = None, **overrides: Any) -> LogManager:
    started = manager(*paths, **overrides)
    started.open_all(known or {}, lambda topic: CONFIG)
    for partition in started:
        lead(partition, 1)
    return started


def create(logs: LogManager, *names: str) -> list[Log]:
    return [logs.create(name, 0, TOPIC_ID, CONFIG, 0) for name in names]


def known_of(*names: str) -> dict[tuple[str, int], bytes]:
    return {(name, 0): TOPIC_ID for name in names}


def append_and_commit(logs: LogManager, partition: Log, *batches: bytearray) -> None:
    for each in batches:
        partition.append(each, NOW_MS)
    assert logs.commit() == []


# -- clean and unclean stops


def test_a_clean_stop_is_marked_and_the_mark_is_taken(tmp_path: Path) -> None:
    logs = start(tmp_path)
    append_and_commit(logs, create(logs, "orders")[0], batch(b"a"))
    logs.close(broker_epoch=42)
    mark = tmp_path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":42}'
    logs = manager(tmp_path)
    assert (logs.directories[0].was_clean, logs.directories[0].broker_epoch) == (True, 42)
    assert mark.exists()  # a start that is refused changes nothing
    logs.take_markers()
    assert not mark.exists()  # gone before anything is loaded
    logs.close(clean=False)
    assert not manager(tmp_path).directories[0].was_clean


def test_the_mark_is_not_given_by_a_start_that_did_not_end(tmp_path: Path) -> None:
    start(tmp_path).close()
    logs = manager(tmp_path)
    logs.take_markers()
    logs.close()  # clean, but never loaded
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_checkpoints_of_a_clean_stop(tmp_path: Path) -> None:
    logs = start(tmp_path)
    orders, _ = create(logs, "orders", "idle")
    append_and_commit(logs, orders, batch(b"a", b"b", b"c"))
    logs.close()
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS):
        assert (tmp_path / name).read_text() == "0\n2\norders 0 3\nidle 0 0\n"
    assert (tmp_path / checkpoints.LOG_STARTS).read_text() == "0\n0\n"


@pytest.mark.parametrize("clean", [True, False])
def test_data_survives(tmp_path: Path, clean: bool) -> None:
    logs = start(tmp_path)
    partition = create(logs, "orders")[0]
    append_and_commit(logs, partition, idempotent(0, b"a"), idempotent(1, b"b"))
    logs.close(clean=clean)
    logs = start(tmp_path, known=known_of("orders"))
    partition = logs.get("orders", 0)  # type: ignore[assignment]
    assert values(read_all(partition)) == [b"a", b"b"]
    assert partition.append(idempotent(1, b"b"), NOW_MS).duplicate
    logs.close()


@pytest.mark.parametrize(
    "name", [checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, checkpoints.LOG_STARTS]
)
@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\xff\xfe", b"0\n5\norders 0 1\n", b"0\n1\norders zero 1\n"]
)
def test_damaged_checkpoints_do_not_keep_the_broker_down(tmp_path: Path, name: str, content: bytes) -> None:
    logs = start(tmp_path)
    append_and_commit(logs, create(logs, "orders")[0], batch(b"a"))
    logs.close()
    (tmp_path / name).write_bytes(content)
    logs = start(tmp_path, known=known_of("orders"))
    partition = logs.get("orders", 0)
    assert partition is not None and values(read_all(partition)) == [b"a"]
    logs.close()


# -- the contents of a directory


def test_unknown_partitions_are_set_aside_and_not_deleted(tmp_path: Path) -> None:
    logs = start(tmp_path)
    append_and_commit(logs, create(logs, "orders")[0], batch(b"a"))
    logs.close()
    logs = start(tmp_path)
    assert logs.get("orders", 0) is None
    (stray,) = tmp_path.glob("orders-0.*-stray")
    assert (stray / f"{0:020d}.log").stat().st_size > 0
    logs.close()


def test_a_partition_of_another_topic_id_is_set_aside(tmp_path: Path) -> None:
    logs = start(tmp_path)
    create(logs, "orders")
    logs.close()
    logs = manager(tmp_path)
    assert logs.open_all({("orders", 0): bytes(15) + b"\x09"}, lambda topic: CONFIG) == [("orders", 0)]
    assert len(list(tmp_path.glob("orders-0.*-stray"))) == 1
    logs.close()


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic_id: garbage"])
def test_a_lost_topic_id_is_the_clusters(tmp_path: Path, content: bytes | None) -> None:
    logs = start(tmp_path)
    append_and_commit(logs, create(logs, "orders")[0], batch(b"a"))
    logs.close()
    path = tmp_path / "orders-0" / "partition.metadata"
    path.unlink() if content is None else path.write_bytes(content)
    logs = start(tmp_path, known=known_of("orders"))
    partition = logs.get("orders", 0)
    assert partition is not None and partition.log_end_offset == 1
    assert checkpoints.read_topic_id(str(tmp_path / "orders-0")) == TOPIC_ID
    logs.close()


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    for name in ("lost+found", "__cluster_metadata-0", "orders-x", "-3"):
        (tmp_path / name).mkdir(parents=True)
    start(tmp_path).close()
    assert {"lost+found", "__cluster_metadata-0", "orders-x", "-3"} <= set(os.listdir(tmp_path))


def test_partitions_that_are_nowhere_are_named(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    assert logs.open_all(known_of("orders"), lambda topic: CONFIG) == [("orders", 0)]
    logs.close()


def test_topic_names_with_dashes(tmp_path: Path) -> None:
    logs = start(tmp_path)
    append_and_commit(logs, logs.create("a-1-b", 12, TOPIC_ID, CONFIG, 0), batch(b"a"))
    logs.close()
    logs = start(tmp_path, known={("a-1-b", 12): TOPIC_ID})
    assert logs.get("a-1-b", 12) is not None
    logs.close()


# -- partitions


def test_new_partitions_go_where_the_fewest_are(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    create(logs, "one")
    placed = logs.place(5)
    ids = [directory.directory_id for directory in logs.directories]
    assert [placed.count(each) for each in ids] == [1, 2, 2]
    for index, directory_id in enumerate(placed):
        logs.create("five", index, TOPIC_ID, CONFIG, 0, directory_id)
    assert [len(list((tmp_path / each).glob("*-*"))) for each in "abc"] == [2, 2, 2]
    logs.close()


def test_cordoned_directories_get_nothing_new(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b", cordoned_log_dirs=[str(tmp_path / "a")])
    assert set(logs.place(4)) == {logs.directories[1].directory_id}
    logs.close()


def test_creating_again_is_the_same_partition(tmp_path: Path) -> None:
    logs = start(tmp_path)
    first, again = create(logs, "orders", "orders")
    assert first is again
    logs.close()


def test_deleted_partitions_are_gone_at_once_and_their_files_later(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    logs = manager(tmp_path, clock=clock)
    logs.open_all({}, lambda topic: CONFIG)
    partition = create(logs, "orders")[0]
    append_and_commit(logs, partition, batch(b"a"))
    part = partition.read(0, 1000, limit_offset=1, at_least_one=True)
    logs.delete("orders", 0)
    assert logs.get("orders", 0) is None
    assert not (tmp_path / "orders-0").exists()
    logs.create("orders", 0, bytes(15) + b"\x07", CONFIG, 0)
    clock.advance(999)
    logs.deletions.unlink_due()
    assert len(list(tmp_path.glob("orders-0.*-delete"))) == 1
    clock.advance(1)
    logs.deletions.unlink_due()
    assert not list(tmp_path.glob("*-delete"))
    assert part is not None and part.read()[-1:] != b""  # who still reads, reads on
    assert (tmp_path / "orders-0").exists()
    logs.close()


def test_a_deletion_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    logs = start(tmp_path)
    create(logs, "orders")
    logs.delete("orders", 0)
    logs.close()
    logs = start(tmp_path)
    logs.deletions.unlink_due()
    assert not list(tmp_path.glob("*-delete"))
    logs.close()


def test_long_names_fit_when_they_are_marked(tmp_path: Path) -> None:
    logs = start(tmp_path)
    name = "t" * 249
    create(logs, name)
    logs.delete(name, 0)
    (left,) = os.listdir(tmp_path / "") and [
        each for each in os.listdir(tmp_path) if each.endswith("-delete")
    ]
    assert len(left) == 255
    logs.close()


def test_who_waits_is_told_after_the_commit(tmp_path: Path) -> None:
    logs = start(tmp_path)
    orders, other = create(logs, "orders", "other")
    seen: list[tuple[str, int]] = []
    watch(logs, lambda replica: seen.append((replica.topic, replica.high_watermark)))
    orders.append(batch(b"a"), NOW_MS)
    other.append(batch(b"a", b"b"), NOW_MS)
    assert seen == []
    logs.commit()
    assert seen == [("orders", 1), ("other", 2)]
    logs.commit()
    assert len(seen) == 2
    logs.close()


# -- failures


def break_write(partition: Log) -> None:
    """The next write cannot open the file any more, as on a broken disk."""
    partition.active.release()
    os.rename(partition.active.path, f"{partition.active.path}.elsewhere")


def test_a_failed_directory_goes_offline_and_the_others_serve(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b")
    one, two, three = create(logs, "one", "two", "three")
    assert one.log_directory is three.log_directory is not two.log_directory
    told: list[Log] = []
    watch(logs, lambda replica: told.append(replica.log))
    for partition in (one, two, three):
        partition.append(batch(b"a"), NOW_MS)
    break_write(one)
    failed = logs.commit()
    assert [partition for partition, _ in failed] == [one, three]
    assert logs.get("one", 0) is None and logs.get("three", 0) is None
    assert logs.get("two", 0) is two and two.high_watermark == 1
    assert set(told) == {one, two, three}  # fetches that wait at these partitions notice it
    assert append(two, batch(b"b")) == [1]
    logs.close()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()


def test_a_directory_whose_failure_somebody_noticed_is_dropped_before_long(tmp_path: Path) -> None:
    soon: list[Callable[[], None]] = []
    failed: list[Any] = []
    logs = log_manager(
        broker_config(tmp_path / "a", tmp_path / "b"),
        ManualClock(NOW_MS),
        call_soon=soon.append,
        on_directory_failed=failed.append,
    )
    logs.open_all({}, lambda topic: CONFIG)
    one, two = create(logs, "one", "two")
    soon.clear()
    one.log_directory.fail("pulled out")
    one.log_directory.fail("again")
    assert logs.get("one", 0) is one and failed == []
    (drop,) = soon
    drop()
    assert logs.get("one", 0) is None and logs.get("two", 0) is two
    assert failed == [one.log_directory] and one.log_directory.failure == "pulled out"
    assert dict(logs.placed()) == {("two", 0): two.log_directory.directory_id}
    logs.close()


def test_where_no_partition_can_be_made_the_directory_is_offline(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b")
    first, second = logs.directories
    shutil.rmtree(first.path)
    with pytest.raises(OSError, match="No such file"):
        logs.create("one", 0, TOPIC_ID, CONFIG, 0, first.directory_id)
    assert (first.is_online, second.is_online) == (False, True)
    assert logs.get("one", 0) is None and first.partition_count == 0
    with pytest.raises(OSError, match="the log directory of one-0 is offline"):
        logs.create("one", 0, TOPIC_ID, CONFIG, 0, first.directory_id)
    assert logs.create("one", 0, TOPIC_ID, CONFIG, 0).log_directory is second
    logs.close()


def test_files_may_be_read_by_all_and_run_by_nobody(tmp_path: Path) -> None:
    logs = start(tmp_path / "a")
    (partition,) = create(logs, "orders")
    append_and_commit(logs, partition, idempotent(0, b"a"))
    partition.roll(NOW_MS)
    logs.checkpoint_recovery_points()
    lock = (tmp_path / "a" / ".lock").stat().st_mode
    logs.close()
    mask = os.umask(0)
    os.umask(mask)
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert len(modes) > 12 and {mode & 0o777 for mode in (lock, *modes.values())} == {0o644 & ~mask}


def test_the_room_of_a_directory_is_known_while_it_works(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b")
    first, second = logs.directories
    told: list[Any] = []
    logs.on_directory_failed = told.append
    (one,) = create(logs, "one")
    assert one.log_directory is first
    for directory in logs.directories:
        size, free = logs.capacity(directory) or (0, 0)
        assert 0 < free <= size == shutil.disk_usage(directory.path).total
    assert told == []
    shutil.rmtree(first.path)
    assert logs.capacity(first) is None and told == [first]
    assert logs.get("one", 0) is None and logs.capacity(first) is None
    assert logs.capacity(second) is not None
    logs.close()


def test_the_last_directory_takes_the_broker_down(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (one,) = create(logs, "one")
    calls: list[str] = []
    logs.on_all_failed = lambda: calls.append("down")
    one.append(batch(b"a"), NOW_MS)
    break_write(one)
    logs.commit()
    assert calls == ["down"]
    with pytest.raises(OSError, match="offline"):
        logs.create("two", 0, TOPIC_ID, CONFIG, 0)
    logs.close()


def test_appends_to_an_offline_partition_are_not_acknowledged(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (one,) = create(logs, "one")
    one.log_directory.fail("pulled out")
    one.append(batch(b"a"), NOW_MS)
    assert [partition for partition, _ in logs.commit()] == [one]
    logs.close()


def test_a_roll_that_fails_in_the_middle_of_a_pass_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(partition: Log, base_offset: int, now_ms: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    logs = start(tmp_path)
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(segment_bytes=300), 0)
    monkeypatch.setattr(Log, "add_segment", broken)
    for _ in range(4):
        partition.append(batch(b"v"), NOW_MS)
    with pytest.raises(KafkaError) as caught:
        partition.append(batch(b"v"), NOW_MS)
    assert caught.value.code == errors.KAFKA_STORAGE_ERROR
    assert [each for each, _ in logs.commit()] == [partition]
    logs.close()


# -- background work


class Later:
    """A thread that does its work when the test lets it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting.append((work, done))

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done in waiting:
            try:
                result: Any = work()
            except Exception as error:
                result = error
            done(result)


def test_a_roll_flushes_in_the_background_and_then_moves_the_recovery_point(tmp_path: Path) -> None:
    later = Later()
    logs = start(tmp_path)
    logs.submit = later.submit
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(segment_bytes=300), 0)
    append_and_commit(logs, partition, *(batch(b"v") for _ in range(9)))
    assert (partition.bases, partition.recovery_point) == ([0, 4, 8], 0)
    later.run()
    assert partition.recovery_point == 8
    logs.checkpoint_recovery_points()
    later.run()
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == "0\n1\norders 0 8\n"
    logs.close()


def test_a_background_error_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    later = Later()
    logs = start(tmp_path)
    logs.submit = later.submit
    create(logs, "orders")
    monkeypatch.setattr(files, "fsync_path", broken)
    logs.checkpoint_high_watermarks()
    later.run()
    assert logs.online == [] and logs.get("orders", 0) is None
    logs.close()


def test_flush_ms_syncs_what_is_old(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    logs = manager(tmp_path, clock=clock, log_flush_scheduler_interval_ms=100)
    logs.open_all({}, lambda topic: CONFIG)
    config = topic_config(flush_ms=500)
    partition = logs.create("orders", 0, TOPIC_ID, config, 0)
    append_and_commit(logs, partition, batch(b"a"))
    clock.advance(499)
    logs.flushing.aged()
    assert partition.flushed_offset == 0
    clock.advance(1)
    logs.flushing.aged()
    assert partition.flushed_offset == 1
    append_and_commit(logs, partition, batch(b"b"))
    clock.advance(499)
    logs.flushing.aged()
    assert partition.flushed_offset == 1, "the last flush is not old"
    clock.advance(1)
    logs.flushing.aged()
    assert partition.flushed_offset == 2
    assert logs.flushing.aged in [job for _, job in logs.jobs]
    logs.close()


def test_producers_expire(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    logs = manager(tmp_path, clock=clock, producer_id_expiration_ms=1000)
    logs.open_all({}, lambda topic: CONFIG)
    (partition,) = create(logs, "orders")
    append_and_commit(logs, partition, idempotent(0, b"a"))
    clock.advance(999)
    logs.expire_producers()
    assert 7 in partition.producers.producers
    clock.advance(1)
    logs.expire_producers()
    assert 7 not in partition.producers.producers
    logs.close()


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_knows_what_was_readable_and_forgets_producers_that_expired(
    tmp_path: Path, clean: bool
) -> None:
    clock = ManualClock(NOW_MS)
    logs = manager(tmp_path, clock=clock, producer_id_expiration_ms=1000)
    logs.open_all({}, lambda topic: CONFIG)
    (partition,) = create(logs, "orders")
    append_and_commit(logs, partition, idempotent(0, b"a"), idempotent(0, b"b", producer_id=8))
    logs.checkpoint_high_watermarks()
    append_and_commit(logs, partition, idempotent(1, b"c"))
    logs.close(clean=clean)
    clock.advance(1_000)
    logs = manager(tmp_path, clock=clock, producer_id_expiration_ms=1001)
    assert logs.open_all(known_of("orders"), lambda topic: CONFIG) == []
    (loaded,) = logs
    assert (loaded.high_watermark, loaded.log_end_offset) == (3 if clean else 2, 3)
    assert set(loaded.producers.producers) == {7, 8}
    logs.close()
    logs = manager(tmp_path, clock=clock, producer_id_expiration_ms=1000)
    assert logs.open_all(known_of("orders"), lambda topic: CONFIG) == []
    (loaded,) = logs
    assert not loaded.producers.producers
    logs.close()


def test_many_partitions_cost_little(tmp_path: Path) -> None:
    """An idle one takes a few KB and no descriptor."""
    count = 1000
    logs = start(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    descriptors = len(os.listdir("/proc/self/fd"))
    for index in range(count):
        logs.create("many", index, TOPIC_ID, CONFIG, 0)
    grown_kib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / count
    assert grown_kib < 8, f"{grown_kib:.1f} KiB a partition"
    logs.close()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 10
    logs = start(tmp_path, known={("many", index): TOPIC_ID for index in range(count)})
    assert len(logs.partitions) == count
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 10
    logs.close()


def test_a_topics_partitions_follow_its_configuration(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open_all({}, lambda topic: CONFIG)
    partitions = [logs.create("orders", index, TOPIC_ID, CONFIG, 0) for index in range(2)]
    other = logs.create("bills", 0, bytes(16), CONFIG, 0)
    logs.configure("orders", 3, topic_config(segment_bytes=300, max_message_bytes=100))
    assert {partition.settings.segment_bytes for partition in partitions} == {300}
    assert partitions[0].settings is partitions[1].settings
    assert partitions[0].active.max_bytes == 300
    assert other.settings.segment_bytes != 300
    logs.close()


def test_verification_of_transactions_can_be_switched_while_it_runs(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open_all({}, lambda topic: CONFIG)
    early = logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
    before = early.context.verify_transactions
    logs.config["transaction.partition.verification.enable"] = not before
    logs.reconfigure()
    late = logs.create("orders", 1, TOPIC_ID, CONFIG, 0)
    assert early.context.verify_transactions is late.context.verify_transactions is (not before)
    logs.close()


def open_logs(path: Path) -> int:
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    opened = [os.readlink(link) for link in links if os.path.exists(link)]
    return sum(each.startswith(str(path)) and each.endswith(".log") for each in opened)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here: it needs Linux")
def test_many_segments_share_a_few_descriptors(tmp_path: Path) -> None:
    logs = start(tmp_path)
    partitions = create(logs, "a", "b", "c", "d", "e")
    limit_open_files(3, logs.release_files)
    try:
        for number in range(3):
            for partition in partitions:
                append_and_commit(logs, partition, batch(b"%d" % number))
                assert values(read_all(partition)) == [b"%d" % each for each in range(number + 1)]
                assert open_logs(tmp_path) <= 3
        partitions[0].append(batch(b"queued"), NOW_MS)
        for partition in partitions[1:]:
            read_all(partition)
        logs.commit()
        assert len(read_all(partitions[0])) == 4
    finally:
        limit_open_files(0, None)
        logs.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here: it needs Linux")
def test_letting_go_of_files_that_are_in_use_is_not_asked_for_each_time(tmp_path: Path) -> None:
    logs = start(tmp_path)
    partitions = create(logs, *(f"t{number}" for number in range(60)))
    for partition in partitions:
        append_and_commit(logs, partition, batch(b"0"))
    logs.release_files()
    asked = []

    def release() -> None:
        asked.append(1)
        logs.release_files()

    limit_open_files(8, release)
    try:
        held = [partition.read(0, 1000, limit_offset=1, at_least_one=True) for partition in partitions]
        assert len(held) == 60 and len(asked) <= 60 / 2
    finally:
        limit_open_files(0, None)
        logs.close()


@contextmanager
def descriptors(left: int) -> Iterator[None]:
    """Leave the process with this many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(left + 1)]
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (sorted(free)[left], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_descriptor_left_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (partition,) = create(logs, "a")
    append_and_commit(logs, partition, batch(b"0"))
    append_and_commit(logs, partition, batch(b"1"))
    logs.release_files()
    with descriptors(0):
        with pytest.raises(KafkaError) as refused:
            read_all(partition)
        assert refused.value.code == errors.KAFKA_STORAGE_ERROR
        partition.append(batch(b"2"), NOW_MS)
        assert [each for each, _ in logs.commit()] == [partition] and partition.high_watermark == 2
        logs.checkpoint_high_watermarks()
        assert partition._failed(OSError(errno.ENFILE, "the system has none")).code == refused.value.code
    assert partition.log_directory.is_online
    assert logs.commit() == [] and partition.high_watermark == 3, "what was refused is written when it can be"
    assert values(read_all(partition)) == [b"0", b"1", b"2"]
    logs.close()


def test_an_fsync_waits_for_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    shortages = [OSError(errno.EMFILE, "none"), OSError(errno.ENFILE, "none")]
    done = []

    def work() -> None:
        if shortages:
            raise shortages.pop()
        done.append(1)

    monkeypatch.setattr("pykafkad.storage.files.time.sleep", lambda seconds: None)
    files.patiently(work)
    assert done == [1]
    shortages += [OSError(errno.EMFILE, "none")] * 1000
    with pytest.raises(OSError, match="none"):
        files.patiently(work)
    shortages[:] = [OSError(errno.EIO, "the disk")]
    with pytest.raises(OSError, match="the disk"):
        files.patiently(work)


def test_a_roll_without_descriptors_is_tried_again(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (partition,) = create(logs, "a")
    append_and_commit(logs, partition, batch(b"0"))
    for left in range(5):
        with descriptors(left), suppress(OSError):
            partition.roll(NOW_MS)
    if len(partition.segments) == 1:
        partition.roll(NOW_MS)
    append_and_commit(logs, partition, batch(b"1"))
    assert values(read_all(partition)) == [b"0", b"1"] and partition.log_directory.is_online
    logs.close()


def test_an_index_that_cannot_be_opened_has_its_entry_later(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (partition,) = create(logs, "a")
    for _ in range(3):
        append_and_commit(logs, partition, batch(bytes(5000)))
    logs.release_files()
    with descriptors(1):  # for the log, which stays open
        partition.append(batch(bytes(5000)), NOW_MS)
        assert logs.commit() == []
    assert partition.high_watermark == 4 and partition.log_directory.is_online
    append_and_commit(logs, partition, batch(b"x"))
    assert partition.high_watermark == 5
    assert len(values(read_all(partition))) == 5
    logs.close()


def test_descriptors_that_are_kept_for_writing_are_not_for_reading(tmp_path: Path) -> None:
    logs = start(tmp_path)
    (partition,) = create(logs, "a")
    append_and_commit(logs, partition, batch(b"0"))
    logs.release_files()
    limit_open_files(1000, logs.release_files, 3)
    try:
        with pytest.raises(KafkaError):
            read_all(partition)
        append_and_commit(logs, partition, batch(b"1"))
    finally:
        limit_open_files(0, None)
    assert values(read_all(partition)) == [b"0", b"1"]
    logs.close()


def test_what_a_deletion_takes_does_not_depend_on_how_many_partitions_there_are(tmp_path: Path) -> None:
    logs = start(tmp_path / "a", tmp_path / "b")
    for topic in ("orders", "other"):
        for index in range(40):
            logs.create(topic, index, TOPIC_ID, CONFIG, 0)
    assert [each.partition_count for each in logs.directories] == [40, 40]
    logs.partitions = table = Counted(logs.partitions)
    for index in range(40):
        logs.delete("orders", index)
    assert logs.place(2) == [each.directory_id for each in logs.directories]
    assert table.walks == 0
    assert [each.partition_count for each in logs.directories] == [20, 20]
    assert "orders" not in logs._settings and "other" in logs._settings
    logs.close()


def test_what_a_deleted_partition_had_queued_is_not_written(tmp_path: Path) -> None:
    logs = start(tmp_path)
    for name in ("a", "b", "c"):
        logs.create(name, 0, TOPIC_ID, CONFIG, 0).append(batch(b"v"), NOW_MS)
    told: list[str] = []
    watch(logs, lambda replica: told.append(replica.topic))
    logs.delete("b", 0)
    assert logs.commit() == [] and told == ["b", "a", "c"]
    logs.close()


@pytest.mark.parametrize("released", [True, False], ids=["files closed", "files open"])
def test_a_deleted_partition_takes_nothing_more(tmp_path: Path, released: bool) -> None:
    """A coordinator may hold it for a moment. Its file cannot be opened any more, which is not the disk's fault."""
    logs = start(tmp_path)
    partition, other = create(logs, "gone", "other")
    logs.commit()
    logs.delete("gone", 0)
    if released:
        partition.active.release()
    for take in (partition.append, partition.append_built):
        with pytest.raises(KafkaError) as refused:
            take(batch(b"late"), NOW_MS)
        assert refused.value.code == errors.NOT_LEADER_OR_FOLLOWER
    assert logs.commit() == [] and all(directory.is_online for directory in logs.directories)
    other.append(batch(b"v"), NOW_MS)
    logs.commit()
    assert other.high_watermark == 1
    logs.close()


# -- the clean-shutdown marker is gone for good


@pytest.mark.parametrize("marked", [True, False], ids=["clean", "unclean"])
def test_a_marker_stays_away_before_anything_can_be_appended(
    marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync runs beside the start, and the first write waits for it. A start without a marker syncs as well, since
    the one before it, which removed the marker, may have been killed."""
    marker = tmp_path / ".kafka_cleanshutdown"
    start(tmp_path).close(clean=marked)
    assert marker.exists() == marked
    may_end, done = threading.Event(), []
    fsync = files.fsync_path

    def slow(path: str) -> None:
        if path == str(tmp_path):
            assert not marker.exists() and may_end.wait(timeout=30)
            done.append(path)
        fsync(path)

    def committing(partition: Log) -> None:
        assert done == [str(tmp_path)]

    logs = log_manager(broker_config(tmp_path), ManualClock(NOW_MS), Later().submit)
    monkeypatch.setattr(files, "fsync_path", slow)
    monkeypatch.setattr(Log, "commit", committing)
    logs.take_markers()
    logs.open_all({}, lambda topic: CONFIG)
    assert not done
    logs.create("orders", 0, TOPIC_ID, CONFIG, 0).append(batch(b"v"), NOW_MS)
    may_end.set()
    logs.commit()
    assert done == [str(tmp_path)]
    monkeypatch.undo()
    logs.close()


def test_a_marker_whose_removal_cannot_be_synced_takes_its_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> None:
        if path == str(tmp_path / "a"):
            raise OSError(errno.EIO, "Input/output error")

    start(tmp_path / "a", tmp_path / "b").close()
    monkeypatch.setattr(files, "fsync_path", broken)
    logs = manager(tmp_path / "a", tmp_path / "b")
    logs.open_all({}, lambda topic: CONFIG)
    partitions = [
        logs.create("orders", index, TOPIC_ID, CONFIG, 0, directory.directory_id)
        for index, directory in enumerate(logs.directories)
    ]
    for partition in partitions:
        partition.append(batch(b"v"), NOW_MS)
    assert [partition for partition, _ in logs.commit()] == partitions[:1]
    assert [each.is_online for each in logs.directories] == [False, True]
    logs.close()


@pytest.mark.parametrize("moved", [False, True], ids=["deleted", "moved and deleted"])
def test_a_new_topic_is_not_taken_for_the_one_before_it(moved: bool, tmp_path: Path) -> None:
    """After DeleteRecords, a deletion, a topic with the same name and a crash, the checkpoints must not have the old
    log start."""
    logs = start(tmp_path / "a", tmp_path / "b")
    first = logs.directories[0].directory_id
    partition = logs.create("orders", 0, TOPIC_ID, CONFIG, 0, first)
    append_and_commit(logs, partition, *(batch(b"old") for _ in range(10)))
    partition.delete_records(8)
    partition.flush()
    logs.checkpoint_log_starts()
    logs.checkpoint_recovery_points()
    if moved:
        logs.moves.ask("orders", 0, logs.directories[1].path)
        assert partition.log_directory is logs.directories[1]
    logs.delete("orders", 0)
    again = logs.create("orders", 0, TOPIC_ID, CONFIG, 0, first)
    append_and_commit(logs, again, batch(b"new"), batch(b"newer"))
    for directory in logs.directories:
        for name in (checkpoints.LOG_STARTS, checkpoints.RECOVERY_POINTS):
            assert max(checkpoints.read_offsets(f"{directory.path}/{name}").values(), default=0) == 0
    logs.close(clean=False)
    logs = start(tmp_path / "a", tmp_path / "b", known=known_of("orders"))
    assert values(read_all(logs.partitions["orders", 0])) == [b"new", b"newer"]
    logs.close()
