"""The copy of the controllers' metadata log: what is kept, what counts, what is cut off, what a restart finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.clock import ManualClock
from pykafkad.cluster import metadata_files, metadata_records
from pykafkad.cluster.kraft.image import QuorumImage
from pykafkad.cluster.kraft.metadata_copy import MetadataCopy
from pykafkad.cluster.metadata_bootstrap import control
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.metadata_records import MetadataError, config_record
from pykafkad.cluster.metadata_upkeep import write_snapshot
from pykafkad.cluster.snapshots import Snapshot
from pykafkad.hot import records
from pykafkad.messages import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    VotersRecord,
)

ID = b"\x07" * 16


def topic(name: str, topic_id: bytes = ID) -> list[tuple[object, int]]:
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1, directories=[ID, ID]
    )
    return [(TopicRecord(name=name, topic_id=topic_id), 0), (partition, 1)]


def batch(base_offset: int, epoch: int, *of: tuple[object, int]) -> bytes:
    """As a leader appended it."""
    rows: list[Any] = [(None, value, [], 1_000) for value in metadata_records.encode_all(list(of))]
    return bytes(records.build(rows, base_offset=base_offset, leader_epoch=epoch))


def opened(path: Path, segment_bytes: int = 1 << 20) -> MetadataCopy:
    copy = MetadataCopy(str(path), ManualClock(), [100, 101], segment_bytes=segment_bytes, segment_ms=1 << 60)
    copy.read()
    copy.prepare()
    return copy


def commit(copy: MetadataCopy, up_to: int) -> None:
    while copy.pending and copy.pending[0].end_offset <= up_to:
        copy.apply(copy.pending.popleft())


def test_what_is_fetched_counts_when_it_is_committed(tmp_path: Path) -> None:
    copy = opened(tmp_path)
    first, second = batch(0, 1, *topic("a")), batch(2, 1, *topic("b", b"\x08" * 16))
    copy.append_fetched(first + second)
    assert (copy.end_offset, copy.last_epoch) == (4, 1)
    assert not copy.image.topics
    commit(copy, 2)
    assert list(copy.image.topics) == ["a"]
    assert (copy.applied_offset, copy.image.offset) == (2, 1)
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    assert log.read_bytes() == first + second


def test_a_restart_goes_on_and_believes_nothing_that_it_was_not_told_again(tmp_path: Path) -> None:
    copy = opened(tmp_path)
    copy.follow(3, 100)
    copy.append_fetched(batch(0, 1, *topic("a")))
    copy.append_fetched(batch(2, 3, *topic("b", b"\x08" * 16)))
    commit(copy, 4)
    copy.close()
    again = opened(tmp_path)
    assert (again.end_offset, again.last_epoch, again.epoch) == (4, 3, 3)
    assert not again.image.topics
    commit(again, 4)
    assert list(again.image.topics) == ["a", "b"]
    assert metadata_files.epoch_lines(again.directory) == [(1, 0), (3, 2)]
    state = metadata_files.read_text(again.directory, "quorum-state")
    assert '"leaderId":100,"leaderEpoch":3' in state
    assert '"currentVoters":[{"voterId":100},{"voterId":101}]' in state


def test_a_torn_end_is_cut_and_fetched_again(tmp_path: Path) -> None:
    copy = opened(tmp_path)
    copy.append_fetched(batch(0, 1, *topic("a")))
    copy.close()
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    second = batch(2, 1, *topic("b", b"\x08" * 16))
    log.write_bytes(log.read_bytes() + second[:-3])
    again = opened(tmp_path)
    assert again.end_offset == 2
    again.append_fetched(second)
    assert again.end_offset == 4


def test_what_was_never_committed_is_cut_where_the_leader_says(tmp_path: Path) -> None:
    copy = opened(tmp_path)
    copy.append_fetched(batch(0, 1, *topic("a")))
    copy.append_fetched(batch(2, 2, *topic("lost", b"\x08" * 16)))
    copy.append_fetched(batch(4, 2, *topic("lost too", b"\x09" * 16)))
    commit(copy, 2)
    assert copy.cut(1, 2) == 2
    assert (copy.end_offset, copy.last_epoch) == (2, 1)
    copy.append_fetched(batch(2, 3, *topic("b", b"\x0a" * 16)))
    commit(copy, 4)
    assert list(copy.image.topics) == ["a", "b"]
    assert metadata_files.epoch_lines(copy.directory) == [(1, 0), (3, 2)]
    copy.close()
    again = opened(tmp_path)
    assert [each.end_offset for each in again.pending] == [2, 4]


def test_a_cut_goes_over_segments(tmp_path: Path) -> None:
    copy = opened(tmp_path, segment_bytes=1)
    for number in range(4):
        copy.append_fetched(batch(2 * number, 1 + number, *topic(f"t{number}", bytes([number + 1]) * 16)))
    assert len(copy.segments) == 4
    copy.cut(2, 4)
    assert (copy.end_offset, copy.last_epoch) == (4, 2)
    assert [base for base, _ in copy.segments] == [0, 2]
    copy.append_fetched(batch(4, 9, *topic("new", b"\x09" * 16)))
    copy.close()
    assert opened(tmp_path).end_offset == 6


def test_what_was_committed_is_never_cut(tmp_path: Path) -> None:
    copy = opened(tmp_path)
    copy.append_fetched(batch(0, 1, *topic("a")))
    copy.append_fetched(batch(2, 2, *topic("b", b"\x08" * 16)))
    commit(copy, 4)
    with pytest.raises(MetadataError, match="was committed up to 4"):
        copy.cut(1, 2)


@pytest.mark.parametrize("gap", [(4, 1), (2, 0)])
def test_what_does_not_continue_the_log_is_refused(tmp_path: Path, gap: tuple[int, int]) -> None:
    copy = opened(tmp_path)
    copy.append_fetched(batch(0, 1, *topic("a")))
    with pytest.raises(MetadataError, match="where the log ends at 2"):
        copy.append_fetched(batch(*gap, *topic("b", b"\x08" * 16)))


# -- snapshots


def snapshot_of(path: Path, *of: tuple[object, int]) -> tuple[tuple[int, int], bytes]:
    """What a controller whose log has these records makes of them."""
    log = MetadataLog(str(path), ManualClock())
    log.open()
    log.begin_epoch(100)
    log.append(list(of))
    snapshot = Snapshot(log, 1_000)
    batches = []
    while (part := snapshot.next_batch()) is not None:
        batches.append(part)
    write_snapshot(log.directory, snapshot.id, batches)
    log.close()
    return snapshot.id, b"".join(batches)


def broker(epoch: int) -> tuple[object, int]:
    return RegisterBrokerRecord(broker_id=1, broker_epoch=epoch, rack="r"), 3


LEVEL = (FeatureLevelRecord(name="metadata.version", feature_level=30), 0)


def test_a_snapshot_that_is_fetched_takes_the_place_of_the_log(tmp_path: Path) -> None:
    copy = opened(tmp_path / "copy")
    copy.append_fetched(batch(0, 1, LEVEL, *topic("gone", b"\x08" * 16)))
    copy.append_fetched(batch(3, 1, *topic("kept"), (config_record(2, "kept", "retention.ms", "1"), 0)))
    commit(copy, 6)
    copy.image.take_delta()
    change = PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[1])
    id, data = snapshot_of(
        tmp_path / "log",
        LEVEL,
        broker(9),
        *topic("kept"),
        (change, 0),
        *topic("new", b"\x09" * 16),
        (config_record(2, "kept", "retention.ms", "2"), 0),
    )
    copy.begin_snapshot(id)
    copy.add_piece(0, data[:100])
    copy.add_piece(100, data[100:])
    copy.end_snapshot(id)
    image, delta = copy.image, copy.image.take_delta()
    assert list(image.topics) == ["kept", "new"]
    assert image.topics["kept"].partitions[0].isr == [1]
    assert image.topics["kept"].configs == {"retention.ms": "2"}
    assert (image.offset, copy.end_offset, copy.last_epoch) == (id[0] - 1, *id)
    assert [each.name for each in delta.created.values()] == ["new"]
    assert [each.name for each in delta.deleted.values()] == ["gone"]
    assert delta.elected == {ID: {0}}
    assert delta.configs == {(2, "kept"): {"retention.ms": "2"}}
    assert delta.brokers == {1}
    copy.append_fetched(batch(id[0], id[1], (RemoveTopicRecord(topic_id=ID), 0)))
    copy.close()
    again = opened(tmp_path / "copy")
    assert list(again.image.topics) == ["kept", "new"]
    commit(again, id[0] + 1)
    assert list(again.image.topics) == ["new"]


def test_a_snapshot_that_is_damaged_does_not_count(tmp_path: Path) -> None:
    copy = opened(tmp_path / "copy")
    id, data = snapshot_of(tmp_path / "log", LEVEL, *topic("new"))
    copy.begin_snapshot(id)
    copy.add_piece(0, data[:-5])
    with pytest.raises(MetadataError, match="that was fetched"):
        copy.end_snapshot(id)
    assert not copy.image.topics
    copy.close()
    assert opened(tmp_path / "copy").end_offset == 0


def test_every_change_of_a_partition_is_in_the_delta() -> None:
    image = QuorumImage()
    for record, _ in topic("a"):
        image.apply(record)
    image.take_delta()
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[1]))
    assert image.take_delta().elected == {ID: {0}}
    assert image.take_delta().is_empty


def test_voters_may_be_asked_before_their_record_is_committed_and_after_a_restart(tmp_path: Path) -> None:
    kind = VotersRecord
    point = kind.Endpoint(name="CONTROLLER", host="h", port=9)
    record = bytes(kind(voters=[kind.Voter(voter_id=102, endpoints=[point])]).encode(0))
    copy = opened(tmp_path)
    copy.append_fetched(batch(0, 0, *topic("a")) + control(metadata_records.KRAFT_VOTERS, record, 2, 1_000))
    assert (copy.replay.voters, copy.replay.contents.voters) == (record, b"")
    commit(copy, 3)
    assert copy.replay.contents.voters == record
    copy.close()
    assert opened(tmp_path).replay.voters == record
