"""Brokers with several log directories (JBOD): replicas move from one to another while clients write."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.cluster.brokers import MixedCluster, tool
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from pykafkad.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from pykafkad.testing.client import Client

TOPIC, PARTITIONS = "disks", 2
DEADLINE_S = 60.0


@pytest.fixture
def cluster() -> Iterator[MixedCluster]:
    """Broker 0 has two directories."""
    with MixedCluster(topics={TOPIC: PARTITIONS}) as cluster:
        broker = cluster.home.broker(0)
        cluster.stop(0)
        with open(broker.properties, "a", encoding="utf-8") as file:
            file.write(f"log.dirs={','.join(directories(cluster))}\n")
        cluster.start(0)
        cluster.until_in_sync()
        yield cluster


def directories(cluster: MixedCluster) -> list[str]:
    data = cluster.home.broker(0).data
    return [data, f"{data}-2"]


def client_of(cluster: MixedCluster) -> Client:
    return Client("127.0.0.1", cluster.home.broker(0).port)


def move(cluster: MixedCluster, path: str) -> None:
    kind = AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name=TOPIC, partitions=list(range(PARTITIONS)))
    with closing(client_of(cluster)) as client:
        answer = client.call(kind(dirs=[kind.AlterReplicaLogDir(path=path, topics=[topic])]), 2)
    assert [part.error_code for part in answer.results[0].partitions] == [0] * PARTITIONS
    deadline = time.monotonic() + DEADLINE_S
    while homes(cluster) != {path: list(range(PARTITIONS))}:
        assert time.monotonic() < deadline, homes(cluster)
        time.sleep(0.1)


def homes(cluster: MixedCluster) -> dict[str, list[int]]:
    """The topic's partitions in each directory of broker 0; those on their way count twice."""
    with closing(client_of(cluster)) as client:
        answer = client.call(DescribeLogDirsRequest(topics=None), 4)
    return {
        each.log_dir: sorted(part.partition_index for part in topic.partitions)
        for each in answer.results
        for topic in each.topics
        if topic.name == TOPIC
    }


def test_replicas_move_to_another_disk_while_they_are_written(cluster: MixedCluster) -> None:
    first, second = directories(cluster)
    with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
        writer.goes_on()
        move(cluster, second)
        writer.goes_on()
        cluster.kill(0)
        writer.goes_on()
        cluster.start(0)
        cluster.until_in_sync()
        assert homes(cluster) == {second: list(range(PARTITIONS))}
        move(cluster, first)
        writer.goes_on()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    for id in (1, 2):  # what was moved is all there is
        cluster.stop(id)
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


@pytest.mark.long
def test_kafkas_tool_moves_a_replica_to_a_broker_and_a_disk_of_it(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    """It asks for the directory before the replica is there."""
    _, second = directories(cluster)
    cluster.create_topic("moved", 1, replication_factor=1)
    cluster.until_in_sync()
    cluster.produce("moved", *range(100))
    plan = {"topic": "moved", "partition": 0, "replicas": [0], "log_dirs": [second]}
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [plan]}))
    tool(cluster, "reassign", "--execute", "--reassignment-json-file", str(tmp_path / "plan.json"))
    cluster.until(
        "moved",
        lambda status: all(row["replicas"] == [0] for row in status["partitions"] if row["topic"] == "moved"),
    )
    cluster.until_in_sync()
    assert (Path(second) / "moved-0").is_dir()
    assert read_all(cluster.bootstrap_servers, "moved", 1) == [str(number) for number in range(100)]
