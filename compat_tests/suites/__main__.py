"""python -m compat_tests.suites SUITE [-k SELECTION] [--bootstrap HOST:PORT]

Exit code 1 where a test fails that is not left to a later issue, or where one of those that are passes.
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


def told(outcomes: dict[str, str], later: dict[str, str]) -> int:
    """Names what is not as it should be; how much that is."""
    wrong = 0
    for test, outcome in sorted(outcomes.items()):
        if outcome in ("FAILED", "ERROR"):
            wrong += test not in later
            print(f"left to {later[test]}: {test}" if test in later else f"FAILED: {test}")
        elif outcome == "PASSED" and test in later:
            wrong += 1
            print(f"PASSES, and is named as left to {later[test]}: {test}")
    return wrong


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
        with Broker(config={**suite.CONFIG, **advertised}, port=port) as broker:
            outcomes = suite.run(broker.bootstrap_servers, work, options.selection)
    wrong = told(outcomes, suite.LATER)
    passed = sum(outcome == "PASSED" for outcome in outcomes.values())
    print(f"{passed} passed of {len(outcomes)}; what they said: {work / 'output.log'}")
    return 1 if wrong or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
