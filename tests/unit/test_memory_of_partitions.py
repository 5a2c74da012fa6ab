"""What a partition takes in memory counts, since there may be thousands: those that are alike share what they can."""

from __future__ import annotations

from pathlib import Path

from pykafkad.cluster.image import Image
from pykafkad.cluster.replicas import of
from pykafkad.cluster.topic_creation import partition_record
from pykafkad.messages import PartitionChangeRecord, TopicRecord
from pykafkad.storage.log.log import Log
from tests.storage_kit import TOPIC_ID, append, batch, manager, read_all, topic_config

DIRECTORY_ID = bytes(15) + b"d"


def two_logs(path: Path) -> tuple[Log, Log]:
    logs = manager(path)
    logs.open_all({}, lambda topic: topic_config())
    first, second = (logs.create("orders", index, TOPIC_ID, topic_config(), 0) for index in range(2))
    return first, second


def test_partitions_that_nobody_uses_share_what_is_empty(tmp_path: Path) -> None:
    first, second = two_logs(tmp_path)
    assert first.epochs.entries is second.epochs.entries
    assert first.producers.producers is second.producers.producers
    assert of(first).waiters is of(second).waiters


def test_an_idempotent_producer_is_known_to_its_partition_alone(tmp_path: Path) -> None:
    first, second = two_logs(tmp_path)
    append(first, batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    assert list(first.producers.producers) == [7] and not second.producers.producers
    first.producers.clear(0)
    assert not first.producers.producers


def test_what_is_saved_is_what_is_known(tmp_path: Path) -> None:
    first, _ = two_logs(tmp_path)
    first.save_files()
    assert first.stored_epochs is first.epochs.entries


def test_a_segment_remembers_where_it_was_written_to_as_soon_as_it_is(tmp_path: Path) -> None:
    first, second = two_logs(tmp_path)
    assert second.active.__sizeof__() < 300 and not read_all(second)
    for value in (b"a", b"b", b"c"):
        append(first, batch(value))
    assert [record.value for record in read_all(first)] == [b"a", b"b", b"c"]


def test_partitions_with_the_same_replicas_share_their_lists() -> None:
    image = Image()
    image.apply(TopicRecord(name="orders", topic_id=TOPIC_ID))
    for index in range(2):
        image.apply(partition_record(TOPIC_ID, index, [1, 2], DIRECTORY_ID, 2))
    first, second = image.topics["orders"].partitions
    assert first.replicas is second.replicas is first.isr and first.directories is second.directories
    for index in range(2):
        image.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=index, isr=[2], leader=2))
    assert first.isr is second.isr and (first.isr, first.replicas) == ([2], [1, 2])
