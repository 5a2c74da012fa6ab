"""How long the plain loop's callbacks hold it; ext/reactor_holds.pxi says more, and does the same."""

from __future__ import annotations

import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOLD_COUNTED_US = 20_000
HOLD_HEAD_BYTES = 512


class Holds:
    def __init__(self, on_hold: Callable[[str, int, Any], object] | None) -> None:
        self.on_hold = on_hold
        self.count = self.longest_us = 0
        self.mark_us = 0  # when the last callback had ended

    def begin(self) -> None:
        self.mark_us = time.thread_time_ns() // 1000

    def end(self, where: str, detail: Any) -> None:
        now_us = time.thread_time_ns() // 1000
        held_us, self.mark_us = now_us - self.mark_us, now_us
        if held_us >= HOLD_COUNTED_US:
            self.count += 1
            self.longest_us = max(self.longest_us, held_us)
            if self.on_hold is not None:
                self.on_hold(where, held_us, detail)
