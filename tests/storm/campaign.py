"""Bursts of requests, one after the other, to one broker; failures are shrunk and reported with a command that repeats
them.

What is a matter of time may be the machine's doing: it is a fault if it is seen again when the burst is repeated, or if
it comes often.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from tests.storm import kept, lines, plans
from tests.storm.judge import CRASH, HOLD, LATE, MEMORY, NEIGHBOUR, Fault, judge
from tests.storm.neighbour import Report, percentile
from tests.storm.world import World

LINE_EVERY_SECONDS = 30.0
TIDY_EVERY = 12  # bursts
RELEASE_SECONDS = 11.0
GROWTH_KIB = 128 << 10  # what the pieces of a burst of large requests may keep of the C library's arenas
WARM_TIDIES = 10  # the first ones load modules, and fill caches and pools that stay
QUIET_SECONDS = 1.5
# By how much the neighbour's p99 may exceed twice its quiet value, and of how many answers: 0.1 to 0.3 were seen, on a
# machine with several times as much to do as it has cores, too, and 1 where the neighbour had to wait for a core. Where
# what the broker ran is not known exactly, it is counted in steps of some milliseconds.
NOISE_MS, INEXACT_MS, JUDGED_ANSWERS = 1.25, 5.0, 1000
TIMED = frozenset((HOLD, LATE, NEIGHBOUR))
REPEATS = 3  # of a burst, to see whether it was the machine
OFTEN = 4  # one that was not seen again is a fault when it was there so many times


def say(text: str) -> None:
    print(text, flush=True)


@dataclass
class Tally:
    """The results of a campaign so far."""

    requests: int = 0
    bursts: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    apis: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    doubtful: Counter[Fault] = field(default_factory=Counter)  # not seen again when the burst was repeated
    quiet: list[float] = field(default_factory=list)
    quiet_took: list[float] = field(default_factory=list)
    ran: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        outcomes = ", ".join(f"{count} {what}" for what, count in self.outcomes.most_common())
        memory = f"; {self.memory[-1] >> 10} MiB" if self.memory else ""
        seconds = time.monotonic() - self.began
        return (
            f"{self.requests} requests of {len(self.apis)} APIs in {self.bursts} bursts, {seconds:.0f} s: {outcomes}; "
            f"{len(self.faults)} faults, {len(self.doubtful)} doubtful{memory}"
        )

    def neighbour_line(self) -> str:
        quiet, quiet_took = percentile(sorted(self.quiet)), percentile(sorted(self.quiet_took))
        ran, took = sorted(self.ran), sorted(self.took)
        return (
            f"neighbour: {len(ran)} answers, p99 {percentile(took):.2f} ms (quiet: {quiet_took:.2f} ms), of which the "
            f"broker ran {percentile(ran):.2f} ms (quiet: {quiet:.2f} ms), at most {ran[-1] if ran else 0:.0f} ms"
        )


class Campaign:
    def __init__(self, seed: int, count: int, only: str | None, shrink_seconds: float) -> None:
        self.seed, self.count, self.only = seed, count, only
        self.shrink_seconds = shrink_seconds
        self.tally = Tally()
        self.world = self._world()
        self._said = time.monotonic()

    def _world(self) -> World:
        world = World()
        assert world.neighbour is not None
        time.sleep(0.3)
        world.neighbour.report()
        time.sleep(QUIET_SECONDS)
        quiet = world.neighbour.report()
        self.tally.quiet += quiet.ran
        self.tally.quiet_took += quiet.took
        self._noise_ms = NOISE_MS if quiet.exact else INEXACT_MS
        self._levels: list[int] = []
        return world

    def run(self, first: int = 0) -> Tally:
        number = first
        while self.tally.requests < self.count:
            self.burst(number)
            number += 1
            if (number - first) % TIDY_EVERY == 0:
                self.tidy(number)
            if time.monotonic() - self._said > LINE_EVERY_SECONDS:
                self._said = time.monotonic()
                say(self.tally.line())
        self.tidy(number)
        self.judge_latency()
        self.world.close()
        say(self.tally.line())
        say(self.tally.neighbour_line())
        return self.tally

    def burst(self, number: int) -> None:
        world, tally = self.world, self.tally
        asked = plans.burst(world.names, self.seed, number, self.only)
        trees = kept.trees_of(asked, world.names) if self.shrink_seconds else []
        lines.run(asked, world.address, world.names.learn)
        fates = [fate for line in asked for fate in line.fates]
        tally.bursts += 1
        tally.requests += len(fates)
        tally.outcomes.update(fate.outcome or "?" for fate in fates)
        tally.apis.update(fate.request.api for fate in fates)
        faults = judge(world, fates, self.report())
        for fault in faults:
            self.fault(fault, number, trees)
        if not world.lives or any(fault.kind == LATE for fault in faults):
            self.anew()  # requests without an answer would be late again and again

    def tidy(self, number: int) -> None:
        """Restore everything, the memory too."""
        world = self.world
        try:
            world.tidy()
        except (OSError, AssertionError, ValueError) as problem:
            self.fault(Fault(LATE, "tidying up", f"{type(problem).__name__}: {problem}"), number, [])
            return self.anew()
        world.settle()
        for fault in judge(world, [], self.report()):
            self.fault(fault, number, [])
        if not world.lives:
            return self.anew()
        self._levels.append(self.memory_kept())
        self.tally.memory.append(self._levels[-1])
        usual = self._levels[:WARM_TIDIES]
        if len(self._levels) > WARM_TIDIES and self._levels[-1] > max(usual) + GROWTH_KIB:
            grown = f"{max(usual) >> 10} MiB became {self._levels[-1] >> 10} MiB"
            self.fault(Fault(MEMORY, "what is kept", grown), number, [])
            self._levels = self._levels[-1:] * WARM_TIDIES

    def memory_kept(self) -> int:
        """The memory that is held; freed memory is given back to the system every ten seconds."""
        level = self.world.memory()["now"]
        if self._levels and level > max(self._levels[:WARM_TIDIES]) + GROWTH_KIB:
            time.sleep(RELEASE_SECONDS)
            level = self.world.memory()["now"]
        return level

    def report(self) -> Report:
        """The neighbour's report, after a moment, so that all its requests are in it."""
        assert self.world.neighbour is not None
        report = self.world.neighbour.report()
        self.tally.ran += report.ran
        self.tally.took += report.took
        return report

    def anew(self) -> None:
        self.world.close()
        self.world = self._world()

    def judge_latency(self) -> None:
        ran, quiet = percentile(sorted(self.tally.ran)), percentile(sorted(self.tally.quiet))
        if len(self.tally.ran) >= JUDGED_ANSWERS and ran > 2 * quiet + self._noise_ms:
            text = f"p99 of the broker's time for an answer: {ran:.2f} ms, quiet {quiet:.2f} ms"
            self.fault(Fault(NEIGHBOUR, "p99", text), -1, [])

    @staticmethod
    def seen_again(fault: Fault, trees: list[kept.Tree]) -> bool:
        return bool(trees) and any(fault in kept.again(trees)[0] for _ in range(REPEATS))

    def fault(self, fault: Fault, number: int, trees: list[kept.Tree]) -> None:
        """The first failure of its kind is reported and shrunk, the others are counted."""
        tally = self.tally
        if (
            fault not in tally.faults
            and number >= 0
            and fault.kind in TIMED
            and not self.seen_again(fault, trees)
        ):
            tally.doubtful[fault] += 1
            say(f"DOUBTFUL, in burst {number}: {fault}")
            if tally.doubtful[fault] < OFTEN:
                return
        tally.faults[fault] += 1
        if tally.faults[fault] > 1:
            return
        only = f" --api {self.only}" if self.only else ""
        say(f"FAULT: {fault}\nagain: python -m tests.storm --seed {self.seed}{only} --burst {number}")
        if fault.kind == CRASH:
            say(f"its log ends:\n{self.world.broker.log_tail()}")
        if trees:
            less = kept.shrink(trees, fault, self.shrink_seconds)
            if less is None:
                say("not seen again on a new broker")
                less = trees
            path = kept.save(less, fault)
            rows = [row for tree in less for row in tree["requests"]]
            shown = ", ".join(f"{row['api']} v{row['version']}" for row in rows[:5])
            say(f"again, alone: python -m tests.storm --replay {path}  ({len(rows)} requests: {shown})")
