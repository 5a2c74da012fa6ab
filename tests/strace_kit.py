"""A running broker whose system calls fail or are delayed by strace."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafkad.testing import Broker

SECONDS = 20

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


class Injected:
    """Tampers with these system calls on these files, from now on.

    `fault` as strace writes it: error=EIO, delay_enter=MICROSECONDS. For a rename the old path counts.
    """

    def __init__(self, broker: Broker, calls: str, fault: str, *paths: str) -> None:
        descriptor, self._log = tempfile.mkstemp()
        os.close(descriptor)
        command = ["strace", "-f", "-qq", "-o", self._log, "-e", f"trace={calls}"]
        command += [word for path in paths for word in ("-P", path)]
        command += ["-e", f"inject={calls}:{fault}", "-p", str(broker.pid)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(lambda: is_traced(broker.pid), "strace does not attach")

    @property
    def calls(self) -> list[str]:
        """The calls that were tampered with."""
        lines = Path(self._log).read_text().splitlines()
        return [line for line in lines if "INJECTED" in line or "DELAYED" in line]

    def __enter__(self) -> Injected:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.unlink(self._log)


def is_traced(pid: int) -> bool:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks)
    except FileNotFoundError:
        return False


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)
