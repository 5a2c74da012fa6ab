"""tools/parts.py says how far a test run is: with a make of the test's own, which only talks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tools.parts import USUAL_S, Run

ROOT = Path(__file__).parent.parent.parent
MAKE = """#!/bin/sh
echo "this is $1"
[ "$1" != "unit" ] || [ -z "$FAILING" ] || exit 3
"""


def parts(tmp_path: Path, *names: str, **environment: str) -> tuple[int, str]:
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "parts.py"), str(make), *names],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stdout


def test_each_part_is_run_and_said_with_its_number(tmp_path: Path) -> None:
    code, said = parts(tmp_path, "check", "unit", "compat-spark")
    assert code == 0
    lines = said.splitlines()
    assert lines[0].startswith("== 3 parts, about ")
    assert [line for line in lines if line.startswith("this is")] == [
        "this is check",
        "this is unit",
        "this is compat-spark",
    ]
    assert re.match(
        r"== part 2 of 3, unit; \d+:\d\d min gone, about \d+:\d\d min left", said[said.index("== part 2") :]
    )
    assert lines[-1].startswith("== all 3 parts passed in ")


def test_the_first_part_that_fails_ends_the_run_with_its_code(tmp_path: Path) -> None:
    code, said = parts(tmp_path, "check", "unit", "compat-spark", FAILING="1")
    assert code == 3
    assert "this is compat-spark" not in said
    assert said.splitlines()[-1].endswith("; alone: make unit")


def test_what_is_left_goes_by_how_long_the_parts_took_that_have_ended() -> None:
    run = Run(["unit", "compat-groups"], 0)
    assert run.left_s(0) == USUAL_S["unit"] + USUAL_S["compat-groups"]
    run.end_part(2 * USUAL_S["unit"])  # half as fast as usual
    assert run.left_s(2 * USUAL_S["unit"]) == 2 * USUAL_S["compat-groups"]


def test_a_part_that_takes_longer_than_usual_has_something_left() -> None:
    assert Run(["unit"], 0).left_s(5 * USUAL_S["unit"]) > 0


def test_every_part_of_the_makefile_has_its_usual_time() -> None:
    done = subprocess.run(
        ["make", "-s", "--no-print-directory", "-f", "-", "names"],
        input=f"include {ROOT}/Makefile\nnames:\n\t@echo $(TEST_PARTS) $(QUICK_PARTS) setup $(COMPAT_PARTS)\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    names = set(done.stdout.split())
    assert {"unit", "compat-spark", "compat-clients-quick"} < names
    assert names == USUAL_S.keys()
