"""What is measured on a cluster of three: a cluster and the sizes in, named numbers out; units are in the names.

Each measure has a topic of its own, with three replicas, which it deletes; a broker that was killed is back at the end.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from bench.cluster_client import producer
from bench.clusters import BROKERS, Side
from compat_tests.raw import RawClient
from pykafkad.messages import ElectLeadersRequest, MetadataRequest

Numbers = dict[str, float]
LED_BY_EACH = 3  # partitions: each broker leads one
METADATA_VERSION = 12
ELECT_LEADERS_VERSION = 2
PAUSE_S = 0.005
POLL_S = 0.002
BEFORE_S = 1.0
DEADLINE_S = 120.0
# A client that tries again soon, so that the brokers' gap is seen, and not its own pauses.
QUICK_CLIENT = {
    "linger.ms": 0,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "log_level": 0,
}
_numbers = itertools.count()


class Sizes(NamedTuple):
    small_records: int  # of 100 B
    large_records: int
    large_bytes: int  # of such a record
    one_by_one: int
    partitions: int  # of the topic whose controller is killed
    idle_seconds: float


FULL = Sizes(1_000_000, 20_000, 10_240, 3000, 1000, 3.0)
QUICK = Sizes(50_000, 1_000, 10_240, 300, 50, 0.5)


@contextlib.contextmanager
def new_topic(side: Side, partitions: int) -> Iterator[str]:
    name = f"bench-{next(_numbers)}"
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": side.home.bootstrap_servers,
        "log_level": 0,
    }
    admin = AdminClient(config)
    admin.create_topics([NewTopic(name, partitions, BROKERS)], operation_timeout=DEADLINE_S)[name].result()
    side.until_in_sync(name, partitions)
    yield name
    admin = AdminClient(config)  # that knows who is the controller now
    admin.delete_topics([name])[name].result()


def _client(side: Side, work: str, topic: str, partitions: int, count: int, size: int) -> Numbers:
    pids = ",".join(map(str, side.pids))
    command = [sys.executable, "-m", "bench.cluster_client", work, side.home.bootstrap_servers, topic]
    done = subprocess.run(
        [*command, str(partitions), str(count), str(size), pids], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{work}: {done.stderr[-500:]}")
    found: Numbers = json.loads(done.stdout)
    return found


def idle(side: Side, sizes: Sizes) -> Numbers:
    time.sleep(sizes.idle_seconds)
    return {"bytes": side.resident()}


def loaded(side: Side, sizes: Sizes) -> Numbers:
    return {"bytes": side.resident()}


def small(side: Side, sizes: Sizes) -> Numbers:
    with new_topic(side, LED_BY_EACH) as topic:
        return _client(side, "produce", topic, LED_BY_EACH, sizes.small_records, 100)


def large(side: Side, sizes: Sizes) -> Numbers:
    with new_topic(side, LED_BY_EACH) as topic:
        found = _client(side, "produce", topic, LED_BY_EACH, sizes.large_records, sizes.large_bytes)
        return {**found, "megabytes": found["rate"] * sizes.large_bytes / 1e6}


def one_by_one(side: Side, sizes: Sizes) -> Numbers:
    with new_topic(side, 1) as topic:
        return _client(side, "sequential", topic, 1, sizes.one_by_one, 100)


# -- a leader is killed


def leader_killed(side: Side, sizes: Sizes) -> Numbers:
    """From the kill until the first record that was sent after it is acknowledged."""
    with new_topic(side, 1) as topic:
        found = side.until_in_sync(topic, 1)
        leader = found["partitions"][0]["leader"]
        if leader == found["controller"]:  # which takes longer, and is measured for itself
            leader = _lead_elsewhere(side, topic, leader)
        gap = _gap(side, topic, leader)
        side.local.start_broker(leader)
        side.until_in_sync(topic, 1)
    return {"seconds": gap}


def _lead_elsewhere(side: Side, topic: str, leader: int) -> int:
    """The broker stops and comes back: another leads then. Another is the controller, too, or was it before."""
    side.local.stop_broker(leader)
    side.local.start_broker(leader)
    found = side.until_in_sync(topic, 1)
    if found["partitions"][0]["leader"] == found["controller"]:
        return _lead_elsewhere(side, topic, found["controller"])
    return int(found["partitions"][0]["leader"])


def _gap(side: Side, topic: str, leader: int) -> float:
    client = producer(side.home.bootstrap_servers, **QUICK_CLIENT)
    acknowledged: list[float] = []
    killed_at = 0.0

    def told(sent_at: float, error: KafkaError | None, _: object) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        if killed_at and sent_at > killed_at:
            acknowledged.append(time.perf_counter())

    began = time.perf_counter()
    while not acknowledged:
        now = time.perf_counter()
        if now - began > DEADLINE_S:
            raise RuntimeError(f"no write goes on {DEADLINE_S:g} s after broker {leader} was killed")
        if not killed_at and now - began > BEFORE_S:
            killed_at = now
            side.local.kill_broker(leader)
        sent_at = time.perf_counter()
        client.produce(topic, b"x" * 100, partition=0, on_delivery=partial(told, sent_at))
        client.poll(PAUSE_S)
    client.flush(DEADLINE_S)
    return acknowledged[0] - killed_at


# -- the controller is killed, with many partitions


def controller_killed(side: Side, sizes: Sizes) -> Numbers:
    """From the new controller's znode until both others say that all partitions have leaders that live."""
    with new_topic(side, sizes.partitions) as topic:
        _elect_preferred(side)
        found = side.until_in_sync(topic, sizes.partitions, leader_is_first=True)
        controller = found["controller"]
        others = [broker.port for broker in side.home.brokers.values() if broker.id != controller]
        zookeeper = KazooClient(side.home.zookeeper_connect)
        zookeeper.start()
        try:
            killed = time.perf_counter()
            side.local.kill_broker(controller)
            elected = _until_elected(zookeeper, controller)
        finally:
            zookeeper.stop()
            zookeeper.close()
        for port in others:
            _until_all_led(port, topic, sizes.partitions, controller)
        done = time.perf_counter()
        side.local.start_broker(controller)
        side.until_in_sync(topic, sizes.partitions)
    return {"seconds": done - elected, "whole_seconds": done - killed}


def _elect_preferred(side: Side) -> None:
    controller = side.home.broker(side.status()["controller"])
    with RawClient(controller.port) as client:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=60_000)
        answer = client.ask(request, ELECT_LEADERS_VERSION)
        if answer.error_code:
            raise RuntimeError(f"no election of preferred leaders: {answer}")


def _until_elected(zookeeper: KazooClient, last: int) -> float:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(NoNodeError):
            data, _ = zookeeper.get("/controller")
            if json.loads(data)["brokerid"] != last:
                return time.perf_counter()
        time.sleep(POLL_S)
    raise RuntimeError(f"no other controller than broker {last} in {DEADLINE_S:g} s")


def _until_all_led(port: int, topic: str, partitions: int, gone: int) -> None:
    wanted: Any = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    deadline = time.monotonic() + DEADLINE_S
    with RawClient(port) as client:
        while time.monotonic() < deadline:
            (found,) = client.ask(wanted, METADATA_VERSION).topics
            leaders = [each.leader_id for each in found.partitions]
            if len(leaders) == partitions and not {-1, gone} & set(leaders):
                return
            time.sleep(POLL_S * 5)
    raise RuntimeError(f"{topic} has partitions without leaders {DEADLINE_S:g} s after a new controller")
