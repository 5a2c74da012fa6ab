"""What answers promise: that what a log has taken stays. One way for all answers that depend on an append.

An answer that is given in the pass of its append is noted in `made`, and depends on the write at the end of the pass:
`refuse` changes it where that fails. Where more is wanted than the write (flush.messages), so that the log's high
watermark does not follow at once, the answer is held in its place on its connection until it does. A coordinator, whose
answers depend on a batch of many operations, holds and refuses them itself (`hold`, `fail`).

Invariants: an answer that is held is released once, in the pass in which the last log it depends on is through; an
answer is refused before it is encoded, or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.storage.log.log import Log

    Refuse = Callable[[Any, Context], None]
    Fail = Callable[[], None]
    # The last one is for `refuse`: the part of the answer that it changes.
    Promise = tuple[Replica, Context, Refuse, Any]


class Promises:
    def __init__(self) -> None:
        self.made: list[Promise] = []  # in this pass
        self._held: dict[Replica | Log, deque[tuple[int, Context, Fail]]] = {}
        self._left: dict[Context, int] = {}  # how many logs each held answer waits for

    @property
    def held_count(self) -> int:
        return len(self._left)

    def held_by(self) -> list[tuple[str, int]]:
        """The partitions that answers wait for, and how many answers each."""
        return [(partition.name, len(waiting)) for partition, waiting in self._held.items()]

    # -- the end of a pass

    def refuse(self, failed: Container[int]) -> None:
        """The write to these logs (their identities) failed: nothing is promised."""
        for replica, context, refuse, part in self.made:
            if id(replica.log) in failed:
                refuse(part, context)
        self.made[:] = [promise for promise in self.made if id(promise[0].log) not in failed]

    def hold_made(self) -> None:
        """Answers that promise what is to be on the disk first leave when it is."""
        for replica, context, refuse, part in self.made:
            if replica.high_watermark < replica.log_end_offset:
                self.hold(replica, context, partial(refuse, part, context))

    def settle(self) -> None:
        """After the storage's commit(): what was promised is kept, and held answers leave that are through."""
        if self.made:
            self.made.clear()
        if not self._held:
            return
        for partition, waiting in list(self._held.items()):
            if not partition.is_online:
                self._fail_all(waiting)
            while waiting and waiting[0][0] <= partition.high_watermark:
                self._through(waiting.popleft()[1])
            if not waiting:
                del self._held[partition]

    # -- held answers

    def hold(self, partition: Replica | Log, context: Context, fail: Fail) -> None:
        """At the end of a pass: this answer waits for what the partition has taken until now."""
        left = self._left.get(context, 0)
        if not left:
            context.hold()
        self._left[context] = left + 1
        self._held.setdefault(partition, deque()).append((partition.log_end_offset, context, fail))

    def fail(self, partition: Replica | Log) -> None:
        """What the partition has appended may never be committed: its answers are replaced and released."""
        self._fail_all(self._held.pop(partition, deque()))

    def _fail_all(self, waiting: deque[tuple[int, Context, Fail]]) -> None:
        while waiting:
            _, context, fail = waiting.popleft()
            fail()
            self._through(context)

    def _through(self, context: Context) -> None:
        left = self._left.pop(context) - 1
        if left:
            self._left[context] = left
        else:
            context.release()
