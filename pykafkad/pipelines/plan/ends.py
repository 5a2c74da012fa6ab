"""The ends of a plan: a topic's records read into rows, and rows written as records.

A row that is read has its key's columns first, then the others in the order of their declaration, then the system's
columns. The key of a windowed topic carries its window as Kafka Streams writes it: 8 bytes of start behind the key, or
8 of end and 8 of start for a session.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafkad.pipelines.formats import BadRecord, Format
from pykafkad.pipelines.plan.rows import Columns, Evaluate, Headers, Row, Window, made_of, row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_TIME = 2**63 - 1


class Record(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    time: int
    headers: Headers = ()
    partition: int = 0
    offset: int = 0


record_of = made_of(Record)


@dataclass(frozen=True, slots=True)
class WindowedKey:
    """How a key's window is written; without a size it is a session's."""

    size: int | None

    def split(self, key: bytes) -> tuple[bytes, Window]:
        width = 16 if self.size is None else 8
        if len(key) < width:
            raise BadRecord(f"a windowed key of {len(key)} bytes has no window")
        if self.size is None:
            end, start = struct.unpack(">qq", key[-16:])
        else:
            (start,) = struct.unpack(">q", key[-8:])
            end = min(start + self.size, MAX_TIME)
        return key[:-width], (start, end)

    def join(self, key: bytes, window: Window) -> bytes:
        start, end = window
        return key + (struct.pack(">qq", end, start) if self.size is None else struct.pack(">q", start))


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """`places` says for each column that is no key where it comes from: a place in the value, or a header's name; ""
    is all headers."""

    topic: str
    key: Format
    value: Format
    places: tuple[int | str, ...]
    window: WindowedKey | None = None
    timestamp: Evaluate | None = None
    """The time of a row by its declared columns, where that is not the record's."""
    in_order: bool = field(init=False)
    """Whether the columns are just those of the value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_order", self.places == tuple(range(len(self.value.columns))))

    def row(self, record: Record) -> Row:
        _, data, value, time, headers, partition, offset = record
        window = None
        try:
            if self.window is not None and data is not None:
                data, window = self.window.split(data)
            key = self.key.parse(data)
        except BadRecord as error:
            error.target = "key"
            raise
        values = None if value is None else self.value.parse(value)
        identity = tuple(key) if key else None
        if values is None:
            return row_of((identity, None, time, None, window, headers))
        start = identity or (None,) * len(self.key.columns)
        if self.in_order:
            declared = (*start, *values)
        else:
            declared = start + tuple([self.declared(place, values, record) for place in self.places])
        if self.timestamp is not None:
            time = self.timestamp(declared)
            if time is None or time < 0:
                raise BadRecord("there is no time in the timestamp column")
        columns = (*declared, time, partition, offset)
        if self.window is not None:
            columns += window or (None, None)
        return row_of((identity, columns, time, None, window, headers))

    def declared(self, place: int | str, values: list[Any], record: Record) -> Any:
        if isinstance(place, int):
            return values[place]
        if place == "":
            return [{"KEY": name, "VALUE": value} for name, value in record.headers]
        return next((value for name, value in reversed(record.headers) if name == place), None)


@dataclass(frozen=True, slots=True)
class WriteTopic:
    topic: str
    key: Format
    value: Format
    window: WindowedKey | None = None
    timestamp: Evaluate | None = None

    def record(self, row: Row) -> Record:
        key = self.key_bytes(row.key)
        if self.window is not None and row.window is not None and key is not None:
            key = self.window.join(key, row.window)
        time = row.time
        if self.timestamp is not None and row.columns is not None:
            time = self.timestamp(row.columns)
            if time is None or time < 0:
                raise BadRecord(f"a row for {self.topic} has no time in its timestamp column")
        return record_of((self.topic, key, self.value.serialise(row.columns), time, row.headers, 0, 0))

    def key_bytes(self, key: Columns | None) -> bytes | None:
        if key is None or (len(key) == 1 and key[0] is None):
            return None
        return self.key.serialise(key)


def place(record: Record) -> str:
    """Where a record is, for people."""
    return f"{record.topic}-{record.partition} offset {record.offset}"


Problem = Callable[[Record, BadRecord], None]


def ignore(record: Record, error: BadRecord) -> None:
    """A Problem where nobody asked to be told."""
