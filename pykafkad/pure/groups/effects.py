"""What an operation on a group wants done: the only thing a group machine returns.

The coordinator does it in this order: append `records` as one batch, replay them, set the timers, answer the
replies. Invariant: a reply leaves only when the records it promises are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = tuple[Any, Any]  # key and value messages of `__consumer_offsets`; a value of None deletes the key
# Asked for each partition (topic, its id, index) of a commit that holds for some only; raises KafkaError.
CheckPartition = Callable[[str, bytes, int], None]
TimerKey = tuple[str, ...]  # the group's id first, so that whatever belongs to a group can be found


class Caller:
    """Who asked, and what the answer goes to. `context` is the coordinator's and means nothing here."""

    __slots__ = ("_client_host", "_client_id", "_version", "context")

    def __init__(self, version: int, client_id: str, client_host: str, context: Any = None) -> None:
        self._version = version
        self._client_id = client_id
        self._client_host = client_host
        self.context = context

    # Properties, since most operations need none of them: the coordinator's callers look them up when asked.

    @property
    def version(self) -> int:
        return self._version

    @property
    def client_id(self) -> str:
        return self._client_id

    @property
    def client_host(self) -> str:
        """The address as Kafka shows it: "/127.0.0.1"."""
        return self._client_host


class Effects:
    __slots__ = ("is_atomic", "on_refused", "records", "replies", "timers")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.replies: list[tuple[Caller, Any]] = []
        self.timers: list[tuple[TimerKey, int | None]] = []  # delay_ms; None: no longer wanted
        self.is_atomic = True  # the records are one batch, or else as many as they need
        # What to do instead when the log does not take the records; given the error code to answer.
        self.on_refused: Callable[[int], Effects] | None = None

    def write(self, key: Any, value: Any) -> None:
        self.records.append((key, value))

    def reply(self, caller: Caller, response: Any) -> None:
        self.replies.append((caller, response))

    def after(self, delay_ms: int, *key: str) -> None:
        self.timers.append((key, delay_ms))

    def cancel(self, *key: str) -> None:
        self.timers.append((key, None))

    def add(self, other: Effects) -> None:
        """Do what `other` wants too, after this. Only one of the two may mind a refusal."""
        assert self.on_refused is None or other.on_refused is None
        self.records += other.records
        self.replies += other.replies
        self.timers += other.timers
        self.is_atomic = self.is_atomic and other.is_atomic
        self.on_refused = self.on_refused or other.on_refused


def answered(caller: Caller, response: Any) -> Effects:
    """Nothing but an answer."""
    effects = Effects()
    effects.replies.append((caller, response))
    return effects
