"""The metadata log: what Kafka wrote is understood, what we write is kept, and damage is reported."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages as m
from pykafkad.clock import ManualClock
from pykafkad.cluster import handover
from pykafkad.cluster.image import Image, PartitionInfo
from pykafkad.cluster.metadata_files import DIRECTORY
from pykafkad.cluster.metadata_log import MetadataLog, UnsafeLog
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.cluster.metadata_upkeep import write_snapshot
from pykafkad.errors import StartupError
from pykafkad.hot import records
from pykafkad.uuids import to_text
from tests.unit.metadata_fakes import DIRECTORY_ID, creatable, create, open_broker

LOG = "00000000000000000000.log"


def opened(directory: Path) -> MetadataLog:
    log = MetadataLog(str(directory), ManualClock())
    log.open()
    return log


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target / DIRECTORY)
    return target / DIRECTORY


def segment(directory: Path) -> Path:
    return directory / DIRECTORY / LOG


def tree(directory: Path) -> dict[str, Any]:
    """Every file below, with its bytes and its time."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def summary(image: Image) -> dict[str, Any]:
    """Everything in an image, in a form that can be compared."""
    return {
        "topics": {
            name: (
                topic.id,
                topic.configs,
                [[getattr(item, field) for field in PartitionInfo.__slots__] for item in topic.partitions],
            )
            for name, topic in image.topics.items()
        },
        "brokers": {
            key: (
                info.epoch,
                info.fenced,
                info.in_controlled_shutdown,
                info.directories,
                sorted(info.endpoints),
            )
            for key, info in image.brokers.items()
        },
        "configs": {key: values for key, values in image.configs.items() if values},
        "features": image.features,
        "ids": image.next_producer_id,
        "acls": {key: repr(acl) for key, acl in image.acls.items()},
        "scram": {key: repr(user) for key, user in image.scram_users.items()},
        "quotas": image.client_quotas,
    }


# -- what Apache Kafka wrote


def test_a_log_of_kafkas_is_read(golden: Path, tmp_path: Path) -> None:
    copied(golden / "metadata" / "plain", tmp_path)
    log = opened(tmp_path)
    assert {name: len(topic.partitions) for name, topic in log.image.topics.items()} == {
        "plain": 2,
        "append-time": 1,
        "empty": 1,
        "one-record": 1,
    }
    assert log.image.topics["append-time"].configs["message.timestamp.type"] == "LogAppendTime"
    assert log.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert (log.end_offset, log.epoch) == (60, 1)


def test_a_stopped_kafka_left_no_leaders_and_itself_fenced(golden: Path, tmp_path: Path) -> None:
    copied(golden / "metadata" / "plain", tmp_path)
    image = opened(tmp_path).image
    assert image.brokers[1].fenced
    for topic in image.topics.values():
        for item in topic.partitions:
            assert (item.leader, item.isr, item.eligible_leader_replicas) == (-1, [], [1])


def test_each_snapshot_with_the_log_behind_it_says_what_the_whole_log_says(
    golden: Path, tmp_path: Path
) -> None:
    whole = copied(golden / "metadata" / "snapshots", tmp_path / "whole")
    snapshots = sorted(whole.glob("*.checkpoint"))
    for snapshot in snapshots:
        snapshot.unlink()
    expected = opened(tmp_path / "whole")
    assert len(snapshots) == 5
    for snapshot in snapshots:
        directory = copied(golden / "metadata" / "snapshots", tmp_path / snapshot.stem)
        for other in directory.glob("*.checkpoint"):
            if other.name != snapshot.name:
                other.unlink()
        log = opened(tmp_path / snapshot.stem)
        assert summary(log.image) == summary(expected.image), snapshot.name
        assert (log.end_offset, log.image.offset) == (expected.end_offset, expected.image.offset)


def test_kafkas_directory_is_read_after_it_removed_what_a_snapshot_covers(
    golden: Path, tmp_path: Path
) -> None:
    """There are segments from 67 on, snapshots from 88 on, and a segment renamed to .deleted."""
    directory = copied(golden / "metadata" / "trimmed", tmp_path)
    log = opened(tmp_path)
    assert (log.contents.snapshot, log.end_offset) == ((214, 1), 247)
    assert [base for base, _ in log.segments] == [67, 136, 205]
    assert {topic.name: topic.configs.get("segment.ms") for topic in log.image.topics.values()} == {
        "t1": "777777",
        "t2": None,
        "t3": None,
    }
    assert not list(directory.glob("*.deleted"))
    broker = open_broker(tmp_path)
    create(broker, creatable("ours"))
    broker.controller.stop()
    assert opened(tmp_path).image.topics.keys() == {"t1", "t2", "t3", "ours"}


def test_a_snapshot_without_the_log_below_it_is_enough(golden: Path, tmp_path: Path) -> None:
    directory = copied(golden / "metadata" / "snapshots", tmp_path)
    (directory / LOG).unlink()
    log = opened(tmp_path)
    newest = max(directory.glob("*.checkpoint")).name
    assert log.end_offset == int(newest[:20])
    assert (directory / f"{newest[:20]}.log").exists()
    assert "payments" in log.image.topics


def test_security_and_quotas_of_kafkas_are_kept(golden: Path, tmp_path: Path) -> None:
    copied(golden / "metadata" / "snapshots", tmp_path)
    image = opened(tmp_path).image
    assert len(image.acls) == 2
    assert [key[0] for key in image.scram_users] == ["alice"]
    assert image.client_quotas == {
        (("user", "alice"),): {"producer_byte_rate": 1024.0},
        (("user", None),): {"consumer_byte_rate": 2048.0},
    }
    assert image.broker_configs("")["log.retention.ms"] == "99999999"
    assert image.topics["payments"].configs == {
        "cleanup.policy": "compact,delete",
        "segment.bytes": "2000000",
    }
    assert "gone" not in image.topics


@pytest.mark.parametrize("damage", ["no footer", "torn", "bit"])
def test_a_damaged_snapshot_is_set_aside_as_long_as_the_log_has_what_it_says(
    golden: Path, tmp_path: Path, damage: str
) -> None:
    directory = copied(golden / "metadata" / "snapshots", tmp_path)
    expected = summary(opened(tmp_path).image)
    newest = max(directory.glob("*.checkpoint"))
    data = bytearray(newest.read_bytes())
    newest.chmod(0o644)
    if damage == "no footer":
        del data[records.scan(data)[-1].position :]
    elif damage == "torn":
        del data[-30:]
    else:
        data[500] ^= 1
    newest.write_bytes(data)
    log = opened(tmp_path)
    assert summary(log.image) == expected
    assert log.contents.snapshot == (176, 1)
    assert not newest.exists() and newest.with_name(newest.name + ".corrupt").exists()


def test_a_damaged_snapshot_without_the_log_below_it_is_refused(golden: Path, tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    end, epoch = broker.log.end_offset, broker.log.epoch
    write_snapshot(broker.log.directory, (end, epoch), [b"no batch at all"])
    broker.log.close()
    segment(tmp_path).unlink()
    segment(tmp_path).with_name(f"{end:020d}.log").touch()
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match="15 bytes, too few for a batch"):
        opened(tmp_path)
    assert tree(tmp_path) == before


def test_taking_over_kafkas_directory_leads_its_partitions_in_new_epochs(
    golden: Path, tmp_path: Path
) -> None:
    copied(golden / "metadata" / "plain", tmp_path)
    before = {
        (name, index): item.leader_epoch
        for name, topic in opened(tmp_path).image.topics.items()
        for index, item in enumerate(topic.partitions)
    }
    broker = open_broker(tmp_path)
    for (name, index), epoch in before.items():
        item = broker.image.topics[name].partitions[index]
        assert (item.leader, item.isr, item.leader_epoch) == (1, [1], epoch + 1)
        assert (item.eligible_leader_replicas, item.last_known_elr) == ([], [])
    assert broker.log.epoch == 2
    assert broker.image.brokers[1].epoch == 61  # behind the LeaderChange record at 60


# -- what we write


def test_a_new_directory_is_formatted_as_kafka_does_it(golden: Path, tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    ours = [batch.base_offset for batch in records.scan(segment(tmp_path).read_bytes())]
    assert ours == [0, 1, 10, 11]  # LeaderChange; features and config; RegisterBroker; unfencing
    kafkas = Image()
    copied(golden / "metadata" / "plain", tmp_path / "kafka")
    kafkas = opened(tmp_path / "kafka").image
    assert broker.image.features == kafkas.features
    assert broker.image.broker_configs("") == {"min.insync.replicas": "1"} == kafkas.broker_configs("")
    assert not broker.image.brokers[1].fenced


def test_the_small_files_are_kafkas_byte_for_byte(golden: Path, tmp_path: Path) -> None:
    open_broker(tmp_path)
    for name in ("quorum-state", "leader-epoch-checkpoint", "partition.metadata"):
        ours = (tmp_path / DIRECTORY / name).read_bytes()
        assert ours == (golden / "metadata" / "plain" / name).read_bytes(), name


def test_first_batches_are_kafkas_byte_for_byte(golden: Path, tmp_path: Path) -> None:
    """Everything but the time and the checksum over it: the bytes after the timestamps in the batch header."""
    open_broker(tmp_path)
    ours = segment(tmp_path).read_bytes()
    kafkas = (golden / "metadata" / "plain" / LOG).read_bytes()
    for start, end in ((0, 91), (91, 421)):
        assert ours[start : start + 17] == kafkas[start : start + 17]
        assert ours[start + 43 : end] == kafkas[start + 43 : end]


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 3, retention_ms="5", min_insync_replicas="1"), creatable("gone"))
    broker.controller.delete_topics([broker.controller.names.id_of("gone")], lambda error: None)
    broker.controller.take_producer_id(lambda producer_id: None)
    before = summary(broker.image)
    broker.log.close()
    assert summary(opened(tmp_path).image) == before


def test_a_clean_stop_leaves_what_kafkas_stop_leaves(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 2))
    broker.controller.stop()
    image = opened(tmp_path).image
    assert image.brokers[1].fenced and image.brokers[1].in_controlled_shutdown
    for item in image.topics["orders"].partitions:
        assert (item.leader, item.isr, item.leader_epoch) == (-1, [], 1)
        assert (item.eligible_leader_replicas, item.last_known_elr) == ([1], [1])


def test_every_start_begins_a_quorum_epoch_and_notes_where(tmp_path: Path) -> None:
    for _ in range(3):
        open_broker(tmp_path).controller.stop()
    directory = tmp_path / DIRECTORY
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n3\n1 0\n2 14\n3 19\n"
    assert '"leaderEpoch":3,' in (directory / "quorum-state").read_text()
    epochs = {batch.leader_epoch for batch in records.scan(segment(tmp_path).read_bytes())}
    assert epochs == {1, 2, 3}


@pytest.mark.parametrize("name", ["quorum-state", "leader-epoch-checkpoint"])
def test_the_epoch_survives_the_loss_of_its_files(tmp_path: Path, name: str) -> None:
    open_broker(tmp_path).controller.stop()
    (tmp_path / DIRECTORY / name).write_text("")
    assert opened(tmp_path).epoch == 1


def test_an_epoch_above_the_logs_is_respected(tmp_path: Path) -> None:
    open_broker(tmp_path).controller.stop()
    path = tmp_path / DIRECTORY / "quorum-state"
    path.write_text(path.read_text().replace('"leaderEpoch":1', '"leaderEpoch": 41'))
    assert open_broker(tmp_path).log.epoch == 42


def test_an_older_metadata_version_gets_older_records(tmp_path: Path) -> None:
    """Kafka refuses records newer than the finalized metadata.version."""
    broker = open_broker(tmp_path)
    broker.log.append([(m.FeatureLevelRecord(name="metadata.version", feature_level=16), 0)])
    broker.log.append([(m.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0), 0)])
    create(broker, creatable("old"))
    assert broker.image.topics["old"].partitions[0].directories == []
    broker.controller.stop()
    item = opened(tmp_path).image.topics["old"].partitions[0]
    assert (item.leader, item.isr) == (-1, [1])
    item = open_broker(tmp_path).image.topics["old"].partitions[0]
    assert (item.leader, item.isr, item.leader_epoch) == (1, [1], 2)


# -- transactions of records


def append_raw(log: MetadataLog, *batch: Any) -> None:
    log.append([(record, 0) for record in batch])


def test_a_transaction_of_records_counts_when_it_ends(tmp_path: Path) -> None:
    log = open_broker(tmp_path).log
    append_raw(log, m.BeginTransactionRecord(name="t"))
    append_raw(log, m.TopicRecord(name="within", topic_id=b"\x05" * 16))
    log.close()
    again = opened(tmp_path)
    assert "within" not in again.image.topics and again.open_transaction
    append_raw(again, m.EndTransactionRecord())
    again.close()
    assert "within" in opened(tmp_path).image.topics


def test_a_transaction_left_open_is_aborted_by_the_next_start(tmp_path: Path) -> None:
    log = open_broker(tmp_path).log
    append_raw(log, m.BeginTransactionRecord(name="t"), m.TopicRecord(name="ghost", topic_id=b"\x05" * 16))
    log.close()
    broker = open_broker(tmp_path)
    create(broker, creatable("real"))
    broker.log.close()
    again = opened(tmp_path)
    assert set(again.image.topics) == {"real"} and not again.open_transaction


# -- damage


def test_a_torn_last_batch_is_cut(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("kept"))
    end = broker.log.end_offset
    create(broker, creatable("torn"))
    broker.log.close()
    path = segment(tmp_path)
    whole = path.read_bytes()
    last = len(whole) - [batch.size for batch in records.scan(whole)][-1]
    for torn in (
        whole[: last + 5],
        whole[:-1],
        whole[:last] + bytes(500),
        whole[:-1] + bytes([whole[-1] ^ 1]),
    ):
        path.write_bytes(torn)
        log = opened(tmp_path)
        assert "torn" not in log.image.topics and "kept" in log.image.topics
        assert log.end_offset == end
        assert path.stat().st_size == last
        log.close()


def test_after_a_cut_the_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    broker.log.close()
    path = segment(tmp_path)
    path.write_bytes(path.read_bytes() + b"\x00" * 30)
    again = open_broker(tmp_path)
    create(again, creatable("orders"))
    again.log.close()
    assert "orders" in opened(tmp_path).image.topics


def test_a_flipped_bit_before_the_last_batch_is_a_refusal_that_says_where(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("one"))
    offset = broker.log.end_offset
    create(broker, creatable("two"))
    create(broker, creatable("three"))
    broker.log.close()
    path = segment(tmp_path)
    whole = path.read_bytes()
    sizes = [batch.size for batch in records.scan(whole)]
    start = sum(sizes[:-2])
    for at in (start + 70, start + 8, start + 11, start + 16):  # in a record, in the length, in the magic
        damaged = bytearray(whole)
        damaged[at] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(MetadataError, match=rf"at byte {start} \(offset {offset}\)"):
            opened(tmp_path)
        assert path.read_bytes() == damaged  # nothing is repaired and nothing lost


def test_records_that_are_missing_are_a_refusal(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("one"))
    create(broker, creatable("two"))
    broker.log.close()
    path = segment(tmp_path)
    whole = path.read_bytes()
    sizes = [batch.size for batch in records.scan(whole)]
    path.write_bytes(whole[: sum(sizes[:-2])] + whole[sum(sizes[:-1]) :])
    with pytest.raises(MetadataError, match="records are missing"):
        opened(tmp_path)


def append_value(log: MetadataLog, value: bytes) -> None:
    log.write(records.build([(None, value, [], 0)], base_offset=log.end_offset, leader_epoch=log.epoch))
    log.close()


def test_a_version_from_the_future_is_a_refusal_that_changes_nothing(tmp_path: Path) -> None:
    append_value(open_broker(tmp_path).log, b"\x01\x02\x01\x05oops")
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=r"unknown version 1 of TopicRecord \(batch at offset 12\)"):
        opened(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "value",
    [
        b"\x01\x63\x00what only others know",
        b"\x01\x02\x00\x02t" + b"\x05" * 16 + b"\x01\x63\x02xy",
    ],
    ids=["type", "tag"],
)
def test_what_is_not_known_is_kept_and_no_snapshot_is_made_without_it(tmp_path: Path, value: bytes) -> None:
    append_value(open_broker(tmp_path).log, value)
    before = segment(tmp_path).read_bytes()
    limits: dict[str, Any] = {
        "metadata_log_max_record_bytes_between_snapshots": "1",
        "metadata_max_retention_bytes": "1",
    }
    broker = open_broker(tmp_path, **limits)
    assert broker.log.contents.unknown
    create(broker, creatable("orders"))
    broker.controller.upkeep.check()
    broker.controller.stop()
    assert segment(tmp_path).read_bytes().startswith(before)
    assert not list((tmp_path / DIRECTORY).glob("*.checkpoint"))


def test_no_ops_of_kafka_are_skipped_undecoded(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    for _ in range(3):
        append_raw(broker.log, m.NoOpRecord())
    broker.log.close()
    log = opened(tmp_path)
    assert log.end_offset == broker.log.end_offset
    from pykafkad.cluster.metadata_records import NO_OP

    assert segment(tmp_path).read_bytes().endswith(NO_OP)


def test_topics_without_a_metadata_log_are_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    handover.check_not_orphaned([str(tmp_path)])
    (tmp_path / "orders-0" / "partition.metadata").write_text(
        f"version: 0\ntopic_id: {to_text(DIRECTORY_ID)}"
    )
    with pytest.raises(StartupError, match="holds orders-0 but there is no metadata log"):
        handover.check_not_orphaned([str(tmp_path)])


def test_the_directory_of_another_node_is_a_refusal(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    broker.controller.stop()
    log = opened(tmp_path)
    with pytest.raises(StartupError, match=r"orders-0 has replicas \[1\], but node.id is 2"):
        handover.check_node(log.image, 2)


# -- a failing disk


def test_a_failed_write_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = open_broker(tmp_path)
    before = segment(tmp_path).read_bytes()
    pwrite = os.pwrite

    def full(fd: int, data: bytes, offset: int) -> int:
        pwrite(fd, data[:10], offset)
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    told: list[str] = []
    broker.controller.on_log_failed(lambda: told.append("failed"))
    (planned,) = create(broker, creatable("orders"))
    assert told == ["failed"]
    assert planned.error is not None and "no space left" in str(planned.error)
    assert "orders" not in broker.image.topics
    assert segment(tmp_path).read_bytes() == before
    monkeypatch.setattr(os, "pwrite", pwrite)
    (planned,) = create(broker, creatable("orders"))
    assert planned.error is None
    broker.log.close()
    assert "orders" in opened(tmp_path).image.topics


def test_a_write_may_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = open_broker(tmp_path)
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:50], offset))
    create(broker, creatable("orders", 3))
    monkeypatch.undo()
    broker.log.close()
    assert summary(opened(tmp_path).image) == summary(broker.image)
    assert segment(tmp_path).stat().st_size == broker.log.segments[-1][1]


def synced_by(monkeypatch: pytest.MonkeyPatch, directory: Path) -> list[str]:
    """The names of what is synced from now on."""
    found: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(
            os, name, lambda fd: found.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), directory))
        )
    return found


def test_a_start_is_on_the_disk_with_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_broker(tmp_path).log
    found = synced_by(monkeypatch, tmp_path / DIRECTORY)
    log.settle()
    assert sorted(found) == [".", "..", LOG, "leader-epoch-checkpoint", "quorum-state"]


def test_a_segment_is_on_the_disk_before_the_next_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_broker(tmp_path).log
    log.roll_next = True
    found = synced_by(monkeypatch, tmp_path / DIRECTORY)
    log.append([(m.NoOpRecord(), 0)])
    assert found == [LOG, LOG.replace(".log", ".index"), LOG.replace(".log", ".timeindex"), "."]
    assert len(log.segments) == 2 and not log.roll_next


def test_a_segment_that_is_written_to_has_no_indexes_that_would_lie(tmp_path: Path) -> None:
    log = open_broker(tmp_path).log
    log.close(clean=True)
    indexes = [segment(tmp_path).with_suffix(suffix) for suffix in (".index", ".timeindex")]
    assert all(each.exists() for each in indexes)
    again = opened(tmp_path)
    assert not any(each.exists() for each in indexes)
    again.close(clean=True)
    assert all(each.exists() for each in indexes)


def test_after_a_failed_fsync_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = open_broker(tmp_path)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(UnsafeLog):
        broker.log.write(b"x")
    (planned,) = create(broker, creatable("one"))
    assert planned.error is not None
    monkeypatch.undo()
    size = segment(tmp_path).stat().st_size
    (planned,) = create(broker, creatable("two"))
    assert planned.error is not None and segment(tmp_path).stat().st_size == size
