"""A history, indexed: what became of each value and each transaction, and which offsets are known.

Made once, in one pass over the events; the rules (rules.py, polls.py, cycles.py) only read it. The number of an event is
its place in the history, so that "before" is "a smaller number".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from compat_tests.history.events import COMMITTED, PLAIN, UNCOMMITTED, Event

Outcome = Literal["ok", "fail", "unknown"]
LEVELS = (COMMITTED, UNCOMMITTED)


@dataclass(slots=True)
class Transaction:
    name: str
    sends: list[Send] = field(default_factory=list)
    commit: int | None = None  # the number of the event that asks for it
    outcome: Outcome = "fail"  # until someone asks to commit it, nobody can have done it


@dataclass(slots=True)
class Send:
    key: str
    value: str
    process: str
    producer: str
    invoked: int
    transaction: Transaction | None
    acked: Outcome = "unknown"
    offset: int | None = None  # as acknowledged
    offsets: set[int] = field(default_factory=set)  # where it was acknowledged or read
    floor: int = -1  # the highest offset of its partition that had been acknowledged when it was sent

    @property
    def outcome(self) -> Outcome:
        return self.acked if self.transaction is None else self.transaction.outcome

    @property
    def exactly_once(self) -> bool:
        return self.producer != PLAIN

    @property
    def place(self) -> int | None:
        """Its offset: as acknowledged, else where it was first read."""
        return self.offset if self.offset is not None else min(self.offsets, default=None)


class Read(NamedTuple):
    """One record as one poll returned it."""

    number: int  # of the poll
    poll: Event
    key: str
    offset: int
    value: str


class Story:
    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.sends: dict[str, Send] = {}
        self.transactions: dict[str, Transaction] = {}
        self.reads: list[Read] = []
        self.values_at: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self.seen: dict[str, set[str]] = {}  # by level: only those at which someone polled
        self.highest_read: dict[tuple[str, str], int] = {}  # by level and key
        self._highest_acked: dict[str, int] = {}
        for number, event in enumerate(events):
            self._learn(number, event)
        for read in self.reads:
            self._place(read.key, read.offset, read.value)
        self._what_was_read_is_committed()
        self._visible = {level: self._offsets_visible(level) for level in LEVELS}

    def committed(self) -> Iterator[Send]:
        """What every consumer must see sooner or later."""
        return (send for send in self.sends.values() if send.outcome == "ok")

    def visible_between(self, level: str, key: str, start: int, end: int) -> int | None:
        """The first offset from start on, below end, whose value no consumer of this level may pass over."""
        offsets = self._visible[level].get(key, [])
        at = bisect_left(offsets, start)
        return offsets[at] if at < len(offsets) and offsets[at] < end else None

    # -- learning

    def _learn(self, number: int, event: Event) -> None:
        match event.op, event.type:
            case "send", "invoke":
                self._invoke(number, event)
            case "send", _:
                self._end_send(event)
            case (("commit" | "abort"), _):
                self._end_transaction(number, event)
            case "poll", "ok":
                self._poll(number, event)
            case (("assign" | "subscribe" | "seek"), "ok"):
                pass  # polls.py
            case _:
                raise ValueError(f"event {number}: {event.op} {event.type} is not in a history")

    def _invoke(self, number: int, event: Event) -> None:
        if event.value in self.sends:
            raise ValueError(f"event {number}: {event.value} is sent twice; values must be unique")
        transaction = self._transaction(event.txn) if event.txn else None
        send = Send(event.key, event.value, event.process, event.producer, number, transaction)
        send.floor = self._highest_acked.get(event.key, -1)
        self.sends[event.value] = send
        if transaction is not None:
            transaction.sends.append(send)

    def _transaction(self, name: str) -> Transaction:
        if name not in self.transactions:
            self.transactions[name] = Transaction(name)
        return self.transactions[name]

    def _end_send(self, event: Event) -> None:
        send = self.sends[event.value]
        send.acked = "ok" if event.type == "ok" else "fail" if event.type == "fail" else "unknown"
        if event.type == "ok" and event.offset is not None:
            send.offset = event.offset
            self._place(send.key, event.offset, send.value)
            highest = self._highest_acked.get(send.key, -1)
            self._highest_acked[send.key] = max(highest, event.offset)

    def _end_transaction(self, number: int, event: Event) -> None:
        transaction = self._transaction(event.txn)
        if event.op == "commit":
            if event.type == "invoke":
                transaction.commit = number if transaction.commit is None else transaction.commit
                transaction.outcome = "unknown"
            elif event.type != "unknown":
                transaction.outcome = event.type

    def _poll(self, number: int, event: Event) -> None:
        seen = self.seen.setdefault(event.isolation, set())
        for key, records in event.records.items():
            for offset, value in records:
                self.reads.append(Read(number, event, key, offset, value))
                seen.add(value)
                level = (event.isolation, key)
                self.highest_read[level] = max(self.highest_read.get(level, -1), offset)

    def _place(self, key: str, offset: int, value: str) -> None:
        self.values_at[key, offset].add(value)
        send = self.sends.get(value)
        if send is not None and send.key == key:
            send.offsets.add(offset)

    def _what_was_read_is_committed(self) -> None:
        """Of a transaction or a send with an unknown end we know it once someone has read it; all of it, then."""
        for value in self.seen.get(COMMITTED, ()):
            send = self.sends.get(value)
            if send is not None and send.transaction is not None and send.transaction.outcome == "unknown":
                send.transaction.outcome = "ok"
        for values in self.seen.values():
            for value in values:
                send = self.sends.get(value)
                if send is not None and send.transaction is None and send.acked == "unknown":
                    send.acked = "ok"

    def _offsets_visible(self, level: str) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for send in self.sends.values():
            if send.outcome == "ok" or level == UNCOMMITTED:
                found[send.key] += send.offsets
        return {key: sorted(offsets) for key, offsets in found.items()}
