"""What applies to all tests of the repository.

REQUIRE_ALL=1 (CI): a test that would be skipped fails, so that nothing is left out unnoticed.

No callback may hold the loop of a broker for longer than HOLD_MS. In whichever process of the run that happened, it is
in the file PYKAFKAD_HOLD_LOG, and the run fails at its end.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

HOLD_MS = 50
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
    # A shell without job control has what it puts into the background ignore these, and what tests begin inherits it.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
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
        if held:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            session.config.stash[HELD] = held
    return result


HELD = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    held = config.stash.get(HELD, [])
    if held:
        terminalreporter.section("the loop was held", red=True)
        terminalreporter.write_line("\n".join(held))
