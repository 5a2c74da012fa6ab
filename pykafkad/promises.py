"""What answers promise: that what a log has taken stays. One way for all answers that depend on an append.

An answer that is given in the pass of its append is noted in `made`, as (source, acks, timeout_ms, context, refuse,
part). The source is the replica or the coordinator's shard that took it, and says by `check_appended` whether that is
kept as acks asks for: nearly always it is with the write at the end of the pass. Where it is not (flush.messages,
followers that are behind), the answer is held in its place on its connection until it is. Where it never will be,
`refuse` changes the answer first. Where followers take longer than the request allows, it is changed to
REQUEST_TIMED_OUT, and what was appended stays, as in Kafka; the disk of this broker has all the time that it takes.

Invariants: an answer that is held is released once, in the pass in which the last source it depends on is through, or
when its time is up; an answer is refused before it is encoded, or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container

from pykafkad.errors import KAFKA_STORAGE_ERROR, NONE, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pykafkad.context import Context
    from pykafkad.storage.log.log import Log

    class Source(Protocol):
        @property
        def log(self) -> Log | None:
            """A failed write of it breaks what is promised; None: the source says when (`take_back`)."""

        @property
        def name(self) -> str:
            """The partition's."""

        @property
        def log_end_offset(self) -> int: ...
        @property
        def has_followers(self) -> bool: ...
        def check_appended(self, end_offset: int, acks: int) -> bool:
            """Whether what was appended below this offset is kept; KafkaError: it never will be."""

    class Timer(Protocol):
        def cancel(self) -> None: ...

    Refuse = Callable[[Any, Context, int], None]  # the part, the context, the error's code
    # The last one is the part of the answer that `refuse` changes. The third is for how long it waits for followers.
    Promise = tuple[Source, int, int | None, Context, Refuse, Any]

ALL_IN_SYNC = -1  # the value of acks


class Part:
    """Of a held answer, what depends on one source; without a context once it does not wait any more."""

    __slots__ = ("context", "end_offset", "part", "refuse")

    def __init__(self, end_offset: int, context: Context, refuse: Refuse, part: Any) -> None:
        self.end_offset = end_offset
        self.context: Context | None = context
        self.refuse: Refuse | None = refuse
        self.part = part

    def end(self, code: int = NONE) -> None:
        """It waits no longer: what it promises is so, or it is refused."""
        assert self.context is not None and self.refuse is not None
        if code:
            self.refuse(self.part, self.context, code)
        self.context = self.refuse = self.part = None


class Held:
    """An answer that is held: how many of its parts still wait."""

    __slots__ = ("left", "parts", "timer")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.left = 0
        self.timer: Timer | None = None


class Promises:
    def __init__(self, call_later: Callable[..., Timer]) -> None:
        self.made: list[Promise] = []  # in this pass
        self._call_later = call_later
        self._waiting: dict[tuple[Source, int], deque[Part]] = {}  # by source and acks
        self._held: dict[Context, Held] = {}

    @property
    def held_count(self) -> int:
        return len(self._held)

    def held_by(self) -> list[tuple[str, int]]:
        """The partitions that answers wait for, and how many answers each."""
        counts = ((source.name, sum(map(waits, parts))) for (source, _), parts in self._waiting.items())
        return [each for each in counts if each[1]]

    # -- what is not kept

    def refuse(self, failed: Container[int]) -> None:
        """The write to these logs (their identities) failed: nothing is promised in this pass."""
        self._refuse_made(lambda source: id(source.log) in failed, KAFKA_STORAGE_ERROR)

    def take_back(self, source: Source) -> None:
        """What the source took in this pass is not written."""
        self._refuse_made(lambda each: each is source, NOT_LEADER_OR_FOLLOWER)

    def _refuse_made(self, is_broken: Callable[[Source], bool], code: int) -> None:
        made, self.made[:] = self.made[:], []
        for promise in made:
            source, _, _, context, refuse, part = promise
            if is_broken(source):
                refuse(part, context, code)
            else:
                self.made.append(promise)

    def fail(self, source: Source) -> None:
        """Nor may ever be committed what it took before: the answers that wait for that are replaced and released."""
        self.take_back(source)
        for key in [key for key in self._waiting if key[0] is source]:
            for part in self._waiting.pop(key):
                self._end(part, NOT_LEADER_OR_FOLLOWER)

    # -- the end of a pass

    def settle(self) -> None:
        """After the storage's commit(): answers that promise more than there is are held, and held ones leave."""
        if self.made:
            self.hold_made()
        for key in list(self._waiting) if self._waiting else ():
            self._look(key)

    def hold_made(self) -> None:
        kept: Source | None = None  # nearly always the next promise is of the same one
        for source, acks, timeout_ms, context, refuse, part in self.made:
            if source is not kept:
                try:
                    if source.check_appended(source.log_end_offset, acks):
                        kept = source if acks == ALL_IN_SYNC else None
                    else:
                        self._hold(
                            source, acks, timeout_ms, Part(source.log_end_offset, context, refuse, part)
                        )
                except KafkaError as error:
                    refuse(part, context, error.code)
        self.made.clear()

    def _hold(self, source: Source, acks: int, timeout_ms: int | None, part: Part) -> None:
        """This answer waits for what the source has taken until now."""
        context = part.context
        assert context is not None
        held = self._held.get(context)
        if held is None:
            context.hold()
            held = self._held[context] = Held()
        held.parts.append(part)
        held.left += 1
        self._waiting.setdefault((source, acks), deque()).append(part)
        waits_for_others = acks == ALL_IN_SYNC and source.has_followers
        if waits_for_others and timeout_ms is not None and held.timer is None:
            held.timer = self._call_later(max(0, timeout_ms), self._expire, context)

    def _expire(self, context: Context) -> None:
        """The request's time is up. Its parts stay where they wait until those before them are gone."""
        held = self._held.pop(context)
        for part in filter(waits, held.parts):
            part.end(REQUEST_TIMED_OUT)
        context.release()

    def _look(self, key: tuple[Source, int]) -> None:
        """Release what is kept by now, or never will be."""
        source, acks = key
        waiting = self._waiting[key]
        while waiting:
            part = waiting[0]
            code = NONE
            try:
                if waits(part) and not source.check_appended(part.end_offset, acks):
                    return
            except KafkaError as error:
                code = error.code
            waiting.popleft()
            self._end(part, code)
        del self._waiting[key]

    def _end(self, part: Part, code: int) -> None:
        context = part.context
        if context is None:  # its time was up before
            return
        part.end(code)
        held = self._held[context]
        held.left -= 1
        if not held.left:
            del self._held[context]
            if held.timer is not None:
                held.timer.cancel()
            context.release()


def waits(part: Part) -> bool:
    return part.context is not None
