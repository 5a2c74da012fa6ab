"""What was sent, what was acknowledged, and whether a log that was read back agrees.

A ledger outlives its broker: it learns of each request before it is sent, and of each answer. A request without an
answer is uncertain: its records may be in the log, once, or not. `Log.settle` compares a log that was read back and
takes what it found as certain from then on. A `Fault` is what the broker must not have done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from tests.torture.transactional import Producer

KEYS = 12

After = Literal["a stop", "a kill", "a power cut"]


class Fault(Exception):
    """The broker broke a promise; str() says which."""


class Entry(NamedTuple):
    """A record as it was sent; its number is never used again."""

    key: bytes | None
    number: int
    has_value: bool

    @property
    def value(self) -> bytes | None:
        return payload(self.number) if self.has_value else None


def payload(number: int) -> bytes:
    """The bytes of a value follow from its number, so a wrong byte is noticed."""
    head = b"%d:" % number
    return head + (head * 40)[: number * 7919 % 160]


@dataclass
class Sent:
    """One batch."""

    entries: list[Entry]
    sequence: int = -1


@dataclass
class Read:
    """A log as a consumer reads it."""

    start: int
    end: int
    entries: dict[int, Entry]
    size: int


@dataclass
class Log:
    """One topic of one partition."""

    name: str
    config: dict[str, object] = field(default_factory=dict)
    compacted: bool = False
    retention_bytes: int = -1
    idempotent: bool = False
    state: str = "absent"  # or creating, there, deleting, deleted
    entries: dict[int, Entry] = field(default_factory=dict)
    unsure: list[Sent] = field(default_factory=list)
    end: int = 0  # acknowledged
    floor: int = 0  # a DeleteRecords up to here was acknowledged
    asked_floor: int = 0
    producer_id: int = -1
    sequence: int = 0
    last_stored: Sent | None = None
    broken: bool = False  # an answer was an error, so the next sequence is known only after the next reading

    def acknowledged(self, sent: Sent, base_offset: int) -> None:
        self.unsure.remove(sent)
        for delta, entry in enumerate(sent.entries):
            known = self.entries.get(base_offset + delta)
            if known is not None:
                raise Fault(f"{self.name}: offset {base_offset + delta} was given to {known} and to {entry}")
            self.entries[base_offset + delta] = entry
        self.end = max(self.end, base_offset + len(sent.entries))
        self.last_stored = sent

    # -- after a restart

    def settle(self, read: Read, after: After) -> None:
        """Raises a Fault for anything that must not be; afterwards the log is what was read."""
        if read.end < self.end and after != "a power cut":
            raise Fault(f"{self.name} ends at {read.end}, acknowledged was {self.end}")
        self._check_start(read, after)
        self._check_entries(read)
        if not self.compacted:
            self._check_whole(read)
        elif after != "a power cut":  # then a part in the middle may be missing, which cannot be checked
            self._check_newest(read)
        self._adopt(read)

    def _check_start(self, read: Read, after: After) -> None:
        # As in Kafka, a log start that DeleteRecords raised reaches the disk some time after the answer.
        if read.start < self.floor and after == "a stop":
            raise Fault(f"{self.name} starts at {read.start}: everything below {self.floor} was deleted")
        wanted = max(self.floor, self.asked_floor)
        if read.start <= wanted or after == "a power cut":
            return
        if self.retention_bytes < 0:
            raise Fault(f"{self.name} starts at {read.start}, and nobody deleted more than below {wanted}")
        if read.size < self.retention_bytes and not self.compacted:
            raise Fault(
                f"{self.name} keeps {read.size} bytes from {read.start} on, retention is {self.retention_bytes}"
            )

    def _check_entries(self, read: Read) -> None:
        unsure = {entry.number: entry for sent in self.unsure for entry in sent.entries}
        last = -1
        for offset, entry in read.entries.items():
            known = self.entries.get(offset)
            if known is not None and known != entry:
                raise Fault(f"{self.name}: offset {offset} is {entry}, acknowledged was {known}")
            if known is None and unsure.get(entry.number) != entry:
                raise Fault(f"{self.name}: {entry} at offset {offset} was never sent there")
            if entry.number <= last:
                raise Fault(f"{self.name}: {entry} at offset {offset} comes after {last}")
            last = entry.number

    def _check_whole(self, read: Read) -> None:
        for offset in range(read.start, read.end):
            if offset not in read.entries:
                raise Fault(f"{self.name}: nothing at offset {offset} of {read.start}..{read.end}")

    def _check_newest(self, read: Read) -> None:
        """The newest record of each key is there, or it is a tombstone and no earlier record of the key is there."""
        newest = newest_of(offset_entries(self.entries, read.start, read.end))
        found = newest_of(read.entries)
        erased = {entry.key for sent in self.unsure for entry in sent.entries if not entry.has_value}
        for key, (offset, entry) in newest.items():
            at = found.get(key)
            if at is not None and at[0] >= offset:
                continue
            if at is not None:
                raise Fault(f"{self.name}: {key!r} is at {at[0]} as if {entry} at {offset} had never been")
            if entry.has_value and key not in erased:
                raise Fault(f"{self.name}: {entry} at {offset} is gone, and is the newest of {key!r}")

    def _adopt(self, read: Read) -> None:
        stored = {entry.number for entry in read.entries.values()}
        again = [sent for sent in self.unsure if sent.entries[0].number not in stored]
        written = [sent for sent in self.unsure if sent.entries[0].number in stored]
        if written:
            self.last_stored = written[-1]
        if self.idempotent:
            self._check_batches(read, written)
        self.unsure = again if self.idempotent else []
        self.entries = dict(read.entries)
        self.end, self.broken = read.end, False
        self.floor = self.asked_floor = read.start

    def _check_batches(self, read: Read, written: list[Sent]) -> None:
        stored = {entry.number for entry in read.entries.values()}
        for sent in written:
            if not all(entry.number in stored for entry in sent.entries):
                raise Fault(f"{self.name}: half of the batch {sent} is there")


def offset_entries(entries: dict[int, Entry], start: int, end: int) -> dict[int, Entry]:
    return {offset: entry for offset, entry in entries.items() if start <= offset < end}


def newest_of(entries: dict[int, Entry]) -> dict[bytes | None, tuple[int, Entry]]:
    found: dict[bytes | None, tuple[int, Entry]] = {}
    for offset, entry in sorted(entries.items()):
        found[entry.key] = offset, entry
    return found


@dataclass
class Group:
    """What one group has committed; -1: nothing."""

    acknowledged: int = -1
    sent: int = -1


@dataclass
class Ledger:
    logs: dict[str, Log] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)  # of transactions
    number: int = 0
    acknowledgements: int = 0
    offsets_are_small: bool = False

    def next_number(self) -> int:
        self.number += 1
        return self.number
