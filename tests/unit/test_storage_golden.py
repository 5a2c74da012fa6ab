"""Data directories written by Apache Kafka: opened, read back record for record, and written again byte for
byte."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.hot.segment import BatchHeader
from pykafkad.pure.producer_state import ProducerEntry
from pykafkad.slices import finish
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import parse_partition_directory, read_file
from pykafkad.storage.log import snapshots, transaction_index
from pykafkad.storage.log.log import Log
from tests.storage_kit import (
    append,
    copy_golden,
    lead,
    manager,
    new_partition,
    open_partition,
    read_all,
    topic_config,
    unpack_golden_logs,
)

# The configs of the broker that wrote them, and the topics with other ones.
SMALL: dict[str, Any] = {"segment_bytes": 8192, "index_interval_bytes": 512, "segment_index_bytes": 1200}
INTERNAL: dict[str, Any] = {**SMALL, "index_interval_bytes": 4096}
FOREVER_MS = 1 << 60
BATCH = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) lastSequence: (-?\d+)"
    rb" producerId: (-?\d+) producerEpoch: (-?\d+) partitionLeaderEpoch: (-?\d+) isTransactional: (\w+)"
    rb" isControl: (\w+) deleteHorizonMs: \S+ position: (\d+)"
    rb" (?:CreateTime|LogAppendTime): (-?\d+) size: (\d+)"
)
RECORD = re.compile(
    rb"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    rb" sequence: -?\d+ headerKeys: \[([^\]]*)\](.*)",
    re.DOTALL,
)

PARTITIONS = [
    f"{name}/{partition}"
    for name, partitions in {
        "plain": "append-time-0 empty-0 one-record-0 plain-0 plain-1",
        "codecs": "broker-gzip-append-time-0 broker-uncompressed-0 broker-zstd-0 codec-gzip-0 codec-lz4-0"
        " codec-none-0 codec-snappy-0 codec-zstd-0 mixed-0",
        "transactions": "__consumer_offsets-0 __consumer_offsets-1 __transaction_state-0"
        " __transaction_state-1 txn-0 txn-1 txn-open-0",
        "idempotent": "idem-0 interleaved-0",
        "compacted": "__transaction_state-0 __transaction_state-1 compact-delete-0 compact-drop-tombstones-0"
        " compact-gzip-0 compact-keep-tombstones-0 compact-not-cleaned-0 compact-txn-0",
        "deleted": "deleted-records-0 deleted-records-1 retention-bytes-0 to-be-deleted-0",
        "groups": "__consumer_offsets-0 __consumer_offsets-1 src-0 src-1 src-2",
        "epochs": "epochs-0",
        "unclean-before-recovery": "__transaction_state-0 __transaction_state-1 unclean-0 unclean-txn-0",
        "unclean-after-recovery": "__transaction_state-0 __transaction_state-1 unclean-0 unclean-txn-0",
    }.items()
    for partition in partitions.split()
]


@pytest.fixture(scope="module")
def logs(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_golden_logs(golden, tmp_path_factory.mktemp("golden"))


def opened(logs: Path, name: str, tmp_path: Path) -> Log:
    directory, partition = name.split("/")
    copy_golden(logs / directory / "data", tmp_path / "data")
    topic, index = parse_partition_directory(partition)  # type: ignore[misc]
    starts = checkpoints.read_offsets(str(tmp_path / "data" / checkpoints.LOG_STARTS))
    return open_partition(
        tmp_path / "data",
        topic=topic,
        index=index,
        clean=(tmp_path / "data" / ".kafka_cleanshutdown").exists(),
        log_start_offset=starts.get((topic, index), 0),
        high_watermark=FOREVER_MS,
        expiration_ms=FOREVER_MS,
        **(INTERNAL if topic[0] == "_" else SMALL),
    )


def dumped(logs: Path, name: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The batches and records that Kafka's own tool printed."""
    directory, partition = name.split("/")
    text = (logs / directory / "dump" / f"{partition}.txt").read_bytes()
    batches, found = [], []
    for part in re.split(rb"\n(?=\| offset: |baseOffset: |Dumping |Non-consecutive )", text):
        if match := BATCH.match(part):
            batches.append(
                tuple(
                    each in (b"true",) if each in (b"true", b"false") else int(each)
                    for each in match.groups()
                )
            )
        elif match := RECORD.match(part):
            offset, timestamp, key_size, value_size, headers, rest = match.groups()
            sizes = int(key_size), int(value_size)
            found.append((int(offset), int(timestamp), *sizes, headers, rest))
    return batches, found


def as_dumped(header: BatchHeader) -> tuple[Any, ...]:
    return (
        header.base_offset, header.last_offset, header.count, header.base_sequence, header.last_sequence,
        header.producer_id, header.producer_epoch, header.leader_epoch, header.is_transactional,
        header.is_control, header.position, header.max_timestamp, header.size,
    )  # fmt: skip


def size_of(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_kafka_log_opens_and_reads_back_record_for_record(logs: Path, name: str, tmp_path: Path) -> None:
    partition = opened(logs, name, tmp_path)
    batches, expected = dumped(logs, name)
    assert [as_dumped(each) for segment in partition.segments for each in segment.headers()] == batches
    assert partition.log_end_offset == (batches[-1][1] + 1 if batches else 0)
    everything = [
        record for segment in partition.segments for record in records.read(read_file(segment.path))
    ]
    assert len(everything) == len(expected)
    for record, (offset, timestamp, key_size, value_size, keys, rest) in zip(
        everything, expected, strict=True
    ):
        assert (record.offset, record.timestamp) == (offset, timestamp)
        assert (size_of(record.key), size_of(record.value)) == (key_size, value_size)
        assert b",".join(key.encode() for key, _ in record.headers) == keys
        if record.control_type is None and partition.topic[0] != "_":
            assert as_text(record) == rest
    visible = [each for each in everything if each.offset >= partition.log_start_offset]
    assert read_all(partition) == visible


def as_text(record: records.Record) -> bytes:
    key = b"" if record.key is None else b" key: " + record.key
    return key + (b"" if record.value is None else b" payload: " + record.value)


@pytest.mark.parametrize("name", [name for name in PARTITIONS if not name.startswith("unclean-before")])
def test_a_clean_open_and_close_changes_no_file(logs: Path, name: str, tmp_path: Path) -> None:
    """Except for what Kafka drops as well: snapshots without a segment or below the log start, and epochs without
    records."""
    partition = opened(logs, name, tmp_path)
    partition.close()
    directory, leaf = name.split("/")
    before = contents(logs / directory / "data" / leaf)
    offsets = (*partition.bases, partition.log_end_offset)
    useful = {f"{offset:020d}.snapshot" for offset in offsets if offset >= partition.log_start_offset}
    before = {file: data for file, data in before.items() if file in useful or not file.endswith(".snapshot")}
    after = contents(Path(partition.directory))
    epochs = checkpoints.read_epochs(str(logs / directory / "data" / leaf))
    if epochs and epochs[-1][1] == partition.log_end_offset:
        assert list(partition.epochs.entries) == epochs[:-1]
        del before["leader-epoch-checkpoint"], after["leader-epoch-checkpoint"]
    assert after == before


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    "leaf", ["unclean-0", "unclean-txn-0", "__transaction_state-0", "__transaction_state-1"]
)
def test_recovery_leaves_the_files_that_kafkas_recovery_left(logs: Path, leaf: str, tmp_path: Path) -> None:
    partition = opened(logs, f"unclean-before-recovery/{leaf}", tmp_path)
    partition.close()
    ours = contents(Path(partition.directory))
    kafkas = contents(logs / "unclean-after-recovery" / "data" / leaf)
    for files in (ours, kafkas):
        files.pop("leader-epoch-checkpoint")  # Kafka's start there began another epoch
    assert ours == kafkas


@pytest.mark.parametrize(
    "name",
    [
        "plain/plain-0", "plain/plain-1", "plain/one-record-0", "codecs/codec-gzip-0", "codecs/codec-none-0",
        "codecs/codec-zstd-0", "codecs/mixed-0", "idempotent/idem-0", "idempotent/interleaved-0",
        "transactions/txn-0", "transactions/txn-1", "transactions/txn-open-0",
        "compacted/compact-not-cleaned-0", "unclean-after-recovery/unclean-txn-0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("appends_a_commit", [1, 7, 1000])
def test_the_same_appends_make_the_same_files(
    logs: Path, name: str, appends_a_commit: int, tmp_path: Path
) -> None:
    """Segments roll at the same batches; indexes and snapshots have the same bytes as Kafka's."""
    directory, leaf = name.split("/")
    source = logs / directory / "data" / leaf
    topic, _ = parse_partition_directory(leaf)  # type: ignore[misc]
    partition = new_partition(tmp_path / "log", topic=topic, **SMALL)
    pending = 0
    for path in sorted(source.glob("*.log")):
        data = path.read_bytes()
        for header in records.scan(data):
            chunk = bytearray(data[header.position : header.position + header.size])
            chunk[:8] = bytes(8)  # as it was sent
            partition.append_built(chunk, header.max_timestamp)
            pending += 1
            if pending % appends_a_commit == 0:
                partition.commit()
    partition.commit()
    partition.close()
    ours, kafkas = contents(Path(partition.directory)), contents(source)
    for files in (ours, kafkas):
        files.pop("partition.metadata", None)
        files.pop("leader-epoch-checkpoint")
    assert sorted(ours) == sorted(kafkas)
    for file, data in kafkas.items():
        if file.endswith(".snapshot"):
            assert entries_of(ours[file]) == entries_of(data), file
        else:
            assert ours[file] == data, file


def entries_of(data: bytes) -> list[str]:
    """A snapshot's entries; Kafka writes them in the order of a hash table."""
    entries: list[ProducerEntry] = sorted(snapshots.decode(data), key=lambda entry: entry.producer_id)
    return [repr(entry) for entry in entries]


def test_every_golden_snapshot_is_written_back_byte_for_byte(logs: Path) -> None:
    paths = sorted(logs.glob("*/data/*/*.snapshot"))
    assert len(paths) > 100
    for path in paths:
        data = path.read_bytes()
        assert snapshots.encode(snapshots.decode(data)) == data, path


def test_an_open_transaction_holds_the_last_stable_offset(logs: Path, tmp_path: Path) -> None:
    partition = opened(logs, "transactions/txn-open-0", tmp_path)
    assert (partition.log_end_offset, partition.last_stable_offset) == (13, 4)


def test_aborted_transactions_come_from_the_index(logs: Path, tmp_path: Path) -> None:
    partition = opened(logs, "transactions/txn-0", tmp_path)
    listed = [
        (producer_id, first, last)
        for segment in partition.segments
        for producer_id, first, last, _ in transaction_index.read(partition.directory, segment.base_offset)
    ]
    assert listed
    for segment in partition.segments:
        data = partition.read(
            segment.base_offset, 1 << 20, limit_offset=partition.high_watermark, at_least_one=True
        )
        assert data is not None
        end = records.scan(data.read())[-1].last_offset
        expected = [
            (producer_id, first)
            for producer_id, first, last in listed
            if last >= segment.base_offset and first <= end
        ]
        assert partition.aborted_transactions(segment.base_offset, data) == expected


def test_leader_epochs_are_read(logs: Path, tmp_path: Path) -> None:
    partition = opened(logs, "epochs/epochs-0", tmp_path)
    starts = ((0, 0), *partition.epochs.entries[1:])
    assert partition.epochs.entries == starts and len(starts) == 3
    for (epoch, _), (_, following) in pairwise(starts):
        assert partition.end_offset_for_epoch(epoch) == (epoch, following)
    assert partition.end_offset_for_epoch(starts[-1][0]) == (starts[-1][0], partition.log_end_offset)


def test_offsets_by_timestamp_are_those_of_a_search_through_all_records(logs: Path, tmp_path: Path) -> None:
    for name in (
        "plain/plain-0",
        "codecs/mixed-0",
        "codecs/broker-gzip-append-time-0",
        "compacted/compact-txn-0",
    ):
        partition = opened(logs, name, tmp_path / name.replace("/", "-"))
        everything = read_all(partition)
        timestamps = sorted({record.timestamp for record in everything})
        for timestamp in [0, *timestamps, *(each + 1 for each in timestamps)]:
            expected = next((each for each in everything if each.timestamp >= timestamp), None)
            found = finish(partition.offset_for_timestamp(timestamp))
            assert (found and found[:2]) == (expected and (expected.offset, expected.timestamp)), (
                name,
                timestamp,
            )
        newest = max(everything, key=lambda record: (record.timestamp, -record.offset))
        assert finish(partition.max_timestamp_offset()) == (
            newest.offset,
            newest.timestamp,
            partition.epoch_at(newest.offset),
        )


@pytest.mark.parametrize(
    "name",
    ["codecs", "transactions", "idempotent", "compacted", "deleted", "groups", "unclean-before-recovery"],
)
def test_a_whole_golden_directory_starts_and_stops(logs: Path, name: str, tmp_path: Path) -> None:
    data = copy_golden(logs / name / "data", tmp_path / "data")
    known = {}
    for path in sorted(data.iterdir()):
        topic_id = checkpoints.read_topic_id(str(path)) if path.is_dir() else None
        if topic_id is not None:
            key = parse_partition_directory(path.name)
            assert key is not None
            known[key] = topic_id
    logs_of = manager(data)
    config = topic_config(**SMALL)
    assert logs_of.open_all(known, lambda topic: config) == []
    assert set(logs_of.partitions) == set(known)
    assert (logs_of.cluster_id, logs_of.directories[0].was_clean) == (
        "MkU3OEVBNTcwNTJENDM2Qk", name != "unclean-before-recovery",
    )  # fmt: skip
    starts = checkpoints.read_offsets(str(data / checkpoints.LOG_STARTS))
    for key, offset in starts.items():
        assert logs_of.partitions[key].log_start_offset == offset
    for partition in logs_of:
        append_one = partition.topic.startswith("codec")
        lead(partition, 50)
        if append_one:
            append(partition, records.build([(b"key", b"value", [], 1_700_000_000_000)]))
    logs_of.close()
    assert (data / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
