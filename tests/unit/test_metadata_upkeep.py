"""When the metadata log is rolled and a snapshot is made, and what is deleted then; a start after each step finds the
same.
"""

from __future__ import annotations

import copy
import errno
import itertools
import os
from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad import messages as m
from pykafkad.clock import ManualClock
from pykafkad.cluster import metadata_files, metadata_upkeep, snapshots
from pykafkad.cluster.commits import at_once
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_files import DIRECTORY
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.snapshots import Snapshot
from pykafkad.config import BrokerConfig
from pykafkad.hot import records
from pykafkad.slices import Slices
from pykafkad.workers import submit_inline
from tests.unit.metadata_fakes import (
    DIRECTORY_ID,
    ENDPOINT,
    FakeStorage,
    Hasty,
    Later,
    creatable,
    create,
    open_broker,
)
from tests.unit.test_metadata_log import copied, opened, summary, tree

MINUTE_MS = 60_000
ROLLS = 2048


class Life:
    """A broker's controller on a log of small segments, and the clock that both use."""

    def __init__(self, directory: Path, later: Later | None = None, **properties: str) -> None:
        self.clock = ManualClock()
        texts = {key.replace("_", "."): value for key, value in properties.items()}
        config = BrokerConfig.from_sources({"log.dirs": str(directory), **texts})
        self.log = MetadataLog(str(directory), self.clock, segment_bytes=ROLLS)
        self.log.open()
        submit = later.submit if later else submit_inline
        soon = later.soon if later else at_once
        slices = Slices(soon, Hasty() if later else self.clock)
        self.controller = LocalController(
            config, self.log, cast(Any, FakeStorage()), 1, submit, soon, slices.run
        )
        self.controller.take_over([ENDPOINT], [DIRECTORY_ID], None)
        self.controller.load_logs()
        self.directory = directory / DIRECTORY

    def create(self, *names: str) -> None:
        for name in names:
            planned: list[Any] = []
            self.controller.create_topics([creatable(name)], False, planned.extend)

    def minute(self) -> None:
        self.clock.advance(MINUTE_MS)
        self.controller.upkeep.check()

    def names(self, suffix: str) -> list[str]:
        return sorted(path.name for path in self.directory.glob(f"*{suffix}"))


def many(count: int, prefix: str = "t") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


# -- segments


def test_the_log_rolls_by_size_and_is_read_over_all_segments(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.create(*many(100))
    bases = [base for base, _ in life.log.segments]
    assert len(bases) > 3 and all(size <= ROLLS for _, size in life.log.segments)
    expected = summary(life.log.image)
    life.log.close()
    again = opened(tmp_path)
    assert summary(again.image) == expected
    assert [base for base, _ in again.segments] == bases
    assert again.end_offset == life.log.end_offset


def test_the_log_rolls_by_age(tmp_path: Path) -> None:
    log = MetadataLog(str(tmp_path), clock := ManualClock(), segment_ms=1000)
    log.open()
    for _ in range(3):
        log.append([(m.NoOpRecord(), 0)])
        clock.advance(400)
    assert len(log.segments) == 1
    log.append([(m.NoOpRecord(), 0)])
    assert [base for base, _ in log.segments] == [0, 3]


def bases_of(directory: Path, sizes: int, advances: list[int], **limits: int) -> list[int]:
    """The segments that NoOps make of which each is appended after so many milliseconds."""
    log = MetadataLog(str(directory), clock := ManualClock(), segment_bytes=NO_OP_BATCH * sizes, **limits)
    log.open()
    for advance in advances:
        clock.advance(advance)
        log.append([(m.NoOpRecord(), 0)])
    log.close()
    return [base for base, _ in log.segments]


NO_OP_BATCH = 72


def test_a_segment_is_exactly_as_large_and_as_old_as_it_may_be(tmp_path: Path) -> None:
    assert bases_of(tmp_path / "large", 3, [0] * 7) == [0, 3, 6]
    assert bases_of(tmp_path / "tiny", 0, [0] * 3) == [0, 1, 2], "each has a batch, however small it is to be"
    assert bases_of(tmp_path / "old", 99, [5, 900, 100, 1, 1000, 1], segment_ms=1000) == [0, 3, 5]


def test_the_age_of_a_segment_counts_over_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    for advance in (0, 600, 400, 1):
        log = MetadataLog(str(tmp_path), clock, segment_ms=1000)
        log.open()
        clock.advance(advance)
        log.append([(m.NoOpRecord(), 0)])
        log.close()
    assert [base for base, _ in log.segments] == [0, 3]


def test_a_log_that_is_closed_leaves_no_file_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for count in (0, 1, 4):
        bases_of(tmp_path / str(count), 1, [0] * count)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("base_offset", [67, 136, 205])
def test_indexes_of_a_closed_segment_are_as_kafka_makes_them(
    golden: Path, tmp_path: Path, base_offset: int
) -> None:
    """Kafka's log up to that segment, replayed and closed in order: the index files equal Kafka's."""
    directory = copied(golden / "metadata" / "trimmed", tmp_path)
    for path in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]:
        if int(path.name[:20]) > base_offset + 30:
            path.unlink()
    last = max(directory.glob("*.log")).stem
    assert int(last) == base_offset
    theirs = {suffix: (directory / f"{last}{suffix}").read_bytes() for suffix in (".index", ".timeindex")}
    log = opened(tmp_path)
    log.close(clean=True)
    assert {suffix: (directory / f"{last}{suffix}").read_bytes() for suffix in theirs} == theirs


def test_a_crash_between_a_roll_and_the_first_batch_is_nothing(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.create(*many(30))
    end = life.log.end_offset
    expected = summary(life.log.image)
    life.log.close()
    (tmp_path / DIRECTORY / f"{end:020d}.log").touch()
    life = Life(tmp_path)
    life.create("more")
    life.log.close()
    again = opened(tmp_path)
    assert expected["topics"].keys() | {"more"} == again.image.topics.keys()
    sizes = [path.stat().st_size for path in sorted((tmp_path / DIRECTORY).glob("*.log"))]
    assert all(sizes)


def test_a_torn_batch_before_an_empty_segment_is_cut_like_any(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.create(*many(5))
    end = life.log.end_offset
    life.create("torn")
    life.log.close()
    path = max((tmp_path / DIRECTORY).glob("*.log"))
    os.truncate(path, path.stat().st_size - 3)
    (tmp_path / DIRECTORY / f"{end + 2:020d}.log").touch()
    again = opened(tmp_path)
    assert again.end_offset == end and "torn" not in again.image.topics
    assert len(list((tmp_path / DIRECTORY).glob("*.log"))) == len(again.segments)


def test_a_bad_batch_in_an_older_segment_is_a_refusal(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.create(*many(100))
    life.log.close()
    path = min((tmp_path / DIRECTORY).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    before = tree(tmp_path)
    with pytest.raises(metadata_error(), match="wrong checksum at byte"):
        opened(tmp_path)
    assert tree(tmp_path) == before


def metadata_error() -> type[Exception]:
    from pykafkad.cluster.metadata_records import MetadataError

    return MetadataError


# -- when a snapshot is made


def test_a_snapshot_is_made_after_so_many_bytes(tmp_path: Path) -> None:
    life = Life(tmp_path, metadata_log_max_record_bytes_between_snapshots="3000")
    life.create(*many(60))
    snapshots = [metadata_files.snapshot_of(name) or (0, 0) for name in life.names(".checkpoint")]
    assert len(snapshots) >= 3
    assert snapshots == life.controller.upkeep.snapshots
    data = b"".join((life.directory / name).read_bytes() for name in life.names(".log"))
    ends = {batch.last_offset + 1: batch.position + batch.size for batch in records.scan(data)}
    starts = [0, *(ends[offset] for offset, _ in snapshots)]
    assert all(3000 <= end - start < 3500 for start, end in itertools.pairwise(starts))
    assert {path.stat().st_mode & 0o777 for path in life.directory.glob("*.checkpoint")} == {0o444}


def test_a_snapshot_is_made_after_so_long_if_there_is_anything_new(tmp_path: Path) -> None:
    life = Life(tmp_path, metadata_log_max_snapshot_interval_ms=str(3 * MINUTE_MS))
    life.minute()
    life.minute()
    assert life.names(".checkpoint") == []
    life.minute()
    assert len(life.names(".checkpoint")) == 1
    for _ in range(5):
        life.minute()
    assert len(life.names(".checkpoint")) == 1  # nothing new
    life.create("new")
    life.minute()
    assert len(life.names(".checkpoint")) == 2


def test_an_interval_of_nothing_means_never(tmp_path: Path) -> None:
    life = Life(tmp_path, metadata_log_max_snapshot_interval_ms="0")
    life.clock.advance(365 * 86_400_000)
    life.minute()
    assert life.names(".checkpoint") == []


def test_bytes_that_a_start_replays_count_too(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.create(*many(60))
    life.log.close()
    life = Life(tmp_path, metadata_log_max_record_bytes_between_snapshots="3000")
    life.minute()
    assert len(life.names(".checkpoint")) == 1


def test_each_snapshot_of_a_life_with_the_log_behind_it_says_the_same(tmp_path: Path) -> None:
    life = Life(tmp_path / "life", metadata_log_max_record_bytes_between_snapshots="2500")
    life.create(*many(20))
    third = life.controller.names.id_of("t3")
    assert third is not None
    life.controller.delete_topics([third], lambda error: None)
    life.controller.commit([(m.ClearElrRecord(), 0)], lambda error: None)
    life.controller.take_producer_id(lambda producer_id: None)
    quota = m.ClientQuotaRecord(
        entity=[m.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)], key="k", value=1.5
    )
    life.controller.commit([(quota, 0)], lambda error: None)
    life.create(*many(20, "u"))
    expected = summary(life.log.image)
    life.log.close()
    names = life.names(".checkpoint")
    assert len(names) > 1
    for name in names:
        directory = copied(life.directory, tmp_path / name)
        for other in directory.glob("*.checkpoint"):
            if other.name != name:
                other.unlink()
        log = opened(tmp_path / name)
        assert log.contents.snapshot == metadata_files.snapshot_of(name)
        assert (summary(log.image), log.end_offset) == (expected, life.log.end_offset)


# -- changes during a snapshot


def test_what_changes_while_a_snapshot_is_made_is_not_in_it(tmp_path: Path) -> None:
    later = Later()
    life = Life(tmp_path, later, metadata_log_max_snapshot_interval_ms="1000")
    later.all()
    life.create(*many(400))
    later.all()
    expected, end = copy.deepcopy(summary(life.log.image)), life.log.end_offset
    life.minute()
    step = 0
    while not life.names(".checkpoint"):
        step += 1
        life.create(f"during-{step}")
        change_everything(life, step)
        for _ in range(5):
            later.step()
    assert step > 3
    later.all()
    (name,) = life.names(".checkpoint")
    assert life.log.image.before is None
    assert int(name[:20]) == end
    only = copied(life.directory, tmp_path / "only")
    for path in only.glob("*.log"):
        path.unlink()
    assert summary(opened(tmp_path / "only").image) == expected
    life.log.close()
    assert summary(opened(tmp_path).image) == summary(life.log.image) != expected


def change_everything(life: Life, step: int) -> None:
    """Changes to topics that the snapshot may have reached already, and to some that it has not."""
    last = life.log.image.topics[f"t{399 - step}"]
    quota = m.ClientQuotaRecord(
        entity=[m.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")], key="k", value=step
    )
    partition = m.PartitionRecord(partition_id=1, topic_id=last.id, replicas=[1], isr=[1], leader=1)
    for record, version in (
        (m.PartitionChangeRecord(partition_id=0, topic_id=last.id, leader=-1, isr=[]), 2),
        (partition, 2),
        (m.ConfigRecord(resource_type=2, resource_name=last.name, name="segment.ms", value=str(step)), 0),
        (m.ConfigRecord(resource_type=2, resource_name="t0", name="segment.ms", value=str(step)), 0),
        (m.ConfigRecord(resource_type=4, resource_name="", name="log.segment.ms", value=str(step)), 0),
        (m.RemoveTopicRecord(topic_id=life.log.image.topics[f"t{200 - step}"].id), 0),
        (quota, 0),
        (m.ProducerIdsRecord(broker_id=1, next_producer_id=1000 * step), 0),
        (m.ClearElrRecord(), 0),
    ):
        life.controller.commit([(record, version)], lambda error: None)


def test_one_snapshot_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later()
    life = Life(tmp_path, later, metadata_log_max_record_bytes_between_snapshots="1000")
    later.all()
    begin, under_way = Snapshot.__init__, list[bool]()

    def begun(snapshot: Snapshot, log: MetadataLog, now_ms: int) -> None:
        under_way.append(log.image.before is not None)
        begin(snapshot, log, now_ms)

    monkeypatch.setattr(Snapshot, "__init__", begun)
    life.create(*many(50))
    while life.log.image.before is None:
        later.step()
    life.create(*many(50, "u"))
    life.minute()
    later.all()
    assert len(under_way) > 1 and not any(under_way)
    assert life.names(".part") == [] and len(life.names(".checkpoint")) == len(under_way)


@pytest.mark.parametrize("broken", ["__init__", "next_batch"])
def test_a_snapshot_that_cannot_be_made_does_not_keep_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    life = Life(tmp_path, metadata_log_max_record_bytes_between_snapshots="1000")

    def breaks(*_: Any) -> Any:
        raise RuntimeError("a bug of ours")

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, broken, breaks)
        planned = [topic for name in many(30) for topic in create(life, creatable(name))]
    assert [topic.error for topic in planned] == [None] * 30
    assert life.names(".checkpoint") == [] and life.log.image.before is None
    life.minute()
    assert len(life.names(".checkpoint")) == 1


def test_a_snapshot_that_cannot_be_written_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path, metadata_log_max_snapshot_interval_ms=str(MINUTE_MS))
    fsync = os.fsync

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    life.minute()
    assert life.names(".checkpoint") == life.names(".part") == []
    monkeypatch.setattr(os, "fsync", fsync)
    life.create("goes-on")
    life.minute()
    assert len(life.names(".checkpoint")) == 1


# -- deletion


def trimmed(tmp_path: Path, **limits: Any) -> Life:
    life = Life(tmp_path, metadata_log_max_record_bytes_between_snapshots="2500", **limits)
    life.create(*many(100))
    assert len(life.names(".checkpoint")) > 4 and len(life.log.segments) > 4
    return life


def test_old_segments_and_snapshots_go_by_size(tmp_path: Path) -> None:
    life = trimmed(tmp_path, metadata_max_retention_bytes="25000")
    expected = summary(life.log.image)
    before = sum(path.stat().st_size for path in life.directory.iterdir())
    life.minute()
    snapshots = life.controller.upkeep.snapshots
    total = sum(size for _, size in life.log.segments) + sum(
        path.stat().st_size for path in life.directory.glob("*.checkpoint")
    )
    assert total < before and (total <= 25000 or len(snapshots) == 1)
    assert life.names(".checkpoint") == [metadata_files.snapshot_name(each) for each in snapshots]
    assert life.names(".log") == [metadata_files.segment_name(base) for base, _ in life.log.segments]
    assert life.log.segments[0][0] <= snapshots[0][0]  # the log goes on behind every snapshot that stays
    life.create("after")
    life.log.close()
    again = opened(tmp_path)
    assert summary(again.image)["topics"].keys() == expected["topics"].keys() | {"after"}


def test_old_segments_and_snapshots_go_by_age_and_the_newest_stays(tmp_path: Path) -> None:
    life = trimmed(tmp_path, metadata_max_retention_ms=str(3 * MINUTE_MS), metadata_max_retention_bytes="-1")
    newest = life.names(".checkpoint")[-1]
    for _ in range(3):
        life.minute()
        assert len(life.names(".checkpoint")) > 4
    life.minute()
    assert life.names(".checkpoint") == [newest]
    covered = int(newest[:20])
    assert [base for base, _ in life.log.segments[1:]] == [
        base for base, _ in life.log.segments[1:] if base > covered
    ]


def test_what_is_old_is_removed_by_one_at_a_time(tmp_path: Path) -> None:
    trimmed(tmp_path).log.close()
    later = Later()
    life = Life(tmp_path, later, metadata_max_retention_bytes="1")
    assert len(life.controller.upkeep.snapshots) > 1
    later.all()
    life.minute()
    begun = len(later.waiting)
    life.minute()
    assert begun and len(later.waiting) == begun
    later.all()
    assert len(life.names(".checkpoint")) == 1
    life.minute()
    assert later.waiting == [], "one snapshot stays"


def test_without_limits_nothing_goes(tmp_path: Path) -> None:
    life = trimmed(tmp_path, metadata_max_retention_ms="-1", metadata_max_retention_bytes="-1")
    before = (life.names(".checkpoint"), life.names(".log"))
    life.clock.advance(365 * 86_400_000)
    life.controller.upkeep.check()
    assert before[1] == life.names(".log") and set(before[0]) <= set(life.names(".checkpoint"))


def test_a_crash_at_any_removal_leaves_a_log_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = trimmed(tmp_path / "life", metadata_max_retention_bytes="1")
    expected = summary(life.log.image)
    removals = 0
    unlink = os.unlink

    def copying(path: str) -> None:
        nonlocal removals
        copied(life.directory, tmp_path / f"crash-{removals}")
        removals += 1
        unlink(path)

    monkeypatch.setattr(os, "unlink", copying)
    life.minute()
    monkeypatch.undo()
    assert removals > 6
    for number in range(removals):
        assert summary(opened(tmp_path / f"crash-{number}").image) == expected


# -- starts


def test_a_start_reads_only_what_is_behind_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the indexes of an orderly stop; without them it walks the whole log, and finds the same."""
    log = MetadataLog(str(tmp_path), ManualClock())
    log.open()
    log.append(*([(m.NoOpRecord(), 0)] for _ in range(3000)))
    broker = open_broker(tmp_path, metadata_log_max_record_bytes_between_snapshots="1")
    create(broker, creatable("covered"))
    broker.controller.stop()
    expected = summary(opened_and_closed(tmp_path).image)
    by_index = opened_and_closed(tmp_path)
    assert by_index.contents.passed_over[0][1] > 150_000
    assert summary(by_index.image) == expected
    for path in (tmp_path / DIRECTORY).glob("*.index"):
        path.unlink()
    whole = opened_and_closed(tmp_path)
    assert (whole.contents.passed_over, summary(whole.image)) == ([], expected)


def opened_and_closed(directory: Path) -> MetadataLog:
    log = opened(directory)
    log.close(clean=True)
    return log


@pytest.mark.parametrize("damage", ["garbage", "zeros", "short", "wrong", "gone"])
def test_an_index_that_lies_is_found_out(tmp_path: Path, damage: str) -> None:
    log = MetadataLog(str(tmp_path), ManualClock())
    log.open()
    log.append(*([(m.NoOpRecord(), 0)] for _ in range(1000)))
    broker = open_broker(tmp_path, metadata_log_max_record_bytes_between_snapshots="1")
    create(broker, creatable("kept"))
    broker.controller.stop()
    path = tmp_path / DIRECTORY / f"{0:020d}.index"
    data = bytearray(path.read_bytes())
    assert len(data) > 64
    if damage == "garbage":
        data[:] = os.urandom(len(data))
    elif damage == "zeros":
        data += bytes(8000)
    elif damage == "short":
        del data[-13:]
    elif damage == "wrong":
        for at in range(7, len(data), 8):
            data[at] ^= 0x10
    path.write_bytes(data)
    if damage == "gone":
        path.unlink()
    log = opened(tmp_path)
    assert "kept" in log.image.topics
    assert bool(log.contents.passed_over) == (damage in ("zeros", "short"))


def test_a_log_that_ends_before_its_snapshot_begins_anew_behind_it(tmp_path: Path) -> None:
    """As after a power failure that lost the end of the log but not the snapshot; Kafka continues likewise."""
    life = Life(tmp_path, metadata_log_max_snapshot_interval_ms="1")
    life.create(*many(60))
    life.minute()
    expected = summary(life.log.image)
    life.log.close()
    for path in sorted((tmp_path / DIRECTORY).glob("*.log"))[2:]:
        path.unlink()
    again = opened(tmp_path)
    assert summary(again.image) == expected
    assert again.end_offset == again.segments[0][0] == again.contents.snapshot[0]  # type: ignore[index]
    assert len(list((tmp_path / DIRECTORY).glob("*.log"))) == 1


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    open_broker(tmp_path).log.close()
    directory = tmp_path / DIRECTORY
    names = (f"{9:020d}-{1:010d}.checkpoint.part", f"{0:020d}.log.deleted", "quorum-state.tmp")
    for name in names:
        (directory / name).write_bytes(b"half")
    opened(tmp_path)
    assert not any((directory / name).exists() for name in names)


# -- what a start skips


def covered(directory: Path) -> None:
    """A log whose first batches are covered by a snapshot and an index, stopped in order."""
    log = MetadataLog(str(directory), ManualClock())
    log.open()
    log.append(*([(m.NoOpRecord(), 0)] for _ in range(1000)))
    broker = open_broker(directory, metadata_log_max_record_bytes_between_snapshots="1")
    create(broker, creatable("kept"))
    broker.controller.stop()


def test_what_was_passed_over_is_verified_a_minute_later(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    covered(tmp_path)
    life = Life(tmp_path)
    assert life.log.contents.passed_over
    before = life.names("")
    life.minute()
    assert "damaged" not in capfd.readouterr().err
    assert life.names("") == before


@pytest.mark.parametrize("indexed", [True, False])
def test_damage_below_the_snapshot_is_left_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], indexed: bool
) -> None:
    """Kafka would truncate the log there; so none of it may be left when the directory is handed over."""
    covered(tmp_path)
    path = tmp_path / DIRECTORY / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[72 * 500 + 65] ^= 1
    path.write_bytes(data)
    if not indexed:
        path.with_suffix(".index").unlink()
    life = Life(tmp_path)
    expected = summary(life.log.image)
    life.minute()
    assert f"the batch at byte {72 * 500} is damaged" in capfd.readouterr().err
    assert not path.exists() and len(life.names(".checkpoint")) == len(life.names(".log")) == 1
    life.create("after")
    life.log.close()
    again = opened(tmp_path)
    assert again.image.topics.keys() == expected["topics"].keys() | {"after"}
    assert again.contents.damaged == []


@pytest.mark.parametrize("where", ["next_batch", "write_snapshot", "Snapshot"])
def test_a_snapshot_that_goes_wrong_is_tried_again_after_a_minute(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the error was. Old segments are still deleted once a newer snapshot covers them."""
    life = Life(tmp_path, metadata_log_max_record_bytes_between_snapshots="2000")
    tried: list[int] = []

    def broken(*arguments: Any) -> Any:
        tried.append(1)
        raise RuntimeError("our mistake")

    owner = metadata_upkeep if where == "write_snapshot" else snapshots.Snapshot
    monkeypatch.setattr(owner, "__init__" if where == "Snapshot" else where, broken)
    life.create(*many(60))
    assert len(tried) == 1 and not life.names(".checkpoint")
    monkeypatch.undo()
    life.create("x")
    assert not life.names(".checkpoint")
    life.minute()
    assert len(life.names(".checkpoint")) == 1
