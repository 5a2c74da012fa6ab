"""What is measured on one broker, figure by figure: a side and the sizes in, named numbers out.

A measure leaves the broker as it found it, except for its own topic, which it deletes. Units are in the names.
"""

from __future__ import annotations

import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import frames
from bench.load import Load
from bench.sides import Side
from compat_tests.raw import RawClient
from pykafkad.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ListOffsetsRequest,
)

Numbers = dict[str, float]
Measure = Callable[[Side, "Sizes"], Numbers]
CREATE_VERSION = 7
DELETE_VERSION = 5
LIST_OFFSETS_VERSION = 7
READY_SECONDS = 30
FETCH_BYTES = 1 << 20
FETCH_BATCHES = 1024  # of 64 KiB: 64 MiB in all
FLOOD_CONNECTIONS = 20
MANY_PARTITIONS = 10
_numbers = itertools.count()


class Sizes(NamedTuple):
    """The sizes of all measures: the normal ones, or those of a smoke run."""

    small_records: int  # of 100 B
    large_records: int  # of 1 KiB
    one_by_one: int
    seconds: float
    warmup: float
    topics: int
    few_connections: int
    many_connections: int
    subscriptions: int  # by a stock client, of each protocol
    raw_subscriptions: int
    members: int  # of one group
    groups: int
    partitions: int
    segmented: int  # partitions of three segments
    unclean_bytes: int
    far_bytes: int  # of a log that is read at random offsets, and of a small one
    near_bytes: int
    dirty_bytes: int
    tests: int  # of a suite
    transactions: int  # of one record
    transacted: int  # records in transactions of 1,000
    transactional_ids: int


FULL = Sizes(
    *(1_000_000, 100_000, 3000, 3.0, 1.0, 30, 500, 5000, 10, 100, 200, 1000, 10_000),
    *(1_000, 2 << 30, 4 << 30, 40 << 20, 1 << 30, 100, 1000, 100_000, 10_000),
)
QUICK = Sizes(
    *(50_000, 5_000, 200, 0.4, 0.2, 5, 100, 500, 2, 5, 20, 50, 200),
    *(30, 16 << 20, 16 << 20, 4 << 20, 8 << 20, 1, 50, 2_000, 100),
)


class Topic:
    """A topic that exists during a measure: `with Topic(side) as name`."""

    def __init__(self, side: Side, partitions: int = 1, **configs: str) -> None:
        """Configs by name, with `_` for `.`."""
        self.client = side.client()
        self.name = f"bench-{next(_numbers)}"
        self.partitions = partitions
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}

    def __enter__(self) -> str:
        create_topic(self.client, self.name, self.partitions, self.configs)
        wait_for_leaders(self.client, self.name, self.partitions)
        return self.name

    def __exit__(self, *_: object) -> None:
        delete_topic(self.client, self.name)
        self.client.close()


def create_topic(
    client: RawClient, name: str, partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    kind = CreateTopicsRequest
    pairs = [kind.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=pairs)
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CREATE_VERSION)
    if answer.topics[0].error_code:
        raise RuntimeError(f"cannot create {name}: {answer}")


def delete_topic(client: RawClient, name: str) -> None:
    answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), DELETE_VERSION)
    if answer.responses[0].error_code:
        raise RuntimeError(f"cannot delete {name}: {answer}")


def wait_for_leaders(client: RawClient, name: str, partitions: int) -> None:
    """Wait until each partition answers: a leader named in Metadata may still be opening its log."""
    parts = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1)
        for index in range(partitions)
    ]
    wanted = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts)])
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        (topic,) = client.ask(wanted, LIST_OFFSETS_VERSION).topics
        if not any(part.error_code for part in topic.partitions):
            return
        time.sleep(0.005)
    raise RuntimeError(f"{name} has no leaders after {READY_SECONDS} s")


def idle_memory(side: Side, sizes: Sizes) -> Numbers:
    time.sleep(1.0 if sizes is QUICK else 3.0)
    return {"bytes": side.resident()}


def loaded_memory(side: Side, sizes: Sizes) -> Numbers:
    return {"bytes": side.resident()}


def run_client(work: str, side: Side, topic: str, count: int, size: int) -> Numbers:
    numbers = [str(count), str(size), str(side.pid)]
    command = [sys.executable, "-m", "bench.clients", work, str(side.port), topic, *numbers]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{work} on {side.name}: {done.stderr.strip()[-500:]}")
    result: Numbers = json.loads(done.stdout)
    return result


def _stream(side: Side, count: int, size: int) -> Numbers:
    with Topic(side) as topic:
        produced = run_client("produce", side, topic, count, size)
        consumed = run_client("consume", side, topic, count, size)
    return {f"produce_{key}": value for key, value in produced.items()} | {
        f"consume_{key}": value for key, value in consumed.items()
    }


def stream_small(side: Side, sizes: Sizes) -> Numbers:
    return _stream(side, sizes.small_records, 100)


def stream_large(side: Side, sizes: Sizes) -> Numbers:
    return _stream(side, sizes.large_records, 1024)


def client_sequential(side: Side, sizes: Sizes) -> Numbers:
    with Topic(side) as topic:
        return run_client("sequential", side, topic, sizes.one_by_one, 100)


def raw_sequential(side: Side, sizes: Sizes) -> Numbers:
    """One record with acks=all at a time on one raw socket, by a client that sleeps until the answer comes, and by one
    that stays awake, which shows the broker's time alone."""
    with Topic(side) as topic:
        frame = frames.produce(topic, 0, frames.batch(1, 100))
        error_at = frames.produce_error_at(topic)
        asleep, awake = (
            Load(
                side.port,
                [frame],
                error_at=error_at,
                seconds=sizes.seconds,
                warmup=sizes.warmup,
                awake=stays_awake,
            ).result()
            for stays_awake in (False, True)
        )
        return asleep | {"awake_p50_us": awake["p50_us"], "awake_p99_us": awake["p99_us"]}


def pipelined(side: Side, sizes: Sizes) -> Numbers:
    """50 connections with 16 one-record batches in flight on each, over ten partitions."""
    return _pipelined(side, sizes)


def flushed(side: Side, sizes: Sizes) -> Numbers:
    """The same with every record on the disk before it is acknowledged; and one at a time."""
    with Topic(side, flush_messages="1") as topic:
        error_at = frames.produce_error_at(topic)
        frame = frames.produce(topic, 0, frames.batch(1, 100))
        load = Load(side.port, [frame], error_at=error_at, seconds=sizes.seconds, warmup=sizes.warmup)
        alone = load.result()
    many = _pipelined(side, sizes, flush_messages="1")
    return {"p50_us": alone["p50_us"], "p99_us": alone["p99_us"], "rate": many["rate"]}


def _pipelined(side: Side, sizes: Sizes, **configs: str) -> Numbers:
    with Topic(side, MANY_PARTITIONS, **configs) as topic:
        data = frames.batch(1, 100)
        load = Load(
            side.port,
            [frames.produce(topic, partition, data) for partition in range(MANY_PARTITIONS)],
            error_at=frames.produce_error_at(topic),
            seconds=sizes.seconds,
            warmup=sizes.warmup,
            connections=50,
            depth=16,
        )
        cpu = side.cpu()
        result = load.result()
        cpu = side.cpu() - cpu
    share = sizes.seconds / (sizes.seconds + sizes.warmup)
    rate = result["answers"] / result["seconds"]
    return {"rate": rate, "cpu_us": cpu * share / result["answers"] * 1e6, "p99_us": result["p99_us"]}


def _fill(client: RawClient, topic: str) -> list[bytes]:
    """64 MiB in batches of 64 KiB, and fetches of 1 MiB that read through it."""
    data = frames.batch(64, 1000)
    offsets = []
    for _ in range(FETCH_BATCHES):
        message = frames.produce_message(topic, 0, data)
        part = client.ask(message, frames.PRODUCE_VERSION).responses[0].partition_responses[0]
        if part.error_code:
            raise RuntimeError(f"cannot fill {topic}: {part}")
        offsets.append(part.base_offset)
    return [frames.fetch(topic, offset, FETCH_BYTES) for offset in offsets[: -FETCH_BYTES // len(data) : 16]]


def raw_fetch(side: Side, sizes: Sizes) -> Numbers:
    """Answers of 1 MiB on one raw socket, reading through 64 MiB of a log."""
    with Topic(side) as topic, side.client() as client:
        walk = _fill(client, topic)
        load = Load(
            side.port,
            walk,
            error_at=frames.fetch_error_at(topic),
            seconds=sizes.seconds,
            warmup=sizes.warmup,
            stride=1,
        )
        cpu = side.cpu()
        result = load.result()
        cpu = side.cpu() - cpu
    share = sizes.seconds / (sizes.seconds + sizes.warmup)
    rate = result["bytes"] / result["seconds"] / 1e6
    return {"megabytes": rate, "cpu_per_gb": cpu * share / result["bytes"] * 1e9}


def producer_beside_fetches(side: Side, sizes: Sizes) -> Numbers:
    """A small producer, one record at a time, while 20 sockets fetch 1 MiB answers."""
    with Topic(side) as full, Topic(side) as small, side.client() as client:
        walk = _fill(client, full)
        flood = Load(
            side.port,
            walk,
            error_at=frames.fetch_error_at(full),
            seconds=sizes.seconds + sizes.warmup,
            warmup=sizes.warmup / 2,
            connections=FLOOD_CONNECTIONS,
            stride=1,
        )
        frame = frames.produce(small, 0, frames.batch(1, 100))
        error_at = frames.produce_error_at(small)
        load = Load(side.port, [frame], error_at=error_at, seconds=sizes.seconds, warmup=sizes.warmup)
        result = load.result()
        fetched = flood.result()
    result["fetch_megabytes"] = fetched["bytes"] / fetched["seconds"] / 1e6
    return result


def topics(side: Side, sizes: Sizes) -> Numbers:
    """CreateTopics and DeleteTopics of one topic with one partition, answered one after the other."""
    names = [f"bench-{next(_numbers)}" for _ in range(sizes.topics)]
    with side.client() as client:
        return {
            "create_ms": _median_ms(create_topic, client, names),
            "delete_ms": _median_ms(delete_topic, client, names),
        }


def _median_ms(act: Callable[[RawClient, str], None], client: RawClient, names: list[str]) -> float:
    times = []
    for name in names:
        began = time.perf_counter()
        act(client, name)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def _connections(side: Side, count: int) -> Numbers:
    """Open `count` connections, one after the other; then all send a request at once; then they are idle.

    Opened in one rush they would measure Kafka's listen backlog of 50 and the kernel's SYN retries.
    """
    before, cpu, began = side.resident(), side.cpu(), time.perf_counter()
    clients: list[RawClient] = []
    errors = 0
    try:
        for _ in range(count):
            clients.append(side.client())
            errors += clients[-1].ask(ApiVersionsRequest(), 2).error_code != 0
        opened = time.perf_counter()
        for client in clients:
            client.send(client.frame(ApiVersionsRequest(), 2))
        for client in clients:
            errors += client.receive()[4:6] != b"\0\0"
        answered, cpu = time.perf_counter(), side.cpu() - cpu
        per_connection = (side.resident() - before) / count
    finally:
        for client in clients:
            client.close()
    return {
        "open_seconds": opened - began,
        "ask_seconds": answered - opened,
        "cpu": cpu / count,
        "bytes": max(per_connection, 0.0),
        "errors": errors,
    }


def few_connections(side: Side, sizes: Sizes) -> Numbers:
    return _connections(side, sizes.few_connections)


def many_connections(side: Side, sizes: Sizes) -> Numbers:
    return _connections(side, sizes.many_connections)


def raise_descriptor_limit() -> None:
    """Brokers and clients here each hold thousands of sockets."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
