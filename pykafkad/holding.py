"""Answers that promise what is not on the disk yet: they are given, and leave when it is (flush.messages).

Only a partition whose topic wants its batches flushed has any; for all others this is never imported. An answer is
held for each of the partitions it speaks of, until the high watermark of each has reached the end that the log had
when the answer was given. Where the flush failed, the partition's directory is offline, and `fail` changes the answer
first. Invariant: an answer that is held is released once, in the pass in which its last partition is through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.storage.partition import Partition

Fail = Callable[[], None]


class Holding:
    def __init__(self) -> None:
        self._waiting: dict[Partition, deque[tuple[int, Context, Fail]]] = {}
        self._left: dict[Context, int] = {}  # how many times each is waiting

    @property
    def count(self) -> int:
        return len(self._left)

    def hold(self, partition: Partition, context: Context, fail: Fail) -> None:
        """At the end of a pass: this answer waits for what the partition has taken until now."""
        left = self._left.get(context, 0)
        if not left:
            context.hold()
        self._left[context] = left + 1
        self._waiting.setdefault(partition, deque()).append((partition.log_end_offset, context, fail))

    def settle(self) -> None:
        """At the end of each pass, after the storage's commit()."""
        for partition, waiting in list(self._waiting.items()):
            if not partition.log_directory.is_online:
                while waiting:
                    _, context, fail = waiting.popleft()
                    fail()
                    self._through(context)
            while waiting and waiting[0][0] <= partition.high_watermark:
                self._through(waiting.popleft()[1])
            if not waiting:
                del self._waiting[partition]

    def _through(self, context: Context) -> None:
        left = self._left.pop(context) - 1
        if left:
            self._left[context] = left
        else:
            context.release()
