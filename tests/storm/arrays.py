"""The storm of filled arrays: one such request after the other, each judged by itself."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.storm import filled as filling
from tests.storm import lines
from tests.storm.asked import Request
from tests.storm.campaign import TIMED, say
from tests.storm.filled import Filled
from tests.storm.judge import LATE, MEMORY, NEIGHBOUR, Fault, judge
from tests.storm.known import is_known
from tests.storm.lines import ONE, Line
from tests.storm.world import World

ANSWER_SECONDS = 10.0
SETTLE_SECONDS = 3.0
TIDY_EVERY = 10
PEAK_MIB, PEAK_OF_SIZE = 48, 100  # what a request may take: this, plus a multiple of its size
REPEATED_MIB, REPEATS = 10, 4  # how often a request is repeated that took that much
LEAK_MIB = 6
SHOWN = 25


@dataclass
class Came:
    """What was measured for one request."""

    filled: Filled
    outcome: str
    size: int
    answer: int
    ran_ms: float  # of all threads, until the broker was idle again
    held_ms: float  # as far as the neighbour noticed it
    peak_mib: int

    def __str__(self) -> str:
        return (
            f"{self.held_ms:7.0f} ms held, {self.ran_ms:7.0f} ms in all, {self.peak_mib:4} MiB more, "
            f"{self.size >> 10:5} KiB asked, {self.answer >> 10:6} KiB answered: {self.filled} ({self.outcome})"
        )


class Arrays:
    def __init__(self, topics: int) -> None:
        self.topics = topics
        self.world = World(topics=topics)
        self.faults: list[tuple[Filled, Fault]] = []
        self.all: list[Came] = []
        self.number = 0

    def run(self, wanted: Sequence[Filled]) -> list[tuple[Filled, Fault]]:
        began = time.monotonic()
        for one in wanted:
            if any(fault.kind in TIMED for fault in self.one(one)):
                self.one(one, last=True)  # the first time it may have been the machine
            if self.number % TIDY_EVERY == 0 or not self.world.lives:
                self.tidy()
        self.world.close()
        say(
            f"arrays: {len(self.all)} requests, {len(self.faults)} faults, {time.monotonic() - began:.0f} s; the worst:"
        )
        for came in sorted(self.all, key=lambda each: -each.held_ms)[:SHOWN]:
            say(f"  {came}")
        return self.faults

    def one(self, one: Filled, *, last: bool = False) -> list[Fault]:
        """The faults; they count where they are no matter of time, or this is the last try."""
        world = self.world
        self.number += 1
        request = filling.request(one, world.names, self.number)
        assert world.neighbour is not None
        world.neighbour.report()
        world.forget_peak()
        before, ran = world.memory(), world.ran_ms()
        line = Line(ONE, [request])
        lines.run(
            [line],
            world.address,
            world.names.learn,
            answer_seconds=ANSWER_SECONDS,
            seconds=ANSWER_SECONDS + 5,
        )
        settled = world.lives and world.settle(SETTLE_SECONDS)
        report = world.neighbour.report()
        faults = judge(world, line.fates, report)
        fate = line.fates[0]
        came = Came(one, fate.outcome, len(request.frame()), fate.size, 0.0, report.worst, 0)
        if world.lives:
            came.ran_ms, came.peak_mib = world.ran_ms() - ran, (world.memory()["peak"] - before["all"]) >> 10
        allowed = PEAK_MIB + (PEAK_OF_SIZE * came.size >> 20)
        if came.peak_mib > allowed:
            faults.append(Fault(MEMORY, str(one), f"{came.peak_mib} MiB for {came.size} bytes"))
        if settled and came.peak_mib >= REPEATED_MIB and not faults:
            faults += self.again(one, request)
        self.all.append(came)
        if not settled or any(fault.kind in (LATE, NEIGHBOUR) for fault in faults):
            self.anew()  # so that the next one does not wait for work that this one has begun
        faults = [fault for fault in faults if not is_known(fault.kind, fault.about, fault.text)]
        for fault in faults:
            if last or fault.kind not in TIMED:
                self.faults.append((one, fault))
                again = f"python -m tests.storm arrays --match '{one}' --topics {self.topics}"
                say(f"FAULT: {fault}\n  {came}\n  again: {again}")
            else:
                say(f"DOUBTFUL: {fault}\n  {came}")
        return faults

    def again(self, one: Filled, request: Request) -> list[Fault]:
        """Repeat a request that takes memory: later ones should reuse what the first one has left."""
        levels = [self.world.memory()["now"]]
        for _ in range(REPEATS):
            lines.run(
                [Line(ONE, [request])],
                self.world.address,
                self.world.names.learn,
                answer_seconds=ANSWER_SECONDS,
            )
            if not self.world.lives or not self.world.settle(SETTLE_SECONDS):
                return []
            levels.append(self.world.memory()["now"])
        grown = [(after - before) >> 10 for before, after in pairwise(levels)]
        if sum(grown) < REPEATS * LEAK_MIB:
            return []
        return [Fault(MEMORY, str(one), f"each time it is asked for more is kept: {grown} MiB")]

    def tidy(self) -> None:
        try:
            if self.world.lives:
                self.world.tidy()
                return
        except (OSError, AssertionError, ValueError) as problem:
            say(f"FAULT: tidying up: {type(problem).__name__}: {problem}")
        self.anew()

    def anew(self) -> None:
        self.world.close()
        self.world = World(topics=self.topics)


def chosen(match: str | None, seed: int, count: int | None) -> list[Filled]:
    """Those whose names contain these words, or a sample."""
    every = list(filling.all_of_them(both_versions=True))
    if match is not None:
        words = match.split()
        return [each for each in every if all(word in str(each).split() for word in words)]
    if count is None or count >= len(every):
        return every
    return random.Random(seed).sample(every, count)
