"""The compiled modules free what they allocate, also after errors; see tests/fuzz/leaks.py."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

LEAKS = Path(__file__).parents[1] / "fuzz" / "leaks.py"
SECONDS = 120


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo2 is glibc's")
@pytest.mark.parametrize("door", ["wire", "records", "segment", "index", "cleaner", "reactor"])
def test_as_much_is_in_use_afterwards_as_before(door: str) -> None:
    done = subprocess.run(
        [sys.executable, str(LEAKS), door], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "bytes a round" in done.stdout
