"""What applies to all tests of the repository.

REQUIRE_ALL=1 (CI): a test that would be skipped fails, so that nothing is left out unnoticed.

No callback may hold the loop of a broker for longer than HOLD_MS. In whichever process of the run that happened, it is
in the file PYKAFKAD_HOLD_LOG, and is shown at the end of the run. The run fails of it where it is no accident, such as
Python's cycle collector coming by, or a busy machine: when one callback did so HOLDS times, or ever held it for LONG_MS.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

HOLD_MS, LONG_MS = 50, 200
HOLDS = 3
HOLD = re.compile(r"(.*) held the loop for (\d+) ms")
REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"


def _require(report: Any) -> None:
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1, but this would be skipped: {report.longrepr[-1]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    _require(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report = yield
    _require(report)
    return report


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control has what it puts into the background ignore the first two, nohup the third, and what
    # tests begin inherits it.
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGQUIT: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if "PYKAFKAD_HOLD_LOG" not in os.environ:  # else this is a worker of pytest-xdist
        descriptor, path = tempfile.mkstemp(prefix="pykafkad-holds-")
        os.close(descriptor)
        os.environ["PYKAFKAD_HOLD_LOG"] = path
        os.environ.setdefault("PYKAFKAD_HOLD_MS", str(HOLD_MS))
        config.stash[HOLD_LOG] = Path(path)


HOLD_LOG = pytest.StashKey[Path]()


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    result = yield
    path = session.config.stash.get(HOLD_LOG, None)
    if path is not None:
        held = path.read_text().splitlines()
        path.unlink()
        session.config.stash[HELD] = held
        if is_no_accident(held):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result


HELD = pytest.StashKey[list[str]]()


def is_no_accident(held: list[str]) -> bool:
    found = [match for line in held if (match := HOLD.match(line))]
    names = Counter(match[1] for match in found)
    return any(int(match[2]) >= LONG_MS or names[match[1]] >= HOLDS for match in found)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    held = config.stash.get(HELD, [])
    if held:
        terminalreporter.section("the loop was held", red=True)
        terminalreporter.write_line("\n".join(held))
