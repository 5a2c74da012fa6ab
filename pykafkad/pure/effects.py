"""What an operation on a coordinator's machine wants done: the only thing that a machine returns.

The coordinator does it in this order: append `records` as one batch, replay them, set the timers, send the replies,
begin the work. Invariant: a reply is sent only when the records that it depends on are written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

Record = tuple[Any, Any]  # key and value of a record of an internal topic; a value of None is a tombstone
TimerKey = tuple[str, ...]  # the name of the timer's owner comes first: a group's id, a transactional id
NO_PRODUCER = (-1, -1)
LARGE_VALUE = 64 * 1024  # bytes of a record's value that a thread decodes: it may have many elements


class UnknownRecord(Exception):
    """A record of a type or version that is not known here; str() names it."""


class Caller:
    """The client that sent a request. `context`, to which the answer is sent, means nothing here. `may_describe` tells
    which topics it may know of; None: all."""

    __slots__ = ("_client_host", "_client_id", "_version", "context", "may_describe")

    def __init__(self, version: int, client_id: str, client_host: str, context: Any = None) -> None:
        self._version = version
        self._client_id = client_id
        self._client_host = client_host
        self.context = context
        self.may_describe: Callable[[str], bool] | None = None

    # These are properties since most operations need none of them: they are looked up when they are asked for.

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


class Work:
    """Work that takes long: `steps` is a generator that yields in between, and `then(result, now_ms)` returns the
    effects of its result.
    """

    __slots__ = ("steps", "then")

    def __init__(self, steps: Generator[None, None, Any], then: Callable[[Any, int], Effects]) -> None:
        self.steps = steps
        self.then = then


class Effects:
    __slots__ = (
        "encoded",
        "is_atomic",
        "on_committed",
        "on_refused",
        "producer",
        "records",
        "replies",
        "timers",
        "work",
    )

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.encoded: list[tuple[bytes, bytes | None]] | None = None  # the same, when there is time for it
        self.replies: list[tuple[Caller, Any]] = []
        self.timers: list[tuple[TimerKey, int | None]] = []  # the delay in ms; None cancels the timer
        self.is_atomic = True  # whether the records must be one batch, or may be several
        self.producer = NO_PRODUCER  # the producer id and epoch, if the records are part of a transaction
        # What to do instead if the records cannot be written; called with the error code.
        self.on_refused: Callable[[int], Effects] | None = None
        # What to do next when the records are below the high watermark; called with the time.
        self.on_committed: Callable[[int], Effects] | None = None
        self.work: Work | None = None

    def write(self, key: Any, value: Any) -> None:
        self.records.append((key, value))

    def reply(self, caller: Caller, response: Any) -> None:
        self.replies.append((caller, response))

    def after(self, delay_ms: int, *key: str) -> None:
        self.timers.append((key, delay_ms))

    def cancel(self, *key: str) -> None:
        self.timers.append((key, None))

    def add(self, other: Effects) -> None:
        """Add what `other` wants, after this. Only one of the two may have `on_refused`, `on_committed` or `work`."""
        assert self.on_refused is None or other.on_refused is None
        assert self.on_committed is None or other.on_committed is None
        assert self.work is None or other.work is None
        assert self.producer == other.producer
        self.records += other.records
        self.encoded = None
        self.replies += other.replies
        self.timers += other.timers
        self.is_atomic = self.is_atomic and other.is_atomic
        self.on_refused = self.on_refused or other.on_refused
        self.on_committed = self.on_committed or other.on_committed
        self.work = self.work or other.work


def answered(caller: Caller, response: Any) -> Effects:
    """Effects with nothing but an answer."""
    effects = Effects()
    effects.replies.append((caller, response))
    return effects
