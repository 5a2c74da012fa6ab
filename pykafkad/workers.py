"""Threads for work that can block: fsync, deletion, recovery. They own no state.

`submit(work, done)` runs `work()` on a thread and calls `done(result)` on the loop; if `work` raised, `result` is the
exception. If no thread can be started, the existing ones do the work; if there are none, `result` is the exception of
the start. Threads are started when they are first needed, at most `limit` of them. `_thread` and `SimpleQueue` are used
since importing `threading` would slow down the start of every broker that never needs a thread.
"""

from __future__ import annotations

import os
import sys
from _queue import SimpleQueue
from _thread import start_new_thread
from collections.abc import Callable

from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Work = Callable[[], Any]
    Done = Callable[[Any], None]
    Submit = Callable[[Work, Done], None]


LIMIT = 4


log = logger("workers")


def submit_inline(work: Work, done: Done) -> None:
    """Without threads: the work is done before this returns."""
    try:
        result: Any = work()
    except Exception as error:
        result = error
    done(result)


class Workers:
    """`nice`: how far the threads stand back where the loop wants the processor too."""

    def __init__(self, post: Callable[..., None], limit: int = LIMIT, nice: int = 0) -> None:
        self._post = post
        self._limit = limit
        self._nice = nice
        self._queue: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._threads = 0
        self._outstanding = 0

    def submit(self, work: Work, done: Done) -> None:
        self._outstanding += 1
        if self._outstanding > self._threads and self._threads < self._limit:
            try:
                start_new_thread(self._serve, ())
                self._threads += 1
            except Exception as error:
                log.error(f"{error}: what blocks is done by {self._threads} threads")
                if not self._threads:
                    self._post(self._finished, done, error)
                    return
        self._queue.put((work, done))

    @property
    def outstanding(self) -> int:
        """How many jobs were submitted and are not done yet."""
        return self._outstanding

    def stop(self) -> None:
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _serve(self) -> None:
        if self._nice and sys.platform == "linux":
            os.nice(self._nice)  # of this thread alone; elsewhere it would be of the process
        while (job := self._queue.get()) is not None:
            work, done = job
            try:
                result: Any = work()
            except BaseException as error:
                result = error
            try:
                self._post(self._finished, done, result)
            except Exception as error:
                log.error(f"the loop does not take the result of work in a thread: {error}")
            del job, work, done, result  # nothing is kept alive while the thread waits for its next job

    def _finished(self, done: Done, result: Any) -> None:
        self._outstanding -= 1
        done(result)
