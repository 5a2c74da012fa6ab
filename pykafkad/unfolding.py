"""Memory for the unfolding of compressed batches, shared by all work in slices that does it.

A few hundred bytes may have a codec keep many megabytes from one slice to the next, and every connection may send them.
So work that is about to keep much (compression.Kept) enters here first, and waits while others have taken what there is:

    stay = broker.unfolding.stay()
    try:
        while not validation.advance():
            yield GO_ON
            yield from stay.keep(validation.kept)
    finally:
        stay.leave()

Invariants: what is kept in a lane is at most LANE_BYTES, or one piece of work alone; who came first enters first. What
keeps little more than usual has a lane of its own, and does not wait for what keeps very much.
"""

from __future__ import annotations

from collections import deque

from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.slices import Work

LANE_BYTES = 128 * 1024 * 1024
WIDE_BYTES = 8 * 1024 * 1024  # beyond it the second lane is taken


class Lane:
    __slots__ = ("_waiting", "kept")

    def __init__(self) -> None:
        self.kept = 0
        self._waiting: deque[tuple[int, Wait]] = deque()

    def enter(self, size: int) -> Work[None]:
        wait = Wait()
        self._waiting.append((size, wait))
        self._admit()
        yield from wait.result()

    def leave(self, size: int) -> None:
        self.kept -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (not self.kept or self.kept + self._waiting[0][0] <= LANE_BYTES):
            size, wait = self._waiting.popleft()
            self.kept += size
            wait.come()


class Stay:
    """What one piece of work keeps."""

    __slots__ = ("_lanes", "_size")

    def __init__(self, lanes: tuple[Lane, Lane]) -> None:
        self._lanes = lanes
        self._size = 0

    def keep(self, size: int) -> Work[None]:
        if size != self._size:
            self.leave()
            if size:
                yield from self._lanes[size > WIDE_BYTES].enter(size)
            self._size = size

    def leave(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._lanes[size > WIDE_BYTES].leave(size)


class Unfolding:
    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes = (Lane(), Lane())

    def stay(self) -> Stay:
        return Stay(self._lanes)

    @property
    def kept(self) -> int:
        return sum(lane.kept for lane in self._lanes)
