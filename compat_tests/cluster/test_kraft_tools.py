"""Kafka's own tools against a broker of ours in a cluster of Apache Kafka 4.3.1: partitions are reassigned, and their
preferred leaders elected, while a client writes."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.kraft import DEADLINE_S, JAVA, KAFKA, OURS, KraftCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from compat_tests.reference import SCRIPT

REAL, OURS_2, OURS_3 = 1, 2, 3
WAIT_S = 60.0
pytestmark = pytest.mark.long


def tool(cluster: KraftCluster, name: str, *arguments: str) -> str:
    """What it says, asking one of ours."""
    done = subprocess.run(
        [str(SCRIPT), name, "--bootstrap-server", cluster.brokers[OURS_2].address, *arguments],
        env={**os.environ, **JAVA},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout


def placed(cluster: KraftCluster, id: int) -> dict[int, tuple[int, list[int]]]:
    """Leader and replicas, as that broker says."""
    return {row.partition_index: (row.leader_id, row.replica_nodes) for row in cluster.partitions("t", id)}


def test_partitions_are_reassigned_and_their_preferred_leaders_elected() -> None:
    with KraftCluster([KAFKA, OURS, OURS]) as cluster:
        assert tool(cluster, "broker-api-versions").count("-> (") == 3
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        new = NewTopic("t", num_partitions=2, replica_assignment=[[REAL, OURS_2], [OURS_2, REAL]])
        admin.create_topics([new], operation_timeout=WAIT_S)["t"].result(WAIT_S)
        cluster.until_in_sync("t")
        wanted = {0: [OURS_3, REAL], 1: [REAL, OURS_3]}
        plan = cluster.home / "plan.json"
        rows = [{"topic": "t", "partition": index, "replicas": some} for index, some in wanted.items()]
        plan.write_text(json.dumps({"version": 1, "partitions": rows}))
        with Writer(cluster.bootstrap_servers, "t", 2) as writer:
            writer.goes_on()
            tool(cluster, "reassign", "--reassignment-json-file", str(plan), "--execute")
            cluster.until(
                "reassigned",
                lambda: {index: some for index, (_, some) in placed(cluster, OURS_2).items()} == wanted,
            )
            cluster.until_in_sync("t")
            writer.goes_on()
            tool(cluster, "leader-election", "--election-type", "preferred", "--all-topic-partitions")
            led = {index: (some[0], some) for index, some in wanted.items()}
            cluster.until("led as preferred", lambda: placed(cluster, REAL) == led == placed(cluster, OURS_3))
            writer.goes_on()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "t", 2))
        kept = [each.name for each in cluster.brokers[OURS_2].data.iterdir() if each.name in ("t-0", "t-1")]
        assert not kept
