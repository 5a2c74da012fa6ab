"""What answers promise: that what a log has taken stays. One way for all answers that depend on an append.

An answer that is given in the pass of its append is noted in `made`, as (source, acks, context, refuse, part). The source
is the replica or the coordinator's shard that took it, and says by `check_appended` whether that is kept as acks asks
for: nearly always it is with the write at the end of the pass. Where it is not (flush.messages, followers that are
behind), the answer is held in its place on its connection until it is. Where it never will be, `refuse` changes the
answer first.

Invariants: an answer that is held is released once, in the pass in which the last source it depends on is through; an
answer is refused before it is encoded, or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from pykafkad.errors import KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, KafkaError

if TYPE_CHECKING:
    from typing import Protocol

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
        def check_appended(self, end_offset: int, acks: int) -> bool:
            """Whether what was appended below this offset is kept; KafkaError: it never will be."""

    Refuse = Callable[[Any, Context, int], None]  # the part, the context, the error's code
    Promise = tuple[
        Source, int, Context, Refuse, Any
    ]  # the last one is the part of the answer that `refuse` changes
    Held = deque[tuple[int, Context, Refuse, Any]]  # the end offset first


class Promises:
    def __init__(self) -> None:
        self.made: list[Promise] = []  # in this pass
        self._held: dict[tuple[Source, int], Held] = {}  # by source and acks
        self._left: dict[Context, int] = {}  # how many sources each held answer waits for

    @property
    def held_count(self) -> int:
        return len(self._left)

    def held_by(self) -> list[tuple[str, int]]:
        """The partitions that answers wait for, and how many answers each."""
        return [(source.name, len(waiting)) for (source, _), waiting in self._held.items()]

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
            source, _, context, refuse, part = promise
            if is_broken(source):
                refuse(part, context, code)
            else:
                self.made.append(promise)

    def fail(self, source: Source) -> None:
        """Nor may ever be committed what it took before: the answers that wait for that are replaced and released."""
        self.take_back(source)
        for key in [key for key in self._held if key[0] is source]:
            for _, context, refuse, part in self._held.pop(key):
                refuse(part, context, NOT_LEADER_OR_FOLLOWER)
                self._through(context)

    # -- the end of a pass

    def settle(self) -> None:
        """After the storage's commit(): answers that promise more than there is are held, and held ones leave."""
        if self.made:
            self.hold_made()
        for key in list(self._held) if self._held else ():
            self._look(key)

    def hold_made(self) -> None:
        kept: Source | None = None  # nearly always the next promise is of the same one
        for source, acks, context, refuse, part in self.made:
            if source is not kept:
                try:
                    if source.check_appended(source.log_end_offset, acks):
                        kept = source if acks == -1 else None
                    else:
                        self._hold(source, acks, context, refuse, part)
                except KafkaError as error:
                    refuse(part, context, error.code)
        self.made.clear()

    def _hold(self, source: Source, acks: int, context: Context, refuse: Refuse, part: Any) -> None:
        """This answer waits for what the source has taken until now."""
        left = self._left.get(context, 0)
        if not left:
            context.hold()
        self._left[context] = left + 1
        self._held.setdefault((source, acks), deque()).append((source.log_end_offset, context, refuse, part))

    def _look(self, key: tuple[Source, int]) -> None:
        """Release what is kept by now, or never will be."""
        source, acks = key
        held = self._held[key]
        while held:
            end_offset, context, refuse, part = held[0]
            try:
                if not source.check_appended(end_offset, acks):
                    return
            except KafkaError as error:
                refuse(part, context, error.code)
            held.popleft()
            self._through(context)
        del self._held[key]

    def _through(self, context: Context) -> None:
        left = self._left.pop(context) - 1
        if left:
            self._left[context] = left
        else:
            context.release()
