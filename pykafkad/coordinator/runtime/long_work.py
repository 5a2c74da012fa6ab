"""Runs work of machines that takes long in slices, such as finding the topics that match regular expressions.

One piece of work runs after the other, as in the executor of Kafka's group coordinator, so that only one needs memory.
Invariants: work of a shard that was closed is dropped; if work fails, that is logged and the next one begins.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pykafkad.clock import Clock
    from pykafkad.coordinator.runtime.kind import MachineKind
    from pykafkad.coordinator.runtime.shard import Shard
    from pykafkad.pure.effects import Work


class LongWork:
    def __init__(self, kind: MachineKind, in_slices: Callable[..., None], clock: Clock) -> None:
        self._kind = kind
        self._in_slices = in_slices
        self._clock = clock
        self._waiting: deque[tuple[Shard, Work]] = deque()  # the first is under way

    def add(self, shard: Shard, work: Work) -> None:
        self._waiting.append((shard, work))
        if len(self._waiting) == 1:
            self._in_slices(self._all(), lambda result: None)

    def _all(self) -> Iterator[None]:
        while self._waiting:
            shard, work = self._waiting[0]
            try:
                yield from self._one(shard, work)
            except Exception as error:
                self._kind.log.exception(
                    f"{shard.partition.name}: work for a {self._kind.noun} failed", error
                )
            self._waiting.popleft()

    def _one(self, shard: Shard, work: Work) -> Iterator[None]:
        while shard.is_active:
            try:
                next(work.steps)
            except StopIteration as end:
                shard.do(work.then(end.value, self._clock.now_ms()))
                return
            yield
