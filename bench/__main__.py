"""python -m bench [--quick] [--json FILE] [--only NAME,...] [--check]

--quick  a smoke run: small sizes, one round, no warm-up; its ratios mean nothing (the JVM is cold)
--check  exit 1 if a target is not met
--alone  pykafkad alone, without Kafka beside it
--before DIR  in the place of Kafka the pykafkad of another checkout, built there by `make build`: what has a change cost?
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import load, measures, plan, report
from bench.sides import Kafka, Pykafkad, Side, pykafkad_of
from bench.targets import ROWS
from compat_tests.reference import missing

DEFAULT_JSON = load.BUILD / "results.json"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--before", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--only", default="", help="names of measures, as the progress lines say them")
    return parser.parse_args()


def kinds(alone: bool, before: Path | None) -> list[type[Side]]:
    """Ours, and what it is compared with."""
    if before is not None:
        return [Pykafkad, pykafkad_of(before)]
    why = "left out as asked" if alone else missing()
    if why:
        plan.say(f"no Kafka beside pykafkad, so no ratios: {why}")
        return [Pykafkad]
    return [Pykafkad, Kafka]


def main() -> int:
    options = arguments()
    measures.raise_descriptor_limit()
    load.program()
    sizes = measures.QUICK if options.quick else measures.FULL
    sides = kinds(options.alone, options.before)
    outcome = plan.run(sides, sizes, [name for name in options.only.split(",") if name])
    table = [row._replace(target=None) for row in ROWS] if options.before else ROWS
    rows = report.results(outcome, Pykafkad.name, sides[-1].name, table)
    print(report.table(rows, sides[-1].name))
    print(f"\nsmall: {sizes.small_records:,} x 100 B, large: {sizes.large_records:,} x 1 KiB, ", end="")
    print(f"few: {sizes.few_connections:,}, many: {sizes.many_connections:,}; ", end="")
    print(f"members: {sizes.members:,}, groups: {sizes.groups:,}; rounds: {options.json}")
    report.write_json(options.json, rows, outcome, sizes)
    for failure in outcome.failures:
        print(f"failed: {failure}")
    unmet = any(row["met"] is False for row in rows)
    return 1 if outcome.failures or (options.check and unmet) else 0


if __name__ == "__main__":
    sys.exit(main())
