"""What coordinators use of the broker's loop: time, threads, slices, and their part in the end of a pass.

    loop.append_pending()       before the storage's commit(): appends the records of the pass
    loop.commit()               after it: shards whose records were not written are closed

Invariant: `uncommitted` holds every shard that has replayed records which are not yet below the high watermark.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.coordinator.runtime.shard import Shard
    from pykafkad.promises import Promises


class CoordinatorLoop:
    def __init__(
        self,
        clock: Clock,
        call_later: Callable[..., Any],
        call_soon: Callable[..., Any],
        submit: Callable[..., None],
        in_slices: Callable[..., None],
        promises: Promises,
    ) -> None:
        self.clock = clock
        self.call_later = call_later
        self.call_soon = call_soon
        self.submit = submit
        self.in_slices = in_slices
        self.promises = promises
        self.uncommitted: list[Shard] = []

    def append_pending(self) -> None:
        for shard in self.uncommitted:
            shard.writer.append_pending()

    def commit(self) -> None:
        shards, self.uncommitted = self.uncommitted, []
        for shard in shards:
            shard.runtime.end_pass(shard)
