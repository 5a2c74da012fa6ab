"""What the runtime needs from a machine: a Protocol for readers and type checkers, which no running code imports."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.pure.effects import Effects, TimerKey


class Machine(Protocol):
    """The state of one partition of an internal topic.

    Operations return Effects, or raise KafkaError, which leaves the state as it was. State that must survive a restart
    changes only in replay() and end_transaction().
    """

    def encode(self, key: Any, value: Any) -> tuple[bytes, bytes | None]:
        """The record as it is in the log. Raises WireError if one of its strings is too long."""

    def decode(self, key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
        """The inverse. Raises UnknownRecord or WireError for records that are to be ignored. A thread calls it for
        values of LARGE_VALUE bytes and more."""

    def replay(self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int) -> None:
        """Apply a record that was just appended or is being loaded. The producer id is -1 outside of transactions."""

    def load(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> Iterator[Any] | None:
        """The same for a record that is being loaded. If it may take long, the work that does it."""

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply a transaction marker: the records that were replayed for this producer are committed or aborted."""

    def replayed(self) -> Iterable[str]:
        """The whole log was replayed. Returns the names of what is there; on_loaded is called for each of them."""

    def on_loaded(self, name: str, now_ms: int) -> Iterable[Effects]:
        """May set timers and begin work, but not write records, since the shard is not active yet. In several pieces,
        each of which is done before the next is asked for."""

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects: ...

    def on_unloaded(self) -> Effects:
        """The broker is no longer the coordinator. Returns the replies for requests that are waiting."""
