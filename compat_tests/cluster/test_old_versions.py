"""The versions of requests that Kafka 4.0 dropped, in a cluster on ZooKeeper: a real 3.9.2 and ours answer the same.

Each broker is asked about a topic that it leads, with the same records in it; in the answers both topics are called the
same. That the bytes are Kafka's is shown by its own vectors (tests/unit/test_wire_golden.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.cluster.brokers import DEADLINE_S, KAFKA, OURS, MixedCluster
from compat_tests.differential.acl_requests import (
    acl_filter,
    create_acls,
    creation,
    delete_acls,
    describe_acls,
)
from pykafkad import errors, messages
from pykafkad.config_authorizer import OF_ZOOKEEPER
from pykafkad.handlers.cluster_apis import OLDEST
from pykafkad.testing.client import Client

REAL, OUR = 0, 1
NAMES = {REAL: "of-real", OUR: "of-ours"}
LATEST, EARLIEST, RECORDS = -1, -2, 3
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
CONFIG = {
    "authorizer.class.name": OF_ZOOKEEPER,
    "allow.everyone.if.no.acl.found": "true",
    "log.segment.bytes": "200",  # a segment for each record
    "log.retention.check.interval.ms": "3600000",
}


class Old(MixedCluster):
    def ask(self, id: int, request: Any, version: int) -> Any:
        broker = self.home.brokers[id]
        with Client(broker.host, broker.port) as client:
            return client.call(request, version)

    def both(self, make: Any, version: int) -> Any:
        """What both answer to a request about a topic's name."""
        said = {}
        for id, name in NAMES.items():
            answer = self.ask(id, make(name), version)
            said[id] = repr(answer).replace(name, "NAME")
        assert said[OUR] == said[REAL]
        return answer

    @property
    def controller(self) -> int:
        id: int = self.ask(OUR, messages.MetadataRequest(topics=[]), 9).controller_id
        return id

    def create(self, version: int, name: str, broker: int, **configs: str) -> Any:
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        topic.assignments = [request.CreatableReplicaAssignment(partition_index=0, broker_ids=[broker])]
        topic.configs = [request.CreatableTopicConfig(name=key, value=configs[key]) for key in configs]
        return self.ask(self.controller, request(topics=[topic], timeout_ms=30_000), version).topics[0]

    def fill(self, name: str) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS):
            producer.produce(name, b"%060d" % number, partition=0)
            assert producer.flush(DEADLINE_S) == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Old]:
    with Old([KAFKA, OURS], config=CONFIG) as started:
        for version, (id, name) in enumerate(NAMES.items()):
            assert started.create(version, name, id).error_code == errors.NONE
            started.fill(name)
        yield started


def test_the_oldest_versions_are_those_of_the_real_one(cluster: Old) -> None:
    request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    oldest = {
        id: {row.api_key: row.min_version for row in cluster.ask(id, request, 3).api_keys} for id in NAMES
    }
    assert {key: oldest[OUR][key] for key in OLDEST} == {key: oldest[REAL][key] for key in OLDEST}
    newer = {key for key, version in oldest[OUR].items() if version != oldest[REAL].get(key)}
    assert not newer


def test_a_topic_that_cannot_be_made_or_removed_is_refused_in_their_forms(cluster: Old) -> None:
    for version, said in ((0, ""), (1, "Unknown topic config name: x")):
        answer = cluster.create(version, "refused", OUR, x="1")
        assert (answer.error_code, answer.error_message) == (errors.INVALID_CONFIG, said)
    request = messages.DeleteTopicsRequest(topic_names=["nobody's"], timeout_ms=30_000)
    (answer,) = cluster.ask(cluster.controller, request, 0).responses
    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_made_and_removed(cluster: Old) -> None:
    assert cluster.create(0, "short-lived", OUR).error_code == errors.NONE
    request = messages.DeleteTopicsRequest(topic_names=["short-lived"], timeout_ms=30_000)
    (answer,) = cluster.ask(cluster.controller, request, 0).responses
    assert answer.error_code == errors.NONE


def test_configs(cluster: Old) -> None:
    wanted = messages.DescribeConfigsRequest.DescribeConfigsResource

    def described(id: int, name: str) -> dict[str, Any]:
        resource = wanted(resource_type=TOPIC, resource_name=name, configuration_keys=None)
        answer = cluster.ask(id, messages.DescribeConfigsRequest(resources=[resource]), 0)
        return {each.name: each for each in answer.results[0].configs}

    ours = described(OUR, NAMES[OUR])
    assert ours == described(REAL, NAMES[REAL]) and len(ours) == 36


NONE_SUCH, NOT_ALLOWED = "nobody's", "a b"
VALUES: list[tuple[str, str | None]] = [
    ("retention.ms", "x"), ("retention.ms", "-5"), ("retention.ms", None), ("cleanup.policy", "x"), ("nope", "1"),
    ("min.insync.replicas", "0"), ("message.format.version", "7"), ("segment.bytes", "1"),
]  # fmt: skip
REFUSED: list[tuple[int, str, list[tuple[str, int, str | None]]]] = [
    *((TOPIC, "NAME", [(key, 0, value)]) for key, value in VALUES),
    (TOPIC, NONE_SUCH, [("retention.ms", 0, "1")]),
    (TOPIC, NOT_ALLOWED, [("retention.ms", 0, "1")]),
    (TOPIC, "", [("retention.ms", 0, "1")]),
    (TOPIC, "NAME", [("retention.ms", 0, "1"), ("retention.ms", 0, "2")]),
    (TOPIC, "NAME", [("max.compaction.lag.ms", 0, "1"), ("min.compaction.lag.ms", 0, "2")]),
    (TOPIC, "NAME", [("retention.ms", 2, "1")]),
    (TOPIC, "NAME", [("retention.ms", 3, "1")]),
    (BROKER, "ID", [("log.retention.ms", 0, "x")]),
    (BROKER, "", [("log.cleaner.threads", 0, "0")]),
    (CLIENT_METRICS, "any", [("interval.ms", 0, "1")]),
    (GROUP, "any", [("consumer.session.timeout.ms", 0, "1")]),
    (99, "any", [("a", 0, "1")]),
]  # fmt: skip


@pytest.mark.parametrize("is_legacy", [True, False])
@pytest.mark.parametrize(("kind", "name", "configs"), REFUSED, ids=str)
def test_refused_configs(cluster: Old, kind: int, name: str, configs: Any, is_legacy: bool) -> None:
    said = {}
    for id in NAMES:
        named = name.replace("NAME", NAMES[id]).replace("ID", str(id))
        asked: Any = messages.AlterConfigsRequest if is_legacy else messages.IncrementalAlterConfigsRequest
        rows = [asked.AlterableConfig(name=key, value=value) for key, _, value in configs]
        if not is_legacy:
            for row, (_, operation, _) in zip(rows, configs, strict=True):
                row.config_operation = operation
        resource = asked.AlterConfigsResource(resource_type=kind, resource_name=named, configs=rows)
        answer = cluster.ask(id, asked(resources=[resource], validate_only=True), 1).responses[0]
        text = (answer.error_message or "").replace(NAMES[id], "NAME").replace(f"'{id}'", "'ID'")
        said[id] = (answer.error_code, text)
    assert said[OUR] == said[REAL]


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 0, 1, 4_000_000_000_000, -4, -3])
@pytest.mark.parametrize("most", [1, 2, 100, 0, -1])
@pytest.mark.parametrize("replica_id", [-1, -2])
def test_lists_of_offsets(cluster: Old, timestamp: int, most: int, replica_id: int) -> None:
    request = messages.ListOffsetsRequest

    def make(name: str) -> Any:
        partitions = [
            request.ListOffsetsPartition(partition_index=index, timestamp=timestamp, max_num_offsets=most)
            for index in (0, 7)
        ]
        return request(
            replica_id=replica_id,
            topics=[
                request.ListOffsetsTopic(name=each, partitions=partitions) for each in (name, "nobody's")
            ],
        )

    found = cluster.both(make, 0).topics[0].partitions[0]
    if (timestamp, most) == (LATEST, 100):
        assert found.old_style_offsets == [3, 2, 1, 0]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("epoch", [0, 5, -1])
def test_ends_of_epochs(cluster: Old, version: int, epoch: int) -> None:
    request = messages.OffsetForLeaderEpochRequest

    def make(name: str) -> Any:
        partitions = [
            request.OffsetForLeaderPartition(partition=index, leader_epoch=epoch) for index in (0, 7)
        ]
        return request(topics=[request.OffsetForLeaderTopic(topic=name, partitions=partitions)])

    cluster.both(make, version)


def test_acls_have_literal_names(cluster: Old) -> None:
    literal = {"pattern_type_filter": 3}
    cluster.both(lambda name: create_acls(creation(name), creation("*"), creation("")), 0)
    deadline = time.monotonic() + DEADLINE_S
    for id, name in NAMES.items():  # what each has made both hear of
        for other in NAMES:
            while not cluster.ask(other, describe_acls(resource_name_filter=name, **literal), 0).resources:
                assert time.monotonic() < deadline, (id, other)
    cluster.both(lambda name: describe_acls(resource_name_filter=name, **literal), 0)
    answer = cluster.both(lambda name: delete_acls(acl_filter(resource_name_filter=name, **literal)), 0)
    assert len(answer.filter_results[0].matching_acls) == 1
    cluster.ask(REAL, delete_acls(acl_filter()), 3)


def test_directories(cluster: Old) -> None:
    def described(id: int, name: str) -> Any:
        topic = messages.DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=[0, 7])
        (found,) = cluster.ask(id, messages.DescribeLogDirsRequest(topics=[topic]), 0).results
        found.log_dir = "DIR"
        return repr(found).replace(name, "NAME")

    assert described(OUR, NAMES[OUR]) == described(REAL, NAMES[REAL])
    request = messages.AlterReplicaLogDirsRequest

    def move(name: str) -> Any:
        topic = request.AlterReplicaLogDirTopic(name=name, partitions=[0, 7])
        return request(dirs=[request.AlterReplicaLogDir(path="/nowhere", topics=[topic])])

    cluster.both(move, 0)


def test_markers(cluster: Old) -> None:
    request = messages.WriteTxnMarkersRequest

    def make(name: str) -> Any:
        topic = request.WritableTxnMarkerTopic(name=name, partition_indexes=[7])
        marker = request.WritableTxnMarker(
            producer_id=4711, producer_epoch=0, transaction_result=False, topics=[topic], coordinator_epoch=0
        )
        return request(markers=[marker])

    cluster.both(make, 0)


def committing(topics: dict[str, list[tuple[int, int]]], metadata: str | None = "m", **fields: Any) -> Any:
    request = messages.OffsetCommitRequest
    return request(
        topics=[
            request.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index, offset in rows
                ],
            )
            for name, rows in topics.items()
        ],
        **fields,
    )


def fetching(group: str, topics: dict[str, list[int]]) -> Any:
    request = messages.OffsetFetchRequest
    named = [
        request.OffsetFetchRequestTopic(name=name, partition_indexes=topics[name]) for name in sorted(topics)
    ]
    return request(group_id=group, topics=named)


def rows_of(answer: Any, *fields: str) -> list[Any]:
    """Without their order, which is a hash map's."""
    return sorted(
        (topic.name, row.partition_index, *(getattr(row, field) for field in fields))
        for topic in answer.topics
        for row in topic.partitions
    )


@pytest.mark.parametrize(
    ("group", "metadata"),
    [("old", None), ("old", "m"), ("ä/b", ""), ("old", "x" * 4097), ("", ""), ("..", ""), ("a//b", "")],
)
def test_offsets_in_zookeeper(cluster: Old, group: str, metadata: str | None) -> None:
    """Each keeps them for another group, and both are asked for both."""
    offsets = {REAL: 3, OUR: 3}
    names = {id: f"{group}-{id}" if group not in ("", "..") else group for id in NAMES}
    wanted = {NAMES[OUR]: [(0, 3), (7, 1)], "nobody's": [(0, 1)]}
    said = {}
    for id, name in names.items():
        wanted[NAMES[OUR]][0] = (0, offsets[id])
        answer = cluster.ask(id, committing(wanted, metadata, group_id=name), 0)
        said[id] = rows_of(answer, "error_code")
    assert said[OUR] == said[REAL]
    indexes = {name: [index for index, _ in rows] for name, rows in wanted.items()}
    for name in names.values():
        found = {
            id: rows_of(
                cluster.ask(id, fetching(name, indexes), 0), "committed_offset", "metadata", "error_code"
            )
            for id in NAMES
        }
        assert found[OUR] == found[REAL]
        if (group, metadata) == ("old", None):
            assert (NAMES[OUR], 0, 3, "", errors.NONE) in found[OUR]


def test_an_offset_is_written_over(cluster: Old) -> None:
    for id, offset in ((REAL, 10), (OUR, 11), (REAL, 12)):
        rows = {NAMES[OUR]: [(0, offset)]}
        answer = cluster.ask(id, committing(rows, group_id="shared"), 0)
        assert rows_of(answer, "error_code") == [(NAMES[OUR], 0, errors.NONE)]
        for other in NAMES:
            answer = cluster.ask(other, fetching("shared", {NAMES[OUR]: [0]}), 0)
            assert rows_of(answer, "committed_offset") == [(NAMES[OUR], 0, offset)]
