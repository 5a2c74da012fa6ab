"""The drills: what a cluster does when replicas are slow, gone, out of date or spoilt, and what an operator does then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.cluster.brokers import OURS, MixedCluster, chosen, tool, tool_lines
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from pykafkad.messages import ElectLeadersRequest, IncrementalAlterConfigsRequest
from pykafkad.testing.errors import BrokerError

TOPIC = "drill"
UNCLEAN = 1
DEADLINE_S = 60.0


@pytest.fixture
def cluster() -> Iterator[MixedCluster]:
    with MixedCluster() as cluster:
        yield cluster


def leader_of(cluster: MixedCluster, topic: str = TOPIC) -> int:
    return int(cluster.partitions(topic)[0]["leader"])


def refused(cluster: MixedCluster, topic: str = TOPIC) -> str:
    """The error of a write with acks=all that is not tried again."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "retries": 0, "acks": "all", "log_level": 0}
    )
    errors: list[str] = []
    producer.produce(
        topic,
        b"refused",
        partition=0,
        on_delivery=lambda error, _: errors.append(error.name() if error else ""),
    )
    producer.flush(DEADLINE_S)
    return errors[0]


def test_a_follower_that_stands_still_is_left_behind_and_taken_back(cluster: MixedCluster) -> None:
    """Its process is frozen for longer than its session: the others go on without it."""
    cluster.create_topic(TOPIC, 3, {"min.insync.replicas": 2})
    cluster.until_in_sync()
    with Writer(cluster.bootstrap_servers, TOPIC, 3) as writer:
        writer.goes_on()
        controller = cluster.status()["controller"]
        slow = next(id for id in range(3) if id != controller)
        cluster.pause(slow)
        cluster.until("without the one that stands still", lambda status: without(status, slow))
        writer.goes_on()
        cluster.resume(slow)
        cluster.until_in_sync()
        writer.goes_on()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, 3))


def test_a_leader_that_is_cut_off_acknowledges_nothing_that_is_lost(cluster: MixedCluster) -> None:
    """Its clients still reach it, and the others elect another leader meanwhile."""
    if chosen() != OURS:
        pytest.skip("a real Kafka broker cannot be asked to cut itself off")
    cluster.create_topic(TOPIC, 3, {"min.insync.replicas": 2})
    cluster.until_in_sync()
    with Writer(cluster.bootstrap_servers, TOPIC, 3) as writer:
        for _ in range(2):
            writer.goes_on()
            leader = leader_of(cluster)
            cluster.isolate(leader)
            cluster.until("another leader", partial(without, id=leader))
            writer.goes_on()
            cluster.heal(leader)
            cluster.until_in_sync()
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, 3))


def without(status: dict[str, Any], id: int) -> bool:
    """All partitions are led, and in sync, without this broker."""
    rows = status["partitions"]
    return bool(rows) and all(id not in row["isr"] and row["leader"] not in (-1, id) for row in rows)


def test_writes_are_refused_while_two_of_three_are_down(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, 1, {"min.insync.replicas": 2})
    cluster.until_in_sync()
    assert refused(cluster) == ""
    leader = leader_of(cluster)
    for id in {0, 1, 2} - {leader}:
        cluster.stop(id)
    cluster.until("alone", lambda status: [row["isr"] for row in status["partitions"]] == [[leader]])
    assert refused(cluster) == "NOT_ENOUGH_REPLICAS"
    assert len(read_all(cluster.bootstrap_servers, TOPIC, 1)) == 1, "what is there can be read"
    for id in {0, 1, 2} - {leader}:
        cluster.start(id)
    cluster.until_in_sync()
    assert refused(cluster) == ""


def two_replicas_out_of_step(cluster: MixedCluster) -> tuple[int, int]:
    """The only replica that has the last records is down, and the other one is back: who is who."""
    cluster.create_topic(TOPIC, 1, {"unclean.leader.election.enable": "false"}, replication_factor=2)
    cluster.until_in_sync()
    cluster.produce(TOPIC, "both have it")
    first = leader_of(cluster)
    second = next(id for id in cluster.partitions(TOPIC)[0]["replicas"] if id != first)
    cluster.stop(second)
    cluster.until("one in sync", lambda status: [row["isr"] for row in status["partitions"]] == [[first]])
    cluster.produce(TOPIC, "one has it", timeout=30)
    cluster.kill(first)
    cluster.start(second)
    cluster.until("no leader", lambda status: [row["leader"] for row in status["partitions"]] == [-1])
    return first, second


def test_nobody_leads_who_is_out_of_date_and_nothing_is_lost(cluster: MixedCluster) -> None:
    first, _ = two_replicas_out_of_step(cluster)
    assert cluster.partitions(TOPIC)[0]["isr"] == [first]
    cluster.start(first)
    cluster.until_in_sync()
    assert leader_of(cluster) == first
    assert read_all(cluster.bootstrap_servers, TOPIC, 1) == ["both have it", "one has it"]


@pytest.mark.long
def test_an_unclean_leader_is_elected_once_it_is_allowed(cluster: MixedCluster) -> None:
    first, second = two_replicas_out_of_step(cluster)
    kind = IncrementalAlterConfigsRequest
    change = kind.AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    resource = kind.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[change])
    with cluster.connected(DEADLINE_S) as client:
        answer = client.call(client.controller(), kind(resources=[resource]), at_most=1)
    assert [row.error_code for row in answer.responses] == [0]
    cluster.until(
        "an unclean leader", lambda status: [row["leader"] for row in status["partitions"]] == [second]
    )
    cluster.start(first)
    cluster.until_in_sync()
    assert read_all(cluster.bootstrap_servers, TOPIC, 1) == ["both have it"], (
        "what only the first had is gone"
    )


@pytest.mark.long
def test_an_operator_promotes_a_replica_by_hand(cluster: MixedCluster) -> None:
    first, second = two_replicas_out_of_step(cluster)
    kind = ElectLeadersRequest
    topic = kind.TopicPartitions(topic=TOPIC, partitions=[0])
    with cluster.connected(DEADLINE_S) as client:
        request = kind(election_type=UNCLEAN, topic_partitions=[topic], timeout_ms=30_000)
        answer = client.call(client.controller(), request, at_most=2)
    rows = [each for one in answer.replica_election_results for each in one.partition_result]
    assert (answer.error_code, [row.error_code for row in rows]) == (0, [0])
    assert leader_of(cluster) == second
    cluster.start(first)
    cluster.until_in_sync()
    assert read_all(cluster.bootstrap_servers, TOPIC, 1) == ["both have it"]


@pytest.mark.long
def test_a_follower_with_a_spoilt_log_is_made_good_by_the_leader(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, 1)
    cluster.until_in_sync()
    values = [f"value {number}" for number in range(100)]
    for start in range(0, 100, 10):
        cluster.produce(TOPIC, *values[start : start + 10])
    leader = leader_of(cluster)
    spoilt = next(id for id in range(3) if id != leader)
    cluster.kill(spoilt)
    segment = Path(cluster.home.broker(spoilt).data) / f"{TOPIC}-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    segment.write_bytes(data)
    cluster.produce(TOPIC, "afterwards", timeout=30)
    cluster.start(spoilt)
    cluster.until_in_sync()
    for id in {0, 1, 2} - {spoilt}:
        cluster.stop(id)
    cluster.start(leader)
    assert read_all(cluster.bootstrap_servers, TOPIC, 1) == [*values, "afterwards"]
    leader_segment = Path(cluster.home.broker(leader).data) / f"{TOPIC}-0" / segment.name
    assert segment.read_bytes() == leader_segment.read_bytes(), (
        "the follower's log is the leader's, byte for byte"
    )


# -- the tools of an operator


@pytest.mark.long
def test_replicas_are_moved_by_kafkas_tool(cluster: MixedCluster, tmp_path: Path) -> None:
    cluster.create_topic(TOPIC, 1, replication_factor=2)
    cluster.until_in_sync()
    with Writer(cluster.bootstrap_servers, TOPIC, 1) as writer:
        writer.goes_on()
        before = cluster.partitions(TOPIC)[0]["replicas"]
        added = next(id for id in range(3) if id not in before)
        wanted = [added, before[0]]
        plan = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": wanted}]}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        tool(cluster, "reassign", "--execute", "--reassignment-json-file", str(tmp_path / "plan.json"))
        cluster.until("moved", lambda status: status["partitions"][0]["replicas"] == wanted)
        cluster.until_in_sync()
        writer.goes_on()
        said = tool(cluster, "reassign", "--verify", "--reassignment-json-file", str(tmp_path / "plan.json"))
        assert "is completed" in said or "is complete" in said
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, 1))


@pytest.mark.long
def test_the_preferred_leader_comes_back_by_kafkas_tool(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, 3)
    cluster.until_in_sync()
    cluster.stop(1)
    cluster.until_led()
    cluster.start(1)
    cluster.until_in_sync()
    assert cluster.status()["brokers"][1]["leads"] == 0
    tool(cluster, "leader-election", "--election-type", "preferred", "--all-topic-partitions")
    rows = cluster.until(
        "as preferred",
        lambda status: all(row["leader"] == row["replicas"][0] for row in status["partitions"]),
    )
    assert rows["brokers"][1]["leads"] == 1


@pytest.mark.long
def test_a_topic_is_deleted_though_a_replica_is_down(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, 3)
    cluster.until_in_sync()
    down = next(id for id in range(3) if id != cluster.status()["controller"])
    cluster.kill(down)
    cluster.until("gone", lambda status: all(down not in row["isr"] for row in status["partitions"]))
    tool(cluster, "topics", "--delete", "--topic", TOPIC)
    cluster.until("deleted", lambda status: status["partitions"] == [])
    cluster.start(down)
    directories = [Path(cluster.home.broker(id).data) / f"{TOPIC}-0" for id in range(3)]
    until("all replicas are gone", lambda: not any(directory.exists() for directory in directories))
    until("there may be another of that name", lambda: can_create(cluster))


def until(what: str, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def can_create(cluster: MixedCluster) -> bool:
    try:
        cluster.create_topic(TOPIC, 1)
    except BrokerError:
        return False
    return True


@pytest.mark.long
def test_kafkas_tool_finds_all_replicas_the_same(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, 3)
    cluster.until_in_sync()
    cluster.produce(TOPIC, *range(300))
    lines = tool_lines(
        cluster,
        "replica-verification",
        "--topics-include",
        TOPIC,
        "--time",
        "-2",
        "--report-interval-ms",
        "500",
    )
    reports = [line for line in lines if "max lag is" in line]
    assert reports and "max lag is 0 for partition" in reports[-1], lines
