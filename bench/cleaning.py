"""The log cleaner: how fast a dirty log becomes a clean one, and what memory that takes.

A broker of its own, of the side's kind, with one cleaner thread that looks around ten times a second. The topic is
filled while it is too clean to be cleaned (no log is dirtier than 1.0), then its ratio is changed; the time ends when
cleaner-offset-checkpoint says that the log is clean up to its active segment. The memory is the peak resident set
meanwhile, over what it was before: Kafka's heap is there already, so only ours says something.
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
from pykafkad.messages import IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from bench.measures import Numbers, Sizes
    from bench.sides import Side
    from compat_tests.raw import RawClient

KEYS = 100_000
BATCH_RECORDS, VALUE_BYTES = 16, 1000
DIFFERENT_BATCHES = 20_000  # built once and sent again and again
SEGMENT_BYTES = 64 << 20
DEDUPE_BYTES = 128 << 20  # log.cleaner.dedupe.buffer.size, as it is by default
CHECKPOINT = "cleaner-offset-checkpoint"
LOOK_MS = 100
SECONDS = 300
TOPIC_RESOURCE, SET = 2, 0
ALTER_VERSION = 1
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
            wait_until_served(client, [TOPIC], 1)
            dirty(client, sizes.dirty_bytes)
            directory = broker.data / f"{TOPIC}-0"
            segments = sorted(directory.glob("*.log"))
            size = sum(path.stat().st_size for path in segments[:-1])
            end = int(segments[-1].name[:20])
            before, cpu = reset_peak(broker), broker.cpu()
            began = time.perf_counter()
            alter(client, "min.cleanable.dirty.ratio", SOON)
            wait_until_clean(broker, end)
            seconds = time.perf_counter() - began
        left = sum(path.stat().st_size for path in directory.glob("*.log"))
        if left > size:
            raise RuntimeError(f"{left} bytes are left of {size}: nothing was cleaned")
        return {
            "rate": size / seconds / 1e6,
            "cpu_per_gb": (broker.cpu() - cpu) / size * 1e9,
            "bytes": max(0, peak(broker) - before),
        }


def segment_bytes(sizes: Sizes) -> int:
    """Sixteen segments, of no less than the smallest size that Kafka allows."""
    return max(1 << 20, min(SEGMENT_BYTES, sizes.dirty_bytes // 16))


def dirty(client: RawClient, size: int) -> None:
    """Records of a kilobyte with keys at random: of every key there are many."""
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


def wait_until_clean(broker: Side, end: int) -> None:
    """Both write the checkpoint after each cleaning."""
    checkpoint = broker.data / CHECKPOINT
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        rows = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        if any(row.split()[0] == TOPIC and int(row.split()[2]) >= end for row in rows):
            return
        time.sleep(0.005)
    raise RuntimeError(f"the log is not clean after {SECONDS} s")


def reset_peak(broker: Side) -> int:
    """From now on peak() is that of what comes; the resident set as it is."""
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")
    return peak(broker)


def peak(broker: Side) -> int:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {broker.pid} is gone")
