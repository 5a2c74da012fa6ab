"""MirrorMaker 2 of Kafka 3.9.2 between two and three clusters, in all directions, while a broker of each is killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests import needs
from compat_tests.cluster.brokers import JAVA, MixedCluster, chosen
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
TOPIC, PARTITIONS, GROUP = "mirrored", 3, "readers"
DEADLINE_S = 180.0

Clusters = dict[str, MixedCluster]  # by the name that its copies elsewhere begin with

pytestmark = pytest.mark.long


@pytest.fixture
def libs() -> Path:
    return needs.jars("mirror")


@contextmanager
def mirror(libs: Path, directory: Path, clusters: Clusters) -> Iterator[None]:
    ways = [f"{source}->{target}" for source, target in permutations(clusters, 2)]
    lines = {
        "clusters": ", ".join(clusters),
        **{f"{name}.bootstrap.servers": each.bootstrap_servers for name, each in clusters.items()},
        **{f"{way}.enabled": "true" for way in ways},
        **{f"{way}.topics": TOPIC for way in ways},
        **{f"{way}.groups": GROUP for way in ways},
        **{
            f"{each}.replication.factor": "2"
            for each in (
                "checkpoints.topic",
                "heartbeats.topic",
                "offset-syncs.topic",
                "offset.storage",
                "status.storage",
                "config.storage",
            )
        },
        "replication.factor": "2",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "offset.lag.max": "0",
    }
    config, output = directory / "mirror.properties", directory / "mirror.log"
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    with open(output, "wb") as log:
        command = ["java", *JAVA, "-cp", f"{libs}/*", MAIN, str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
    try:
        yield
    except BaseException as error:
        error.add_note(output.read_text(errors="replace")[-3000:])
        raise
    finally:
        process.kill()
        process.wait()


def until(what: str, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def mirrored(cluster: MixedCluster, topic: str) -> set[str]:
    try:
        return set(read_all(cluster.bootstrap_servers, topic, PARTITIONS))
    except KafkaException:  # it is not made yet
        return set()


def read_as_group(cluster: MixedCluster) -> int:
    """Everything there is; how many, and that they are read is committed."""
    consumer = group_of(cluster)
    consumer.subscribe([TOPIC])
    count = 0
    deadline = time.monotonic() + DEADLINE_S
    wanted = len(read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    while count < wanted:
        assert time.monotonic() < deadline, f"{count} of {wanted} read"
        message = consumer.poll(1.0)
        count += message is not None and not message.error()
    consumer.commit(asynchronous=False)
    consumer.close()
    return count


def committed(cluster: MixedCluster, topic: str) -> int:
    consumer = group_of(cluster)
    try:
        found = consumer.committed([TopicPartition(topic, index) for index in range(PARTITIONS)], timeout=30)
        return sum(max(0, each.offset) for each in found)
    finally:
        consumer.close()


def group_of(cluster: MixedCluster) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )


@pytest.mark.parametrize("names", [("west", "east"), ("west", "east", "north")], ids=["two", "three"])
def test_clusters_mirror_each_other(libs: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    """They share a ZooKeeper, under roots of their own, and nothing else."""
    clusters: Clusters = {}
    with ExitStack() as stack:
        root: str | None = None
        for name in names:
            cluster = MixedCluster(
                [chosen()] * 2, topics={TOPIC: PARTITIONS}, zookeeper=root and f"{root}/{name}"
            )
            clusters[name] = stack.enter_context(cluster)
            root = root or cluster.home.zookeeper_connect
        for each in clusters.values():
            each.until_in_sync()
        stack.enter_context(mirror(libs, tmp_path, clusters))
        mirror_all(clusters)


def mirror_all(clusters: Clusters) -> None:
    ways = list(permutations(clusters, 2))
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(Writer(each.bootstrap_servers, TOPIC, PARTITIONS))
            for name, each in clusters.items()
        }
        for source, target in ways:
            until(
                f"nothing of {source} came to {target}",
                lambda s=source, t=target: bool(mirrored(clusters[t], f"{s}.{TOPIC}")),  # type: ignore[misc]
            )
        for name, each in clusters.items():
            each.kill(0)
            each.until_led()
            writers[name].goes_on()
            each.start(0)
            each.until_in_sync()
    for name, each in clusters.items():
        check_nothing_lost(writers[name], read_all(each.bootstrap_servers, TOPIC, PARTITIONS))
    for source, target in ways:
        wanted, copy = set(writers[source].acknowledged), f"{source}.{TOPIC}"
        until(
            f"{copy} is not whole in {target}",
            lambda w=wanted, t=target, c=copy: w <= mirrored(clusters[t], c),  # type: ignore[misc]
        )
    first, *others = clusters
    count = read_as_group(clusters[first])
    for other in others:
        until(
            f"the group's offsets are not known in {other}",
            lambda o=other: committed(clusters[o], f"{first}.{TOPIC}") >= count,  # type: ignore[misc]
        )
