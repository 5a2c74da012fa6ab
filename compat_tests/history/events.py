"""What clients did and saw, as a history: events in the order of one clock.

An event is the beginning of an operation (`invoke`) or its end: `ok`, `fail` (it certainly had no effect) or `unknown`.
An operation without an end is unknown, too. In a file each event is a line of JSON without what is empty.

    send       key, value, producer (plain, idempotent or transactional), txn; `ok` has the offset if the client knows it
    commit     txn: invoked before the client asks for it, so a transaction without one was certainly not committed
    abort      txn
    poll       `ok` alone: records {key: [(offset, value), ...]}, isolation; txn, if it belongs to a transaction
    assign     `ok` alone: positions {key: next offset, or None where the client does not know it}; other keys are let go
    subscribe  `ok` alone: all positions are forgotten, since the group decides
    seek       `ok` alone: positions {key: next offset}; the other keys stay where they are

A key is a partition. A value is sent once in a history. A process is one client from its start to its end: who starts
again, or makes another producer, is another process. Values of a transaction belong to it by its name, txn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Type = Literal["invoke", "ok", "fail", "unknown"]
Op = Literal["send", "commit", "abort", "poll", "assign", "subscribe", "seek"]
Records = dict[str, list[tuple[int, str]]]
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
PLAIN, IDEMPOTENT, TRANSACTIONAL = "plain", "idempotent", "transactional"


@dataclass(frozen=True, slots=True)
class Event:
    process: str
    type: Type
    op: Op
    at_ns: int = 0
    key: str = ""
    value: str = ""
    offset: int | None = None
    producer: str = ""
    txn: str = ""
    isolation: str = ""
    records: Records = field(default_factory=dict)
    positions: dict[str, int | None] = field(default_factory=dict)

    def line(self) -> str:
        given = {name: getattr(self, name) for name in NAMES}
        return json.dumps({name: value for name, value in given.items() if value not in ("", None, {})})


NAMES = [one.name for one in fields(Event)]


def parse(line: str) -> Event:
    given: dict[str, Any] = json.loads(line)
    if records := given.get("records"):
        given["records"] = {key: [(offset, value) for offset, value in read] for key, read in records.items()}
    return Event(**given)


def merged(files: Iterable[Iterable[str]]) -> list[Event]:
    """The events of several files in the order of their time. A process that was killed may leave half a line."""
    return sorted((event for lines in files for event in _whole(lines)), key=lambda event: event.at_ns)


def _whole(lines: Iterable[str]) -> Iterator[Event]:
    for line in lines:
        if line.endswith("\n"):
            yield parse(line)
