"""Tries the installed package as somebody does who has just got it: the compiled modules are there, a broker starts,
what its tools produce they consume, and it stops when it is told to. Run by tox, for every wheel and for the sdist.

It stands alone in this directory, so what it imports is what is installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

import pykafkad

ROOT = Path(__file__).parent.parent
PROGRAM = str(Path(sysconfig.get_path("scripts")) / "pykafkad")
DOORS = ["wire", "records", "segment", "index", "cleaner", *(["reactor"] if sys.platform == "linux" else [])]
READY = "pykafkad ready: bootstrap.servers="
TIMEOUT_S = 60


def package_is_whole() -> None:
    assert importlib.metadata.version("pykafkad") == pykafkad.__version__
    package = Path(pykafkad.__file__).parent
    assert ROOT not in package.parents or "site-packages" in package.parts, f"{package} is not installed"
    for door in DOORS:
        file = importlib.import_module(f"pykafkad.hot.{door}").__file__
        assert b".debug_info" not in Path(file).read_bytes(), f"{file} has debug information in it"
    assert list((package / "schemas").glob("*.json")), "no message schemas"
    assert (package / "py.typed").exists()


def run(*arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [PROGRAM, *arguments], input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, (
        f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def records_go_in_and_out(bootstrap: str) -> None:
    to = ["--bootstrap-server", bootstrap, "--topic", "greetings"]
    run("topics", *to, "--create", "--partitions", "3")
    run("produce", *to, given="hello\nworld\n")
    got = run("consume", *to, "--from-beginning", "--max-messages", "2")
    assert sorted(got.split()) == ["hello", "world"], got


def main() -> None:
    package_is_whole()
    command = [PROGRAM, "start", "--port", "0", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline()
            assert line.startswith(READY), line
            records_go_in_and_out(line.removeprefix(READY).split()[0].split(",")[0])
            broker.terminate()
            assert broker.wait(TIMEOUT_S) == 0
        finally:
            broker.kill()
    print(
        f"pykafkad {pykafkad.__version__} works on Python {sys.version.split()[0]}, {sysconfig.get_platform()}"
    )


main()
