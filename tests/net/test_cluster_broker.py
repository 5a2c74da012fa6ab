"""Brokers of a cluster as processes, on a ZooKeeper of the tests' own: from the start to the end of each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykafkad.errors import KafkaError
from pykafkad.local_cluster.cluster import ask
from pykafkad.testing.cluster import Cluster
from pykafkad.testing.errors import BrokerError
from pykafkad.zookeeper import znodes
from tests.net.zookeeper_server import ZooKeeperServer

DEADLINE_S = 60.0
CONFIG = {
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "30000",
    "replica.lag.time.max.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "1000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def cluster(server: ZooKeeperServer) -> Iterator[Cluster]:
    with Cluster(3, {"orders": 3, "payments": 3, "refunds": 1}, CONFIG, zookeeper=server.address) as cluster:
        yield cluster


def until(there: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def end_session_of(server: ZooKeeperServer, broker_id: int) -> None:
    """As ZooKeeper does when a broker is silent for longer than its session."""
    with server.lock:
        owner = server.memory.nodes[znodes.broker(broker_id)].owner
        server.memory.end_session(owner)
        server._sessions[owner].cut()


def epoch_of(server: ZooKeeperServer, broker_id: int) -> int:
    with server.lock:
        node = server.memory.nodes.get(znodes.broker(broker_id))
        return -1 if node is None else node.czxid


def is_settled(cluster: Cluster) -> bool:
    """All brokers know of each other, and of one controller, and all replicas are in sync."""
    try:
        views = [ask(broker) for broker in cluster.home.brokers.values()]
        status = cluster.status()
    except (OSError, KafkaError):
        return False
    return (
        all({row.node_id for row in view.brokers} == {0, 1, 2} for view in views)
        and {view.controller_id for view in views} == {status["controller"]}
        and all(len(row["isr"]) == 3 and row["leader"] >= 0 for row in status["partitions"])
    )


def produced(cluster: Cluster, topic: str, value: int, partition: int) -> bool:
    """The test's client tries once; others try again."""
    try:
        cluster.produce(topic, str(value), partition=partition)
    except BrokerError:
        return False
    return True


def logs_of(cluster: Cluster, topic: str, partition: int) -> set[bytes]:
    """What the brokers have of it, each kind once."""
    found = set()
    for broker in cluster.home.brokers.values():
        for path in Path(broker.directory).rglob(f"{topic}-{partition}/00000000000000000000.log"):
            found.add(path.read_bytes())
    return found


def test_a_record_is_on_all_brokers_when_it_is_acknowledged_by_all(cluster: Cluster) -> None:
    for number in range(30):
        cluster.produce("orders", str(number), partition=number % 3)
    assert sorted(int(record.value or b"") for record in cluster.records("orders", 30)) == list(range(30))
    for partition in range(3):
        until(lambda: len(logs_of(cluster, "orders", partition)) == 1, "the logs are the same")  # noqa: B023
        assert logs_of(cluster, "orders", partition) != {b""}


def test_whose_session_has_ended_is_registered_anew_and_goes_on(
    cluster: Cluster, server: ZooKeeperServer
) -> None:
    until(lambda: is_settled(cluster), "all are in sync")
    controller = cluster.status()["controller"]
    victims = (controller, (controller + 1) % 3)
    before = {each: epoch_of(server, each) for each in victims}
    for victim in victims:
        end_session_of(server, victim)
    until(lambda: all(epoch_of(server, each) > before[each] for each in victims), "they have new epochs")
    for number in range(30):
        until(lambda: produced(cluster, "payments", number, number % 3), "it is taken")  # noqa: B023
    until(lambda: is_settled(cluster), "all are in sync again")
    found = {int(record.value or b"") for record in cluster.records("payments")}
    assert found == set(range(30))


def test_a_broker_that_stops_hands_over_what_it_leads_and_comes_back(cluster: Cluster) -> None:
    until(lambda: is_settled(cluster), "all are in sync")
    leaver = next(row["leader"] for row in cluster.status()["partitions"] if row["topic"] == "refunds")
    cluster.stop(leaver)
    assert "the controller has moved what this broker led" in cluster.log_text(leaver)
    assert leaver not in {row["leader"] for row in cluster.status()["partitions"]}
    cluster.produce("refunds", "while it is away")
    cluster.start(leaver)
    until(lambda: is_settled(cluster), "all are in sync again")
    until(lambda: len(logs_of(cluster, "refunds", 0)) == 1, "the logs are the same")


def refused(properties: Path, **texts: str) -> str:
    """What a broker says that does not start with this config."""
    properties.write_text("".join(f"{key.replace('_', '.')}={text}\n" for key, text in texts.items()))
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", "start", str(properties)],
        env={**os.environ, "KAFKA_OPTS": ""},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_a_start_is_refused_with_what_stands_in_its_way(
    cluster: Cluster, server: ZooKeeperServer, tmp_path: Path
) -> None:
    texts = {
        "broker_id": "1",
        "zookeeper_connect": server.address,
        "zookeeper_session_timeout_ms": "1000",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log_dirs": str(tmp_path / "data"),
    }
    properties = tmp_path / "server.properties"
    assert "broker 1 could not be registered (is there another one with this id?)" in refused(
        properties, **texts
    )
    (tmp_path / "data" / "meta.properties").write_text(
        "version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    assert "Invalid cluster.id" in refused(properties, **texts)
    nobody = {**texts, "zookeeper_connect": "127.0.0.1:1", "zookeeper_connection_timeout_ms": "300"}
    assert "ZooKeeper at 127.0.0.1:1 does not answer" in refused(properties, **nobody)
