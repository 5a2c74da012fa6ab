"""Runs the tests of one mutant after the other, in a copy of the tree."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from tests.mutants.mutating import Mutant

ROOT = Path(__file__).parents[2]
COPIED = (
    "pykafkad",
    "protocol",
    "tests",
    "compat_tests",
    "bench",
    "tools",
    "ext",
    "conftest.py",
    "pyproject.toml",
)
MEMORY_BYTES = 4 << 30
PYTEST_RAN = (0, 1)  # otherwise an import failed, or tests are missing
SECONDS = 120
KILLED, SURVIVED, TOO_SLOW, NOT_RUN = "killed", "survived", "killed by time", "run by no test"


class Trial:
    """A copy of the tree in which one file at a time is changed."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pykafkad-mutants-"))
        self.seconds = seconds
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("target", "node_modules")
                shutil.copytree(source, self.home / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy2(source, self.home / name)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYKAFKAD_")}
        return {**inherited, "PYTHONPATH": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.home, ignore_errors=True)

    def present(self, tests: dict[str, list[str]]) -> dict[str, list[str]]:
        """Without tests that were removed since."""
        options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider"]  # each test a line
        command = [sys.executable, "-m", "pytest", "--collect-only", *options, "tests/unit"]
        told = subprocess.run(
            command, cwd=self.home, env=self.environment, capture_output=True, text=True, check=True
        )
        there = set(told.stdout.splitlines())
        return {name: [test for test in given if test in there] for name, given in tests.items()}

    def run(self, mutant: Mutant, tests: list[str]) -> str:
        """The result of these tests."""
        if not tests:
            return NOT_RUN
        path = self.home / mutant.path
        original, times = path.read_bytes(), path.stat()
        forget_bytecode(path)
        path.write_text(mutant.source)
        try:
            code = self._exit_code(tests)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            forget_bytecode(path)
        if code not in PYTEST_RAN and code is not None and self._exit_code(tests) != 0:
            raise RuntimeError(f"these tests do not run as they are ({code}), learn anew: {tests[:5]}")
        return TOO_SLOW if code is None else KILLED if code else SURVIVED

    def _exit_code(self, tests: list[str]) -> int | None:
        """None: it took too long."""
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
            return process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def forget_bytecode(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def touched(file: Path, learn: list[str] | None = None) -> dict[str, list[str]]:
    """Which unit tests run which functions. Determined if the file does not exist (some minutes), and again for the
    tests that are named; in a copy of the tree, so that one may continue to work meanwhile."""
    if file.exists() and not learn:
        return read(file)
    known, part = read(file) if file.exists() else {}, file.with_suffix(".part")
    wanted = learn or ["tests/unit"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.touching", "--touched", str(part)]
    with Trial() as trial:
        options = ["-p", "no:cacheprovider", f"--basetemp={trial.home / 'tmp'}", *wanted]
        subprocess.run([*command, *options], cwd=trial.home, env=trial.environment, check=False)
    for name, tests in known.items():
        known[name] = [test for test in tests if not test.startswith(tuple(wanted))]
    for name, tests in read(part).items():
        known.setdefault(name, []).extend(tests)
    part.unlink()
    file.write_text(json.dumps(known))
    return known


def read(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(file.read_text())
    return found


def covering(mutant: Mutant, tests: dict[str, list[str]]) -> list[str]:
    """The tests that run the function. For code that runs at an import, the tests that run anything of the module: the
    first of each file; likewise for a function that no test runs."""
    if found := tests.get(f"{mutant.path} {mutant.function}"):
        return found
    whole = {
        each: None for name, given in tests.items() if name.startswith(f"{mutant.path} ") for each in given
    }
    return list(whole)
