"""ZooKeeper is slow, or partly or wholly gone, while clients write and read: leaders serve on, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compat_tests.cluster.brokers import MixedCluster
from compat_tests.cluster.ensemble import Ensemble
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

TOPIC, PARTITIONS = "faults", 3
WITHOUT_QUORUM_S = 60.0
SETTLED_S = 6.0
DEADLINE_S = 120.0
MIN_ISR = {"min.insync.replicas": 2}

pytestmark = pytest.mark.long


def test_one_of_three_zookeepers_may_go(tmp_path: Path) -> None:
    """Each in turn, so the one that leads them too."""
    with Ensemble(tmp_path) as ensemble, MixedCluster(zookeeper=ensemble.connect) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, MIN_ISR)
        cluster.until_in_sync()
        with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
            for id in range(3):
                writer.goes_on()
                ensemble.kill(id)
                ensemble.until_serving(2)
                writer.goes_on()
                cluster.create_topic(f"made-without-{id}", 1)
                ensemble.start(id)
                ensemble.until_serving(3)
        cluster.until_in_sync()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


def test_leaders_serve_on_while_the_quorum_is_lost(tmp_path: Path) -> None:
    with Ensemble(tmp_path) as ensemble, MixedCluster(zookeeper=ensemble.connect) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, MIN_ISR)
        cluster.until_in_sync()
        with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
            writer.goes_on()
            for id in (0, 1):
                ensemble.kill(id)
            ensemble.until_serving(0)  # the one that is left finds out after a while
            began = time.monotonic()
            while time.monotonic() - began < WITHOUT_QUORUM_S:
                writer.goes_on()
                assert read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS)
                time.sleep(1)
            for id in (0, 1):
                ensemble.start(id)
            ensemble.until_serving(3)
            until_settled(cluster)
            writer.goes_on()
            cluster.kill(0)
            cluster.until_led()
            writer.goes_on()
            cluster.start(0)
            cluster.until_in_sync()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


@pytest.mark.parametrize("seconds", [2.0, 10.0], ids=["less than a session", "more than a session"])
def test_a_zookeeper_that_stands_still(seconds: float) -> None:
    """When it goes on, the sessions of all brokers may have ended at once."""
    with MixedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, MIN_ISR)
        cluster.until_in_sync()
        assert cluster.home.zookeeper is not None
        process = cluster.home.zookeeper.process
        with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
            for _ in range(2):
                writer.goes_on()
                process.pause()
                began = time.monotonic()
                while time.monotonic() - began < seconds:
                    writer.goes_on(10)
                process.resume()
                until_settled(cluster)
                writer.goes_on()
            cluster.create_topic("afterwards", 3)
            until_settled(cluster)
            cluster.kill(0)
            cluster.until_led()
            writer.goes_on()
            cluster.start(0)
            cluster.until_in_sync()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


def until_settled(cluster: MixedCluster) -> None:
    """In sync for longer than a session: brokers whose sessions have ended are heard of only then."""
    deadline = time.monotonic() + DEADLINE_S
    since = time.monotonic()
    while time.monotonic() - since < SETTLED_S:
        assert time.monotonic() < deadline, cluster.status()
        rows = cluster.status()["partitions"]
        if not rows or any(len(row["isr"]) < len(row["replicas"]) for row in rows):
            since = time.monotonic()
        time.sleep(0.1)
