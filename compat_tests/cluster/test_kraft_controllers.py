"""Three controllers of Apache Kafka 4.3.1, and one broker, ours: controllers die or stand still and come back, and a
metadata log that begins with a snapshot is fetched as one."""

from __future__ import annotations

import shutil

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.kraft import OURS, KraftCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

BROKER = 1
WAIT_S = 60.0
pytestmark = pytest.mark.long


def create(cluster: KraftCluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    new = NewTopic(name, num_partitions=1, replication_factor=1)
    admin.create_topics([new], operation_timeout=WAIT_S)[name].result(WAIT_S)
    cluster.until_led(name)


def test_the_broker_follows_whoever_is_active() -> None:
    with KraftCluster([OURS], controllers=3) as cluster:
        create(cluster, "written")
        with Writer(cluster.bootstrap_servers, "written", 1) as writer:
            for number, stands_still in enumerate((False, True, False)):
                writer.goes_on()
                id = cluster.active()
                node = cluster.controllers[id]
                (node.pause if stands_still else node.kill)()
                until_another_is_active(cluster, id)
                create(cluster, f"after-{number}")
                writer.goes_on()
                (node.resume if stands_still else node.start)()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "written", 1))


def until_another_is_active(cluster: KraftCluster, last: int) -> None:
    cluster.until("another is active", lambda: cluster.active() != last)


def test_a_log_that_begins_with_a_snapshot_is_fetched_as_one() -> None:
    often = {
        "metadata.log.max.record.bytes.between.snapshots": "1000",
        "metadata.max.retention.bytes": "2000",
        "internal.metadata.log.segment.bytes": "4000",
    }
    with KraftCluster([OURS], config=often) as cluster:
        names = [f"topic-{number}" for number in range(20)]
        for name in names:
            create(cluster, name)
        log = cluster.controllers[100].data / "__cluster_metadata-0"
        cluster.until("the log was cut off", lambda: not (log / f"{0:020d}.log").exists())
        broker = cluster.brokers[BROKER]
        with Writer(cluster.bootstrap_servers, names[0], 1) as writer:
            writer.goes_on()
        broker.kill()
        shutil.rmtree(broker.data / "__cluster_metadata-0")
        broker.start()
        cluster.until_registered()
        cluster.until_led(*names)
        assert "fetching the metadata snapshot" in broker.log.read_text()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, names[0], 1))
        broker.stop()
        broker.start()
        cluster.until_registered()
        cluster.until_led(*names)
