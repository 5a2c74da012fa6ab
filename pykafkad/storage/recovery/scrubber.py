"""The scrubber: reads the logs over and over at a bounded rate, and names the batches that are damaged.

A disk that forgets tells nobody, and a clean start reads next to nothing: the damage would be found by a consumer. Off
unless pykafkad.scrub.max.bytes.per.second says how fast. Closed segments and what is written of the active one are
walked by a thread, a slice a turn; each damaged batch is one error line, once. Nothing goes offline and nothing is
changed for it: what to do (another copy, DeleteRecords) is the operator's to say.
"""

from __future__ import annotations

from pykafkad.hot.segment import Inspection
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.hot.segment import Segment
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs

TURN_MS = 1_000  # the manager's SCRUB_INTERVAL_MS
SEGMENTS_A_SLICE = 64
STEP_BYTES = 4 << 20
DAMAGES_A_SEGMENT = 10  # then it is left: one wrong offset makes all that follow look wrong
KNOWN_MAX = 10_000  # damaged places that are remembered, so that each is told once

log = logger("scrubber")


class Target:
    """A segment that is to be read, up to where it was written."""

    __slots__ = ("end", "partition", "path", "segment")

    def __init__(self, partition: Log, segment: Segment) -> None:
        self.partition = partition
        self.segment = segment
        self.path = segment.path
        self.end = segment.size

    @property
    def is_there(self) -> bool:
        """Whether it still is what the partition reads; a cleaning, or retention, may have taken it away."""
        return any(segment is self.segment for segment in self.partition.segments)


class Damage:
    """A batch that is not what was written."""

    __slots__ = ("offsets", "position", "target", "why")

    def __init__(self, target: Target, why: str, position: int, offsets: tuple[int, int] | None) -> None:
        self.target = target
        self.why = why
        self.position = position
        self.offsets = offsets


class Slice:
    """Segments that are read next; a thread has it while it reads."""

    def __init__(self, targets: list[Target]) -> None:
        self._targets = targets[::-1]  # the next one last
        self._inspection: Inspection | None = None
        self._bad = 0  # batches of this segment
        self.damages: list[Damage] = []  # found since they were last taken

    @property
    def is_over(self) -> bool:
        return not self._targets

    def run(self, budget: int) -> int:
        """Read so many bytes, at least one batch; how many they were."""
        done = 0
        while self._targets and done < budget:
            target = self._targets[-1]
            try:
                done += self._step(target, min(STEP_BYTES, budget - done))
            except FileNotFoundError:
                self._next()
            except OSError as error:
                position = self._inspection.position if self._inspection is not None else 0
                self.damages.append(Damage(target, f"cannot be read: {error.strerror}", position, None))
                self._next()
            except Exception as error:  # a mistake of ours: it would come again and again
                log.exception(f"{target.path} cannot be checked", error)
                self._next()
        return done

    def _step(self, target: Target, size: int) -> int:
        inspection = self._inspection
        if inspection is None:
            inspection = self._inspection = Inspection(target.path, target.segment.base_offset, target.end)
        before = inspection.position
        inspection.turn(size)
        done = inspection.position - before
        fault = inspection.fault
        if fault is not None:
            self.damages.append(Damage(target, str(fault), fault.position, fault.offsets))
            self._bad += 1
            if self._bad == DAMAGES_A_SEGMENT or not inspection.skip():
                self._next()
        elif inspection.is_over:
            self._next()
        return done

    def _next(self) -> None:
        self._targets.pop()
        self._inspection = None
        self._bad = 0


class Scrubber:
    """`damaged`: batches that were found so; `scrubbed_bytes` and `passes` say how far it has come."""

    def __init__(self, manager: Logs) -> None:
        self.damaged = 0
        self.scrubbed_bytes = 0
        self.passes = 0
        self._manager = manager
        self._slice: Slice | None = None
        self._partitions: list[Log] = []  # of this pass, still to come
        self._known: set[tuple[str, int, int, int]] = set()
        self._budget = 0.0
        self._at_ms = 0
        self._under_way = False

    def turn(self) -> None:
        """Called every TURN_MS: read what the rate allows since the last time."""
        rate: int = self._manager.config["pykafkad.scrub.max.bytes.per.second"]
        now_ms = self._manager.clock.monotonic_ms()
        elapsed_ms, self._at_ms = now_ms - self._at_ms, now_ms
        if rate <= 0:
            self._slice = None
            return
        # What could not be read in time is not made up for: a slow disk is not driven harder.
        self._budget = min(self._budget + rate * min(elapsed_ms, TURN_MS) / 1000, rate)
        if self._under_way or self._budget < 1:
            return
        if self._slice is None or self._slice.is_over:
            self._slice = Slice(self._targets())
        self._read(self._slice)

    def _targets(self) -> list[Target]:
        """The next segments; when all partitions had their turn it begins anew."""
        if not self._partitions:
            self._partitions = list(self._manager)[::-1]
            self.passes += 1
        found: list[Target] = []
        while self._partitions and len(found) < SEGMENTS_A_SLICE:
            partition = self._partitions.pop()
            if self._manager.get(partition.topic, partition.index) is partition:
                found += (Target(partition, segment) for segment in partition.segments if segment.size)
        return found

    def _read(self, part: Slice) -> None:
        budget = int(self._budget)
        self._under_way = True

        def done(result: Any) -> None:
            self._under_way = False
            if isinstance(result, BaseException):
                raise result
            self._budget -= result
            self.scrubbed_bytes += result
            damages, part.damages = part.damages, []
            for damage in damages:
                self._tell(damage)

        self._manager.submit(lambda: part.run(budget), done)

    def _tell(self, damage: Damage) -> None:
        target = damage.target
        partition, base = target.partition, target.segment.base_offset
        place = (partition.topic, partition.index, base, damage.position)
        if place in self._known or not target.is_there:
            return
        self.damaged += 1
        if len(self._known) < KNOWN_MAX:
            self._known.add(place)
        which = "" if damage.offsets is None else f", offsets {damage.offsets[0]} to {damage.offsets[1]}"
        log.error(f"{target.path}: {damage.why} at byte {damage.position}{which}: the batch is damaged")
