"""Threads for what can block: fsync, deletion, recovery. They own nothing.

`submit(work, done)` runs `work()` on a thread and calls `done(result)` on the loop; where `work` raised,
`result` is the exception. Threads start on first need, at most `limit` of them. `_thread` and `SimpleQueue`
serve, since `threading` would cost the start of every broker that never needs a thread.
"""

from __future__ import annotations

from _queue import SimpleQueue
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any

LIMIT = 4

Work = Callable[[], Any]
Done = Callable[[Any], None]


class Workers:
    def __init__(self, post: Callable[..., None], limit: int = LIMIT) -> None:
        self._post = post
        self._limit = limit
        self._queue: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._threads = 0
        self._outstanding = 0

    def submit(self, work: Work, done: Done) -> None:
        self._outstanding += 1
        if self._outstanding > self._threads and self._threads < self._limit:
            self._threads += 1
            start_new_thread(self._serve, ())
        self._queue.put((work, done))

    @property
    def outstanding(self) -> int:
        """How many jobs were handed out and have not come back."""
        return self._outstanding

    def stop(self) -> None:
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            work, done = job
            try:
                result: Any = work()
            except BaseException as error:
                result = error
            self._post(self._finished, done, result)

    def _finished(self, done: Done, result: Any) -> None:
        self._outstanding -= 1
        done(result)
