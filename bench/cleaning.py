"""The log cleaner: how fast it cleans a dirty log, and how much memory that takes.

Each side gets a broker of its own, with one cleaner thread that looks at the logs ten times a second. The topic is
filled while its min.cleanable.dirty.ratio of 1.0 prevents cleaning, then the ratio is changed; the time ends when
cleaner-offset-checkpoint shows that the log is clean up to its active segment. The memory is the peak resident set in
that time, minus what it was before. Kafka has allocated its heap before, so only our figure means something.
Now and then a small batch is produced to another topic meanwhile: how long that takes beside the cleaning.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measures import create_topic
from bench.partitions import patient, wait_until_served
from bench.starts import TOPIC, broker_of, produce
from pykafkad.hot import records
from pykafkad.messages import IncrementalAlterConfigsRequest, ProduceRequest

if TYPE_CHECKING:
    from bench.measures import Numbers, Sizes
    from bench.sides import Side
    from compat_tests.raw import RawClient

OTHER = "beside"
KEYS = 100_000
BATCH_RECORDS, VALUE_BYTES = 16, 1000
DIFFERENT_BATCHES = 20_000  # built once and sent again and again
SEGMENT_BYTES = 64 << 20
DEDUPE_BYTES = 128 << 20  # log.cleaner.dedupe.buffer.size, as it is by default
CHECKPOINT = "cleaner-offset-checkpoint"
LOOK_MS = 100
SECONDS = 300
TOPIC_RESOURCE, SET = 2, 0
ALTER_VERSION, PRODUCE_VERSION = 1, 9
NEVER, SOON = "1.0", "0.01"


def cleaning(side: Side, sizes: Sizes) -> Numbers:
    with broker_of(side, log_cleaner_threads="1", log_cleaner_backoff_ms=str(LOOK_MS)) as broker:
        with patient(broker) as client:
            configs = {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": NEVER,
                "segment.bytes": str(segment_bytes(sizes)),
            }
            create_topic(client, TOPIC, 1, configs)
            create_topic(client, OTHER, 1)
            wait_until_served(client, [TOPIC, OTHER], 1)
            dirty(client, sizes.dirty_bytes)
            directory = broker.data / f"{TOPIC}-0"
            segments = sorted(directory.glob("*.log"))
            size = sum(path.stat().st_size for path in segments[:-1])
            end = int(segments[-1].name[:20])
            before, cpu = reset_peak(broker), broker.cpu()
            began = time.perf_counter()
            alter(client, "min.cleanable.dirty.ratio", SOON)
            beside_us = wait_until_clean(broker, end, client)
            seconds = time.perf_counter() - began
        left = sum(path.stat().st_size for path in directory.glob("*.log"))
        if left > size:
            raise RuntimeError(f"{left} bytes are left of {size}: nothing was cleaned")
        return {
            "rate": size / seconds / 1e6,
            "cpu_per_gb": (broker.cpu() - cpu) / size * 1e9,
            "bytes": max(0, peak(broker) - before),
            "beside_p50_us": beside_us[len(beside_us) // 2],
            "beside_p90_us": beside_us[len(beside_us) * 9 // 10],
        }


def segment_bytes(sizes: Sizes) -> int:
    """Sixteen segments, but no smaller ones than Kafka allows."""
    return max(1 << 20, min(SEGMENT_BYTES, sizes.dirty_bytes // 16))


def dirty(client: RawClient, size: int) -> None:
    """Records of a kilobyte with random keys, many of each key."""
    choose = random.Random(1)
    now_ms = int(time.time() * 1000)
    one = len(built(choose, now_ms))
    count = -(-size // one)
    different = [(0, built(choose, now_ms)) for _ in range(min(count, DIFFERENT_BATCHES))]
    while count > 0:
        produce(client, different[:count])
        count -= len(different)


def built(choose: random.Random, now_ms: int) -> bytes:
    return bytes(
        records.build(
            [
                (b"key %08d" % choose.randrange(KEYS), choose.randbytes(VALUE_BYTES), [], now_ms)
                for _ in range(BATCH_RECORDS)
            ]
        )
    )


def alter(client: RawClient, name: str, value: str) -> None:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name=name, config_operation=SET, value=value)
    resource = kind.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=[config])
    answer = client.ask(kind(resources=[resource]), ALTER_VERSION).responses[0]
    if answer.error_code:
        raise RuntimeError(f"cannot set {name}: {answer}")


def wait_until_clean(broker: Side, end: int, client: RawClient) -> list[float]:
    """Both write the checkpoint after each cleaning. How long each produce took meanwhile, the shortest first."""
    checkpoint = broker.data / CHECKPOINT
    small = one_small()
    took_us: list[float] = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        rows = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        if any(row.split()[0] == TOPIC and int(row.split()[2]) >= end for row in rows):
            return sorted(took_us)
        began = time.perf_counter()
        client.ask(small, PRODUCE_VERSION)
        took_us.append((time.perf_counter() - began) * 1e6)
        time.sleep(0.002)
    raise RuntimeError(f"the log is not clean after {SECONDS} s")


def one_small() -> ProduceRequest:
    kind = ProduceRequest
    batch = bytes(records.build([(None, bytes(100), [], int(time.time() * 1000))]))
    part = kind.PartitionProduceData(index=0, records=batch)
    topic = kind.TopicProduceData(name=OTHER, partition_data=[part])
    return kind(acks=-1, timeout_ms=10_000, topic_data=[topic])


def reset_peak(broker: Side) -> int:
    """Begin a new peak(), from the present resident set on."""
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")
    return peak(broker)


def peak(broker: Side) -> int:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {broker.pid} is gone")
