"""`make mutants`: would the unit tests notice? Changes one thing in the code and runs the tests that run that code.

    python -m tests.mutants --seed 1 --count 40             of all rooms; with --each: 40 of each
    python -m tests.mutants --room storage --count 40       of one: top, pure, storage, cluster, handlers, net ...
    python -m tests.mutants --path pykafkad/slices.py       of one file, or of several; --count 0: all of them
    python -m tests.mutants --replay "ID"                   one, as a survivor is printed

Which mutants are tried follows from the seed and the code. Survivors that are as good as the original are listed, with
reasons, in equivalent.txt. Which tests run which function is determined first (build/mutants/touched.json); after a
change of tests use --learn with their files. Tests that fail anyway are left out. Exit code: 0
every mutant was killed or is listed, 1 some survived, 2 there is none.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import Queue

from tests.mutants.mutating import Mutant, mutants
from tests.mutants.trying import NOT_RUN, ROOT, SECONDS, SURVIVED, Touched, Trial, touched

ROOMS = {
    "pure": "pure/**/*.py",
    "storage": "storage/**/*.py",
    "coordinator": "coordinator/**/*.py",
    "cluster": "cluster/*.py",
    "handlers": "handlers/*.py",
    "net": "net/*.py",
    "top": "*.py",
}
TOUCHED = ROOT / "build" / "mutants" / "touched.json"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
COUNT = 40
NICENESS = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--room", choices=ROOMS)
    parser.add_argument("--path", nargs="+", help="files, from the root of the tree")
    parser.add_argument("--count", type=int, default=COUNT, help="how many are tried; 0: all")
    parser.add_argument("--each", action="store_true", help="so many of each room")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="a test may take so much longer than usual"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many are tried at a time")
    parser.add_argument("--replay", metavar="ID")
    parser.add_argument("--learn", nargs="+", metavar="TESTS", help="anew, which functions these run")
    return parser.parse_args()


def files(options: argparse.Namespace) -> dict[str, str]:
    """Their paths, and the rooms they are in."""
    if options.replay:
        options.path = [options.replay.partition(" ")[0]]
    found = {
        str(path.relative_to(ROOT)): room
        for room, pattern in ROOMS.items()
        for path in sorted((ROOT / "pykafkad").glob(pattern))
    }
    if options.path:
        return {path: found.get(path, "other") for path in options.path}
    return {path: room for path, room in found.items() if options.room in (None, room)}


def chosen(options: argparse.Namespace, rooms: dict[str, str]) -> list[Mutant]:
    everything = {path: mutants(path, (ROOT / path).read_text()) for path in rooms}
    if options.replay:
        return [each for given in everything.values() for each in given if each.id == options.replay]
    if not options.each:
        return some_of([each for given in everything.values() for each in given], options)
    found = []
    for room in dict.fromkeys(rooms.values()):
        of_room = [each for path, given in everything.items() if rooms[path] == room for each in given]
        found += some_of(of_room, options)
    return random.Random(options.seed).sample(found, len(found))


def some_of(everything: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    if options.count and options.count < len(everything):
        return random.Random(options.seed).sample(everything, options.count)
    return everything


def equivalents() -> dict[str, str]:
    """id and change -> why it is as good as the original."""
    lines = (line for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#")
    return dict(line.rsplit(" | ", 1) for line in lines)  # the change may have a sign like this too


def row_of(mutant: Mutant) -> str:
    return f"{mutant.id} | {mutant.before} -> {mutant.after}"


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    options = arguments()
    os.nice(NICENESS)
    rooms = files(options)
    tried, judged = chosen(options, rooms), equivalents()
    if not tried:
        say("there is no such mutant")
        return 2
    known = touched(TOUCHED, options.learn)
    results: dict[str, Counter[str]] = {}
    lived = []
    wanted = [each for each in tried if options.replay or row_of(each) not in judged]
    for mutant in tried:
        if not options.replay and row_of(mutant) in judged:
            results.setdefault(rooms[mutant.path], Counter())["equivalent"] += 1
    for mutant, outcome, seconds in outcomes(wanted, known, options):
        results.setdefault(rooms[mutant.path], Counter())[outcome] += 1
        say(f"{outcome:14} {seconds:5.1f} s  {mutant}")
        if outcome in (SURVIVED, NOT_RUN):
            lived.append(mutant)
    for room, counts in sorted(results.items()):
        say(f"{room}: {told(counts)}")
    say(f"all: {told(sum(results.values(), Counter()))}")
    for mutant in lived:
        say(f'lived: {row_of(mutant)}\n  again: python -m tests.mutants --replay "{mutant.id}"')
    return 1 if lived else 0


def outcomes(
    wanted: list[Mutant], known: Touched, options: argparse.Namespace
) -> Iterator[tuple[Mutant, str, float]]:
    """Each with what became of it and how long that took, as they are known."""
    trials: Queue[Trial] = Queue()

    def run(mutant: Mutant) -> tuple[Mutant, str, float]:
        trial, began = trials.get(), time.monotonic()
        try:
            return mutant, trial.run(mutant), time.monotonic() - began
        finally:
            trials.put(trial)

    with ExitStack() as stack, ThreadPoolExecutor(options.jobs) as pool:
        for _ in range(options.jobs):
            trials.put(stack.enter_context(Trial(known, options.seconds)))
        for done in as_completed([pool.submit(run, mutant) for mutant in wanted]):
            yield done.result()


def told(counts: Counter[str]) -> str:
    real = counts.total() - counts["equivalent"]
    killed = real - counts[SURVIVED] - counts[NOT_RUN]
    share = f"{killed / real:.0%}" if real else "none tried"
    return f"{killed} of {real} killed ({share}); " + ", ".join(
        f"{count} {what}" for what, count in sorted(counts.items())
    )


if __name__ == "__main__":
    sys.exit(main())
