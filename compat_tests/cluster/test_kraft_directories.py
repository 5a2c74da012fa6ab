"""Log directories of brokers in a cluster of Apache Kafka 4.3.1: several of them, one that fails, and one that a real
broker and ours take turns on."""

from __future__ import annotations

import shutil

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.kraft import KAFKA, OURS, KraftCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from pykafkad.messages import AlterReplicaLogDirsRequest

OTHER, HERE, PARTITIONS = 1, 2, 6
WAIT_S = 60.0
TWO_BROKERS = {"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2"}
pytestmark = pytest.mark.long


def create(cluster: KraftCluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    new = NewTopic(name, num_partitions=PARTITIONS, replication_factor=2)
    admin.create_topics([new], operation_timeout=WAIT_S)[name].result(WAIT_S)
    cluster.until_in_sync(name)


def test_a_real_broker_and_ours_take_turns_on_a_directory() -> None:
    with KraftCluster([OURS, OURS], config=TWO_BROKERS) as cluster:
        create(cluster, "written")
        node = cluster.brokers[HERE]
        with Writer(cluster.bootstrap_servers, "written", PARTITIONS) as writer:
            for kind in (KAFKA, OURS):
                writer.goes_on()
                node.stop()
                writer.goes_on()
                node.kind = kind
                node.start()
                cluster.until_registered()
                cluster.until_in_sync("written")
            writer.goes_on()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "written", PARTITIONS))


def partitions_in(cluster: KraftCluster, disk: int) -> set[int]:
    names = (each.name for each in cluster.brokers[HERE].directories[disk].iterdir())
    return {int(name.rpartition("-")[2]) for name in names if name.removeprefix("written-").isdecimal()}


def move(cluster: KraftCluster, index: int) -> None:
    """To the other disk."""
    kind = AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name="written", partitions=[index])
    path = str(cluster.brokers[HERE].directories[1])
    with cluster.connected(HERE) as client:
        answer = client.call(
            client.any_broker(), kind(dirs=[kind.AlterReplicaLogDir(path=path, topics=[topic])]), at_most=2
        )
    assert answer.results[0].partitions[0].error_code == 0
    cluster.until("moved", lambda: index not in partitions_in(cluster, 0))


def test_partitions_move_between_disks_and_outlive_one_that_fails() -> None:
    cluster = KraftCluster([OURS, OURS], config=TWO_BROKERS)
    cluster.brokers[HERE].disks = 2
    with cluster:
        create(cluster, "written")
        assert len(partitions_in(cluster, 0)) == len(partitions_in(cluster, 1)) == PARTITIONS // 2
        with Writer(cluster.bootstrap_servers, "written", PARTITIONS) as writer:
            writer.goes_on()
            move(cluster, min(partitions_in(cluster, 0)))
            cluster.brokers[HERE].kill()
            writer.goes_on()
            cluster.brokers[HERE].start()
            cluster.until_registered()
            cluster.until_in_sync("written")
            lost = partitions_in(cluster, 1)
            shutil.rmtree(cluster.brokers[HERE].directories[1])
            cluster.until("led by the other", lambda: all_led_elsewhere(cluster, lost))
            writer.goes_on()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "written", PARTITIONS))
        assert not lost & partitions_in(cluster, 0)


def all_led_elsewhere(cluster: KraftCluster, lost: set[int]) -> bool:
    rows = cluster.partitions("written", OTHER)
    return all(row.leader_id == OTHER for row in rows if row.partition_index in lost)
