"""Many partitions: created, described, and the broker started again with them.

Each side gets a broker of its own, so that other measurements are not affected. Times end when every partition answers,
not when the first Metadata does. Kafka is stopped in order, since a start after a kill would be a recovery.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from compat_tests.raw import RawClient
from pykafkad.messages import CreateTopicsRequest, ListOffsetsRequest, MetadataRequest

if TYPE_CHECKING:
    from bench.measures import Numbers, Sizes
    from bench.sides import Side

A_TOPIC = 1_000
CREATE_VERSION = 7
LIST_OFFSETS_VERSION = 7
METADATA_VERSION = 12
ROUNDS = 5
SECONDS = 300


def many_partitions(side: Side, sizes: Sizes) -> Numbers:
    broker = type(side)()
    names = [f"many-{number}" for number in range(max(1, sizes.partitions // A_TOPIC))]
    each = sizes.partitions // len(names)
    try:
        broker.start()
        empty = broker.resident()
        with patient(broker) as client:
            began = time.perf_counter()
            for name in names:
                create(client, name, each)
            wait_until_served(client, names, each)
            created = time.perf_counter()
            times = [describe(client, sizes.partitions) for _ in range(ROUNDS)]
        memory = broker.resident()
        broker.stop_in_order()
        restarted = time.perf_counter()
        broker.start()
        with patient(broker) as client:
            wait_until_served(client, names, each)
            served = time.perf_counter()
            describe(client, sizes.partitions)
        return {
            "create_seconds": created - began,
            "describe_seconds": min(times),
            "restart_seconds": served - restarted,
            "bytes": memory,
            "bytes_each": max(0.0, (memory - empty) / sizes.partitions),
            "restarted_bytes": broker.resident(),
        }
    finally:
        broker.stop()
        broker.remove()


def patient(broker: Side) -> RawClient:
    client = broker.client()
    client.socket.settimeout(SECONDS)
    return client


def create(client: RawClient, name: str, partitions: int) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=SECONDS * 1000), CREATE_VERSION)
    if answer.topics[0].error_code:
        raise RuntimeError(f"cannot create {name}: {answer}")


def wait_until_served(client: RawClient, names: list[str], partitions: int) -> None:
    kind = ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    wanted = [kind(topics=[kind.ListOffsetsTopic(name=name, partitions=parts)]) for name in names]
    deadline = time.monotonic() + SECONDS
    while wanted and time.monotonic() < deadline:
        (topic,) = client.ask(wanted[-1], LIST_OFFSETS_VERSION).topics
        if any(part.error_code for part in topic.partitions):
            time.sleep(0.02)
        else:
            wanted.pop()
    if wanted:
        raise RuntimeError(f"partitions are not served after {SECONDS} s")


def describe(client: RawClient, partitions: int) -> float:
    """Everything in one Metadata request; the answer is only received, since decoding it costs the same for both."""
    client.send(client.frame(MetadataRequest(topics=None), METADATA_VERSION))
    began = time.perf_counter()
    answer = client.receive()
    took = time.perf_counter() - began
    if len(answer) < partitions * 20:
        raise RuntimeError(f"{len(answer)} bytes of Metadata do not describe {partitions} partitions")
    return took
