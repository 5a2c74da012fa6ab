"""Runs cases, several at a time, each in a process of a pool; reports failures and how to repeat them."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from tests.torture.cases import Outcome, remove_templates
from tests.torture.kills import Kill, Sweep

LINE_EVERY_SECONDS = 30.0
HITS_SHOWN = 60


class Case(Protocol):
    @property
    def command(self) -> str: ...

    def run(self, where: str | None = None) -> Outcome: ...


@dataclass
class Tally:
    """The results of a campaign so far."""

    name: str
    cases: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    faults: list[Outcome] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    skipped: str | None = None  # why this kind cannot run here

    @property
    def failed(self) -> list[str]:
        """The commands that repeat the failures; if everything is required, a kind that could not run is one too."""
        commands = [outcome.command for outcome in self.faults]
        if self.skipped is not None and os.environ.get("REQUIRE_ALL") == "1":
            commands.append(f"REQUIRE_ALL=1, but {self.name} is skipped: {self.skipped}")
        return commands

    @property
    def points(self) -> int:
        return sum(self.hits.values())

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        if outcome.hit:
            self.hits[outcome.hit] += 1
        self.notes.update(outcome.notes)
        if outcome.fault:
            self.faults.append(outcome)
            say(f"FAULT: {outcome.fault}\nagain: {outcome.command}")

    def line(self) -> str:
        seconds = time.monotonic() - self.began
        notes = "".join(f", {count} {what}" for what, count in sorted(self.notes.items()))
        hits = f", {self.points} of them hit" if self.hits else ""
        return f"{self.name}: {self.cases} cases{hits}{notes}, {len(self.faults)} faults, {seconds:.0f} s"


def say(text: str) -> None:
    print(text, flush=True)


def run(name: str, cases: Iterable[Case], jobs: int, where: str | None) -> Tally:
    """Run all cases; with one job in this process, so that a debugger sees it."""
    tally = Tally(name)
    if jobs == 1:
        for case in cases:
            tally.add(case.run(where))
        remove_templates()
    else:
        with ProcessPoolExecutor(jobs, initializer=_end_quietly) as pool:
            for _, outcome in _finished(pool, iter(cases), jobs, where):
                tally.add(outcome)
                _now_and_then(tally)
            _clean_up(pool, jobs)
    say(tally.line())
    return tally


def sweep_kills(sweep: Sweep, points: int, jobs: int, where: str | None) -> Tally:
    """Kill at as many points as asked for; the numbers of calls seen so far bound what is tried."""
    tally = Tally("kill at every call")

    def cases() -> Iterator[Kill]:
        while tally.points < points:
            yield sweep.case()

    with ProcessPoolExecutor(jobs, initializer=_end_quietly) as pool:
        for case, outcome in _finished(pool, cases(), jobs, where):
            assert isinstance(case, Kill)
            sweep.learn(case, bool(outcome.hit))
            tally.add(outcome)
            _now_and_then(tally)
        _clean_up(pool, jobs)
    say(tally.line())
    say_hits(tally)
    return tally


def say_hits(tally: Tally) -> None:
    for what, count in tally.hits.most_common(HITS_SHOWN):
        say(f"  {count:5} {what}")
    if len(tally.hits) > HITS_SHOWN:
        say(f"  and {len(tally.hits) - HITS_SHOWN} other calls")


def _finished(
    pool: ProcessPoolExecutor, cases: Iterator[Case], jobs: int, where: str | None
) -> Iterator[tuple[Case, Outcome]]:
    """No more cases are handed out than there are processes, since the next ones may depend on the results."""
    running: dict[Future[Outcome], Case] = {}
    while True:
        while len(running) < jobs and (case := next(cases, None)) is not None:
            running[pool.submit(_run, case, where)] = case
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future.result()


def _run(case: Case, where: str | None) -> Outcome:
    return case.run(where)


_lines = {"at": 0.0}


def _now_and_then(tally: Tally) -> None:
    now = time.monotonic()
    if now - _lines["at"] > LINE_EVERY_SECONDS:
        _lines["at"] = now
        say(tally.line())


def _clean_up(pool: ProcessPoolExecutor, jobs: int) -> None:
    for future in [pool.submit(_remove) for _ in range(jobs * 4)]:
        future.result()


def _remove() -> None:
    remove_templates()
    time.sleep(0.02)  # so that each process of the pool gets one


def _end_quietly() -> None:
    """Ctrl-C is handled by the parent process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.close()
