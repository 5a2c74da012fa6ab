"""Logs for the cleaner's core: batches with any header, whole random logs, and a cleaning of one by the code under
test.

Owns: `Draft`, an encoder of format 2 that shares no code with the one under test; messages of formats 0 and 1; `Maker`,
which writes what producers, transactions and earlier cleanings leave in a compacted log; `clean`.
"""

from __future__ import annotations

import gzip
import itertools
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from pykafkad import compression
from pykafkad.hot.records import crc32c

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 0x08, 0x10, 0x20, 0x40
ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2

HEADER = Struct(">qiibIhiqqqhii")

Headers = Sequence[tuple[str, bytes | None]]
Transaction = tuple[int, int, int, int]


class Row(NamedTuple):
    """One record."""

    delta: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def varint(value: int) -> bytes:
    left = (value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(out) + bytes([left])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encoded(row: Row, base_timestamp: int) -> bytes:
    body = b"\0" + varint(row.timestamp - base_timestamp) + varint(row.delta)
    body += sized(row.key) + sized(row.value) + varint(len(row.headers))
    body += b"".join(sized(name.encode()) + sized(value) for name, value in row.headers)
    return varint(len(body)) + body


def packed(codec: int, payload: bytes) -> bytes:
    if not codec:
        return payload
    compressor = compression.compressor(codec)
    return compressor.compress(payload) + compressor.flush()


class Draft(NamedTuple):
    """A batch of format 2 that was not encoded yet."""

    base_offset: int
    rows: Sequence[Row] = ()
    attributes: int = 0
    last_delta: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    leader_epoch: int = 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + (self.rows[-1].delta if self.last_delta is None else self.last_delta)

    def bytes(self) -> bytes:
        times = [row.timestamp for row in self.rows]
        base_timestamp = self.base_timestamp
        if base_timestamp is None:
            base_timestamp = times[0] if times else -1
        max_timestamp = max(times, default=-1) if self.max_timestamp is None else self.max_timestamp
        payload = b"".join(encoded(row, base_timestamp) for row in self.rows)
        payload = packed(self.attributes & 7, payload) if self.rows else payload
        producer = (self.producer_id, self.epoch, self.sequence, len(self.rows))
        delta = self.last_offset - self.base_offset
        fields = (self.attributes, delta, base_timestamp, max_timestamp, *producer)
        size = HEADER.size - 12 + len(payload)
        data = bytearray(HEADER.pack(self.base_offset, size, self.leader_epoch, 2, 0, *fields) + payload)
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
        return bytes(data)


def marker(base_offset: int, producer_id: int, epoch: int, kind: int, timestamp: int, **more: Any) -> Draft:
    """A control batch; `kind`: ABORT, COMMIT, or another type."""
    row = Row(0, timestamp, b"\0\0" + kind.to_bytes(2, "big"), b"\0\0\0\0\0\0")
    flags = CONTROL | (TRANSACTIONAL if kind < LEADER_CHANGE else 0)
    return Draft(base_offset, [row], flags, producer_id=producer_id, epoch=epoch, **more)


def message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    """One message of format 0 or 1."""
    body = bytes([magic, attributes]) + (timestamp.to_bytes(8, "big", signed=True) if magic else b"")
    for data in (key, value):
        body += b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data
    body = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body


def message_set(magic: int, rows: Sequence[Row], base_offset: int, attributes: int) -> bytes:
    """Messages in one gzip wrapper; `attributes` of the wrapper beside its codec."""
    inner = b"".join(
        message(row.delta if magic else base_offset + row.delta, magic, 0, row.timestamp, row.key, row.value)
        for row in rows
    )
    outer_time = max(row.timestamp for row in rows)
    value = gzip.compress(inner, mtime=0)
    return message(base_offset + rows[-1].delta, magic, attributes | 1, outer_time, None, value)


class Log(NamedTuple):
    """Segments by base offset, the last of them active, and what a cleaning needs to know of them."""

    segments: dict[int, bytes]
    first_unstable: int  # below it every transaction has ended
    aborted: list[Transaction]
    producers: dict[int, tuple[int | None, int]]  # last data offset and epoch
    has_codec: bool


class Producer:
    def __init__(self, identity: int, transactional: bool) -> None:
        self.identity = identity
        self.transactional = transactional
        self.epoch = 0
        self.sequence = 0
        self.open_since: int | None = None


class Maker:
    """Writes a random log, the same one for the same seed."""

    def __init__(
        self,
        seed: int,
        *,
        codecs: Sequence[int] = (0,),
        magics: Sequence[int] = (2,),
        batches: int = 60,
        keys: int = 12,
    ) -> None:
        self.random = random.Random(seed)
        self.codecs = codecs
        self.magics = magics
        self.count = batches
        self.keys = [b"", *(f"key-{number}".encode() for number in range(keys))]
        self.offset = self.random.choice([0, 0, 17, 5_000_000_000])
        self.leader_epoch = 0
        self.clock = NOW_MS - 3 * DAY_MS
        self.producers = [Producer(1000 + number, number % 2 == 1) for number in range(5)]
        self.aborted: list[Transaction] = []
        self.last_records: dict[int, tuple[int | None, int]] = {}
        self.has_codec = False

    def make(self) -> Log:
        segments: dict[int, bytes] = {}
        base, data = self.offset, b""
        for _ in range(self.count):
            if data and self.random.random() < 0.15:
                segments[base] = data
                base, data = self.offset, b""
            data += self._batch()
        segments[base] = data
        self._skip()
        segments.setdefault(self.offset, b"")
        unstable = [each.open_since for each in self.producers if each.open_since is not None]
        stable = min([*unstable, self.offset])
        return Log(segments, stable, self.aborted, self.last_records, self.has_codec)

    def _skip(self) -> None:
        """Skip offsets, as an earlier cleaning that removed batches."""
        if self.random.random() < 0.2:
            self.offset += self.random.randrange(1, 5)

    def _batch(self) -> bytes:
        self._skip()
        self.clock += self.random.randrange(0, 4_000_000)
        if self.random.random() < 0.05:
            self.leader_epoch += 1
        magic = self.random.choice(self.magics)
        if magic < 2:
            return self._legacy(magic)
        kind = self.random.random()
        if kind < 0.35:
            draft = self._data()
        elif kind < 0.95:
            draft = self._of_producer(self.random.choice(self.producers))
        else:
            draft = marker(self.offset, -1, -1, LEADER_CHANGE, self.clock, leader_epoch=self.leader_epoch)
        self.offset = draft.last_offset + 1
        return draft.bytes()

    def _row(self, delta: int) -> Row:
        value = None if self.random.random() < 0.2 else b"v" * int(self.random.expovariate(1 / 60))
        headers: Headers = [("h", b"1"), ("", None)] if self.random.random() < 0.1 else ()
        key = self.random.choice(self.keys) if self.random.random() < 0.95 else None
        return Row(delta, self.clock + self.random.randrange(-5_000, 5_000), key, value, headers)

    def _rows(self) -> list[Row]:
        """Records of one batch, sometimes with gaps between their offsets."""
        count = self.random.choice([1, 1, 2, 3, 5, 8, 40])
        step = self.random.choice([1, 1, 1, 2])
        rows = [self._row(number * step) for number in range(count)]
        if self.random.random() < 0.05:
            rows = [row._replace(timestamp=-1) for row in rows]
        return rows

    def _data(self, flags: int = 0, **fields: Any) -> Draft:
        """A batch as a producer or an earlier cleaning left it."""
        rows = self._rows()
        codec = self.random.choice(self.codecs)
        self.has_codec = self.has_codec or codec > 0
        draft = Draft(self.offset, rows, codec | flags, leader_epoch=self.leader_epoch, **fields)
        if self.random.random() < 0.15:
            draft = draft._replace(last_delta=rows[-1].delta + self.random.randrange(0, 4))
        if self.random.random() < 0.1:
            rows = [row._replace(timestamp=self.clock) for row in rows]
            draft = draft._replace(rows=rows, attributes=draft.attributes | APPEND_TIME)
        if self.random.random() < 0.15:
            horizon = NOW_MS + self.random.choice([-DAY_MS, -1, 0, 1, DAY_MS])
            draft = draft._replace(attributes=draft.attributes | HORIZON, base_timestamp=horizon)
        if self.random.random() < 0.05:
            kept = draft.attributes & (APPEND_TIME | TRANSACTIONAL)
            last = draft.last_offset - draft.base_offset
            draft = draft._replace(rows=(), attributes=kept, last_delta=last)
            draft = draft._replace(base_timestamp=-1, max_timestamp=self.clock)
        return draft

    def _of_producer(self, producer: Producer) -> Draft:
        if producer.transactional and self.random.random() < 0.3:
            return self._end(producer)
        if producer.transactional and producer.open_since is None:
            producer.open_since = self.offset
        identity = {"producer_id": producer.identity, "epoch": producer.epoch, "sequence": producer.sequence}
        draft = self._data(TRANSACTIONAL if producer.transactional else 0, **identity)
        producer.sequence += draft.last_offset - draft.base_offset + 1
        self.last_records[producer.identity] = (draft.last_offset, producer.epoch)
        return draft

    def _end(self, producer: Producer) -> Draft:
        """An end marker; if no transaction is open, one of a transaction whose records were removed."""
        kind = self.random.choice([ABORT, COMMIT])
        if kind == ABORT and producer.open_since is not None:
            others = [each.open_since for each in self.producers if each is not producer]
            stable = min([self.offset + 1, *(each for each in others if each is not None)])
            self.aborted.append((producer.identity, producer.open_since, self.offset, stable))
        producer.open_since = None
        identity = (producer.identity, producer.epoch, kind, self.clock)
        draft = marker(self.offset, *identity, leader_epoch=self.leader_epoch)
        if self.random.random() < 0.3:
            horizon = NOW_MS + self.random.choice([-DAY_MS, 0, DAY_MS])
            draft = draft._replace(attributes=draft.attributes | HORIZON, base_timestamp=horizon)
        elif self.random.random() < 0.1:
            draft = draft._replace(rows=(), last_delta=0, base_timestamp=-1, max_timestamp=self.clock)
        last = self.last_records.get(producer.identity, (None, 0))
        self.last_records[producer.identity] = (last[0], producer.epoch)
        if self.random.random() < 0.2:
            producer.epoch += 1
            producer.sequence = 0
        return draft

    def _legacy(self, magic: int) -> bytes:
        rows = [row._replace(headers=()) for row in self._rows()]
        append_time = APPEND_TIME if magic == 1 and self.random.random() < 0.2 else 0
        base = self.offset
        self.offset += rows[-1].delta + 1
        if self.random.random() < 0.4:
            self.has_codec = True
            return message_set(magic, rows, base, append_time)
        return b"".join(
            message(base + row.delta, magic, append_time, row.timestamp, row.key, row.value) for row in rows
        )


# -- cleaning with the door under test


class Work(NamedTuple):
    """A cleaning, with what its caller has to know of the log."""

    directory: Path
    bases: Sequence[int]  # of all segments, the active one last
    first_dirty: int
    first_uncleanable: int  # a base offset
    groups: Sequence[Sequence[int]] = ()  # (): every segment by itself
    producers: Mapping[int, tuple[int | None, int]] = {}
    aborted: Sequence[Transaction] = ()
    now_ms: int = NOW_MS
    delete_retention_ms: int = DAY_MS
    legacy_horizon_ms: int = 0
    memory_bytes: int = 24 * 10_000
    load_factor: float = 0.9
    buffer_bytes: int = 262_144
    index_interval_bytes: int = 4096


class Cleaned(NamedTuple):
    end_offset: int
    round: Any
    keys: int
    rewriters: list[Any]


def log_path(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}.log"


def write_log(directory: Path, segments: Mapping[int, bytes]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for base, data in segments.items():
        log_path(directory, base).write_bytes(data)


def touching(entries: Iterable[Transaction], start: int, end: int) -> list[Transaction]:
    return [entry for entry in entries if entry[2] >= start and entry[1] < end]


def index(door: Any, work: Work, keys: Any, round: Any) -> None:
    aborted = door.AbortedTransactions()
    aborted.add(touching(work.aborted, work.first_dirty, work.first_uncleanable))
    ends = [*work.bases[1:], 1 << 62]
    for base, end in zip(work.bases, ends, strict=True):
        if end > work.first_dirty and base < work.first_uncleanable:
            path = log_path(work.directory, base)
            most = int(keys.slots * work.load_factor)
            size = path.stat().st_size
            if door.index_keys(str(path), 0, size, work.first_dirty, end, keys, most, aborted, round)[1]:
                return


def clean(door: Any, work: Work) -> Cleaned:
    """Both passes; afterwards the `.cleaned` files are beside the segments."""
    round, keys = door.Round(None, work.buffer_bytes), door.KeyMap(work.memory_bytes)
    index(door, work, keys, round)
    end_offset = keys.latest_offset + 1
    aborted = door.AbortedTransactions()
    rewriters = []
    ends = dict(itertools.pairwise(work.bases))
    for group in work.groups or [[base] for base in work.bases if base < end_offset]:
        rewriter = door.Rewriter(
            str(work.directory),
            group[0],
            keys,
            aborted,
            round,
            last_records_of_producers=work.producers,
            now_ms=work.now_ms,
            delete_retention_ms=work.delete_retention_ms,
            end_of_round=work.first_uncleanable,
            index_interval_bytes=work.index_interval_bytes,
        )
        modified_ms = 0
        for base in group:
            path = log_path(work.directory, base)
            modified_ms = path.stat().st_mtime_ns // 1_000_000
            aborted.add(touching(work.aborted, base, ends[base]))
            rewriter.add(str(path), path.stat().st_size, modified_ms > work.legacy_horizon_ms)
        rewriter.finish(modified_ms)
        rewriters.append(rewriter)
    result = Cleaned(end_offset, round, keys.size, rewriters)
    keys.close()
    return result
