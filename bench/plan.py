"""Rounds: each measure on one broker and then the other, in turns, so that other load on the machine affects both."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.measures import QUICK, Numbers, Sizes
from bench.sides import Side
from bench.targets import START_ROUNDS, WORKS, Work

MakeSide = Callable[[], Side]
Rounds = dict[str, dict[str, list[Numbers]]]  # measure -> side -> numbers of each round


class Outcome(NamedTuple):
    rounds: Rounds
    failures: list[str]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(make: Sequence[MakeSide], sizes: Sizes, only: list[str]) -> Outcome:
    outcome = Outcome({}, [])
    works = [work for work in WORKS if not only or work.name in only]
    if sizes is not QUICK and (not only or "start" in only):
        for _ in range(START_ROUNDS):
            _start_alone(make, outcome)
    sides: list[Side] = []
    try:
        for factory in make:
            side = factory()
            sides.append(side)
            _note(outcome, "start", side, {"seconds": side.start()})
        for work in works:
            _run_work(work, sides, sizes, outcome)
    finally:
        for side in sides:
            side.stop()
            side.remove()
    return outcome


def _start_alone(make: Sequence[MakeSide], outcome: Outcome) -> None:
    for factory in make:
        side = factory()
        try:
            _note(outcome, "start", side, {"seconds": side.start()})
        finally:
            side.stop()
            side.remove()


def _run_work(work: Work, sides: list[Side], sizes: Sizes, outcome: Outcome) -> None:
    began = time.monotonic()
    warmups, rounds = (0, 1) if sizes is QUICK else (work.warmups, work.rounds)
    alive = list(sides)
    for number in range(warmups + rounds):
        for side in alive if number % 2 else alive[::-1]:
            try:
                numbers = work.measure(side, sizes)
            except Exception as error:
                outcome.failures.append(f"{work.name} on {side.name}: {type(error).__name__}: {error}")
                say(f"  FAILED {outcome.failures[-1]}")
                alive = [other for other in alive if other is not side]
                continue
            if number >= warmups:
                _note(outcome, work.name, side, numbers)
    say(f"  {work.name}: {time.monotonic() - began:.1f} s")


def _note(outcome: Outcome, name: str, side: Side, numbers: Numbers) -> None:
    outcome.rounds.setdefault(name, {}).setdefault(side.name, []).append(numbers)
