"""Records of `__consumer_offsets`, as Apache Kafka writes and reads them."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import UnknownRecord
from pykafkad.pure.groups import records
from pykafkad.pure.groups.records import decode, encode
from tests.storage_kit import copy_golden, open_partition, read_all, unpack_golden_logs
from tests.unit.data_kit import Desk

OFFSETS = "__consumer_offsets"
DECODED = re.compile(r'key: \{"type":"(\d+)","data":(\{.*?\})\} payload: (.*)$')


@pytest.fixture(scope="module")
def logs(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_golden_logs(golden, tmp_path_factory.mktemp("golden"))


def opened(logs: Path, name: str, index: int, directory: Path) -> Any:
    copy_golden(logs / name / "data", directory)
    return open_partition(directory, topic=OFFSETS, index=index, high_watermark=1 << 40)


@pytest.mark.parametrize("index", [0, 1])
def test_what_kafka_wrote_is_written_again_byte_for_byte(logs: Path, tmp_path: Path, index: int) -> None:
    partition = opened(logs, "groups", index, tmp_path / "data")
    rows = read_all(partition)
    assert len(rows) > 20
    for row in rows:
        assert encode(*decode(row.key, row.value)) == (row.key, row.value)


def loaded(logs: Path, name: str, tmp_path: Path) -> dict[int, Any]:
    """The groups that a broker loads from a data directory, by partition."""
    desk = Desk(tmp_path / "desk")
    desk.create(OFFSETS, 2)
    for index in (0, 1):
        partition = opened(logs, name, index, tmp_path / f"data{index}")
        partition.high_watermark = partition.log_end_offset
        desk.replicas.table[OFFSETS, index].log = partition
    desk.group_coordinator.start()
    for _ in range(20):
        desk.advance(0)
        desk.end_pass()
    return {index: desk.group_coordinator.shard(index).machine for index in (0, 1)}


def said_by_dump(logs: Path, name: str, index: int) -> dict[tuple[str, str, int], int]:
    """The committed offsets that result from the decoded text of a log."""
    offsets: dict[tuple[str, str, int], int] = {}
    for line in (logs / name / "dump" / f"{OFFSETS}-{index}.decoded.txt").read_text().splitlines():
        found = DECODED.search(line)
        if found is None or found[1] != "1":
            continue
        key = json.loads(found[2])
        where = key["group"], key["topic"], key["partition"]
        if found[3] == "<DELETE>":
            offsets.pop(where, None)
        else:
            offsets[where] = json.loads(found[3])["data"]["offset"]
    return offsets


def test_the_offsets_of_a_directory_of_kafkas_are_loaded(logs: Path, tmp_path: Path) -> None:
    for index, groups in loaded(logs, "groups", tmp_path).items():
        found = {
            (group_id, topic, partition): offset.offset
            for group_id, topics in groups.offsets.by_group.items()
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        }
        assert found == said_by_dump(logs, "groups", index)
        assert found


def test_the_groups_of_a_directory_of_kafkas_are_loaded(logs: Path, tmp_path: Path) -> None:
    states = {
        group_id: (group.TYPE, group.state_name)
        for groups in loaded(logs, "groups", tmp_path).values()
        for group_id, group in groups.by_id.items()
    }
    assert states.pop("new-protocol")[0] == "consumer"
    assert states == {
        "classic-coop": ("classic", "Empty"),
        "classic-range": ("classic", "Empty"),
        "manual": ("classic", "Empty"),
        "new-regex": ("consumer", "Empty"),
        "offset-deleted": ("classic", "Empty"),
        "static-members": ("classic", "Stable"),
        "two-members": ("classic", "Stable"),
    }


def test_a_committed_transaction_counts_and_an_aborted_one_does_not(logs: Path, tmp_path: Path) -> None:
    (groups,) = [each for each in loaded(logs, "transactions", tmp_path).values() if each.by_id]
    assert list(groups.offsets.partitions_of("txg")) == [("txn", 0)]
    assert groups.offsets.get("txg", "txn", 0).offset == 7
    assert not groups.offsets.pending


def vectors(golden: Path) -> list[dict[str, Any]]:
    with gzip.open(golden / "messages.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    names = {f"{name}{kind}" for name, _ in records.TYPES.values() for kind in ("Key", "Value")}
    return [row for row in rows if row["message"] in names]


def test_the_types_of_the_table_are_those_of_the_messages(golden: Path) -> None:
    found = {(row["apiKey"], row["message"]) for row in vectors(golden)}
    expected = {
        (number, f"{name}{kind}") for number, (name, _) in records.TYPES.items() for kind in ("Key", "Value")
    }
    assert found == expected


def test_values_of_every_version_are_read(golden: Path) -> None:
    for row in vectors(golden):
        if row["type"] != "coordinator-value":
            continue
        name = row["message"].removesuffix("Value")
        key = row["apiKey"].to_bytes(2) + getattr(messages, f"{name}Key")().encode(0)
        _, value = decode(key, row["version"].to_bytes(2) + bytes.fromhex(row["hex"]))
        assert value is not None


def test_offsets_in_the_oldest_layout_come_as_todays() -> None:
    key = messages.LegacyOffsetCommitKey(group="g", topic="t", partition=3)
    value = messages.LegacyOffsetCommitValue(offset=9, metadata="m", commit_timestamp=5)
    found_key, found = decode(b"\0\0" + key.encode(0), b"\0\0" + value.encode(0))
    assert found_key == messages.OffsetCommitKey(group="g", topic="t", partition=3)
    assert found == messages.OffsetCommitValue(offset=9, metadata="m", commit_timestamp=5)
    assert decode(b"\0\0" + key.encode(0), None) == (found_key, None)


@pytest.mark.parametrize("key", [None, b"\0\x0b\0\1g", b"\0\x11\0\1g", b"\x7f\xff", b"\xff\xff"])
def test_types_of_later_are_not_known(key: bytes | None) -> None:
    with pytest.raises(UnknownRecord):
        decode(key, b"\0\0")


def test_values_of_later_versions_are_not_known_and_what_is_cut_is_refused(golden: Path) -> None:
    for record_type, (name, _) in records.TYPES.items():
        key = record_type.to_bytes(2) + getattr(messages, f"{name}Key")().encode(0)
        latest = getattr(messages, f"{name}Value").max_version
        for version in (latest + 1, -1):
            with pytest.raises(UnknownRecord, match=f"a {name} of version {version}$"):
                decode(key, version.to_bytes(2, signed=True) + bytes(100))
        for value in (b"", b"\0", b"\0\0"):
            with pytest.raises(WireError):
                decode(key, value)


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1", b"\0\1\0\5g", b"\0\2\xff\xff"])
def test_bytes_that_are_no_key_are_refused(key: bytes) -> None:
    with pytest.raises(WireError):
        decode(key, b"\0\0")
