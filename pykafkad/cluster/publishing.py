"""Publishers: those who act upon changes of the metadata, told of each delta in a fixed order.

A start publishes everything there is as one delta, a running broker the delta of each batch of the metadata log, and
what was asked for is answered when all publishers are through with it. The order is ORDER: the broker's own
configuration and ACLs count first, then listeners and logs go by it, then come those who need the logs.
Invariants (cluster/commits sees to the first): the image changes again when the publishers are through, unless a delta
only adds partitions: their logs may be many, and are made beside what follows, so that whoever makes them asks the
image what has become of them. A publisher that fails does not keep the others from their work.
"""

from __future__ import annotations

from pykafkad.logs import logger
from pykafkad.slices import is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.slices import Work

    Publish = Callable[[Delta], Any]  # what it gives may be work, to be done in slices

    class Preparation(Protocol):
        """Of what publishers will do about records, that which a thread can begin with as soon as they are written."""

        def make(self) -> None:
            """For the thread."""

        def through(self) -> None:
            """After `make`, or instead of it; before the records are applied."""

        def take_back(self) -> None:
            """When the publishers are through: what none has used goes."""

    Prepare = Callable[[Sequence[Record]], Preparation | None]

ORDER = ("configs", "acls", "listeners", "logs", "groups", "transactions", "telemetry", "controller")
CONFIGS, ACLS, LISTENERS, LOGS, GROUPS, TRANSACTIONS, TELEMETRY, CONTROLLER = ORDER

log = logger("metadata")


class Publishers:
    def __init__(self) -> None:
        self._publishers: dict[str, Publish | None] = dict.fromkeys(ORDER)
        self.prepare: Prepare = nothing

    def add(self, name: str, publish: Publish) -> None:
        """One of the names in ORDER; whoever had it before is told no more."""
        if name not in self._publishers:
            raise ValueError(name)
        self._publishers[name] = publish

    def publish(self, delta: Delta) -> Work:
        if log.debugs:
            say_topics(delta)
        for name, publish in self._publishers.items():
            if publish is None:
                continue
            try:
                work = publish(delta)
                if is_work(work):
                    yield from work
            except Exception as error:
                if delta.is_whole:
                    raise  # a start that does not find what it needs is none
                log.exception(f"{name} could not follow a change of the metadata", error)


def nothing(records: Sequence[Record]) -> None:
    """Of these a thread can prepare nothing."""


def say_topics(delta: Delta) -> None:
    """Those that were made and deleted while it runs."""
    if delta.is_whole:
        return
    for topic in delta.created.values():
        log.debug(f"topic {topic.name} was created with {len(topic.partitions)} partitions")
    for topic in delta.deleted.values():
        log.debug(f"topic {topic.name} was deleted")
