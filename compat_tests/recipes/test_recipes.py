"""Every recipe of docs/testing.md passes as it stands there.

A recipe is one or several files, each a fenced block below a comment `<!-- recipe: NAME FILE -->`, in a directory of its
own. Those in Python are run by pytest: where the libraries are not those of our own tests, in the environment of
requirements.txt. The others are run by `pykafkad run`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests import needs

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "testing.md"
BLOCK = re.compile(r"^<!-- recipe: (\w+) (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 300

OWN_ENVIRONMENT = ("first", "marks", "crash", "asyncio")
OTHER_ENVIRONMENT = ("fastapi", "django", "quixstreams")
COMMANDS = ("junit", "go", "node")


def recipes() -> dict[str, dict[str, str]]:
    """The files of each recipe."""
    text = PAGE.read_text()
    found: dict[str, dict[str, str]] = {}
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("<!-- recipe: "), "a recipe without a fenced block below"
    for name, file, code in blocks:
        found.setdefault(name, {})[file] = code
    return found


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the files of a recipe into a directory."""

    def write(name: str) -> Path:
        for file, code in recipes()[name].items():
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        return tmp_path

    return write


def run(command: list[str], directory: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": needs.PATH, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def run_pytest(program: str, directory: Path, *options: str, **environment: str) -> None:
    """All of a recipe's tests pass, and none is skipped."""
    said = run([program, "-m", "pytest", "-p", "no:cacheprovider", *options], directory, **environment)
    last = said.strip().splitlines()[-1]
    assert " passed" in last and not {"skipped", "failed", "error"} & set(last.split()), said


def other_environment() -> str:
    """The Python of an environment with requirements.txt, which is made the first time."""
    target = HERE / "target"
    wanted = HERE / "requirements.txt"
    made = target / "made"
    with needs.alone("recipes"):
        if needs.is_older(made, [wanted]):
            shutil.rmtree(target, ignore_errors=True)
            needs.build([sys.executable, "-m", "venv", str(target)], HERE)
            needs.build([str(target / "bin" / "pip"), "install", "-q", "-r", str(wanted)], HERE)
            made.touch()
    return str(target / "bin" / "python")


def test_every_recipe_is_run() -> None:
    assert set(recipes()) == {*OWN_ENVIRONMENT, *OTHER_ENVIRONMENT, *COMMANDS, "spark"}


@pytest.mark.parametrize("name", OWN_ENVIRONMENT)
def test_a_recipe_for_python_passes(name: str, written: Callable[[str], Path]) -> None:
    run_pytest(sys.executable, written(name))


@pytest.mark.parametrize("name", OTHER_ENVIRONMENT)
def test_a_recipe_for_a_framework_passes(name: str, written: Callable[[str], Path]) -> None:
    plugin = ("-p", "pykafkad.testing.plugin")  # pykafkad is not installed there
    run_pytest(other_environment(), written(name), *plugin, PYTHONPATH=str(ROOT))


def test_the_recipe_for_spark_passes(written: Callable[[str], Path]) -> None:
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    jars = ",".join(str(jar) for jar in sorted(needs.jars("spark").glob("*.jar")))
    local = "--conf spark.driver.host=127.0.0.1"
    arguments = f"--jars {jars} {local} pyspark-shell"
    run_pytest(sys.executable, written("spark"), PYSPARK_SUBMIT_ARGS=arguments)


def under_run(*command: str) -> list[str]:
    return [sys.executable, "-m", "pykafkad", "run", *command]


def test_the_recipe_for_junit_passes(written: Callable[[str], Path]) -> None:
    needs.program("java")
    maven = needs.program("mvn")
    directory = written("junit")
    shutil.copy(HERE / "junit" / "pom.xml", directory)
    with needs.alone("recipes-junit"):
        run(under_run("--", maven, "-q", "-B", "test"), directory)
    reports = list((directory / "target" / "surefire-reports").glob("*.txt"))
    assert ["Tests run: 1, Failures: 0" in report.read_text() for report in reports] == [True]


def test_the_recipe_for_go_passes(written: Callable[[str], Path]) -> None:
    go = needs.program("go")
    directory = written("go")
    for file in ("go.mod", "go.sum"):
        shutil.copy(HERE.parent / "go" / file, directory)
    assert "--- PASS: TestAnOrderIsReadBack" in run(under_run("--", go, "test", "-v", "./..."), directory)


def test_the_recipe_for_node_passes(written: Callable[[str], Path]) -> None:
    node = needs.program("node")
    modules = str(needs.node_project() / "node_modules")
    said = run(under_run("--topic", "orders", "--", node, "--test"), written("node"), NODE_PATH=modules)
    assert re.search(r"^. pass 1$", said, re.MULTILINE), said
