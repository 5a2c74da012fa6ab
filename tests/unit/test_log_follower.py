"""A follower's log: what it takes from its leader's, and how it is cut."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad.clock import ManualClock
from pykafkad.errors import (
    CORRUPT_MESSAGE,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    KafkaError,
)
from pykafkad.hot import records
from pykafkad.pure.producer_state import ProducerState
from pykafkad.slices import finish
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    Threads,
    append,
    batch,
    broker_config,
    idempotent,
    log_manager,
    manager,
    marker,
    new_partition,
    open_partition,
    read_all,
    topic_config,
    values,
)

SMALL: dict[str, Any] = {"segment_bytes": 400, "index_interval_bytes": 100, "segment_index_bytes": 240}


def follower(path: Path, **overrides: Any) -> Log:
    """A log that nobody leads here: the kit's listener is told what its leader says."""
    log = new_partition(path, **overrides)
    log.epochs.truncate_from_end(0)
    return log


def take(log: Log, data: bytes, leader_epoch: int = 9) -> int:
    taken = log.append_as_follower(data, leader_epoch, NOW_MS)
    log.commit()
    return taken


def fetched(base_offset: int, *texts: bytes, epoch: int = 0, **options: Any) -> bytes:
    return bytes(batch(*texts, base_offset=base_offset, leader_epoch=epoch, **options))


def bytes_of(log: Log) -> bytes:
    return b"".join(Path(segment.path).read_bytes() for segment in log.segments)


def cut(log: Log, offset: int) -> None:
    told: list[KafkaError | None] = []
    log.truncate(offset, lambda: True, told.append)
    assert told == [None]


def filled(path: Path, count: int = 12, **overrides: Any) -> Log:
    """Each batch has one record, and two of them an epoch."""
    log = follower(path, **{**SMALL, **overrides})
    for offset in range(count):
        take(log, fetched(offset, b"%d" % offset, epoch=offset // 2))
    assert len(log.segments) > 2
    return log


def producers_of(producers: ProducerState) -> list[tuple[int, ...]]:
    return [(each.producer_id, each.last_sequence, each.transaction_start) for each in producers]


# -- appending


def test_every_byte_is_the_leaders(tmp_path: Path) -> None:
    log = follower(tmp_path)
    data = fetched(0, b"a", b"b", epoch=2) + fetched(2, b"c", epoch=4, codec="gzip")
    assert take(log, data) == 2
    assert (log.log_end_offset, bytes_of(log)) == (3, data)
    assert list(log.epochs.entries) == [(2, 0), (4, 2)] == checkpoints.read_epochs(log.directory)
    take(log, fetched(3, b"d", epoch=5))
    assert checkpoints.read_epochs(log.directory) == [(2, 0), (4, 2), (5, 3)]


def test_a_batch_that_is_cut_off_waits_for_the_next_answer(tmp_path: Path) -> None:
    log = follower(tmp_path)
    first, second = fetched(0, b"a"), fetched(1, b"b")
    assert take(log, first + second[:-1]) == 1
    assert take(log, second) == 1 and bytes_of(log) == first + second


def test_what_a_compaction_left_out_is_left_out_here(tmp_path: Path) -> None:
    log = follower(tmp_path, **SMALL)
    for offset in (0, 7, 1 << 33, (1 << 33) + 5):
        take(log, fetched(offset, b"v" * 100))
    assert [record.offset for record in read_all(log)] == [0, 7, 1 << 33, (1 << 33) + 5]
    assert log.bases == [0, 1 << 33], "a segment holds no offset that is too far from its name"


def test_segments_roll_where_the_followers_own_configs_say(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert values(read_all(log)) == [b"%d" % each for each in range(12)]


def test_what_begins_below_the_end_is_refused(tmp_path: Path) -> None:
    log = follower(tmp_path)
    take(log, fetched(0, b"a", b"b"))
    with pytest.raises(KafkaError) as refused:
        take(log, fetched(1, b"b"))
    assert refused.value.code == OFFSET_OUT_OF_RANGE and log.log_end_offset == 2
    with pytest.raises(KafkaError):
        take(log, fetched(1, b"b", b"c"))
    empty = follower(tmp_path / "empty")
    empty.start_anew(5, lambda: True, lambda error: None)
    with pytest.raises(KafkaError):
        take(empty, fetched(3, b"3", b"4"))
    assert (log.log_end_offset, empty.log_end_offset) == (2, 5)


def test_an_empty_log_takes_a_batch_that_reaches_over_its_start(tmp_path: Path) -> None:
    """The leader's start may be in the middle of a batch."""
    log = follower(tmp_path)
    log.start_anew(5, lambda: True, lambda error: None)
    take(log, fetched(3, b"3", b"4", b"5", b"6"))
    assert (log.log_start_offset, log.log_end_offset, log.bases) == (5, 7, [3])
    assert values(read_all(log, 5)) == [b"5", b"6"]


def reaching(data: bytes, *, base_offset: int | None = None, delta: int | None = None) -> bytes:
    """The batch with another base offset or last offset delta, and a right checksum."""
    made = bytearray(data)
    if base_offset is not None:
        made[:8] = base_offset.to_bytes(8, signed=True)
    if delta is not None:
        made[23:27] = delta.to_bytes(4, signed=True)
    made[17:21] = records.crc32c(memoryview(made)[21:]).to_bytes(4)
    return bytes(made)


@pytest.mark.parametrize(
    "bad",
    [
        reaching(fetched(3, b"b"), delta=-2),
        reaching(fetched(3, b"b"), delta=-(2**31)),
        reaching(fetched(0, b"b", b"c"), base_offset=2**63 - 1, delta=1),
        reaching(fetched(0, b"b"), base_offset=2**63 - 1),
    ],
    ids=["delta", "least delta", "beyond all offsets", "the last offset of all"],
)
def test_a_batch_that_goes_backwards_is_refused_and_what_follows_is_taken(tmp_path: Path, bad: bytes) -> None:
    """The log's end would go backwards with it, and no index takes what comes then."""
    log = follower(tmp_path, **SMALL)
    take(log, fetched(0, b"a" * 200, b"a", b"a"))
    with pytest.raises(KafkaError) as refused:
        take(log, bad)
    assert refused.value.code == CORRUPT_MESSAGE and log.log_end_offset == 3
    for offset in range(3, 9):
        take(log, fetched(offset, b"v" * 100))
    assert log.log_end_offset == 9 and len(read_all(log)) == 9


def test_no_log_begins_below_0(tmp_path: Path) -> None:
    log = follower(tmp_path)
    with pytest.raises(KafkaError) as refused:
        take(log, fetched(-5, *[b"v"] * 9))
    assert refused.value.code == CORRUPT_MESSAGE and log.bases == [0]


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    log = follower(tmp_path)
    data = bytearray(fetched(0, b"a"))
    data[-1] ^= 1
    with pytest.raises(records.RecordsError):
        take(log, bytes(data))
    assert log.log_end_offset == 0


def test_an_epoch_that_falls_is_damage(tmp_path: Path) -> None:
    log = follower(tmp_path)
    take(log, fetched(0, b"a", epoch=3))
    with pytest.raises(KafkaError) as refused:
        take(log, fetched(1, b"b", epoch=2))
    assert refused.value.code == CORRUPT_MESSAGE


def test_what_is_of_a_later_epoch_than_the_leader_asked_is_left_out(tmp_path: Path) -> None:
    log = follower(tmp_path)
    assert take(log, fetched(0, b"a", epoch=3) + fetched(1, b"b", epoch=4), leader_epoch=3) == 1
    assert list(log.epochs.entries) == [(3, 0)]


def test_producers_and_transactions_follow(tmp_path: Path) -> None:
    leader = new_partition(tmp_path / "leader")
    for data in (
        idempotent(0, b"a", b"b"),
        idempotent(0, b"c", producer_id=8, transactional=True),
        idempotent(0, b"d", producer_id=9, transactional=True),
    ):
        leader.append(data, NOW_MS, verified=True)
    leader.append_built(marker(8, 0, False), NOW_MS)
    leader.commit()
    log = follower(tmp_path / "follower")
    take(log, bytes_of(leader))
    assert (
        producers_of(log.producers) == producers_of(leader.producers) == [(7, 1, -1), (8, 0, -1), (9, 0, 3)]
    )
    for each in (leader, log):
        found = each.read(0, 1 << 20, limit_offset=5, at_least_one=True)
        assert found is not None and each.aborted_transactions(0, found) == [(8, 2)]


# -- cutting


@pytest.mark.parametrize("offset", range(13))
def test_a_cut_leaves_what_lies_below(offset: int, tmp_path: Path) -> None:
    log = filled(tmp_path)
    cut(log, offset)
    assert log.log_end_offset == offset and len(log.bases) == len(log.segments)
    assert values(read_all(log)) == [b"%d" % each for each in range(offset)]
    assert list(log.epochs.entries) == [(each // 2, each) for each in range(0, offset, 2)]
    assert checkpoints.read_epochs(log.directory) == list(log.epochs.entries)
    for again in range(offset, 12):
        take(log, fetched(again, b"again %d" % again, epoch=20), leader_epoch=20)
    assert values(read_all(log))[offset:] == [b"again %d" % each for each in range(offset, 12)]
    for each in range(12):
        part = log.read(each, 1, limit_offset=12, at_least_one=True)
        assert part is not None and [record.offset for record in records.read(part.read())] == [each]
    newest = finish(log.max_timestamp_offset())
    assert newest is not None and newest[1] == NOW_MS
    log.close()
    loaded = open_partition(tmp_path, recovery_point=12, high_watermark=12, **SMALL)
    assert values(read_all(loaded)) == values(read_all(log))


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_finds_what_a_cut_left(clean: bool, tmp_path: Path) -> None:
    log = filled(tmp_path)
    cut(log, 5)
    log.close(clean=clean)
    loaded = open_partition(tmp_path, clean=clean, high_watermark=5, **SMALL)
    assert (loaded.log_end_offset, loaded.epochs.entries) == (5, ((0, 0), (1, 2), (2, 4)))
    assert values(read_all(loaded)) == [b"%d" % each for each in range(5)]
    assert not [name for name in os.listdir(loaded.directory) if name.endswith(".corrupt")]


def test_a_batch_that_reaches_over_the_cut_goes_as_a_whole(tmp_path: Path) -> None:
    log = follower(tmp_path)
    take(log, fetched(0, b"0", b"1") + fetched(2, b"2", b"3", b"4"))
    cut(log, 3)
    assert log.log_end_offset == 2, "what comes next is asked for from there"


def test_a_cut_between_what_a_compaction_left_keeps_the_offset(tmp_path: Path) -> None:
    log = follower(tmp_path)
    take(log, fetched(0, b"0") + fetched(10, b"10"))
    cut(log, 7)
    assert log.log_end_offset == 7 and values(read_all(log)) == [b"0"]


def test_a_cut_behind_the_end_takes_nothing_but_an_epoch_that_has_no_record(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.begin_epoch(30)
    cut(log, 15)
    assert (log.log_end_offset, log.epochs.latest) == (12, 5)


def test_what_is_queued_is_cut_as_well(tmp_path: Path) -> None:
    log = follower(tmp_path)
    log.append_as_follower(fetched(0, b"0") + fetched(1, b"1"), 0, NOW_MS)
    cut(log, 1)
    log.commit()
    assert (log.log_end_offset, bytes_of(log)) == (1, fetched(0, b"0"))


def test_producers_and_transactions_are_as_they_were_below_the_cut(tmp_path: Path) -> None:
    leader = new_partition(tmp_path / "leader")
    log = follower(tmp_path / "follower", **SMALL)
    states: list[Any] = []
    sequences = {7: 0, 8: 0}
    for step in range(24):
        producer = 7 + step % 2
        states.append((producers_of(log.producers), log.producers.first_unstable_offset))
        if step % 5 == 4:
            leader.append_built(marker(producer, 0, step % 3 == 0), NOW_MS)
        else:
            data = idempotent(sequences[producer], b"%d" % step, producer_id=producer, transactional=True)
            leader.append(data, NOW_MS, verified=True)
            sequences[producer] += 1
        leader.commit()
        part = leader.read(step, 1, limit_offset=step + 1, at_least_one=True)
        assert part is not None
        take(log, part.read())
    for offset in range(23, -1, -1):
        cut(log, offset)
        assert (producers_of(log.producers), log.producers.first_unstable_offset) == states[offset]
        aborted = set()
        for base in log.bases:
            part = log.read(base, 1 << 20, limit_offset=offset, at_least_one=True)
            aborted |= set(log.aborted_transactions(base, part)) if part is not None else set()
        expected = leader.read(0, 1 << 20, limit_offset=offset, at_least_one=True)
        if expected is not None and offset:
            told = leader.aborted_transactions(0, expected)
            assert aborted == {each for each in told if marker_of(leader, *each) < offset}
        assert not [name for name in os.listdir(log.directory) if above(name, offset)]


def marker_of(log: Log, producer_id: int, first: int) -> int:
    """The offset of the marker that ended the transaction."""
    ends = [
        each.base_offset
        for each in records.scan(bytes_of(log))
        if each.is_control and each.producer_id == producer_id and each.base_offset > first
    ]
    return min(ends)


def above(name: str, offset: int) -> bool:
    """A snapshot of producers that another history would be taken for."""
    return name.endswith(".snapshot") and int(name.removesuffix(".snapshot")) > offset


def test_below_the_high_watermark_the_high_watermark_goes_with_it(tmp_path: Path, capfd: Any) -> None:
    log = filled(tmp_path)
    assert log.high_watermark == 12
    cut(log, 4)
    assert (log.high_watermark, log.last_stable_offset) == (4, 4)
    assert "below its high watermark 12" in capfd.readouterr().err


def test_a_log_begins_anew(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.start_anew(50, lambda: True, lambda error: None)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.bases) == (50, 50, 50, [50])
    assert list(log.epochs.entries) == [] and bytes_of(log) == b""
    take(log, fetched(50, b"50", epoch=7))
    log.close()
    loaded = open_partition(tmp_path, log_start_offset=50, recovery_point=51, high_watermark=51, **SMALL)
    assert values(read_all(loaded)) == [b"50"] and list(loaded.epochs.entries) == [(7, 50)]


def test_nobody_produced_what_a_log_that_begins_anew_does_not_have(tmp_path: Path) -> None:
    leader = new_partition(tmp_path / "leader")
    append(leader, *(idempotent(sequence, b"%d" % sequence) for sequence in range(9)))
    take(follower(tmp_path / "follower", **SMALL), bytes_of(leader))
    log = open_partition(tmp_path / "follower", clean=False, **SMALL)
    snapshot = Path(log.directory) / f"{9:020d}.snapshot"
    assert snapshot.exists() and producers_of(log.producers) == [(7, 8, -1)]
    log.start_anew(4, lambda: True, lambda error: None)
    assert not list(Path(log.directory).glob("*.snapshot"))
    for offset in range(4, 12):
        take(log, fetched(offset, b"of nobody"))
    log.close()
    loaded = open_partition(tmp_path / "follower", log_start_offset=4, high_watermark=12, **SMALL)
    assert loaded.log_end_offset == 12 and producers_of(loaded.producers) == []


def test_a_log_that_was_started_is_cut_like_one_that_was_filled(tmp_path: Path) -> None:
    leader = new_partition(tmp_path / "leader")
    append(leader, *(idempotent(sequence, b"%d" % sequence) for sequence in range(12)))
    log = follower(tmp_path / "follower", **SMALL)
    take(log, bytes_of(leader))
    assert len(log.bases) > 2
    for offset in range(11, 0, -1):
        log.close()
        log = open_partition(tmp_path / "follower", high_watermark=offset + 1, **SMALL)
        cut(log, offset)
        assert producers_of(log.producers) == [(7, offset - 1, -1)]
        assert not [name for name in os.listdir(log.directory) if above(name, offset)]


def test_producers_are_found_without_the_snapshot_of_the_segment_that_is_cut(tmp_path: Path) -> None:
    leader = new_partition(tmp_path / "leader")
    for sequence in range(6):
        leader.append(idempotent(sequence, b"%d" % sequence, transactional=True), NOW_MS, verified=True)
        append(leader, idempotent(sequence, b"%d" % sequence, producer_id=8))
    leader.append_built(marker(7, 0, False), NOW_MS)
    leader.commit()
    log = follower(tmp_path / "follower", **SMALL)
    take(log, bytes_of(leader))
    assert log.bases == [0, 5, 10]
    for snapshot in sorted(Path(log.directory).glob("*.snapshot"))[1:]:
        snapshot.unlink()
    cut(log, 11)
    assert producers_of(log.producers) == [(7, 5, 0), (8, 4, -1)]
    sequences = {each.producer_id: [known[0] for known in each.batches] for each in log.producers}
    assert sequences == {7: [2, 3, 4, 5], 8: [1, 2, 3, 4]}, "those since the first snapshot, once each"


def test_a_cut_below_the_logs_start_lowers_it(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.delete_records(10)
    first = log.bases[0]
    cut(log, 5)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5, 5, 5)
    cut(log, 9)
    assert log.log_end_offset == 5 and log.bases[0] == first
    log.first_dirty_offset = 5
    cut(log, 3)
    assert (log.log_start_offset, log.first_dirty_offset) == (3, 3), "nor is it clean above its end"


def test_a_segment_that_is_damaged_below_the_cut_is_cut_there(tmp_path: Path) -> None:
    """The leader has it whole, and gives it again."""
    log = filled(tmp_path)
    log.close()
    log = open_partition(tmp_path, recovery_point=12, high_watermark=12, **SMALL)
    segment = log.segments[1]
    batches = records.scan(Path(segment.path).read_bytes())
    assert len(batches) > 2
    with open(segment.path, "r+b") as file:
        file.seek(batches[1].position + 65)
        file.write(b"\xff")
    bad = batches[1].base_offset
    cut(log, batches[-1].base_offset)
    assert (log.log_end_offset, log.high_watermark) == (bad, bad)
    assert os.path.getsize(segment.path) == batches[1].position
    take(log, fetched(bad, b"again", epoch=20), leader_epoch=20)
    log.advance_high_watermark(bad + 1)
    assert values(read_all(log)) == [b"%d" % each for each in range(bad)] + [b"again"]


# -- in the order that a crash may interrupt

CONFIG = topic_config(**SMALL)


def managed(path: Path, threads: Threads | None = None) -> tuple[LogManager, Log]:
    config = broker_config(path)
    logs = log_manager(config, ManualClock(NOW_MS), threads.submit if threads else None)
    logs.open_all({}, lambda topic: CONFIG)
    log = logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
    for number in range(12):
        append(log, batch(b"%d" % number))
    return logs, log


def recovery_point(logs: LogManager) -> int:
    path = f"{logs.directories[0].path}/{checkpoints.RECOVERY_POINTS}"
    return checkpoints.read_offsets(path)["orders", 0]


def test_the_checkpoint_says_less_before_the_log_is_cut(tmp_path: Path) -> None:
    threads = Threads()
    logs, log = managed(tmp_path, threads)
    threads.all()
    log.flush()
    logs.checkpoint_recovery_points()
    threads.all()
    assert recovery_point(logs) == log.recovery_point > 5
    told: list[KafkaError | None] = []
    log.truncate(5, lambda: True, told.append)
    assert log.log_end_offset == 12
    threads.step()
    assert recovery_point(logs) == 5 and log.log_end_offset == 5 and told == []
    threads.all()
    assert told == [None], "the cut is on the disk"
    logs.close()


def test_a_cut_that_is_not_wanted_any_more_is_not_made(tmp_path: Path) -> None:
    threads = Threads()
    logs, log = managed(tmp_path, threads)
    threads.all()
    log.flush()
    follows = True
    told: list[Any] = []
    log.truncate(5, lambda: follows, told.append)
    follows = False  # it was made the leader meanwhile
    append(log, batch(b"12"))
    threads.all()
    assert log.log_end_offset == 13 and [error.code for error in told] == [NOT_LEADER_OR_FOLLOWER]
    logs.close()


def test_a_log_that_was_deleted_meanwhile_is_not_cut(tmp_path: Path) -> None:
    threads = Threads()
    logs, log = managed(tmp_path, threads)
    threads.all()
    log.flush()
    told: list[Any] = []
    log.truncate(5, lambda: True, told.append)
    logs.delete("orders", 0)
    threads.all()
    assert [error.code for error in told] == [KAFKA_STORAGE_ERROR] and log.log_end_offset == 12
    logs.close()


def test_a_fsync_that_was_under_way_says_nothing_of_what_comes_after_the_cut(tmp_path: Path) -> None:
    threads = Threads()
    logs, log = managed(tmp_path, threads)
    assert threads.waiting, "of the segments that were rolled"
    log.truncate(1, lambda: True, lambda error: None)
    threads.all()
    assert max(log.recovery_point, log.flushed_offset) <= 1
    logs.close()


def test_a_log_that_begins_anew_below_its_start_is_found_again(tmp_path: Path) -> None:
    logs, log = managed(tmp_path)
    log.delete_records(10)
    logs.checkpoint_log_starts()
    log.start_anew(3, lambda: True, lambda error: None)
    logs.close(clean=False)
    logs = manager(tmp_path)
    assert logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG) == []
    loaded = logs.get("orders", 0)
    assert loaded is not None and (loaded.log_start_offset, loaded.log_end_offset) == (3, 3)
    logs.close()


def test_a_cut_that_cannot_be_synced_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads()
    logs, log = managed(tmp_path, threads)
    threads.all()
    told: list[Any] = []
    log.truncate(11, lambda: True, told.append)
    while threads.waiting:
        if log.log_end_offset == 11:
            monkeypatch.setattr(os, "fsync", lambda fd: raise_it(OSError(5, "Input/output error")))
        threads.step()
    assert [error.code for error in told] == [KAFKA_STORAGE_ERROR] and not log.is_online
    monkeypatch.undo()
    logs.close()


def raise_it(error: Exception) -> None:
    raise error


def test_a_disk_that_fails_at_a_cut_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, log = managed(tmp_path)

    def broken(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "rename", broken)
    told: list[Any] = []
    log.truncate(1, lambda: True, told.append)
    assert [type(error) for error in told] == [KafkaError] and not log.is_online
    logs.close()
