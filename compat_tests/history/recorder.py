"""The file to which one client writes its history: a line for each event, with the time of a clock that all share.

A line is whole in the page cache before the client goes on, so what a client did is known after kill -9, too.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from compat_tests.history.events import Event, Op, Type


class Recorder:
    def __init__(self, process: str, path: str) -> None:
        self.process = process
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._values = 0
        self._transactions = 0

    def record(self, type: Type, op: Op, **given: Any) -> None:
        """The time is that of the call: before what is invoked, after what has ended."""
        event = Event(self.process, type, op, time.monotonic_ns(), **given)
        self._file.write(event.line().encode() + b"\n")

    def new_value(self) -> str:
        self._values += 1
        return f"{self.process}.{self._values}"

    def new_transaction(self) -> str:
        self._transactions += 1
        return f"{self.process}/{self._transactions}"

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
