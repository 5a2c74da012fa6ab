"""Our brokers in a cluster of Apache Kafka 4.3.1 with its own controller, beside one of its brokers: what each says of
the cluster, who leads and follows, what becomes of it when brokers die, groups, transactions, and what is forwarded."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from compat_tests.cluster.kraft import JAVA, KAFKA, OURS, KraftCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from compat_tests.cluster.test_mixed import Counting
from compat_tests.reference import SCRIPT
from pykafkad.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
)

REAL, OURS_2, OURS_3 = 1, 2, 3
PARTITIONS = 3
WAIT_S = 60.0
JAVA_PRODUCERS, JAVA_RECORDS = 4, 4000


@pytest.fixture(scope="module")
def cluster() -> Iterator[KraftCluster]:
    with KraftCluster([KAFKA, OURS, OURS]) as cluster:
        yield cluster


def admin_of(cluster: KraftCluster, id: int) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.brokers[id].address, "log_level": 0})


def create(cluster: KraftCluster, id: int, *names: str, partitions: int = PARTITIONS) -> None:
    """By way of that broker."""
    new = [NewTopic(name, num_partitions=partitions, replication_factor=3) for name in names]
    admin = admin_of(cluster, id)  # which is there until they are made
    for future in admin.create_topics(new, operation_timeout=WAIT_S).values():
        future.result(WAIT_S)
    cluster.until("known everywhere", lambda: all(cluster.partitions(*each) for each in everywhere(names)))
    cluster.until_in_sync(*names)


def everywhere(names: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(name, id) for name in names for id in (REAL, OURS_2, OURS_3)]


def answer_of(cluster: KraftCluster, id: int, request: Any, at_most: int) -> Any:
    with cluster.connected(id) as client:
        return client.call(client.any_broker(), request, at_most=at_most)


# -- what each says


def test_every_broker_says_the_same_of_the_cluster(cluster: KraftCluster) -> None:
    create(cluster, OURS_2, "same")

    def seen(id: int) -> Any:
        answer = cluster.metadata(id)
        answer.controller_id = 0  # any broker, as in Kafka
        answer.topics.sort(key=lambda row: row.name)
        for topic in answer.topics:
            topic.partitions.sort(key=lambda row: row.partition_index)
        answer.brokers.sort(key=lambda row: row.node_id)
        return answer

    cluster.until("the same metadata", lambda: seen(REAL) == seen(OURS_2) == seen(OURS_3))

    def described(id: int) -> Any:
        answer = answer_of(cluster, id, DescribeClusterRequest(include_fenced_brokers=True), 2)
        return answer.cluster_id, sorted((row.broker_id, row.port, row.is_fenced) for row in answer.brokers)

    assert described(OURS_2) == described(REAL)


def test_the_versions_and_features_of_ours_are_kafkas(cluster: KraftCluster) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    real, ours = (answer_of(cluster, id, request, 4) for id in (REAL, OURS_2))
    ranges = {row.api_key: (row.min_version, row.max_version) for row in real.api_keys}
    assert ours.api_keys
    for row in ours.api_keys:
        assert ranges[row.api_key] == (row.min_version, row.max_version)
    levels = {row.name: row.max_version_level for row in real.finalized_features}
    finalized = {row.name: row.max_version_level for row in ours.finalized_features}
    assert finalized["metadata.version"] == levels["metadata.version"]
    assert finalized.items() <= levels.items()
    assert ours.finalized_features_epoch > 0


def test_the_quorum_has_them_as_observers(cluster: KraftCluster) -> None:
    kind = DescribeQuorumRequest
    request = kind(
        topics=[kind.TopicData(topic_name="__cluster_metadata", partitions=[kind.PartitionData()])]
    )

    def observers() -> bool:
        row = answer_of(cluster, OURS_2, request, 2).topics[0].partitions[0]
        ends = {each.replica_id: each.log_end_offset for each in row.observers}
        return set(ends) == {REAL, OURS_2, OURS_3} and min(ends.values()) > row.high_watermark - 50

    cluster.until("observers that keep up", observers)


# -- forwarded


def test_what_changes_the_cluster_is_forwarded(cluster: KraftCluster) -> None:
    create(cluster, OURS_3, "forwarded")
    admin = admin_of(cluster, OURS_2)
    admin.create_partitions([NewPartitions("forwarded", 5)])["forwarded"].result(WAIT_S)
    entry = ConfigEntry("retention.ms", "123456", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "forwarded", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    cluster.until(
        "five partitions", lambda: all(len(cluster.partitions("forwarded", id)) == 5 for id in (REAL, OURS_3))
    )

    ids = (REAL, OURS_2, OURS_3)
    cluster.until("the config", lambda: [retention(cluster, id) for id in ids] == ["123456"] * 3)
    ours = str(OURS_2)
    set_on_broker(admin, ours, "log.cleaner.backoff.ms", "12345").result(WAIT_S)
    asked = ConfigResource(ResourceType.BROKER, ours)
    cluster.until("a dynamic config", lambda: is_set(admin, asked, "log.cleaner.backoff.ms", "12345"))
    refused = set_on_broker(admin, ours, "log.cleaner.backoff.ms", "soon")
    with pytest.raises(Exception, match=r"INVALID_REQUEST|Invalid"):
        refused.result(WAIT_S)
    answer = answer_of(cluster, OURS_2, ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000), 2)
    assert answer.error_code == 0
    again = admin.create_topics([NewTopic("forwarded", num_partitions=1, replication_factor=1)])["forwarded"]
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        again.result(WAIT_S)
    admin.delete_topics(["forwarded"], operation_timeout=WAIT_S)["forwarded"].result(WAIT_S)
    cluster.until(
        "gone", lambda: all("forwarded" not in names_of(cluster, id) for id in (REAL, OURS_2, OURS_3))
    )
    for id in (OURS_2, OURS_3):
        kept = [each.name for each in cluster.brokers[id].data.iterdir() if "forwarded" in each.name]
        assert all(name.endswith("-delete") for name in kept), kept


def retention(cluster: KraftCluster, id: int) -> str:
    """Of the topic, as that broker says it."""
    kind = DescribeConfigsRequest
    wanted = kind.DescribeConfigsResource(
        resource_type=2, resource_name="forwarded", configuration_keys=["retention.ms"]
    )
    return str(answer_of(cluster, id, kind(resources=[wanted]), 4).results[0].configs[0].value)


def set_on_broker(admin: AdminClient, id: str, key: str, value: str) -> Any:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, id, incremental_configs=[entry])
    return admin.incremental_alter_configs([resource])[resource]


def is_set(admin: AdminClient, asked: ConfigResource, key: str, value: str) -> bool:
    return bool(admin.describe_configs([asked])[asked].result(WAIT_S)[key].value == value)


def names_of(cluster: KraftCluster, id: int) -> set[str]:
    return {row.name for row in cluster.metadata(id).topics}


# -- leading and following


def test_either_kind_leads_and_follows_and_nothing_is_lost_when_brokers_die(cluster: KraftCluster) -> None:
    create(cluster, OURS_2, "written")
    leaders = {row.leader_id for row in cluster.partitions("written", OURS_2)}
    assert leaders == {REAL, OURS_2, OURS_3}
    with Writer(cluster.bootstrap_servers, "written", PARTITIONS) as writer:
        writer.goes_on()
        for id in (OURS_2, REAL):
            node = cluster.brokers[id]
            node.kill()
            cluster.until_led("written")
            writer.goes_on()
            node.start()
            cluster.until_registered()
            cluster.until_in_sync("written")
        writer.goes_on()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "written", PARTITIONS))
    cluster.until("the same logs", lambda: same_logs(cluster, "written"), seconds=20)


def same_logs(cluster: KraftCluster, topic: str) -> bool:
    """Of each partition, byte for byte."""
    for index in range(PARTITIONS):
        logs = [bytes_of(cluster.brokers[id].data / f"{topic}-{index}") for id in (REAL, OURS_2, OURS_3)]
        if not logs[0] or len(set(logs)) != 1:
            return False
    return True


def bytes_of(directory: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(directory.glob("*.log")))


def test_groups_and_transactions_go_on_where_their_coordinators_go(cluster: KraftCluster) -> None:
    create(cluster, REAL, "transactions", partitions=2)
    counted = Counting(cluster.bootstrap_servers)
    counted.transact()
    for id in (OURS_2, OURS_3):
        cluster.brokers[id].stop()
        cluster.until_led("transactions", "__transaction_state", "__consumer_offsets")
        counted.transact()
        cluster.brokers[id].start()
        cluster.until_registered()
        cluster.until_in_sync("transactions", "__transaction_state", "__consumer_offsets")
    counted.transact()
    assert sorted(read_all(cluster.bootstrap_servers, "transactions", 2)) == sorted(counted.committed)


def test_short_transactions_of_the_java_client_follow_each_other_on_brokers_of_both_kinds(
    cluster: KraftCluster,
) -> None:
    """Kafka's coordinator ends a transaction for its client before the markers are written (transaction.version 2), so
    that leaders of our kind are sent the next one while the markers of the last are under way."""
    create(cluster, REAL, "java", partitions=6)
    servers = f"bootstrap.servers={cluster.bootstrap_servers}"
    fixed = ("--topic", "java", "--record-size", "50", "--throughput", "1000", "--producer-props", servers)
    short = ("--num-records", str(JAVA_RECORDS), "--transaction-duration-ms", "10")
    running = [
        subprocess.Popen(
            [str(SCRIPT), "producer-perf", *fixed, *short, "--transactional-id", f"java-{number}"],
            env={**os.environ, **JAVA},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(JAVA_PRODUCERS)
    ]
    for process in running:
        said, _ = process.communicate(timeout=2 * WAIT_S)
        assert process.returncode == 0, said[-2000:]
    found = read_all(cluster.bootstrap_servers, "java", 6)
    assert len(found) == JAVA_PRODUCERS * JAVA_RECORDS


def test_a_broker_that_leaves_in_order_has_its_leaders_moved_before(cluster: KraftCluster) -> None:
    create(cluster, REAL, "left")
    with Writer(cluster.bootstrap_servers, "left", PARTITIONS) as writer:
        writer.goes_on()
        began = time.monotonic()
        cluster.brokers[OURS_3].stop()
        assert time.monotonic() - began < 10
        assert all(row.leader_id != OURS_3 for row in cluster.partitions("left", OURS_2))
        writer.goes_on()
        cluster.brokers[OURS_3].start()
        cluster.until_registered()
        cluster.until_in_sync("left")
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "left", PARTITIONS))


def test_a_topic_is_made_because_a_client_asks_for_it(cluster: KraftCluster) -> None:
    admin = admin_of(cluster, OURS_2)
    found = admin.describe_topics(TopicCollection(["same"]))
    assert found["same"].result(WAIT_S).partitions
    with Writer(cluster.brokers[OURS_2].address, "unheard-of", 1) as writer:
        writer.goes_on(5)
    assert "unheard-of" in names_of(cluster, REAL)
