"""A real Kafka 3.9.2 broker and ours replicate to each other: a follower's log is the leader's, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.cluster.brokers import KAFKA, OURS, MixedCluster
from pykafkad.messages import CreateTopicsRequest

LED_BY_KAFKA, LED_BY_US = "led-by-kafka", "led-by-us"
DEADLINE_S = 60.0
SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[MixedCluster]:
    with MixedCluster([KAFKA, OURS]) as cluster:
        create(cluster, LED_BY_KAFKA, [0, 1])
        create(cluster, LED_BY_US, [1, 0])
        cluster.until_in_sync()
        yield cluster


def create(cluster: MixedCluster, name: str, replicas: list[int]) -> None:
    Request = CreateTopicsRequest
    topic = Request.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[Request.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
        configs=[Request.CreatableTopicConfig(name="segment.bytes", value=str(SEGMENT_BYTES))],
    )
    with cluster.connected(DEADLINE_S) as client:
        answer = client.call(client.controller(), Request(topics=[topic], timeout_ms=30_000), at_most=7)
    assert answer.topics[0].error_code == 0, answer


def produce(cluster: MixedCluster, topic: str, count: int, size: int, **config: object) -> None:
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 5, **config}
    )
    failed: list[object] = []
    if "transactional.id" in config:
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
    for number in range(count):
        producer.produce(
            topic,
            value=b"%08d" % number * (size // 8),
            partition=0,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0 and not failed
    if "transactional.id" in config:
        producer.commit_transaction(DEADLINE_S)


def directory(cluster: MixedCluster, broker: int, topic: str) -> Path:
    (found,) = Path(cluster.home.broker(broker).directory).rglob(f"{topic}-0")
    return found


def content(path: Path) -> dict[str, bytes]:
    names = [*path.glob("*.log"), path / "leader-epoch-checkpoint"]
    return {each.name: each.read_bytes() for each in sorted(names)}


def until(what: str, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def until_same(cluster: MixedCluster, topic: str) -> dict[str, bytes]:
    one, two = (directory(cluster, broker, topic) for broker in (0, 1))
    until(f"the logs of {topic} are not the same", lambda: content(one) == content(two))
    return content(one)


@pytest.mark.parametrize("topic", [LED_BY_KAFKA, LED_BY_US])
def test_a_followers_log_is_the_leaders_byte_for_byte(cluster: MixedCluster, topic: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(cluster, topic, 500, 800, **{"compression.type": codec})
    produce(cluster, topic, 500, 2000, **{"enable.idempotence": True})
    produce(cluster, topic, 20, 100, **{"transactional.id": f"t-{topic}"})
    produce(cluster, topic, 3, 700_000)
    found = until_same(cluster, topic)
    assert len(found) > 3, "several segments and the epochs"
    assert sum(map(len, found.values())) > 2 * SEGMENT_BYTES


@pytest.mark.parametrize("topic", [LED_BY_KAFKA, LED_BY_US])
def test_who_was_away_catches_up_and_leads(cluster: MixedCluster, topic: str) -> None:
    """The leader is killed, the follower goes on, and the old leader follows it from where their logs part."""
    leader = cluster.partitions(topic)[0]["leader"]
    produce(cluster, topic, 100, 100)
    cluster.kill(leader)
    cluster.until_led()
    produce(cluster, topic, 100, 100)
    cluster.start(leader)
    cluster.until_in_sync()
    produce(cluster, topic, 100, 100)
    until_same(cluster, topic)
    assert cluster.partitions(topic)[0]["leader"] == 1 - leader
