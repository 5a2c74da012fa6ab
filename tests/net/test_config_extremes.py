"""Every numeric config at its smallest and largest value: the broker serves, or says in one line why it does not.

A run takes a few of them (SEED chooses which); ALL=1 takes every one, which lasts some minutes.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from pykafkad.config import BROKER_KEYS, OWN_KEYS, TOPIC_KEYS, BrokerConfig, ConfigError, TopicConfig
from pykafkad.config_def import Key, show_double
from pykafkad.hot import records
from pykafkad.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
)
from pykafkad.testing import Broker, BrokerError
from pykafkad.testing.client import Client

ALL = bool(os.environ.get("ALL"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
SAMPLE = 8
BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
IDLE_SECONDS = 0.4
BUSY = 0.5  # of a core

# With so few connections, so short a timeout or so small a request no client can work.
NO_CLIENTS = {
    "max.connections",
    "max.connections.per.ip",
    "connections.max.idle.ms",
    "socket.request.max.bytes",
    "listeners",
}
Case = tuple[str, str]


def extremes(key: Key) -> list[str]:
    """The smallest and largest values that the key's own validator allows, and those at the edge of what makes sense."""
    bounds, _, extra = key.validator.partition("|")
    low, dots, high = bounds.partition("..")
    if key.type == "DOUBLE":
        found = [low if dots else "-1.7976931348623157e308", high or "1.7976931348623157e308"]
        found += ["NaN", "0", "Infinity", "-Infinity"]
    elif key.type in BITS:
        half = 1 << BITS[key.type] - 1
        found = [low if dots and low else str(-half), high if dots and high else str(half - 1), "0"]
    else:
        return []
    return list(dict.fromkeys([*found, *([extra] if extra else [])]))


def cases(keys: dict[str, Key]) -> list[Case]:
    return [(name, text) for name, key in keys.items() for text in extremes(key)]


def allowed(name: str, text: str) -> bool:
    try:
        BrokerConfig({name: text})
    except ConfigError:
        return False
    return True


def some(of: list[Case]) -> list[Case]:
    return of if ALL else random.Random(SEED).sample(of, SAMPLE)


STATIC = cases(BROKER_KEYS | OWN_KEYS)
STARTED = [case for case in STATIC if allowed(*case)]
DYNAMIC = cases({name: key for name, key in (BROKER_KEYS | OWN_KEYS).items() if key.scope})


def test_most_of_them_may_be() -> None:
    assert len(STATIC) // 2 < len(STARTED) < len(STATIC)


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idles(broker: Broker) -> bool:
    """Without requests it does next to nothing."""
    for _ in range(3):  # work that began with the start may end first
        before = cpu_seconds(broker.pid)
        time.sleep(IDLE_SECONDS)
        if cpu_seconds(broker.pid) - before < BUSY * IDLE_SECONDS:
            return True
    return False


def use(client: Client, topic: str) -> None:
    """Each kind of request is answered, with whatever code."""
    client.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    creatable = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    client.call(CreateTopicsRequest(topics=[creatable], timeout_ms=5_000), 7)
    data = records.build([(None, b"value", [], int(time.time() * 1000))])
    part = ProduceRequest.PartitionProduceData(index=0, records=data)
    produced = ProduceRequest.TopicProduceData(name=topic, partition_data=[part])
    client.call(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[produced]), 9)
    fetched = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[fetched])]
    client.call(FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=1 << 20, topics=topics), 11)


def check(broker: Broker, name: str, topic: str) -> None:
    if name not in NO_CLIENTS:
        with broker.client() as client:
            use(client, topic)
    assert idles(broker), "it is busy with nothing"
    assert broker.running and "Traceback" not in broker.log_text()
    assert "ERROR" not in broker.log_text(), broker.log_text()


@pytest.mark.parametrize(("name", "text"), some(STARTED))
def test_a_broker_serves_with_it(name: str, text: str) -> None:
    print(f"SEED={SEED}")
    try:
        broker = Broker(config={name: text})
    except BrokerError as refused:
        said = str(refused)
    else:
        with broker:
            check(broker, name, "t")
            assert broker.stop() == 0, broker.log_text()
        return
    assert "Traceback" not in said and "pykafkad: " in said, "it says why it does not start"


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as made:
        yield made


def alter(client: Client, name: str, operation: int, text: str | None) -> int:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name=name, config_operation=operation, value=text)
    resource = kind.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    return int(client.call(kind(resources=[resource]), 1).responses[0].error_code)


@pytest.mark.parametrize(("name", "text"), some(DYNAMIC))
def test_a_running_broker_serves_with_it(running: Broker, name: str, text: str) -> None:
    with running.client() as client:
        if alter(client, name, 0, text):
            return
        check(running, name, f"{name}-{text.replace('+', '')}")
        assert alter(client, name, 1, None) in (0, 42)


@pytest.mark.parametrize(("name", "text"), some(cases(TOPIC_KEYS)))
def test_a_topic_serves_with_it(running: Broker, name: str, text: str) -> None:
    try:
        TopicConfig(BrokerConfig({}), {name: text}).check()
    except ConfigError:
        return
    topic = f"of-{name}-{show_double(float(text)).replace('+', '')}"[:200]
    running.create_topic(topic, 1, {name: text})
    check(running, name, topic)


@pytest.mark.parametrize("size", [4, 8, 12, 23, 24, 36])
def test_indexes_without_room_do_not_keep_a_broker_from_serving(size: int) -> None:
    with Broker() as broker:
        broker.create_topic("t", 1, {"segment.index.bytes": size, "index.interval.bytes": 0})
        with broker.client() as client:
            for _ in range(8):
                use(client, "t")
        assert broker.stop() == 0, broker.log_text()
        broker.start()
        with broker.client() as client:
            use(client, "t")
        assert "ERROR" not in broker.log_text()
