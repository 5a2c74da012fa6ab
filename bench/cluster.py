"""python -m bench.cluster [--kraft] [--quick] [--only NAME,...] [--sides pykafkad,kafka] [--json FILE] [--check]

The same work on a cluster of three pykafkad brokers and on one of three real Kafka 3.9.2 brokers, each on a ZooKeeper of
its own, one after the other; ratios out.

--kraft  three pykafkad brokers and three of Kafka 4.3.1, each three beside one controller of Kafka 4.3.1
--quick  small sizes, one round, no warm-up; its ratios mean nothing (the JVMs are cold)
--check  exit 1 if a target is not met
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import cluster_measures as measures
from bench import load, report
from bench.cluster_measures import FULL, QUICK, Numbers, Sizes
from bench.clusters import NAMES, ClusterSide, Side
from bench.kraft_clusters import KraftSide
from bench.plan import Outcome, say
from bench.targets import HIGH, LAST, LOW, MIB, MIDDLE, Row, at_least, at_most

DEFAULT_JSON = load.BUILD / "cluster.json"
START_ROUNDS = 2  # in addition to the start of the brokers that do the work


class Work(NamedTuple):
    name: str
    measure: Callable[[Side, Sizes], Numbers]
    rounds: int
    warmups: int = 0


WORKS = [
    Work("idle", measures.idle, 1),
    Work("small", measures.small, 3, 1),
    Work("large", measures.large, 3, 1),
    Work("one", measures.one_by_one, 3, 1),
    Work("leader", measures.leader_killed, 3),
    Work("controller", measures.controller_killed, 3),
    Work("loaded", measures.loaded, 1),
]
OF_BROKERS = {"controller"}  # measures of what only brokers of a cluster on ZooKeeper do
ROWS = [
    Row("three brokers, started to all serving", "s", "start", "seconds", MIDDLE, 1, at_most(0.2)),
    Row("memory of the three, idle", "MiB", "idle", "bytes", LOW, 1 / MIB, at_most(0.1)),
    Row("  after all loads", "MiB", "loaded", "bytes", LAST, 1 / MIB),
    Row("acks=all x 3, small: throughput", "records/s", "small", "rate", HIGH, 1, at_least(1)),
    Row("  brokers' CPU", "s", "small", "cpu", LOW, 1, at_most(0.5)),
    Row("acks=all x 3, large: throughput", "MB/s", "large", "megabytes", HIGH, 1, at_least(1)),
    Row("  brokers' CPU", "s", "large", "cpu", LOW, 1, at_most(0.5)),
    Row("acks=all x 3, one by one: p50", "us", "one", "p50_us", MIDDLE, 1, at_most(0.5)),
    Row("  p99", "us", "one", "p99_us", MIDDLE),
    Row("  brokers' CPU a record", "us", "one", "cpu_us", LOW),
    Row("leader killed: until writes go on", "s", "leader", "seconds", MIDDLE, 1, at_most(0.5)),
    Row("controller killed: elected to all led", "ms", "controller", "seconds", MIDDLE, 1e3, at_most(1)),
    Row("  from the kill", "s", "controller", "whole_seconds", MIDDLE),
]

# That a leader has gone is for the controllers to see, by its session.
KRAFT_ROWS = [row._replace(target=None) if row.measure == "leader" else row for row in ROWS]


def run_side(name: str, sizes: Sizes, only: list[str], outcome: Outcome, *, kraft: bool) -> None:
    """All of it on one cluster, after its start was measured on others, too."""
    works = [work for work in WORKS if not only or work.name in only]
    for last in [False] * (0 if sizes is QUICK or (only and "start" not in only) else START_ROUNDS) + [True]:
        side: Side = KraftSide(name) if kraft else ClusterSide(NAMES[name])
        try:
            note(outcome, "start", name, {"seconds": side.start()})
            for work in works if last else []:
                if not (kraft and work.name in OF_BROKERS):
                    run_work(work, side, name, sizes, outcome)
        finally:
            side.close()


def run_work(work: Work, side: Side, name: str, sizes: Sizes, outcome: Outcome) -> None:
    began = time.monotonic()
    warmups, rounds = (0, 1) if sizes is QUICK else (work.warmups, work.rounds)
    for number in range(warmups + rounds):
        try:
            numbers = work.measure(side, sizes)
        except Exception as error:
            outcome.failures.append(f"{work.name} on {name}: {type(error).__name__}: {error}")
            say(f"  FAILED {outcome.failures[-1]}")
            return
        if number >= warmups:
            note(outcome, work.name, name, numbers)
    say(f"  {name}: {work.name}: {time.monotonic() - began:.1f} s")


def note(outcome: Outcome, measure: str, side: str, numbers: Numbers) -> None:
    outcome.rounds.setdefault(measure, {}).setdefault(side, []).append(numbers)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--kraft", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--only", default="", help=f"of start,{','.join(work.name for work in WORKS)}")
    parser.add_argument("--sides", default="pykafkad,kafka", help="one of them alone, and no ratios")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    sizes = QUICK if options.quick else FULL
    outcome = Outcome({}, [])
    for name in options.sides.split(","):
        only = [each for each in options.only.split(",") if each]
        run_side(name, sizes, only, outcome, kraft=options.kraft)
    rows = report.results(outcome, "pykafkad", "kafka", KRAFT_ROWS if options.kraft else ROWS)
    print(report.table(rows))
    print(
        f"\nsmall: {sizes.small_records:,} x 100 B, large: {sizes.large_records:,} x {sizes.large_bytes:,} B; ",
        end="",
    )
    print(f"partitions when the controller is killed: {sizes.partitions:,} x 3; rounds: {options.json}")
    report.write_json(options.json, rows, outcome, sizes)
    for failure in outcome.failures:
        print(f"failed: {failure}")
    unmet = any(row["met"] is False for row in rows)
    return 1 if outcome.failures or (options.check and unmet) else 0


if __name__ == "__main__":
    sys.exit(main())
