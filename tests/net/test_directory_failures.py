"""Disks that fail under a running broker: system calls fail by strace, and a file system of a few megabytes becomes
full.

Expected is what Kafka 4.3.1 answered in the same cases (two directories, the one without the metadata log full).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from pykafkad.testing import Broker, BrokerError
from tests.strace_kit import Injected, needs_strace, wait_until

VALUE_BYTES = 1_000
LEADERLESS = errors.LEADER_NOT_AVAILABLE


# -- requests


def produce(client: Any, index: int, value: bytes = b"v", acks: int = -1) -> tuple[int, int]:
    """(error code, base offset)"""
    batch = records.build([(None, value, [], int(time.time() * 1000))])
    item = ProduceRequest.PartitionProduceData(index=index, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[item])]
    answer = client.call(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics), 9)
    found = answer.responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def fetch(client: Any, index: int, offset: int = 0) -> tuple[int, list[bytes]]:
    item = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 24)
    topics = [FetchRequest.FetchTopic(topic="t", partitions=[item])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics)
    found = client.call(request, 12).responses[0].partitions[0]
    read = records.read(found.records) if found.records else ()
    return found.error_code, [each.value or b"" for each in read if each.offset >= offset]


def everything(client: Any, index: int) -> list[bytes]:
    found: list[bytes] = []
    while True:
        code, values = fetch(client, index, len(found))
        assert code == errors.NONE
        if not values:
            return found
        found += values


def list_offsets(client: Any, index: int) -> int:
    kind = ListOffsetsRequest
    item = kind.ListOffsetsPartition(partition_index=index, timestamp=-1)
    request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name="t", partitions=[item])])
    return int(client.call(request, 6).topics[0].partitions[0].error_code)


def partitions(client: Any, version: int = 12) -> list[tuple[int, int, list[int], list[int]]]:
    """(error, leader, in-sync replicas, offline replicas) of each partition of `t`."""
    topic = MetadataRequest.MetadataRequestTopic(name="t")
    found = client.call(MetadataRequest(topics=[topic]), version).topics[0].partitions
    return [
        (each.error_code, each.leader_id, each.isr_nodes, each.offline_replicas)
        for each in sorted(found, key=lambda each: each.partition_index)
    ]


def homes(client: Any) -> tuple[dict[int, str], dict[str, int]]:
    """The directory of each partition of `t`, and the error code of each directory."""
    results = client.call(DescribeLogDirsRequest(topics=None), 4).results
    found = {
        each.partition_index: result.log_dir
        for result in results
        for topic in result.topics
        if topic.name == "t"
        for each in topic.partitions
    }
    return found, {result.log_dir: result.error_code for result in results}


def coordinator(client: Any, group: str) -> int:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    return int(client.call(request, 4).coordinators[0].error_code)


def commit(client: Any, group: str) -> int:
    kind = OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topics = [kind.OffsetCommitRequestTopic(name="t", partitions=[part])]
    request = kind(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    return int(client.call(request, 8).topics[0].partitions[0].error_code)


def committed(client: Any, group: str) -> int:
    kind = OffsetFetchRequest
    asked = kind.OffsetFetchRequestGroup(group_id=group, topics=None)
    return int(client.call(kind(groups=[asked], require_stable=False), 8).groups[0].error_code)


# -- two directories


class Pair:
    """A broker with the directories a and b, the metadata log in a, and the topic `t` in both."""

    def __init__(self, directory: Path, config: dict[str, object]) -> None:
        self.a, self.b = str(directory / "a"), str(directory / "b")
        self.broker = Broker(
            config={
                "log.dirs": f"{self.a},{self.b}",
                "metadata.log.dir": self.a,
                "offsets.topic.num.partitions": 2,
                **config,
            }
        )
        self.broker.create_topic("t", 4)
        with self.broker.client() as client:
            where, _ = homes(client)
            self.in_a = min(index for index, path in where.items() if path == self.a)
            self.in_b = min(index for index, path in where.items() if path == self.b)
            self.all_in_b = {index for index, path in where.items() if path == self.b}

    def expect_b_offline(self, client: Any) -> None:
        """What Kafka shows of a directory that is offline."""
        wait_until(lambda: partitions(client)[self.in_b][1] == -1, "the metadata does not say so")
        for index, found in enumerate(partitions(client)):
            expected = (LEADERLESS, -1, [], [1]) if index in self.all_in_b else (errors.NONE, 1, [1], [])
            assert found == expected
        assert homes(client)[1] == {self.a: errors.NONE, self.b: errors.KAFKA_STORAGE_ERROR}
        assert produce(client, self.in_b) == (errors.KAFKA_STORAGE_ERROR, -1)
        assert fetch(client, self.in_b) == (errors.KAFKA_STORAGE_ERROR, [])
        assert list_offsets(client, self.in_b) == errors.KAFKA_STORAGE_ERROR
        assert produce(client, self.in_a)[0] == errors.NONE
        assert list_offsets(client, self.in_a) == errors.NONE


@contextlib.contextmanager
def two_directories(directory: Path, **config: object) -> Iterator[Pair]:
    pair = Pair(directory, {name.replace("_", "."): value for name, value in config.items()})
    with pair.broker:
        yield pair


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_write_that_fails_takes_its_directory_offline_and_the_others_serve_on(
    tmp_path: Path, error: str
) -> None:
    with two_directories(tmp_path) as pair, pair.broker.client() as client:
        assert produce(client, pair.in_b, b"kept") == (errors.NONE, 0)
        path = f"{pair.b}/t-{pair.in_b}/{0:020d}.log"
        with Injected(pair.broker, "pwrite64,pwritev", f"error={error}", path) as injected:
            assert produce(client, pair.in_b, b"lost") == (errors.KAFKA_STORAGE_ERROR, -1)
            pair.expect_b_offline(client)
            assert len(injected.calls) == 1, "a directory that failed is left alone"
        assert pair.broker.log_text().count(f"log directory {pair.b} is offline") == 1
        pair.broker.kill()
        pair.broker.restart()
        with pair.broker.client() as client:
            assert everything(client, pair.in_b) == [b"kept"]
            assert partitions(client)[pair.in_b] == (errors.NONE, 1, [1], [])
            assert produce(client, pair.in_b) == (errors.NONE, 1)


@needs_strace
def test_a_failed_flush_acknowledges_nothing_and_is_not_tried_again(tmp_path: Path) -> None:
    with two_directories(tmp_path, log_flush_interval_messages=1) as pair, pair.broker.client() as client:
        assert produce(client, pair.in_b, b"kept") == (errors.NONE, 0)
        with Injected(
            pair.broker, "fsync,fdatasync", "error=EIO", f"{pair.b}/t-{pair.in_b}/{0:020d}.log"
        ) as injected:
            assert produce(client, pair.in_b, b"lost") == (errors.KAFKA_STORAGE_ERROR, -1)
            pair.expect_b_offline(client)
            assert len(injected.calls) == 1


@needs_strace
def test_a_read_that_fails_is_a_storage_error(tmp_path: Path) -> None:
    with two_directories(tmp_path) as pair, pair.broker.client() as client:
        for _ in range(40):  # more than the broker keeps positions of
            produce(client, pair.in_b, b"v" * VALUE_BYTES)
        with Injected(pair.broker, "pread64", "error=EIO", f"{pair.b}/t-{pair.in_b}/{0:020d}.log"):
            assert fetch(client, pair.in_b, 1)[0] == errors.KAFKA_STORAGE_ERROR
            pair.expect_b_offline(client)


@needs_strace
def test_a_checkpoint_that_fails_takes_its_directory_offline(tmp_path: Path) -> None:
    config = {"replica_high_watermark_checkpoint_interval_ms": 100}
    with two_directories(tmp_path, **config) as pair, pair.broker.client() as client:
        renames, path = "rename,renameat,renameat2", f"{pair.b}/replication-offset-checkpoint.tmp"
        with Injected(pair.broker, renames, "error=EIO", path) as injected:
            pair.expect_b_offline(client)
            assert len(injected.calls) == 1


@needs_strace
def test_an_error_in_the_directory_of_the_metadata_stops_the_broker(tmp_path: Path) -> None:
    with two_directories(tmp_path) as pair, pair.broker.client() as client:
        with Injected(
            pair.broker, "fsync,fdatasync", "error=EIO", f"{pair.a}/__cluster_metadata-0/{0:020d}.log"
        ):
            kind = CreateTopicsRequest.CreatableTopic
            topics = [kind(name="new", num_partitions=1, replication_factor=1)]
            with contextlib.suppress(ConnectionError):
                answer = client.call(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
                assert answer.topics[0].error_code == errors.KAFKA_STORAGE_ERROR
            wait_until(lambda: not pair.broker.running, "it does not stop")
        assert exit_code(pair.broker) == 1
        assert f"the metadata log in {pair.a} has failed; stopping" in pair.broker.log_text()
        assert "Traceback" not in pair.broker.log_text()
        pair.broker.restart()
        with pair.broker.client() as again:
            assert partitions(again)[pair.in_b] == (errors.NONE, 1, [1], [])


@needs_strace
def test_the_last_directory_stops_the_broker_with_a_line(tmp_path: Path) -> None:
    with Broker(topics=["t"], data=tmp_path / "data") as broker:
        with broker.client() as client:
            produce(client, 0, b"kept")
            with Injected(broker, "pwrite64,pwritev", "error=EIO", f"{tmp_path}/data/t-0/{0:020d}.log"):
                with contextlib.suppress(ConnectionError):
                    assert produce(client, 0, b"lost") == (errors.KAFKA_STORAGE_ERROR, -1)
                wait_until(lambda: not broker.running, "it does not stop")
        assert exit_code(broker) == 1
        text = broker.log_text()
        assert f"all log directories have failed ({tmp_path}/data); stopping" in text
        assert "Traceback" not in text
        broker.restart()
        with broker.client() as client:
            assert everything(client, 0) == [b"kept"]


def exit_code(broker: Broker) -> int | None:
    assert broker._process is not None
    return broker._process.wait()


def test_groups_whose_partition_is_offline_have_no_coordinator(tmp_path: Path) -> None:
    with two_directories(tmp_path) as pair, pair.broker.client() as client:
        groups = [f"g{number}" for number in range(8)]
        wait_until(lambda: coordinator(client, "g0") == errors.NONE, "there is no coordinator")
        for group in groups:
            wait_until(lambda group=group: commit(client, group) == errors.NONE, "no commit")  # type: ignore[misc]
        remove_files(pair.b)
        wait_until(lambda: produce(client, pair.in_b)[0] != errors.NONE, "nobody notices")
        pair.expect_b_offline(client)
        codes = {
            (coordinator(client, each), commit(client, each), committed(client, each)) for each in groups
        }
        assert codes == {
            (errors.NONE,) * 3,
            (errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR, errors.NOT_COORDINATOR),
        }
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name="t")], response_partition_limit=10
        )
        for found in client.call(request, 0).topics[0].partitions:
            if found.partition_index in pair.all_in_b:
                assert (found.error_code, found.leader_id, found.offline_replicas) == (errors.NONE, -1, [1])
                assert found.eligible_leader_replicas == found.last_known_elr == [1]


def remove_files(directory: str) -> None:
    """Somebody replaces the directory by a file: nothing in it can be opened or written any more."""
    os.rename(directory, f"{directory}.gone")
    Path(directory).touch()


def test_a_directory_that_is_gone_fails_its_new_segments_and_comes_back(tmp_path: Path) -> None:
    config = {"replica_high_watermark_checkpoint_interval_ms": 100}
    with two_directories(tmp_path, **config) as pair, pair.broker.client() as client:
        assert produce(client, pair.in_b, b"kept") == (errors.NONE, 0)
        remove_files(pair.b)
        pair.expect_b_offline(client)
        kind = CreateTopicsRequest.CreatableTopic
        topics = [kind(name="new", num_partitions=3, replication_factor=1)]
        answer = client.call(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
        assert answer.topics[0].error_code == errors.NONE
        pair.broker.kill()
        pair.broker.restart()  # without it: its partitions are offline, and not created anew elsewhere
        with pair.broker.client() as again:
            pair.expect_b_offline(again)
            assert not any(
                name.startswith("t-") and int(name[2:]) in pair.all_in_b for name in os.listdir(pair.a)
            )
        pair.broker.stop()
        os.unlink(pair.b)
        os.rename(f"{pair.b}.gone", pair.b)
        pair.broker.restart()
        with pair.broker.client() as again:
            assert partitions(again)[pair.in_b] == (errors.NONE, 1, [1], [])
            assert everything(again, pair.in_b) == [b"kept"]
            assert produce(again, pair.in_b) == (errors.NONE, 1)


# -- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 10 MiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", mount], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, small_disk: Path) -> None:
    config: dict[str, object] = {"log.index.interval.bytes": 100, "log.segment.bytes": 2 << 20}
    with Broker(topics={"t": 2}, data=small_disk / "data", config=config) as broker:
        acknowledged: list[list[bytes]] = [[], []]
        with broker.client() as client, contextlib.suppress(ConnectionError):
            for number in range(100_000):
                value = b"%08d" % number + b"x" * VALUE_BYTES
                code, offset = produce(client, number % 2, value)
                if code:
                    assert code == errors.KAFKA_STORAGE_ERROR
                    break
                acknowledged[number % 2].append(value)
                assert offset == len(acknowledged[number % 2]) - 1
        wait_until(lambda: not broker.running, "it does not stop")
        assert exit_code(broker) == 1
        assert "Traceback" not in broker.log_text()
        assert sum(map(len, acknowledged)) > 3_000
        subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
        broker.restart()
        with broker.client() as client:
            for index, expected in enumerate(acknowledged):
                found = everything(client, index)
                assert found[: len(expected)] == expected
                assert len(found) <= len(expected) + 1, "more than what was acknowledged, and one that failed"


def test_a_start_without_the_directory_of_the_metadata_ends_with_a_line(tmp_path: Path) -> None:
    with two_directories(tmp_path) as pair:
        pair.broker.stop()
        remove_files(pair.a)
        with pytest.raises(BrokerError, match="exit code 1"):
            pair.broker.start()
        text = pair.broker.log_text()
        assert "The log directory of the metadata log failed" in text and "Traceback" not in text
        os.unlink(pair.a)
        os.rename(f"{pair.a}.gone", pair.a)
        pair.broker.start()
        with pair.broker.client() as client:
            assert partitions(client)[pair.in_b] == (errors.NONE, 1, [1], [])
