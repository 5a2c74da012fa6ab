"""MirrorMaker 2 of Kafka 3.9.2 between two clusters, in both directions, while a broker of each is killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests import needs
from compat_tests.cluster.brokers import JAVA, MixedCluster, chosen
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
TOPIC, PARTITIONS, GROUP = "mirrored", 3, "readers"
DEADLINE_S = 180.0

pytestmark = pytest.mark.long


@pytest.fixture
def libs() -> Path:
    return needs.jars("mirror")


@contextmanager
def mirror(libs: Path, directory: Path, west: MixedCluster, east: MixedCluster) -> Iterator[None]:
    lines = {
        "clusters": "west, east",
        "west.bootstrap.servers": west.bootstrap_servers,
        "east.bootstrap.servers": east.bootstrap_servers,
        **{f"{way}.enabled": "true" for way in ("west->east", "east->west")},
        **{f"{way}.topics": TOPIC for way in ("west->east", "east->west")},
        **{f"{way}.groups": GROUP for way in ("west->east", "east->west")},
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


def test_two_clusters_mirror_each_other(libs: Path, tmp_path: Path) -> None:
    """They share a ZooKeeper, under two roots, and nothing else."""
    kinds = [chosen()] * 2
    with MixedCluster(kinds, topics={TOPIC: PARTITIONS}) as west:
        root = f"{west.home.zookeeper_connect}/east"
        with MixedCluster(kinds, topics={TOPIC: PARTITIONS}, zookeeper=root) as east:
            for each in (west, east):
                each.until_in_sync()
            with mirror(libs, tmp_path, west, east):
                mirror_both(west, east)


def mirror_both(west: MixedCluster, east: MixedCluster) -> None:
    with (
        Writer(west.bootstrap_servers, TOPIC, PARTITIONS) as in_west,
        Writer(east.bootstrap_servers, TOPIC, PARTITIONS) as in_east,
    ):
        until("nothing came to the east", lambda: bool(mirrored(east, f"west.{TOPIC}")))
        until("nothing came to the west", lambda: bool(mirrored(west, f"east.{TOPIC}")))
        for each, writer in ((west, in_west), (east, in_east)):
            each.kill(0)
            each.until_led()
            writer.goes_on()
            each.start(0)
            each.until_in_sync()
    for here, writer, there, name in ((west, in_west, east, "west"), (east, in_east, west, "east")):
        check_nothing_lost(writer, read_all(here.bootstrap_servers, TOPIC, PARTITIONS))
        wanted = set(writer.acknowledged)
        copy = f"{name}.{TOPIC}"
        until(f"{copy} is not whole", lambda w=wanted, t=there, c=copy: w <= mirrored(t, c))  # type: ignore[misc]
    count = read_as_group(west)
    until("the group's offsets are not known in the east", lambda: committed(east, f"west.{TOPIC}") >= count)
