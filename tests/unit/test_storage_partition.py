"""A partition's log: appends, commits, reads, rolls, idempotence over restarts."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError
from pykafkad.slices import finish
from pykafkad.storage import files as storage_files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import OFFSET_MAX, StorageError
from pykafkad.storage.log import lookups
from pykafkad.storage.log.log import Log
from tests.storage_kit import (
    NOW_MS,
    append,
    batch,
    idempotent,
    lead,
    marker,
    new_partition,
    open_partition,
    read_all,
    values,
)


def refusal(code: int) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code == code)


def files(partition: Log, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(partition.directory) if name.endswith(suffix))


def test_nothing_is_readable_before_commit(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    first = partition.append(batch(b"a", b"b"), NOW_MS)
    second = partition.append(batch(b"c"), NOW_MS)
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 1, 2)
    assert (partition.log_end_offset, partition.high_watermark) == (3, 0)
    assert partition.read(0, 1000, limit_offset=partition.high_watermark, at_least_one=True) is None
    assert os.stat(partition.active.path).st_size == 0
    partition.commit()
    assert (partition.high_watermark, partition.last_stable_offset) == (3, 3)
    assert values(read_all(partition)) == [b"a", b"b", b"c"]


def test_stored_batches_carry_offset_and_leader_epoch(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, leader_epoch=5)
    append(partition, batch(b"a"), batch(b"b"))
    stored = records.scan(Path(partition.active.path).read_bytes())
    assert [(each.base_offset, each.leader_epoch) for each in stored] == [(0, 5), (1, 5)]
    assert Path(partition.directory, "leader-epoch-checkpoint").read_text() == "0\n1\n5 0\n"


def test_a_batch_in_the_middle_of_a_request_is_written_in_place(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"first"))
    frame = bytearray(b"before") + batch(b"x") + bytearray(b"after")
    partition.append(memoryview(frame)[6:-5], NOW_MS)
    partition.commit()
    assert values(read_all(partition)) == [b"first", b"x"]
    assert frame[6:14] == (1).to_bytes(8, "big")


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_offsets_outside_are_out_of_range(tmp_path: Path, offset: int) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"a", b"b", b"c"))
    with refusal(errors.OFFSET_OUT_OF_RANGE):
        partition.read(offset, 1000, limit_offset=3, at_least_one=True)
    assert partition.read(3, 1000, limit_offset=3, at_least_one=True) is None


def test_a_refused_batch_leaves_no_trace(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, max_message_bytes=200)
    with pytest.raises(RecordsError):
        partition.append(batch(b"x" * 300), NOW_MS)
    broken = batch(b"x")
    broken[-1] ^= 1
    with pytest.raises(RecordsError):
        partition.append(broken, NOW_MS)
    assert (partition.log_end_offset, partition.context.dirty) == (0, [])


def test_a_batch_that_fits_no_segment_is_refused(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=200)
    with refusal(errors.RECORD_LIST_TOO_LARGE):
        partition.append(batch(b"x" * 300), NOW_MS)
    assert append(partition, batch(b"x")) == [0]


def test_segments_roll_by_size_within_one_pass(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(batch(b"v%d" % each) for each in range(20)))
    assert partition.bases == list(range(0, 20, 4))
    assert values(read_all(partition)) == [b"v%d" % each for each in range(20)]
    assert files(partition, ".snapshot") == [f"{base:020d}.snapshot" for base in range(4, 20, 4)]


def test_indexes_are_preallocated_while_they_grow_and_cut_afterwards(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=1000, index_interval_bytes=100)

    def sizes(kind: str) -> list[int]:
        return [os.stat(f"{partition.directory}/{base:020d}.{kind}").st_size for base in partition.bases]

    append(partition, *(batch(b"v%02d" % each, timestamp=NOW_MS + each) for each in range(20)))
    assert partition.bases == [0, 13]
    assert sizes("index") == [6 * 8, 10 << 20]
    assert sizes("timeindex") == [6 * 12, (10 << 20) // 12 * 12]
    partition.close()
    assert sizes("index") == [6 * 8, 3 * 8]


def test_segments_roll_by_time(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_ms=1000)
    append(partition, *(batch(b"x", timestamp=NOW_MS + each * 400) for each in range(6)))
    assert partition.bases == [0, 3]


def test_jitter_makes_segments_younger_and_never_older(tmp_path: Path) -> None:
    limits = set()
    for each in range(30):
        partition = new_partition(tmp_path / str(each), segment_ms=1000, segment_jitter_ms=500)
        limits.add(partition.active.roll_ms)
    assert len(limits) > 5
    assert min(limits) > 500 and max(limits) <= 1000


def test_a_range_never_crosses_a_segment(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(batch(b"v%d" % each) for each in range(12)))
    part = partition.read(1, 1 << 20, limit_offset=12, at_least_one=True)
    assert part is not None and [each.offset for each in records.read(part.read())] == [1, 2, 3]


def test_the_epoch_history_answers_as_the_log_grows(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, leader_epoch=0)
    append(partition, batch(b"a", b"b"))
    lead(partition, 3)
    append(partition, batch(b"c"))
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.end_offset_for_epoch(3) == (3, 3)
    assert [partition.epoch_at(offset) for offset in range(3)] == [0, 0, 3]


def test_log_append_time_is_answered_and_stored(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, message_timestamp_type="LogAppendTime")
    appended = partition.append(batch(b"a", timestamp=1), NOW_MS + 5)
    partition.commit()
    assert appended.log_append_time_ms == NOW_MS + 5
    assert [record.timestamp for record in read_all(partition)] == [NOW_MS + 5]
    assert finish(partition.max_timestamp_offset()) == (0, NOW_MS + 5, 0)


def test_timestamps_across_segments(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(batch(b"v%d" % each, timestamp=NOW_MS + each * 10) for each in range(20)))
    for timestamp in range(0, 200, 5):
        expected = -(-timestamp // 10)
        found = finish(partition.offset_for_timestamp(NOW_MS + timestamp))
        assert found == ((expected, NOW_MS + expected * 10, 0) if expected < 20 else None)
    assert finish(partition.max_timestamp_offset()) == (19, NOW_MS + 190, 0)


def test_no_timestamps_no_answer(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    assert finish(partition.max_timestamp_offset()) is None
    assert finish(partition.offset_for_timestamp(0)) is None
    append(partition, batch(b"a", timestamp=-1))
    assert finish(partition.max_timestamp_offset()) is None
    assert finish(partition.offset_for_timestamp(0)) is None


# -- producers


def test_a_duplicate_answers_the_original_and_is_not_stored(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"other"), idempotent(0, b"a", b"b", timestamp=NOW_MS - 5))
    again = partition.append(idempotent(0, b"a", b"b", timestamp=NOW_MS - 5), NOW_MS)
    assert (again.base_offset, again.last_offset, again.duplicate) == (1, 2, True)
    assert again.log_append_time_ms == NOW_MS - 5  # Kafka answers the original's timestamp here
    assert partition.context.dirty == [partition]  # of the first append only
    partition.commit()
    assert values(read_all(partition)) == [b"other", b"a", b"b"]


def test_a_duplicate_within_one_pass_is_found(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    assert append(partition, idempotent(0, b"a"), idempotent(0, b"a"), idempotent(1, b"b")) == [0, 0, 1]
    assert values(read_all(partition)) == [b"a", b"b"]


def test_out_of_order_and_fenced_batches_are_refused(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, idempotent(0, b"a", epoch=1))
    with refusal(errors.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.append(idempotent(2, b"c", epoch=1), NOW_MS)
    with refusal(errors.INVALID_PRODUCER_EPOCH):
        partition.append(idempotent(1, b"c", epoch=0), NOW_MS)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_producers_survive_a_restart(tmp_path: Path, clean: bool, segment_bytes: int) -> None:
    partition = new_partition(tmp_path, segment_bytes=segment_bytes)
    append(partition, *(idempotent(sequence, b"v%d" % sequence) for sequence in range(10)))
    partition.close(clean=clean)
    partition = open_partition(tmp_path, clean=clean, segment_bytes=segment_bytes)
    lead(partition, 1)
    again = partition.append(idempotent(9, b"v9"), NOW_MS)
    assert (again.base_offset, again.duplicate) == (9, True)
    with refusal(errors.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.append(idempotent(11, b"v11"), NOW_MS)
    assert append(partition, idempotent(10, b"v10")) == [10]
    assert len(read_all(partition)) == 11


def test_after_a_clean_restart_only_the_last_batch_is_remembered(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, *(idempotent(sequence, b"x") for sequence in range(5)))
    partition.close()
    partition = open_partition(tmp_path)
    with refusal(errors.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.append(idempotent(3, b"x"), NOW_MS)


def test_a_client_may_not_begin_a_transaction_that_nobody_verified(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    with refusal(errors.INVALID_TXN_STATE):
        partition.append(idempotent(0, b"a", transactional=True), NOW_MS)
    assert partition.append(idempotent(0, b"a", transactional=True), NOW_MS, verified=True).base_offset == 0
    assert partition.append(idempotent(1, b"b", transactional=True), NOW_MS).base_offset == 1


def test_a_transaction_holds_the_last_stable_offset_until_its_marker(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"before"))
    partition.append(idempotent(0, b"a", transactional=True), NOW_MS, verified=True)
    append(partition, batch(b"after"))
    assert (partition.high_watermark, partition.last_stable_offset) == (3, 1)
    partition.append_built(marker(7, 0, commit=False), NOW_MS)
    assert partition.last_stable_offset == 1
    partition.commit()
    assert (partition.high_watermark, partition.last_stable_offset) == (4, 4)
    part = partition.read(0, 1 << 20, limit_offset=4, at_least_one=True)
    assert part is not None
    assert partition.aborted_transactions(0, part) == [(7, 1)]


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    partition = new_partition(tmp_path)
    for producer_id, commit in ((1, True), (2, False), (3, None)):
        sent = idempotent(0, b"%d" % producer_id, producer_id=producer_id, transactional=True)
        partition.append(sent, NOW_MS, verified=True)
        if commit is not None:
            partition.append_built(marker(producer_id, 0, commit), NOW_MS)
        partition.commit()
    partition.close(clean=clean)
    partition = open_partition(tmp_path, clean=clean)
    lead(partition, 1)
    assert (partition.high_watermark, partition.last_stable_offset) == (5, 4)
    part = partition.read(0, 1 << 20, limit_offset=4, at_least_one=True)
    assert part is not None and partition.aborted_transactions(0, part) == [(2, 2)]
    append(partition, idempotent(1, b"more", producer_id=3, transactional=True))
    partition.append_built(marker(3, 0, commit=True), NOW_MS)
    partition.commit()
    assert partition.last_stable_offset == 7


# -- when the disk fails


def test_a_failed_write_takes_the_directory_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"a"))
    partition.append(batch(b"b"), NOW_MS)
    partition.active.release()
    os.rename(partition.directory, f"{tmp_path}/elsewhere")  # the file cannot be opened any more
    with pytest.raises(StorageError):
        partition.commit()
    assert not partition.log_directory.is_online
    assert partition.high_watermark == 1


def test_a_failed_roll_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(partition: Log, base_offset: int, now_ms: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, batch(b"a"), batch(b"b"), batch(b"c"))
    append(partition, batch(b"d"))
    monkeypatch.setattr(Log, "add_segment", broken)
    with refusal(errors.KAFKA_STORAGE_ERROR) as caught:
        partition.append(batch(b"e"), NOW_MS)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EIO
    assert not partition.log_directory.is_online


@pytest.mark.parametrize("size", [-1, 5, 1 << 20], ids=["negative", "too small", "beyond the end"])
def test_what_has_changed_under_the_broker_is_said_to_be_damaged(
    tmp_path: Path, said: io.StringIO, size: int
) -> None:
    partition = new_partition(tmp_path, index_interval_bytes=1)  # a start believes what is indexed
    append(partition, batch(b"a"), batch(b"b"), batch(b"c"))
    partition.close()
    with open(f"{partition.directory}/{0:020d}.log", "r+b") as file:
        file.seek(8)
        file.write(size.to_bytes(4, signed=True))
    partition = open_partition(tmp_path, recovery_point=3, index_interval_bytes=1)
    for look in (
        lambda: partition.read(0, 1000, limit_offset=3, at_least_one=True),
        lambda: finish(partition.offset_for_timestamp(0)),
    ):
        with refusal(errors.CORRUPT_MESSAGE):
            look()
    assert said.getvalue().count("no whole batch where offset") == 1
    append(partition, batch(b"d"))
    found = partition.read(3, 1000, limit_offset=4, at_least_one=True)
    assert found is not None and values(records.read(found.read())) == [b"d"]
    assert partition.log_directory.is_online


def test_the_next_segment_has_what_a_compacted_one_has_not(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    first = batch(b"a") + batch(b"b", base_offset=1)
    (Path(partition.directory) / f"{0:020d}.log").write_bytes(first)
    (Path(partition.directory) / f"{5:020d}.log").write_bytes(batch(b"f", base_offset=5))
    partition = open_partition(tmp_path, recovery_point=6, high_watermark=6)
    for offset, limit, there in (
        (1, 6, b"b"),
        (2, 6, b"f"),
        (4, 6, b"f"),
        (2, 5, None),
        (4, 5, None),
        (5, 6, b"f"),
    ):
        part = partition.read(offset, 1000, limit_offset=limit, at_least_one=True)
        assert (None if part is None else values(records.read(part.read()))[0]) == there


def test_questions_of_many_segments_are_answered_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "SEGMENTS_AT_ONCE", 2)
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(batch(b"v", timestamp=NOW_MS + number) for number in range(20)))
    assert partition.bases == [0, 4, 8, 12, 16]
    for work, turns in (
        (partition.offset_for_timestamp(NOW_MS + 20), 2),
        (partition.max_timestamp_offset(), 3),  # the search in the batch is one
        (partition.times_of_segments(), 2),
    ):
        assert sum(1 for _ in work) == turns
    work = partition.offset_for_timestamp(NOW_MS + 1)
    assert finish(work) == (1, NOW_MS + 1, 0)
    work = partition.offset_for_timestamp(NOW_MS + 10)
    next(work)
    partition.retire(3, NOW_MS)
    assert finish(work) == (12, NOW_MS + 12, 0), "what it was about to look at is gone, so it begins again"


def is_link(fd: str) -> bool:
    """The descriptor that lists them is closed by now."""
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_a_log_without_a_manager_keeps_no_deleted_files(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(batch(b"v") for _ in range(9)))
    assert len(read_all(partition)) == 9
    partition.retire(1, NOW_MS)
    assert partition.bases == [4, 8] and files(partition, ".deleted") == []
    opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if is_link(fd)]
    assert not [path for path in opened if partition.directory in path and "deleted" in path]
    assert files(partition, ".log") == [f"{base:020d}.log" for base in (4, 8)]


def test_a_preallocated_segment_takes_its_room_until_it_is_closed(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, segment_bytes=100_000, preallocate=True)

    def rooms() -> list[int]:
        """As the file system counts them, which gives whole pages."""
        return [os.stat(segment.path).st_blocks * 512 for segment in partition.segments]

    assert rooms()[0] >= 100_000
    append(partition, *(batch(b"v" * 20_000) for _ in range(9)))
    sizes = [segment.size for segment in partition.segments]
    closed = [size + -size % 4096 for size in sizes]
    assert len(sizes) > 1 and rooms()[:-1] == closed[:-1] and rooms()[-1] >= 100_000 > closed[-1]
    partition.close()
    assert rooms() == closed


def test_a_control_batch_that_is_no_marker_ends_no_transaction(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    partition.append(idempotent(0, b"open", transactional=True), NOW_MS, verified=True)
    other: list[tuple[bytes, bytes | None]] = [
        (b"\0\0\0\2", bytes(6)),  # of a quorum's leader
        (b"\0\0\0\1", bytes(5)),
        (b"\0\0\0\1", None),
    ]
    for key, value in other:
        data = records.build(
            [(key, value, [], NOW_MS)], producer_id=7, producer_epoch=0, transactional=True, control=True
        )
        partition.append_built(data, NOW_MS)
    partition.commit()
    assert (partition.log_end_offset, partition.last_stable_offset) == (4, 0)
    later: list[Any] = [(b"\0\0\0\1", b"\0\1" + (9).to_bytes(4) + b"more", [], NOW_MS)]
    partition.append_built(
        records.build(later, producer_id=7, producer_epoch=0, transactional=True, control=True), NOW_MS
    )
    partition.commit()
    assert partition.last_stable_offset == 5, "a marker of a later version is one"
    assert partition.producers.producers[7].coordinator_epoch == 9


# -- flushing


def test_a_clean_stop_syncs_what_was_not_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = storage_files.fsync_path
    monkeypatch.setattr(
        storage_files, "fsync_path", lambda path: (synced.append(os.path.basename(path)), sync(path))[1]
    )
    partition = new_partition(tmp_path, segment_bytes=300)
    append(partition, *(idempotent(sequence, b"v") for sequence in range(9)))
    assert len(partition.bases) > 2
    partition.close()
    there = {path.name for path in Path(partition.directory).iterdir()}
    assert there <= set(synced) and synced[-1] == "orders-0"
    partition = open_partition(tmp_path, recovery_point=9, high_watermark=9, segment_bytes=300)
    synced.clear()
    partition.close()
    assert synced == []
    partition = open_partition(tmp_path, recovery_point=9, high_watermark=9, segment_bytes=300)
    lead(partition, 0)
    last = partition.active.base_offset
    append(partition, idempotent(9, b"v"))
    partition.close()
    logs = {name for name in synced if name.endswith(".log")}
    kept = files(partition, ".log")
    assert logs.intersection(kept) == {name for name in kept if int(name[:20]) >= last}


def test_a_clean_stop_writes_what_is_queued(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    partition.append(batch(b"a"), NOW_MS)
    partition.close()
    assert open_partition(tmp_path, recovery_point=1, high_watermark=1).log_end_offset == 1


def test_flush_messages_flushes_when_so_many_are_not_on_the_disk(tmp_path: Path) -> None:
    partition = new_partition(tmp_path, flush_messages=3)
    append(partition, batch(b"a", b"b"))
    assert partition.flushed_offset == 0
    append(partition, batch(b"c"))
    assert (partition.flushed_offset, partition.high_watermark) == (3, 3)
    assert partition.recovery_point == 0, (
        "a start after a crash walks the active segment whatever was synced of it"
    )


def test_a_changed_configuration_counts_from_the_next_append(tmp_path: Path) -> None:
    from pykafkad.storage.log.settings import LogSettings
    from tests.storage_kit import topic_config

    partition = new_partition(tmp_path)
    append(partition, batch(b"a"), batch(b"b"))
    partition.update_settings(LogSettings(topic_config(segment_bytes=150, max_message_bytes=100)))
    append(partition, batch(b"c"))
    assert partition.bases == [0, 2]
    with pytest.raises(RecordsError):
        partition.append(batch(b"x" * 100), NOW_MS)


@pytest.mark.parametrize("policy", [["compact"], ["compact", "delete"], ["delete"], []])
def test_records_are_not_deleted_from_a_log_that_is_only_compacted(tmp_path: Path, policy: list[str]) -> None:
    partition = new_partition(tmp_path, cleanup_policy=policy)
    append(partition, batch(b"a"), batch(b"b"))
    if policy == ["compact"]:
        with refusal(errors.POLICY_VIOLATION):
            partition.delete_records(1)
    else:
        assert partition.delete_records(1) == 1
        assert partition.delete_records(-1) == partition.high_watermark == 2


def test_offsets_of_checkpoints_have_bounds() -> None:
    for offset in (-(1 << 63), -1, OFFSET_MAX):
        assert checkpoints.offset_of(str(offset)) == offset
    for offset in (-(1 << 63) - 1, OFFSET_MAX + 1):
        with pytest.raises(ValueError, match="is no offset"):
            checkpoints.offset_of(str(offset))
