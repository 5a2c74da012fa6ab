"""python -m compat_tests.suites SUITE [-k SELECTION] [--bootstrap HOST:PORT]

Exit code 1 unless exactly those tests pass that the suite's list names, and the runner finished. Tests that a selection
leaves out are not missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from compat_tests.reference import free_ports
from compat_tests.suites import kafka_python
from pykafkad.testing import Broker

SUITES: dict[str, ModuleType] = {"kafka-python": kafka_python}
WORK = Path(__file__).parents[2] / "build" / "suites"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.suites", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("-k", dest="selection", default="", help="tests, as pytest's -k has them")
    parser.add_argument("--bootstrap", help="a broker that is up, rather than one of ours for the run")
    return parser.parse_args()


def told(outcomes: dict[str, str], passes: list[str], later: dict[str, str]) -> int:
    """Print what is not as it should be; returns how much that is."""
    wrong = 0
    for test, outcome in sorted(outcomes.items()):
        if outcome in ("FAILED", "ERROR") and test in later:
            print(f"left to {later[test]}: {test}")
        elif outcome in ("FAILED", "ERROR") or (outcome == "PASSED") != (test in passes):
            wrong += 1
            print(
                f"{outcome}, and is {'' if test in passes else 'not '}on the list of those that pass: {test}"
            )
    return wrong


def missed(outcomes: dict[str, str], passes: list[str]) -> int:
    lost = sorted(set(passes) - set(outcomes))
    for test in lost:
        print(f"NOT RUN: {test}")
    return len(lost)


def main() -> int:
    options = arguments()
    suite: Any = SUITES[options.suite]
    work = WORK / options.suite
    work.parent.mkdir(parents=True, exist_ok=True)
    if options.bootstrap:
        outcomes = suite.run(options.bootstrap, work, options.selection)
    else:
        port = free_ports()
        advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}  # is shown as set, then
        with Broker(config={**suite.CONFIG, **advertised}, port=port, single_node=False) as broker:
            outcomes = suite.run(broker.bootstrap_servers, work, options.selection)
    wrong = told(outcomes, suite.PASSES, suite.LATER)
    if not options.selection:
        wrong += missed(outcomes, suite.PASSES)
    passed = sum(outcome == "PASSED" for outcome in outcomes.values())
    print(f"{passed} passed of {len(outcomes)}; what they said: {work / 'output.log'}")
    return 1 if wrong or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
