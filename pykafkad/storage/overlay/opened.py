"""The logs of an opened directory: read as any others, and nobody's to write to.

Clients may neither append to a partition nor move its start, whatever its topic; our own coordinators do append to
`__consumer_offsets`, of which the overlay has copies. Nothing is retained, cleaned, flushed or checkpointed: the overlay
goes when the broker does.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager
from pykafkad.storage.moves.moves import Moves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.hot.records import Batches
    from pykafkad.hot.segment import Appended
    from pykafkad.workers import Submit

WHY = "This broker shows a copied data directory, which was opened read-only."


def refusal() -> KafkaError:
    """A policy forbids it: clients give up at once, and most show the text."""
    return KafkaError(errors.POLICY_VIOLATION, WHY)


class OpenedLog(Log):
    __slots__ = ()

    def append_checked(self, batches: Batches, now_ms: int, *, verified: bool = False) -> Appended:
        raise refusal()

    def delete_records(self, before: int) -> int:
        raise refusal()


class NoMoves(Moves):
    def ask(self, topic: str, index: int, path: str) -> None:
        raise refusal()


class OpenedLogs(LogManager):
    log_class = OpenedLog

    def __init__(self, config: Any, clock: Clock, submit: Submit | None = None, **wiring: Any) -> None:
        super().__init__(config, clock, submit, **wiring)
        self.moves = NoMoves(self)
        self.compaction.stop()

    def checkpoint_log_starts(self) -> None:
        """Nothing moves them."""

    def close(self, clean: bool = True, broker_epoch: int = -1) -> None:
        super().close(clean=False)
