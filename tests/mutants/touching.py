"""Which unit tests run which functions, determined by running them all once: a plugin of pytest.

    python -m pytest -p tests.mutants.touching --touched FILE tests/unit

For each test that passes, the functions of pykafkad that were called while it ran, its fixtures included, and how long
it took are written to FILE. Calls of a fixture with a wider scope are counted for the first test that used it, so the
module as a whole is recorded too: if no test calls a function, those that call any of its module are tried.
"""

from __future__ import annotations

import _thread
import json
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = f"{ROOT}/pykafkad/"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before pykafkad is imported: threads that it starts itself are traced as those of `threading` are."""
    setattr(_thread, "start_new_thread", start_traced)  # noqa: B010  or mypy takes it for another type


def start_traced(function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
    def run() -> None:
        sys.settrace(threading.gettrace())
        function(*arguments)

    return start_new_thread(run, ())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--touched", help="where to write which tests run which functions")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--touched"):
        config.pluginmanager.register(Touching(Path(config.getoption("--touched"))))


class Touching:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.called: set[CodeType] = set()
        self.tests: dict[str, list[str]] = {}  # function -> tests
        self.seconds: dict[str, float] = {}  # of each test, under this tracing
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.called.clear()
        threading.settrace(self._note)
        sys.settrace(self._note)
        try:
            result = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
        for code in list(self.called):
            if code.co_filename.startswith(PACKAGE):
                name = f"{code.co_filename.removeprefix(f'{ROOT}/')} {function_of(code.co_qualname)}"
                tests = self.tests.setdefault(name, [])
                if not tests or tests[-1] != item.nodeid:
                    tests.append(item.nodeid)
        return result

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Called for each call of a function; its lines are not traced."""
        self.called.add(frame.f_code)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = round(self.seconds.get(report.nodeid, 0) + report.duration, 3)
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        for name, tests in self.tests.items():
            self.tests[name] = [test for test in tests if test not in self.failed]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"tests": self.tests, "seconds": self.seconds}))


def function_of(qualified: str) -> str:
    """The name as in mutating.py: nested functions one after the other, comprehensions and lambdas as parts of their
    function."""
    parts = [part for part in qualified.split(".") if not part.startswith("<")]
    return ".".join(parts)
