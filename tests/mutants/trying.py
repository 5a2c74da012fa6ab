"""Runs the tests of one mutant after the other, in a copy of the tree.

A function is changed in a fork of a process that has collected the tests (warm.py), which takes a tenth of a second; what
runs at imports is changed in a file, which a new process reads. A test that fails counts if it passes unchanged.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.mutants.mutating import DEFAULT, Mutant
from tests.mutants.warm import COLD, FAILED, PASSED, SLOW

ROOT = Path(__file__).parents[2]
COPIED = (
    "pykafkad",
    "protocol",
    "tests",
    "compat_tests",
    "bench",
    "tools",
    "ext",
    "examples",
    "docs",
    "README.md",
    "conftest.py",
    "pyproject.toml",
)
MEMORY_BYTES = 4 << 30
SECONDS, SLOWER = 10, 10  # a test may take ten times as long as it did, and ten seconds more
START_SECONDS = 60
TOGETHER_SECONDS = 15
# Beside the unit tests: those of the room that is about sockets, as far as they start no broker, and for what nothing but
# a whole broker runs those that start one, which reads the changed file.
OF_SOCKETS = (
    "reactor_*",
    "listeners",
    "peer",
    "peers",
    "tools_reaching",
    "*_loopback",
    "flush",
    "unix_sockets",
)
OF_BROKERS = {
    "pykafkad/server.py": ("start_*", "directory_failures", "broker_process"),
    "pykafkad/opening.py": ("open",),
    "pykafkad/running.py": ("run",),
    "pykafkad/cluster/opened.py": ("open",),
    "pykafkad/storage/overlay/opened.py": ("open",),
    "pykafkad/coordinator/opened_transactions.py": ("open",),
    "pykafkad/clustered.py": ("cluster_broker",),
    "pykafkad/net/starter.py": ("testing_lifetime",),
}


def with_sockets(names: Iterable[str]) -> list[str]:
    return [
        f"tests/net/{path.name}" for name in names for path in sorted(ROOT.glob(f"tests/net/test_{name}.py"))
    ]


LEARNT = ("tests/unit", *with_sockets(OF_SOCKETS))
ALL = (*LEARNT, *with_sockets(dict.fromkeys(name for names in OF_BROKERS.values() for name in names)))
NAMESAKE = 0.2
KILLED, SURVIVED, TOO_SLOW, NOT_RUN = "killed", "survived", "killed by time", "run by no test"
OUTCOMES = {FAILED: KILLED, PASSED: SURVIVED, SLOW: TOO_SLOW}


class Trial:
    """A copy of the tree in which one file at a time is changed, and a process that is forked to run tests there."""

    def __init__(self, touched: Touched, seconds: float = SECONDS, collected: Iterable[str] = ALL) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pykafkad-mutants-"))
        self.touched, self.seconds, self.collected = touched, seconds, collected
        self._warm: Warm | None = None
        self.trusted: dict[str, bool] = {}  # test -> whether it passes here without a change
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("target", "node_modules")
                shutil.copytree(source, self.home / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy2(source, self.home / name)

    @property
    def environment(self) -> dict[str, str]:
        """That of this process, but how long the loop was held fails no run here: the machine is busy."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYKAFKAD_")}
        home = {"PYTHONPATH": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**inherited, **home, "PYKAFKAD_HOLD_LOG": os.devnull}

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._warm is not None:
            self._warm.close()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def warm(self) -> Warm:
        if self._warm is None:
            self._warm = Warm(self.home, self.environment, self.collected)
        return self._warm

    def run(self, mutant: Mutant) -> str:
        """What the tests that run the function say."""
        tests = [test for test in self.touched.covering(mutant) if test in self.warm.tests]
        if not mutant.function:
            tests = list(dict.fromkeys([*self._mentioning(mutant.path), *tests]))
        starting = tuple(with_sockets(OF_BROKERS.get(mutant.path, ())))
        tests += [test for test in self.warm.tests if test.startswith(starting)] if starting else []
        if not tests:
            return NOT_RUN
        outcome = COLD
        if mutant.function and mutant.kind != DEFAULT:  # which is made when the function is
            outcome, tests = self._forked(mutant, tests)
        if outcome == COLD or (outcome == PASSED and mutant.place in self.warm.ran_early):
            with self._changed(mutant):
                outcome = self._alone(tests)
        return OUTCOMES[outcome]

    def _mentioning(self, path: str) -> list[str]:
        """The tests of files that name the module, and so may look at its tables."""
        name = re.compile(
            rf"\b{Path(path).stem if Path(path).stem != '__init__' else Path(path).parent.name}\b"
        )
        files = {test.partition("::")[0] for test in self.warm.tests}
        naming = {file for file in files if name.search((self.home / file).read_text())}
        found = [test for test in self.warm.tests if test.partition("::")[0] in naming]
        return self.touched.soonest(found, path)

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        """The file is as the mutant has it."""
        path = self.home / mutant.path
        original, times = path.read_bytes(), path.stat()
        forget_bytecode(path)
        path.write_text(mutant.source)
        try:
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            forget_bytecode(path)

    def _forked(self, mutant: Mutant, tests: list[str]) -> tuple[str, list[str]]:
        """The outcome, and those tests of them that pass without a change."""
        before = (self.home / mutant.path).read_text()
        while tests:
            with self._changed(mutant):
                outcome, last = self.warm.ask(
                    self._limited(tests), mutant.path, mutant.function, before, mutant.source
                )
            if outcome not in (FAILED, SLOW) or self._passes(last):
                return outcome, tests
            tests = tests[tests.index(last) + 1 :]
        return COLD, tests

    def _passes(self, test: str) -> bool:
        if test not in self.trusted:
            self.trusted[test] = self.warm.ask(self._limited([test]))[0] == PASSED
        return self.trusted[test]

    def _limited(self, tests: list[str]) -> list[tuple[str, float]]:
        return [(test, self.seconds + SLOWER * self.touched.seconds.get(test, 0)) for test in tests]

    def _alone(self, tests: list[str]) -> str:
        """The outcome in a process of its own."""
        if not tests:
            return PASSED
        arguments = self.home / "tests.txt"
        arguments.write_text("\n".join(tests))
        options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={self.home / 'tmp'}", f"@{arguments}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            preexec_fn=bounded,
        )
        try:
            code = process.wait(START_SECONDS + sum(seconds for _, seconds in self._limited(tests)))
            return FAILED if code else PASSED
        except subprocess.TimeoutExpired:
            return SLOW
        finally:
            process.kill()
            process.wait()


class Warm:
    """The process that is forked (warm.py)."""

    def __init__(self, home: Path, environment: dict[str, str], collected: Iterable[str]) -> None:
        theirs, asked = os.pipe()
        answered, their_end = os.pipe()
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={home / 'tmp'}"]
        ends = ["--asked", str(theirs), "--answered", str(their_end)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.mutants.warm", *ends, *options, *collected],
            cwd=home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs, their_end),
            preexec_fn=bounded,
        )
        os.close(theirs)
        os.close(their_end)
        self._asked, self._answered = os.fdopen(asked, "w"), os.fdopen(answered)
        begun = json.loads(self._answered.readline() or "null")
        if begun is None:
            raise RuntimeError("the unit tests cannot be collected")
        self.tests, self.ran_early = dict.fromkeys(begun["tests"]), set(begun["ran_early"])

    def ask(
        self,
        tests: list[tuple[str, float]],
        path: str = "",
        function: str = "",
        before: str = "",
        after: str = "",
    ) -> tuple[str, str]:
        given = {"tests": tests, "path": path, "function": function, "before": before, "after": after}
        print(json.dumps(given), file=self._asked, flush=True)
        answer = json.loads(self._answered.readline())
        return answer["outcome"], answer["test"]

    def close(self) -> None:
        self._asked.close()
        self._process.wait()
        self._answered.close()


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def forget_bytecode(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


class Touched(NamedTuple):
    """Which unit tests run which functions, and how long they take."""

    tests: dict[str, list[str]]
    seconds: dict[str, float]

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that run the function; for code that runs at an import, or a function that no test runs, those
        that run anything of the module."""
        of_module = {
            each: None
            for name, given in self.tests.items()
            if name.startswith(f"{mutant.path} ")
            for each in given
        }
        return self.soonest(
            list((self.tests.get(mutant.place) if mutant.function else None) or of_module), mutant.path
        )

    def soonest(self, found: list[str], path: str) -> list[str]:
        """Those come first that will tell soonest: of a file named after the module, and those that take little time.
        Those that would take too long together are left out: nearly every test runs a constructor of the server."""
        stem = Path(path).stem.strip("_")
        found.sort(key=lambda test: self.seconds.get(test, 0) * (NAMESAKE if stem in test else 1))
        together = list(accumulate(self.seconds.get(test, 0) for test in found))
        return found[: max(bisect_right(together, TOGETHER_SECONDS), 1)]


def touched(file: Path, learn: list[str] | None = None) -> Touched:
    """Determined if the file does not exist (some minutes), and again for the tests that are named; in a copy of the
    tree, so that one may continue to work meanwhile."""
    if file.exists() and not learn:
        return read(file)
    known, part = read(file) if file.exists() else Touched({}, {}), file.with_suffix(".part")
    wanted = learn or list(LEARNT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.touching", "--touched", str(part)]
    with Trial(known) as trial:
        options = ["-p", "no:cacheprovider", f"--basetemp={trial.home / 'tmp'}", *wanted]
        subprocess.run([*command, *options], cwd=trial.home, env=trial.environment, check=False)
    for name, tests in known.tests.items():
        known.tests[name] = [test for test in tests if not test.startswith(tuple(wanted))]
    found = read(part)
    for name, tests in found.tests.items():
        known.tests.setdefault(name, []).extend(tests)
    known.seconds.update(found.seconds)
    part.unlink()
    file.write_text(json.dumps(known._asdict()))
    return known


def read(file: Path) -> Touched:
    return Touched(**json.loads(file.read_text()))
