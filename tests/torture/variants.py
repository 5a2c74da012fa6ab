"""The configs of brokers under torture: what usually happens in hours happens many times a second."""

from __future__ import annotations

from pathlib import Path

QUICK: dict[str, object] = {
    "log.retention.check.interval.ms": 30,
    "log.initial.task.delay.ms": 50,
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.dedupe.buffer.size": 2 << 20,
    "log.cleaner.io.buffer.size": 1 << 16,
    "log.index.size.max.bytes": 4096,
    "replica.high.watermark.checkpoint.interval.ms": 50,
    "log.flush.offset.checkpoint.interval.ms": 70,
    "log.flush.start.offset.checkpoint.interval.ms": 60,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.segment.bytes": 1 << 20,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.segment.bytes": 1 << 20,
    "metadata.log.max.record.bytes.between.snapshots": 2000,
    "log.segment.delete.delay.ms": 20,
}
VARIANTS: dict[str, dict[str, object]] = {
    "usual": {},
    "flushed": {"log.flush.interval.messages": 1},
    "flushed-now-and-then": {
        "log.flush.interval.messages": 7,
        "log.flush.interval.ms": 20,
        "log.flush.scheduler.interval.ms": 10,
    },
    "two-directories": {"num.replica.alter.log.dirs.threads": 2},
    "preallocated": {"log.preallocate": True},
}


def config_of(variant: str, home: Path) -> dict[str, object]:
    config = QUICK | VARIANTS[variant]
    if variant == "two-directories":
        config["log.dirs"] = ",".join(directories_of(variant, home))
    return config


def directories_of(variant: str, home: Path) -> list[str]:
    return [str(home / "data")] + ([str(home / "jbod")] if variant == "two-directories" else [])
