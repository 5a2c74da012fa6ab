"""A quorum of Apache Kafka 4.3.1 whose voters come and go (kraft.version 1, KIP-853), by Kafka's own tool and by way of a
broker of ours that follows it while a client writes, even when the only controller that it was told of has left; and a
quorum that is made such while it runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection
from typing import Any

import pytest

from compat_tests.cluster.kraft import DEADLINE_S, JAVA, OURS, KraftCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from compat_tests.cluster.test_kraft_controllers import create
from compat_tests.differential.test_update_features import UPGRADE
from compat_tests.differential.test_update_features import request as update_features
from compat_tests.reference import SCRIPT
from pykafkad.messages import ApiVersionsRequest
from pykafkad.uuids import to_text

BROKER, OTHER = 1, 2
FIRST, SECOND, THIRD = 100, 101, 102
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
pytestmark = pytest.mark.long


def quorum(cluster: KraftCluster, *arguments: str) -> str:
    """What Kafka's tool says, asking one of ours; it is repeated, since a controller that was just started may not have
    caught up."""
    command = [str(SCRIPT), "class", QUORUM, "--bootstrap-server", cluster.brokers[OTHER].address, *arguments]
    deadline = time.monotonic() + DEADLINE_S
    while True:
        done = subprocess.run(
            command,
            env={**os.environ, **JAVA},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        assert time.monotonic() < deadline, f"{arguments}: {done.stdout}{done.stderr}"


def until_voting(cluster: KraftCluster, ids: Collection[int]) -> None:
    """As one of ours says."""
    cluster.until(
        f"{ids} vote",
        lambda: {row.replica_id for row in cluster.quorum(BROKER).current_voters} == set(ids),
    )


def kraft_version(cluster: KraftCluster, id: int) -> int:
    asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    with cluster.connected(id) as client:
        answer: Any = client.call(client.any_broker(), asked, at_most=4)
    return int({row.name: row.max_version_level for row in answer.finalized_features}.get("kraft.version", 0))


def add(cluster: KraftCluster, id: int) -> None:
    node = cluster.controllers[id]
    node.start()
    properties = node.home / "server.properties"
    cluster.until("formatted", lambda: (node.data / "meta.properties").exists())
    quorum(cluster, "--command-config", str(properties), "add-controller")


def test_voters_are_added_and_removed_while_a_client_writes() -> None:
    with KraftCluster([OURS, OURS], controllers=3, dynamic=True) as cluster:
        create(cluster, "written")
        until_voting(cluster, [FIRST])
        with Writer(cluster.bootstrap_servers, "written", 1) as writer:
            writer.goes_on()
            for id in (SECOND, THIRD):
                add(cluster, id)
                until_voting(cluster, range(FIRST, id + 1))
                create(cluster, f"with-{id}")
                writer.goes_on()
            row = next(each for each in cluster.quorum(BROKER).current_voters if each.replica_id == FIRST)
            cluster.controllers[FIRST].kill()
            cluster.until("another is active", lambda: cluster.active() != FIRST)
            create(cluster, "led-by-another")
            writer.goes_on()
            which = (
                "--controller-id",
                str(FIRST),
                "--controller-directory-id",
                to_text(row.replica_directory_id),
            )
            quorum(cluster, "remove-controller", *which)
            until_voting(cluster, (SECOND, THIRD))
            broker = cluster.brokers[BROKER]
            broker.kill()
            broker.start()
            cluster.until_registered()
            create(cluster, "after-all")
            writer.goes_on()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, "written", 1))


def test_a_quorum_becomes_dynamic_while_it_is_followed() -> None:
    with KraftCluster([OURS, OURS]) as cluster:
        create(cluster, "before")
        with cluster.connected(BROKER) as client:
            answer = client.call(
                client.any_broker(), update_features(2, ("kraft.version", 1, UPGRADE)), at_most=2
            )
        assert answer.error_code == 0, answer
        cluster.until("dynamic", lambda: kraft_version(cluster, BROKER) == kraft_version(cluster, OTHER) == 1)
        create(cluster, "after")
        broker = cluster.brokers[BROKER]
        broker.stop()
        broker.start()
        cluster.until_registered()
        create(cluster, "after-a-start")
        assert kraft_version(cluster, BROKER) == 1
