"""Existing logs: starts with many segments, starts after a crash, fetches at offsets far into a log.

Each side gets a broker of its own. A start ends when every partition answers, not with the first Metadata. What is read
was written just before, so it is in the page cache: this compares what a broker does with it, not the disk.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench import frames
from bench.load import Load
from bench.measures import QUICK, create_topic
from bench.partitions import patient, wait_until_served
from pykafkad.hot import records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.measures import Numbers, Sizes
    from bench.sides import Side
    from compat_tests.raw import RawClient

TOPIC = "logs"
SEGMENTS = 3
SEGMENT_MS = 60_000
BATCH_RECORDS, RECORD_BYTES = 16, 1000  # 16 KiB, as producers make them
IN_FLIGHT = 32
FETCHES = 5_000
FETCH_BYTES = 16 << 10
ONE_SEGMENT = str(2**31 - 1)
ROUNDS = 3


@contextmanager
def broker_of(side: Side, **config: str) -> Iterator[Side]:
    """A started broker of the same kind, with configs by name (`_` for `.`)."""
    broker = type(side)({name.replace("_", "."): value for name, value in config.items()})
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
        broker.remove()


def rounds_of(sizes: Sizes) -> int:
    return 1 if sizes is QUICK else ROUNDS


def served(broker: Side, partitions: int) -> float:
    """Start it; returns the seconds until every partition of the topic is served."""
    began = time.perf_counter()
    broker.start()
    with patient(broker) as client:
        wait_until_served(client, [TOPIC], partitions)
    return time.perf_counter() - began


def many_segments(side: Side, sizes: Sizes) -> Numbers:
    """A clean start with many partitions of three segments each."""
    count = sizes.segmented
    with broker_of(side) as broker:
        with patient(broker) as client:
            create_topic(client, TOPIC, count, {"segment.ms": str(SEGMENT_MS)})
            wait_until_served(client, [TOPIC], count)
            now_ms = int(time.time() * 1000)
            for number in range(SEGMENTS):
                # A batch that is so much later than the segment's first one begins another segment.
                stamp_ms = now_ms - (SEGMENTS - number) * 2 * SEGMENT_MS
                data = bytes(records.build([(b"key", b"value", [], stamp_ms)]))
                produce(client, [(partition, data) for partition in range(count)])
        made = sum(1 for _ in broker.data.glob(f"{TOPIC}-*/*.log"))
        if made != count * SEGMENTS:
            raise RuntimeError(f"{made} segments of {count} partitions, not {SEGMENTS} each")
        broker.stop_in_order()
        times = []
        for _ in range(rounds_of(sizes)):
            times.append(served(broker, count))
            broker.stop_in_order()
        return {"seconds": min(times)}


def after_a_crash(side: Side, sizes: Sizes) -> Numbers:
    """kill -9 with a long log in one segment, none of which is known to be on the disk: all of it is checked."""
    with broker_of(side, log_segment_bytes=ONE_SEGMENT) as broker:
        with patient(broker) as client:
            create_topic(client, TOPIC)
            wait_until_served(client, [TOPIC], 1)
            fill(client, TOPIC, sizes.unclean_bytes)
        times = []
        for _ in range(rounds_of(sizes)):
            broker.kill()
            times.append(served(broker, 1))
        return {"seconds": min(times), "rate": sizes.unclean_bytes / min(times)}


def far_fetches(side: Side, sizes: Sizes) -> Numbers:
    """One socket that fetches 16 KiB at random offsets, of a long log and of a short one."""
    with broker_of(side) as broker, patient(broker) as client:
        ends = {}
        for name, size in (("far", sizes.far_bytes), ("near", sizes.near_bytes)):
            create_topic(client, name)
            wait_until_served(client, [name], 1)
            ends[name] = fill(client, name, size)
        found: Numbers = {}
        for _ in range(rounds_of(sizes)):
            for name, end in ends.items():
                p50_us = random_fetches(broker, name, end, sizes)
                found[f"{name}_us"] = min(p50_us, found.get(f"{name}_us", p50_us))
        return {**found, "ratio": found["far_us"] / found["near_us"]}


def random_fetches(broker: Side, topic: str, end: int, sizes: Sizes) -> float:
    choose = random.Random(1)
    load = Load(
        broker.port,
        [frames.fetch(topic, choose.randrange(end), FETCH_BYTES) for _ in range(FETCHES)],
        error_at=frames.fetch_error_at(topic),
        seconds=sizes.seconds,
        warmup=sizes.warmup,
        stride=1,
    )
    return load.result()["p50_us"]


def fill(client: RawClient, topic: str, size: int) -> int:
    """Write that many bytes in batches of 16 KiB; returns the offset after the last one."""
    data = frames.batch(BATCH_RECORDS, RECORD_BYTES)
    count = -(-size // len(data))
    produce(client, [(0, data)] * count, topic)
    return count * BATCH_RECORDS


def produce(client: RawClient, batches: list[tuple[int, bytes]], topic: str = TOPIC) -> None:
    """Send each to its partition, many in flight; only errors in the answers are looked at."""
    error_at = frames.produce_error_at(topic)
    waiting = 0
    for partition, data in batches:
        client.send(client.frame(frames.produce_message(topic, partition, data), frames.PRODUCE_VERSION))
        waiting += 1
        if waiting == IN_FLIGHT:
            take(client, waiting, error_at)
            waiting = 0
    take(client, waiting, error_at)


def take(client: RawClient, count: int, error_at: int) -> None:
    for _ in range(count):
        answer = client.receive()
        if answer[error_at : error_at + 2] != b"\0\0":
            raise RuntimeError(f"a produce failed: {answer[:64]!r}")
