"""For the tests of the log cleaner: a manager whose threads are stepped by the test, and records with keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pykafkad.clock import ManualClock
from pykafkad.hot import records
from pykafkad.storage.cleaning.cleaner import LogCleaner
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from pykafkad.workers import submit_inline
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    Config,
    Threads,
    broker_config,
    lead,
    log_manager,
    read_all,
    topic_config,
)

DAY_MS = 86_400_000
COMPACTED = topic_config(
    cleanup_policy=["compact"],
    segment_bytes=4000,
    index_interval_bytes=100,
    segment_index_bytes=4096,
    file_delete_delay_ms=1000,
)

Pair = tuple[str | None, str | None]


class Timers:
    """Callbacks on the manual clock."""

    class Timer:
        def __init__(self, timers: Timers, due_ms: int, callback: Callable[[], None]) -> None:
            self.timers, self.due_ms, self.callback = timers, due_ms, callback

        def cancel(self) -> None:
            if self in self.timers.waiting:
                self.timers.waiting.remove(self)

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.waiting: list[Timers.Timer] = []

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timers.Timer(self, self.clock.monotonic_ms() + delay_ms, callback)
        self.waiting.append(timer)
        return timer

    def advance(self, delta_ms: int) -> None:
        """Let time pass; each callback runs at its own time."""
        end_ms = self.clock.monotonic_ms() + delta_ms
        while due := [timer for timer in self.waiting if timer.due_ms <= end_ms]:
            timer = min(due, key=lambda each: each.due_ms)
            self.clock.advance(max(0, timer.due_ms - self.clock.monotonic_ms()))
            self.waiting.remove(timer)
            timer.callback()
        self.clock.advance(end_ms - self.clock.monotonic_ms())


class Home:
    """Log directories, a manager over them on a manual clock, and its cleaner."""

    def __init__(self, *paths: Path, **overrides: Any) -> None:
        self.paths = paths
        self.clock = ManualClock(NOW_MS)
        self.configs: dict[str, dict[str, Any]] = {}
        self.overrides = overrides
        self.start()

    def start(self) -> LogManager:
        self.threads = Threads()
        self.timers = Timers(self.clock)
        config: Config = broker_config(*self.paths, **self.overrides)
        self.manager = log_manager(config, self.clock, submit_inline)
        self.manager.call_later = self.timers.call_later
        known = {(topic, 0): TOPIC_ID for topic in self.configs}
        self.manager.open_all(known, lambda topic: self.configs[topic])
        for partition in self.manager:
            lead(partition, 0)
        self.manager.compaction.begin(self.timers.call_later, self.threads.submit)
        return self.manager

    def create(self, topic: str = "orders", **overrides: Any) -> Log:
        self.configs[topic] = COMPACTED | {key.replace("_", "."): each for key, each in overrides.items()}
        return self.manager.create(topic, 0, TOPIC_ID, self.configs[topic], 0)

    @property
    def cleaner(self) -> LogCleaner:
        found = self.manager.compaction.cleaner
        assert found is not None, "no log was worth it"
        return found

    def clean(self, rounds: int = 1) -> None:
        """Let the cleaner look at the logs once, and finish what it begins."""
        for _ in range(rounds):
            self.timers.advance(15_000)
            self.finish()

    def finish(self) -> None:
        while self.threads.waiting or self.timers.waiting[0].due_ms <= self.clock.monotonic_ms() + 1:
            self.threads.all()
            self.timers.advance(1)

    def restart(self, *, clean: bool = True) -> LogManager:
        self.manager.compaction.stop()
        self.threads.all()
        self.manager.close(clean=clean)
        return self.start()


def put(partition: Log, *pairs: Pair, timestamp: int | None = None, **options: Any) -> int:
    """Append and write one batch of records with keys; returns its base offset."""
    now_ms = NOW_MS if timestamp is None else timestamp
    rows: list[Any] = [(encode(key), encode(value), [], now_ms) for key, value in pairs]
    appended = partition.append(bytearray(records.build(rows, **options)), now_ms)
    write(partition)
    return appended.base_offset


def mark(partition: Log, data: bytes) -> None:
    partition.append_built(bytearray(data), NOW_MS)
    write(partition)


def write(partition: Log) -> None:
    """Write what was appended, as the end of a pass does."""
    partition.commit()
    partition.context.dirty.clear()


def fill(partition: Log, pairs: Iterable[Pair], **options: Any) -> None:
    """Append each batch, and end the segment."""
    for pair in pairs:
        put(partition, pair, **options)
    partition.roll(NOW_MS)


def encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def contents(partition: Log) -> list[tuple[int, str | None, str | None]]:
    """Offset, key and value of every record that can be read."""
    return [(each.offset, text(each.key), text(each.value)) for each in read_all(partition)]


def text(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).decode()


def latest(pairs: list[Pair]) -> dict[str | None, str | None]:
    return dict(pairs)


def names(partition: Log) -> list[str]:
    return sorted(path.name for path in Path(partition.directory).iterdir())
