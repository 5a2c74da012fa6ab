"""python -m compat_tests.history run --seconds 1800    make a history and check it; BROKER=kafka for the real one
python -m compat_tests.history check DIRECTORY       check one that was kept
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from compat_tests.history.brokers import Victim
from compat_tests.history.checker import check
from compat_tests.history.workload import Report, make_history, read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.history", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--seconds", type=float, default=1800)
    run.add_argument("--seed", type=int, default=int(os.environ.get("SEED", random.randrange(1 << 31))))
    run.add_argument(
        "--pause", type=float, default=6.0, help="seconds between what the nemesis does, at most"
    )
    run.add_argument("--without-transactions", action="store_true")
    commands.add_parser("check").add_argument("directory", type=Path)
    options = parser.parse_args()
    if options.command == "check":
        events = read(options.directory)
        report = Report(0, events, check(events), [])
    else:
        report = run_one(options)
    print(report.text())
    return 1 if report.faults or report.problems else 0


def run_one(options: argparse.Namespace) -> Report:
    directory = Path(tempfile.mkdtemp(prefix="history-"))
    print(f"SEED={options.seed}, in {directory}", flush=True)
    with Victim() as victim:
        report = make_history(
            victim,
            directory,
            options.seed,
            options.seconds,
            pause_s=options.pause,
            transactions=not options.without_transactions,
        )
    if report.faults or report.problems:
        print(f"the history is kept in {directory}")
    else:
        shutil.rmtree(directory)
    return report


if __name__ == "__main__":
    sys.exit(main())
