"""What compat tests need of the machine beyond Python packages: programs, and jars that Maven brings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOW_TO_GET = {
    "kcat": "apt-get install kcat",
    "java": "apt-get install openjdk-17-jdk-headless",
    "mvn": "apt-get install maven",
}
MAVEN_TIMEOUT_S = 600


def program(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here; to have it: {HOW_TO_GET[name]}")


def jars(project: str) -> Path:
    """The directory with the jars that PROJECT/pom.xml names; Maven brings them the first time."""
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
