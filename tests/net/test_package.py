"""What others get: the sdist has what is needed to build and nothing else, and without a compiler one line says what is
missing. That it builds, installs and serves is shown by tox and, for each wheel, by tools/try_package.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NEEDED = [
    "pykafkad",
    "ext",
    "protocol",
    "tests",
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from a copy, so that nothing is left in the tree, and nothing that lies in the tree gets in."""
    copy, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in NEEDED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy)
    subprocess.run([sys.executable, "-c", BUILD, str(made)], cwd=copy, check=True, capture_output=True)
    (archive,) = made.iterdir()
    return archive


def sources(top: str, *suffixes: str) -> set[str]:
    return {str(file.relative_to(ROOT)) for file in (ROOT / top).rglob("*") if file.suffix in suffixes}


def test_the_sdist_has_what_is_needed_and_nothing_of_the_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        files = {member.name.partition("/")[2] for member in archive if member.isfile()}
    wanted = sources("pykafkad", ".py", ".pyi", ".pxd") | sources("ext", ".pyx", ".pxi", ".pxd", ".c", ".h")
    messages = {f"pykafkad/schemas/{file.name}" for file in (ROOT / "protocol" / "messages").iterdir()}
    assert (
        wanted | messages | {"setup.py", "pyproject.toml", "LICENSE", "README.md", "pykafkad/py.typed"}
    ) <= files
    others = {file for file in files if file.split("/")[0] not in ("pykafkad", "ext", "pykafkad.egg-info")}
    assert others <= {
        "PKG-INFO",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
    }


def test_without_a_compiler_one_line_says_what_is_missing_and_how_to_get_it(
    sdist: Path, tmp_path: Path
) -> None:
    install = [
        "install",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path),
        str(sdist),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *install],
        env={**os.environ, "CC": "/bin/false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "pykafkad: " in line]
    assert len(said) == 1, done.stderr
    assert "'/bin/false' does not compile" in said[0]
    assert "apt-get install build-essential" in said[0]
    assert "[1 lines of output]" in done.stderr


def test_what_the_release_runs_is_there() -> None:
    texts = [
        (ROOT / file).read_text() for file in (".github/workflows/release.yml", "pyproject.toml", "tox.ini")
    ]
    named = {name for text in texts for name in re.findall(r"tools/\w+\.py", text)}
    assert "tools/try_package.py" in named
    assert all((ROOT / name).exists() for name in named)
