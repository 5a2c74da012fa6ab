"""python -m compat_tests.history run --seconds 1800   make a history and check it
python -m compat_tests.history copy                copy 100,000 messages, and compare
python -m compat_tests.history check DIRECTORY     check a history that was kept

BROKER=kafka for the real one. Exit code 1: there are faults.
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
from compat_tests.history.copying import Task, copy
from compat_tests.history.workload import Report, make_history, read


class Options(argparse.Namespace):
    command: str
    seed: int
    seconds: float
    wait: float
    without_transactions: bool
    count: int
    kills: int
    pause: float
    directory: Path


def parse() -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.history",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 31)))
    parser.add_argument("--seed", type=int, default=seed)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--seconds", type=float, default=1800)
    run.add_argument("--wait", type=float, default=6.0, help="seconds between two faults, at most")
    run.add_argument("--without-transactions", action="store_true")
    copying = commands.add_parser("copy")
    copying.add_argument("--count", type=int, default=100_000)
    copying.add_argument("--kills", type=int, default=20)
    copying.add_argument(
        "--pause", type=float, default=1.5, help="seconds that a transaction stays open, at most"
    )
    commands.add_parser("check").add_argument("directory", type=Path)
    return parser.parse_args(namespace=Options())


def main() -> int:
    options = parse()
    if options.command == "check":
        events = read(options.directory)
        return report(Report(0, events, check(events), []))
    directory = Path(tempfile.mkdtemp(prefix="history-"))
    print(f"SEED={options.seed}, in {directory}", flush=True)
    with Victim() as victim:
        code = (
            run_one(victim, directory, options)
            if options.command == "run"
            else copy_one(victim, directory, options)
        )
    if code == 0:
        shutil.rmtree(directory)
    return code


def run_one(victim: Victim, directory: Path, options: Options) -> int:
    transactions = not options.without_transactions
    return report(
        make_history(
            victim, directory, options.seed, options.seconds, wait_s=options.wait, transactions=transactions
        )
    )


def report(made: Report) -> int:
    print(made.text())
    return 1 if made.faults or made.problems else 0


def copy_one(victim: Victim, directory: Path, options: Options) -> int:
    task = Task(options.count, options.kills, pause_s=options.pause)
    copied = copy(victim, directory, options.seed, task)
    print(copied.text())
    return 0 if copied.found == copied.wanted else 1


if __name__ == "__main__":
    sys.exit(main())
