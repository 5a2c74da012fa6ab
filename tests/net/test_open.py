"""`pykafkad open DIR --read-only` as a process: clients read everything, and no byte of the directory changes."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    AlterClientQuotasRequest,
    AlterReplicaLogDirsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    UpdateFeaturesRequest,
)
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.overlay.opened import WHY
from pykafkad.testing import Broker
from pykafkad.testing.client import Client
from tests.storage_kit import state

SECONDS = 60
READY = "pykafkad ready: bootstrap.servers=127.0.0.1:"
RETRIABLE = {errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR}
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
CONSUMER_OFFSETS = "__consumer_offsets"


class Opened:
    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.client = Client("127.0.0.1", port)

    def topics(self) -> dict[str, Any]:
        return {topic.name: topic for topic in self.client.call(MetadataRequest(topics=None), 12).topics}

    def offset(self, topic: str, index: int, timestamp: int) -> int:
        partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        row = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
        answer = self.client.call(ListOffsetsRequest(replica_id=-1, topics=[row]), 4)
        return int(answer.topics[0].partitions[0].offset)

    def read(self, topic: str, index: int) -> list[records.Record]:
        offset, end = self.offset(topic, index, -2), self.offset(topic, index, -1)
        found: list[records.Record] = []
        while offset < end:
            partition = FetchRequest.FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            asked = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
            )
            row = self.client.call(asked, 11).responses[0].partitions[0]
            assert row.error_code == 0 and row.records
            found += [each for each in records.read(row.records) if each.offset >= offset]
            offset = records.scan(row.records)[-1].last_offset + 1
        return found

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        kind = OffsetFetchRequest
        asked = kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=None)])
        answer = self.loaded(asked, lambda answer: answer.groups[0].error_code).groups[0]
        assert answer.error_code == 0
        return {
            (topic.name, row.partition_index): row.committed_offset
            for topic in answer.topics
            for row in topic.partitions
        }

    def commit(self, group: str, topic: str, offset: int) -> int:
        kind = OffsetCommitRequest
        row = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        asked = kind(group_id=group, topics=[kind.OffsetCommitRequestTopic(name=topic, partitions=[row])])

        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return code(self.loaded(asked, code))

    def loaded(self, asked: Any, code: Callable[[Any], int]) -> Any:
        """The answer of a coordinator that has loaded its groups."""
        deadline = time.monotonic() + SECONDS
        while code(answer := self.client.call(asked, 8)) in RETRIABLE:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return answer


@contextmanager
def opened(
    *directories: Path, temporary: Path, end: signal.Signals = signal.SIGTERM, **options: Any
) -> Iterator[Opened]:
    arguments = [sys.executable, "-m", "pykafkad", "open", *map(str, directories)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    process = subprocess.Popen(
        [*arguments, "--read-only", "--port", "0", *options.pop("more", ())],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, "TMPDIR": str(temporary), "HOME": str(temporary)},
        **options,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), line
        found = Opened(process, int(line.removeprefix(READY)))
        try:
            yield found
        finally:
            found.client.close()
    finally:
        process.send_signal(end)
        process.communicate(timeout=SECONDS)
    if end == signal.SIGTERM:
        assert process.returncode == 0
        assert not [path for path in temporary.iterdir() if path.name.startswith("pykafkad-")]


@pytest.fixture(scope="module")
def logs(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("golden")
    with tarfile.open(golden / "logs.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target / "logs"


def in_the_files(directory: Path) -> list[records.Record]:
    files = sorted(directory.glob("*.log"))
    return [record for file in files for record in records.read(file.read_bytes())]


@pytest.mark.parametrize("name", ["plain", "transactions", "compacted", "deleted", "unclean-before-recovery"])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_clients_read_every_record_and_the_directory_stays_as_it_is(
    logs: Path, name: str, end: signal.Signals, tmp_path: Path
) -> None:
    data = logs / name / "data"
    before = state(data)
    starts = checkpoints.read_offsets(str(data / checkpoints.LOG_STARTS))
    with opened(data, temporary=tmp_path, end=end) as broker:
        topics = broker.topics()
        shown = {
            f"{name}-{row.partition_index}" for name, topic in topics.items() for row in topic.partitions
        }
        assert shown == {path.name for path in data.iterdir() if path.is_dir()} - {"__cluster_metadata-0"}
        for topic_name, topic in topics.items():
            for row in topic.partitions:
                assert (row.error_code, row.leader_id) == (0, 1)
                index = row.partition_index
                expected = in_the_files(data / f"{topic_name}-{index}")
                start = starts.get((topic_name, index), 0)
                assert broker.read(topic_name, index) == [each for each in expected if each.offset >= start]
    assert state(data) == before


def obey_modes() -> None:
    """For a child process of root: give up the capability to ignore the modes of files."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.mark.skipif(sys.platform != "linux", reason="root obeys no modes without Linux's capabilities")
def test_a_directory_that_may_not_be_written_to_is_opened(logs: Path, tmp_path: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    shutil.copytree(logs / "groups" / "data", data)
    temporary.mkdir()
    for path in [data, *data.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    before = state(data)
    options: dict[str, Any] = {"preexec_fn": obey_modes} if os.getuid() == 0 else {}
    writing = subprocess.run(["touch", str(data / "x")], capture_output=True, check=False, **options)
    assert writing.returncode == 1
    with opened(data, temporary=temporary, **options) as broker:
        assert broker.read("src", 0) == in_the_files(data / "src-0")
        assert broker.commit("a new group", "src", 3) == 0
        assert broker.committed("a new group") == {("src", 0): 3}
    assert state(data) == before


def test_groups_are_shown_and_what_they_commit_is_gone_at_the_end(logs: Path, tmp_path: Path) -> None:
    data = logs / "groups" / "data"
    before = state(data)
    for _ in range(2):
        with opened(data, temporary=tmp_path) as broker:
            assert broker.committed("classic-coop") == {("src", index): 50 for index in range(3)}
            assert broker.committed("another") == {}
            for group in ("another", "classic-coop"):
                assert broker.commit(group, "src", 1) == 0
                assert broker.committed(group)["src", 0] == 1
    assert state(data) == before


def test_groups_work_where_no_offsets_were_kept(logs: Path, tmp_path: Path) -> None:
    with opened(
        logs / "epochs" / "data",
        temporary=tmp_path,
        more=("--override", "offsets.topic.num.partitions=3"),
    ) as broker:
        assert CONSUMER_OFFSETS not in broker.topics()
        found = broker.client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]), 4)
        assert found.coordinators[0].error_code == 0
        deadline = time.monotonic() + SECONDS
        while broker.commit("readers", "epochs", 5) in RETRIABLE:
            assert time.monotonic() < deadline
        assert broker.committed("readers") == {("epochs", 0): 5}
        assert len(broker.topics()[CONSUMER_OFFSETS].partitions) == 3


def test_one_broker_of_a_cluster_shows_its_partitions(tmp_path: Path) -> None:
    """A directory without some partitions that the metadata has, as with those of other nodes."""
    with (
        Broker(
            topics={"orders": 3, "elsewhere": 1, CONSUMER_OFFSETS: 4},
            config={"offsets.topic.num.partitions": 4},
            data=tmp_path / "data",
        ) as broker,
        broker.client() as client,
    ):
        for index in range(3):
            assert produce(client, "orders", index, b"in %d" % index).error_code == 0
        broker.stop()
    for name in ("orders-1", "elsewhere-0", "__consumer_offsets-2"):
        shutil.rmtree(tmp_path / "data" / name)
    before = state(tmp_path / "data")
    with opened(tmp_path / "data", temporary=tmp_path) as shown:
        topics = shown.topics()
        assert set(topics) == {"orders", CONSUMER_OFFSETS}
        assert [row.leader_id for row in topics["orders"].partitions] == [1, -1, 1]
        assert topics["orders"].partitions[1].error_code == errors.LEADER_NOT_AVAILABLE
        assert [row.leader_id for row in topics[CONSUMER_OFFSETS].partitions] == [1, 1, 1, 1]
        assert [each.value for each in shown.read("orders", 2)] == [b"in 2"]
        for number in range(20):
            assert shown.commit(f"group {number}", "orders", 1) == 0
    assert state(tmp_path / "data") == before


def produce(client: Client, topic: str, index: int, value: bytes) -> Any:
    kind = ProduceRequest
    data = kind.PartitionProduceData(
        index=index, records=records.build([(None, value, [], 1_700_000_000_000)])
    )
    row = kind.TopicProduceData(name=topic, partition_data=[data])
    answer = client.call(kind(acks=-1, timeout_ms=1000, topic_data=[row]), 9)
    return answer.responses[0].partition_responses[0]


def test_what_would_change_something_is_refused_with_a_text(logs: Path, tmp_path: Path) -> None:
    data = logs / "plain" / "data"
    before = state(data)
    with opened(data, temporary=tmp_path) as broker:
        client, topics = broker.client, broker.topics()
        kind = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        assert client.call(kind, 4).error_code == 0
        refused = [
            produce(client, "plain", 0, b"x"),
            client.call(
                CreateTopicsRequest(
                    timeout_ms=1000,
                    topics=[
                        CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
                    ],
                ),
                5,
            ).topics[0],
            client.call(DeleteTopicsRequest(timeout_ms=1000, topic_names=["plain"]), 5).responses[0],
            client.call(
                CreatePartitionsRequest(
                    timeout_ms=1000,
                    topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="plain", count=9)],
                ),
                3,
            ).results[0],
            client.call(alteration("plain"), 1).responses[0],
            client.call(AlterClientQuotasRequest(entries=[quota()]), 1).entries[0],
            client.call(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[]), 1),
        ]
        for answer in refused:
            assert answer.error_code == errors.POLICY_VIOLATION, answer
            assert "opened read-only" in answer.error_message
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=["a transaction"])
        (found,) = client.call(find, 4).coordinators
        assert (found.error_code, found.error_message) == (errors.POLICY_VIOLATION, WHY)
        assert moved(client, str(data)) == deleted(client) == errors.POLICY_VIOLATION
        asked = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name="unheard-of")], allow_auto_topic_creation=True
        )
        answer = client.call(asked, 12)
        assert answer.topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.topics().keys() == topics.keys()
        assert config_of(client, "append-time")["message.timestamp.type"] == "LogAppendTime"
    assert state(data) == before


def test_transactions_are_shown_and_nobody_changes_them(logs: Path, tmp_path: Path) -> None:
    data = logs / "transactions" / "data"
    before = state(data)
    with opened(data, temporary=tmp_path) as broker:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=["a transaction"])
        assert until_served(lambda: broker.client.call(find, 4).coordinators[0]).node_id == 1
        kind = InitProducerIdRequest(transactional_id="a transaction", transaction_timeout_ms=1000)
        answer = until_served(lambda: broker.client.call(kind, 4))
        assert answer.error_code == errors.POLICY_VIOLATION
    assert state(data) == before


def until_served(ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while (answer := ask()).error_code in RETRIABLE:
        assert time.monotonic() < end
        time.sleep(0.05)
    return answer


def config_of(client: Client, topic: str) -> dict[str, str]:
    kind = DescribeConfigsRequest
    asked = kind(resources=[kind.DescribeConfigsResource(resource_type=2, resource_name=topic)])
    return {row.name: row.value for row in client.call(asked, 4).results[0].configs}


def alteration(topic: str) -> Any:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name="retention.ms", config_operation=0, value="1")
    return kind(resources=[kind.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])])


def quota() -> Any:
    kind = AlterClientQuotasRequest
    return kind.EntryData(
        entity=[kind.EntityData(entity_type="user", entity_name="u")],
        ops=[kind.OpData(key="consumer_byte_rate", value=1.0)],
    )


def moved(client: Client, path: str) -> int:
    kind = AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name="plain", partitions=[0])
    answer = client.call(kind(dirs=[kind.AlterReplicaLogDir(path=path, topics=[topic])]), 2)
    return int(answer.results[0].partitions[0].error_code)


def deleted(client: Client) -> int:
    kind = DeleteRecordsRequest
    partition = kind.DeleteRecordsPartition(partition_index=0, offset=1)
    asked = kind(topics=[kind.DeleteRecordsTopic(name="plain", partitions=[partition])], timeout_ms=1000)
    return int(client.call(asked, 2).topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "which directory?"),
        (("{data}",), 2, "--read-only"),
        (("{data}", "--read-only", "--data", "x"), 2, "unknown option --data"),
        (("{empty}", "--read-only"), 2, "is no Kafka data directory"),
        (("{empty}/nowhere", "--read-only"), 2, "nowhere is no directory"),
        (("{data}", "--read-only", "--override", "node.id=x"), 2, "node.id"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    logs: Path, arguments: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    names = {"data": str(logs / "plain" / "data"), "empty": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", "open", *(each.format(**names) for each in arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_directory_in_use_is_not_opened(tmp_path: Path) -> None:
    with Broker(topics=["orders"], data=tmp_path / "data"):
        done = subprocess.run(
            [sys.executable, "-m", "pykafkad", "open", str(tmp_path / "data"), "--read-only"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert done.returncode == 1 and "is used by a running broker: open a copy of it" in done.stderr
