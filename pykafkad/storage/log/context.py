"""What a log needs from outside, given to it when it is made: nobody reaches into it afterwards.

The LogManager makes one context for all its logs. A log alone (in a tool, or a test) has one whose work is done at once.
"""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.pure.replication import Members
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log

    class LogListener(Protocol):
        """Whom a log tells of itself: the replica whose log it is. What may be read, the listener says:
        Log.advance_high_watermark."""

        def lead(self, leader_epoch: int, members: Members | None = None) -> None:
            """This node leads in that epoch. None: nobody else is a replica."""

        def become_follower(self, leader_epoch: int, leader_id: int) -> None:
            """Another node leads, or none (-1)."""

        def written(self, end_offset: int) -> None:
            """Everything below is in the file, and on the disk where flush.messages wants that."""

        def started(self) -> None:
            """The log begins at a higher offset than before."""

        def reconfigured(self) -> None:
            """The topic has another configuration."""

        def removed(self) -> None:
            """The log is deleted, or its directory is offline."""

    ListenerOf = Callable[[Log], LogListener]
    # Of storage/log/follower.py: what is cut off, from which offset, the time.
    Step = Callable[[Log, int, int], None]
    Done = Callable[[KafkaError | None], None]


class Nobody:
    """Whom a log tells of itself when it is not served any more."""

    def lead(self, leader_epoch: int, members: Members | None = None) -> None: ...
    def become_follower(self, leader_epoch: int, leader_id: int) -> None: ...
    def written(self, end_offset: int) -> None: ...
    def started(self) -> None: ...
    def reconfigured(self) -> None: ...
    def removed(self) -> None: ...


NOBODY = Nobody()


def no_flush(log: Log, start: int, end: int) -> None:
    """A log alone is synced when it is told to, not by itself."""


def flush_now(log: Log) -> int:
    """There are no threads: what flush.messages wants on the disk is there when this returns."""
    log.flush()
    return log.flushed_offset


def unlink_now(directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
    """Deleted files are not kept for a while."""
    for path in paths:
        files.remove(path)


def cut_now(log: Log, step: Step, offset: int, is_wanted: Callable[[], bool], done: Done) -> None:
    """There is no checkpoint that says more than what will be left."""
    step(log, offset, 0)
    done(None)


class LogContext:
    __slots__ = (
        "cut",
        "dirty",
        "flush_due",
        "flush_soon",
        "listener_of",
        "unlink_soon",
        "verify_transactions",
    )

    def __init__(
        self,
        listener_of: ListenerOf,
        *,
        dirty: list[Log] | None = None,
        flush_due: Callable[[Log], int] = flush_now,
        flush_soon: Callable[[Log, int, int], None] = no_flush,
        unlink_soon: Callable[[LogDirectory, list[str], int], None] = unlink_now,
        cut: Callable[[Log, Step, int, Callable[[], bool], Done], None] = cut_now,
        verify_transactions: bool = True,
    ) -> None:
        self.listener_of = listener_of
        self.dirty: list[Log] = [] if dirty is None else dirty  # logs with queued appends
        self.flush_due = flush_due  # gives the offset that is on the disk; more may follow
        self.flush_soon = flush_soon
        self.unlink_soon = unlink_soon
        self.cut = cut  # how a follower's log is cut so that a crash may come at any point
        self.verify_transactions = verify_transactions  # the one that changes: a dynamic config
