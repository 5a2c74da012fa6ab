"""The labs: 3 brokers, 13 partitions with 3 replicas; a broker is killed, and messages go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.cluster.brokers import MixedCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

TOPIC, PARTITIONS = "lab", 13


@pytest.fixture
def cluster() -> Iterator[MixedCluster]:
    with MixedCluster(topics={TOPIC: PARTITIONS}) as cluster:
        cluster.until_in_sync()
        yield cluster


def test_leaders_and_replicas_are_spread_over_the_brokers(cluster: MixedCluster) -> None:
    rows = cluster.partitions(TOPIC)
    assert len(rows) == PARTITIONS
    assert all(
        sorted(row["replicas"]) == [0, 1, 2] and row["leader"] == row["replicas"][0] for row in rows.values()
    )
    leads = [row["leads"] for row in cluster.status()["brokers"]]
    assert sum(leads) == PARTITIONS and max(leads) - min(leads) <= 1


def test_messages_go_on_when_a_broker_is_killed_and_comes_back(cluster: MixedCluster) -> None:
    with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
        writer.goes_on()
        cluster.kill(0)
        writer.goes_on()
        cluster.until_led()
        writer.goes_on()
        cluster.start(0)
        cluster.until_in_sync()
        writer.goes_on()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


@pytest.mark.long
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_another_controller_is_elected_when_the_controller_goes(cluster: MixedCluster, how: str) -> None:
    first = cluster.status()
    controller = first["controller"]
    with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
        writer.goes_on()
        getattr(cluster, how)(controller)
        second = cluster.until_another_controls(controller)
        cluster.until_led()
        writer.goes_on()
        cluster.create_topic("afterwards", 3, replication_factor=2)
        cluster.start(controller)
        cluster.until_in_sync()
    assert second["controller_epoch"] == first["controller_epoch"] + 1
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


def test_a_client_may_begin_at_any_broker(cluster: MixedCluster) -> None:
    servers = cluster.bootstrap_servers.split(",")
    for server in servers:
        with Writer(server, TOPIC, PARTITIONS) as writer:
            writer.goes_on(20)
        assert not writer.failed
    counts = [len(read_all(server, TOPIC, PARTITIONS)) for server in servers]
    assert counts[0] >= 60 and len(set(counts)) == 1


@pytest.mark.long
def test_every_broker_can_be_replaced_in_turn(cluster: MixedCluster) -> None:
    """A rolling restart, stopped in order: nobody notices more than a moment."""
    with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
        for id in range(3):
            writer.goes_on()
            cluster.stop(id)
            cluster.until_led()
            writer.goes_on()
            cluster.start(id)
            cluster.until_in_sync()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))
