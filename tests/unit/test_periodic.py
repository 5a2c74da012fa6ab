"""Periodic jobs: how often they run for any configured interval, and that an error stops none of them for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykafkad.clock import ManualClock
from pykafkad.periodic import LONGEST_MS, REST, SHORTEST_MS, Periodic
from tests.cleaner_kit import Home, Timers
from tests.storage_kit import manager, topic_config

HUGE = (1 << 63) - 1
SECOND_MS = 1_000


class Bench:
    """Jobs on a clock that tests move."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.periodic = Periodic(self.timers.call_later, self.clock)
        self.turns = 0

    def turns_in(self, time_ms: int, interval_ms: int, **options: int) -> int:
        self.periodic.every(interval_ms, self.turn, **options)
        self.timers.advance(time_ms)
        return self.turns

    def turn(self) -> None:
        self.turns += 1


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("interval_ms", "turns"),
    [(100, 10), (250, 4), (SHORTEST_MS, 100), (1, 100), (0, 100), (-1, 1), (-HUGE - 1, 1), (5_000, 0)],
)
def test_how_often_a_job_comes_in_a_second(bench: Bench, interval_ms: int, turns: int) -> None:
    """Zero means very often, not always; a negative interval means once, as in Kafka's scheduler."""
    assert bench.turns_in(SECOND_MS, interval_ms) == turns


@pytest.mark.parametrize("interval_ms", [LONGEST_MS + 1, HUGE])
def test_an_interval_beyond_a_year_never_comes(bench: Bench, interval_ms: int) -> None:
    assert bench.turns_in(2 * LONGEST_MS, interval_ms, first_ms=0) == 0
    assert bench.timers.waiting == []


def test_the_first_time_may_be_another_one(bench: Bench) -> None:
    assert bench.turns_in(SECOND_MS, 600, first_ms=0) == 2


def test_a_first_time_beyond_a_year_does_not_overflow_a_timer(bench: Bench) -> None:
    assert bench.turns_in(SECOND_MS, 600, first_ms=HUGE) == 0
    assert all(timer.due_ms <= LONGEST_MS for timer in bench.timers.waiting)


def test_a_job_that_takes_long_rests_longer(bench: Bench) -> None:
    def slow() -> None:
        bench.turns += 1
        bench.clock.advance(50)

    bench.periodic.every(0, slow)
    bench.timers.advance(10 * SECOND_MS)
    assert bench.turns == pytest.approx(10_000 / (50 + 50 * REST), abs=1)


def test_a_job_that_raises_is_asked_again(bench: Bench) -> None:
    def broken() -> None:
        bench.turns += 1
        raise ValueError("broken")

    bench.periodic.every(100, broken)
    for turns in (1, 2, 3):
        with pytest.raises(ValueError, match="broken"):
            bench.timers.advance(SECOND_MS)
        assert bench.turns == turns


EVERY_KEY = [
    "replica.high.watermark.checkpoint.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.retention.check.interval.ms",
    "producer.id.expiration.check.interval.ms",
]


@pytest.mark.parametrize("interval_ms", [0, 1])
@pytest.mark.parametrize("key", EVERY_KEY)
def test_storage_does_nothing_more_often_than_the_floor(
    bench: Bench, key: str, interval_ms: int, tmp_path: Path
) -> None:
    config = {"log.retention.check.interval.ms": 300_000, key: interval_ms}
    logs = manager(
        tmp_path, clock=bench.clock, **{name.replace(".", "_"): value for name, value in config.items()}
    )
    logs.open_all({}, lambda topic: topic_config())
    counts: dict[object, int] = {}

    def counted(job: Callable[[], None]) -> Callable[[], None]:
        def turn() -> None:
            counts[job] = counts.get(job, 0) + 1
            job()

        return turn

    for every_ms, job in (*logs.jobs, *logs.later_jobs):
        bench.periodic.every(every_ms, counted(job))
    bench.timers.advance(SECOND_MS)
    assert max(counts.values()) == SECOND_MS // SHORTEST_MS
    logs.close()


@pytest.mark.parametrize("key", EVERY_KEY)
def test_storage_never_does_what_is_due_in_292_million_years(bench: Bench, key: str, tmp_path: Path) -> None:
    overrides = {name.replace(".", "_"): HUGE if name == key else 100 for name in EVERY_KEY}
    logs = manager(tmp_path, clock=bench.clock, **overrides)
    logs.open_all({}, lambda topic: topic_config())
    jobs = [*logs.jobs, *logs.later_jobs]
    for interval_ms, job in jobs:
        bench.periodic.every(interval_ms, job)
    assert len(bench.timers.waiting) == len(jobs) - 1
    logs.close()


@pytest.mark.parametrize(("backoff_ms", "least", "most"), [(0, 50, 101), (1, 50, 101), (HUGE, 1, 1)])
def test_the_cleaner_looks_around_no_more_often_than_the_floor(
    backoff_ms: int, least: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, log_cleaner_backoff_ms=backoff_ms)
    turns: list[int] = []
    monkeypatch.setattr(home.manager.compaction, "turn", lambda: turns.append(1))
    home.timers.advance(2 * SECOND_MS)
    assert least <= len(turns) <= most
    assert all(timer.due_ms <= 2 * LONGEST_MS for timer in home.timers.waiting)
    home.manager.close()
