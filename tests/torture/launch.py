"""`python -m tests.torture.launch STRACE-ARGUMENT… -- BROKER-ARGUMENT…`: the broker, with strace attached to it just
before it begins. So only the broker's own calls count, and the imports of Python are not slowed down.
"""

from __future__ import annotations

import os
import sys
import time

import pykafkad.server  # noqa: F401
from pykafkad.cli import main

ATTACHED_SECONDS = 20.0


def attach(arguments: list[str]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in (0, 1, 2)]
    os.posix_spawnp(
        "strace",
        ["strace", "-p", str(os.getpid()), *arguments],
        os.environ,
        file_actions=actions,
        setsid=True,
    )
    os.close(nothing)
    deadline = time.monotonic() + ATTACHED_SECONDS
    while not is_traced():
        if time.monotonic() > deadline:
            sys.exit("strace did not attach")
        time.sleep(0.001)


def is_traced() -> bool:
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return not any(line.split() == ["TracerPid:", "0"] for line in file)
    except OSError:
        return True  # its first error


if __name__ == "__main__":
    split = sys.argv.index("--")
    attach(sys.argv[1:split])
    sys.exit(main(sys.argv[split + 1 :]))
