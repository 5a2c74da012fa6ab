"""The groups of one partition of `__consumer_offsets` as a machine of the coordinator runtime."""

from __future__ import annotations

from pykafkad.pure.groups import records
from pykafkad.pure.groups.registry import Groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.pure.effects import Effects
    from pykafkad.pure.groups.settings import GroupSettings


class GroupMachine(Groups):
    __slots__ = ("_deleted_topics",)

    encode = staticmethod(records.encode)
    decode = staticmethod(records.decode)

    def __init__(self, settings: GroupSettings) -> None:
        super().__init__(settings)
        # Names, and the offsets from which on records are of a new topic of that name.
        self._deleted_topics: dict[str, int] = {}

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def replayed(self) -> Iterable[str]:
        self.is_loading = False
        return self.by_id

    # -- deleted topics

    def topic_deleted(self, name: str, next_offset: int) -> None:
        """The offsets of the topic whose records come before `next_offset` are to be deleted. The topic may be created
        again before the last one is."""
        self._deleted_topics[name] = next_offset

    def forget_deleted_topics(self) -> Iterator[Effects]:
        """Delete these offsets. Each of the effects must be done before the next is asked for."""
        while self._deleted_topics:
            names, self._deleted_topics = self._deleted_topics, {}
            yield from self.forget(names)
