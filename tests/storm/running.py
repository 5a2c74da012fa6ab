"""How long a thread of another process has run, exactly.

Two sources: an event of the kernel's, the clock of a task, which is exact whenever it is read, but is not allowed
everywhere (perf_event_open(2)); and the scheduler's statistics in /proc, which count what is running now only when its
core ticks or switches, so that a wait of 0.1 ms may be told as 0 or as 4.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
SOFTWARE, TASK_CLOCK = 1, 1
USER_ONLY = 0b1100000  # else others than root may not ask; a task's clock counts all the same
ATTRIBUTES_BYTES = 112


def clock(thread: int) -> tuple[Callable[[], int], bool]:
    """What gives the nanoseconds that it has run, and whether that is exact."""
    event = task_clock(thread)
    if event is not None:
        return lambda: int(struct.unpack("Q", os.read(event, 8))[0]), True
    path = f"/proc/{thread}/task/{thread}/schedstat"

    def ran_ns() -> int:
        try:
            with open(path, "rb", buffering=0) as file:
                return int(file.read().split()[0])
        except OSError:
            return 0

    return ran_ns, False


def task_clock(thread: int) -> int | None:
    """A descriptor to read it from, if that is allowed."""
    number = PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return None
    asked = struct.pack("IIQQQQQ", SOFTWARE, ATTRIBUTES_BYTES, TASK_CLOCK, 0, 0, 0, USER_ONLY)
    event = ctypes.CDLL(None).syscall(number, asked.ljust(ATTRIBUTES_BYTES, b"\0"), thread, -1, -1, 0)
    return event if event >= 0 else None
