"""What the tests of storage share: topic configs, partitions in a directory of their own, golden
directories."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pykafkad.clock import ManualClock
from pykafkad.cluster.replica import Replica
from pykafkad.cluster.replicas import Replicas, of
from pykafkad.hot import records
from pykafkad.storage.directories import LogDirectory
from pykafkad.storage.log.context import LogContext
from pykafkad.storage.log.log import Log
from pykafkad.storage.log.settings import LogSettings
from pykafkad.storage.manager import LogManager
from pykafkad.storage.recovery import recovery
from pykafkad.workers import submit_inline

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))

TOPIC_DEFAULTS: dict[str, Any] = {
    "segment.bytes": 1 << 30,
    "segment.ms": 604_800_000,
    "segment.jitter.ms": 0,
    "segment.index.bytes": 10 << 20,
    "index.interval.bytes": 4096,
    "flush.messages": (1 << 63) - 1,
    "flush.ms": (1 << 63) - 1,
    "file.delete.delay.ms": 60_000,
    "retention.bytes": -1,
    "retention.ms": 604_800_000,
    "delete.retention.ms": 86_400_000,
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": (1 << 63) - 1,
    "min.cleanable.dirty.ratio": 0.5,
    "preallocate": False,
    "min.insync.replicas": 1,
    "max.message.bytes": 1_048_588,
    "compression.type": "producer",
    "compression.gzip.level": -1,
    "compression.lz4.level": 9,
    "compression.zstd.level": 3,
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": (1 << 63) - 1,
    "message.timestamp.after.max.ms": 3_600_000,
    "cleanup.policy": ["delete"],
}
BROKER_DEFAULTS: dict[str, Any] = {
    "node.id": 1,
    "pykafkad.cluster.id": None,
    "replica.lag.time.max.ms": 30_000,
    "num.recovery.threads.per.data.dir": 2,
    "pykafkad.scrub.max.bytes.per.second": 0,
    "num.replica.alter.log.dirs.threads": None,
    "cordoned.log.dirs": [],
    "producer.id.expiration.ms": 86_400_000,
    "producer.id.expiration.check.interval.ms": 600_000,
    "replica.high.watermark.checkpoint.interval.ms": 5_000,
    "log.flush.offset.checkpoint.interval.ms": 60_000,
    "log.flush.start.offset.checkpoint.interval.ms": 60_000,
    "log.flush.scheduler.interval.ms": (1 << 63) - 1,
    "transaction.partition.verification.enable": True,
    "log.cleaner.enable": True,
    "log.cleaner.threads": 1,
    "log.cleaner.backoff.ms": 15_000,
    "log.cleaner.dedupe.buffer.size": 128 << 20,
    "log.cleaner.io.buffer.size": 512 << 10,
    "log.cleaner.io.buffer.load.factor": 0.9,
    "log.cleaner.io.max.bytes.per.second": 1.7976931348623157e308,
}


def topic_config(**overrides: Any) -> dict[str, Any]:
    """Topic configs by name, with `_` for `.`."""
    return TOPIC_DEFAULTS | {name.replace("_", "."): value for name, value in overrides.items()}


class Config(dict[str, Any]):
    """A broker's config, as far as storage uses it."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.dynamic: dict[str, str] = {}


def broker_config(*paths: Path, **overrides: Any) -> Config:
    config = BROKER_DEFAULTS | {"log.dirs": [str(path) for path in paths]}
    return Config(config | {name.replace("_", "."): value for name, value in overrides.items()})


def untold(replica: Any) -> None:
    """Nobody waits for replicas to advance."""


def log_manager(
    config: Any,
    clock: ManualClock,
    submit: Any = None,
    *,
    advanced: Callable[[Any], None] = untold,
    kind: type[LogManager] = LogManager,
    **wiring: Any,
) -> LogManager:
    """The logs of a broker, and their replicas."""
    return kind(config, clock, submit, replicas=Replicas(config, clock, advanced), **wiring)


def manager(*paths: Path, clock: ManualClock | None = None, **overrides: Any) -> LogManager:
    return log_manager(broker_config(*paths, **overrides), clock or ManualClock(NOW_MS))


def lead(log: Log, leader_epoch: int) -> None:
    """This node is the only replica, and leads."""
    log.listener.lead(leader_epoch)


def watch(logs: LogManager, told: Callable[[Replica], None]) -> None:
    """Somebody waits for each of the logs there are: `told` when that may have come to an end."""
    for log in logs:
        replica = of(log)
        replica.waiters = {"somebody": None}
        replica.surroundings = SimpleNamespace(advanced=told, now_ms=logs.clock.monotonic_ms)


def context() -> LogContext:
    """Of a log that has no manager."""
    return LogContext(Replicas(BROKER_DEFAULTS, ManualClock(NOW_MS), untold).listener_of)


def log_in(path: Path, topic: str, index: int, settings: LogSettings) -> Log:
    return Log(topic, index, TOPIC_ID, LogDirectory(str(path)), settings, context())


def new_partition(path: Path, *, topic: str = "orders", leader_epoch: int = 0, **overrides: Any) -> Log:
    """An empty partition in a log directory of its own."""
    partition = log_in(path, topic, 0, LogSettings(topic_config(**overrides)))
    Path(partition.directory).mkdir(parents=True)
    partition.add_segment(0, NOW_MS)
    lead(partition, leader_epoch)
    return partition


def open_partition(
    path: Path,
    *,
    topic: str = "orders",
    index: int = 0,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    now_ms: int = NOW_MS,
    expiration_ms: int = 86_400_000,
    **overrides: Any,
) -> Log:
    """The partition that lies in a log directory, loaded as at a start."""
    settings = LogSettings(topic_config(**overrides))
    partition = log_in(path, topic, index, settings)
    hints = recovery.Hints(
        clean=clean,
        now_ms=now_ms,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        expiration_ms=expiration_ms,
    )
    recovery.load(partition, hints)
    return partition


def batch(*values: bytes, timestamp: int = NOW_MS, **options: Any) -> bytearray:
    """A batch as a producer sends it, as a bytearray since offsets are written in place."""
    return bytearray(records.build([(b"k", value, [], timestamp) for value in values], **options))


def idempotent(
    sequence: int, *values: bytes, producer_id: int = 7, epoch: int = 0, **options: Any
) -> bytearray:
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **options)


def marker(producer_id: int, epoch: int, commit: bool, *, coordinator_epoch: int = 0) -> bytes:
    """An end-transaction marker as the transaction coordinator writes it."""
    key = b"\0\0" + (1 if commit else 0).to_bytes(2, "big")
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    return records.build(
        [(key, value, [], NOW_MS)],
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )


def append(partition: Log, *batches: bytes | bytearray, now_ms: int = NOW_MS) -> list[int]:
    """Append and commit; the base offsets."""
    offsets = [partition.append(each, now_ms).base_offset for each in batches]
    partition.commit()
    return offsets


def read_all(partition: Log, start: int | None = None) -> list[records.Record]:
    """Every record up to the high watermark, read as a consumer does: range after range."""
    offset = partition.log_start_offset if start is None else start
    found: list[records.Record] = []
    while True:
        part = partition.read(offset, 1 << 20, limit_offset=partition.high_watermark, at_least_one=True)
        if part is None:
            return found
        batches = records.scan(part.read())
        found += [each for each in records.read(part.read()) if each.offset >= offset]
        offset = batches[-1].last_offset + 1


def values(read: Iterable[records.Record]) -> list[bytes | None]:
    return [record.value for record in read]


def unpack_golden_logs(golden: Path, target: Path) -> Path:
    with tarfile.open(golden / "logs.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target / "logs"


def copy_golden(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


class Threads:
    """Work that waits until the test runs it."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting.append(lambda: submit_inline(work, done))

    def step(self) -> None:
        self.waiting.pop(0)()

    def all(self) -> None:
        while self.waiting:
            self.step()


def state(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Everything about a tree: names, modes, times of change, bytes."""
    found = {}
    for path in [directory, *sorted(directory.rglob("*"))]:
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, data)
    return found


class Counted(dict[Any, Any]):
    """A table that counts how often somebody iterates over all of it."""

    walks = 0

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()

    def values(self) -> Any:
        self.walks += 1
        return super().values()

    def items(self) -> Any:
        self.walks += 1
        return super().items()
