"""A slow reference for pykafkad.hot.cleaner: the same functions in plain Python, for batches of format 2.

Written after Kafka's Cleaner and MemoryRecords.filterTo, record by record, without any of the code it is compared with:
no window, no throttle, whole files in memory. Formats 0 and 1 are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from pykafkad import compression
from pykafkad.hot import records
from pykafkad.hot.records import Batch, Record, crc32c

TRANSACTIONAL, CONTROL, HORIZON = 0x10, 0x20, 0x40
CODEC = 0x07
KEEP_EMPTY, DELETE, DELETE_EMPTY = "keep empty", "delete", "delete empty"
HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
OFFSET_ENTRY, TIME_ENTRY, ABORTED_ENTRY = Struct(">ii"), Struct(">qi"), Struct(">hqqqq")

Transaction = tuple[int, int, int, int]


class CleanerError(Exception):
    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: {reason} at position {position}")
        self.path, self.position, self.reason = path, position, reason


class Cancelled(Exception):
    pass


class KeyMap:
    def __init__(self, memory_bytes: int) -> None:
        self.slots = memory_bytes // 24
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    @property
    def size(self) -> int:
        return len(self._offsets)

    @property
    def utilization(self) -> float:
        return self.size / self.slots

    def get(self, key: bytes) -> int:
        return self._offsets.get(key, -1)

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[key] = self.latest_offset = offset

    def clear(self) -> None:
        self._offsets.clear()
        self.latest_offset = -1

    def close(self) -> None:
        self.clear()


class Throttle:
    def __init__(self, bytes_per_second: float = float("inf")) -> None:
        self.bytes_per_second = bytes_per_second


class Round:
    def __init__(self, throttle: Throttle | None = None, buffer_bytes: int = 262144) -> None:
        self.throttle = throttle
        self.buffer_bytes = buffer_bytes
        self.cancelled = False
        self.bytes_read = self.messages_read = self.bytes_written = self.messages_written = 0
        self.invalid_messages = self.batches_emptied = 0
        self.index_bytes_read = self.index_messages_read = 0

    def cancel(self) -> None:
        self.cancelled = True

    def check(self) -> None:
        if self.cancelled:
            raise Cancelled


class AbortedTransactions:
    """While batches are read in order: which producers are in an aborted transaction, which in a committed one."""

    def __init__(self) -> None:
        self.kept: list[Transaction] = []  # whose marker has to stay
        self._coming: list[Transaction] = []
        self._aborted: dict[int, tuple[Transaction, bool]] = {}  # producer -> entry, whether data was seen
        self._committed: set[int] = set()

    def add(self, transactions: Iterable[Transaction]) -> None:
        self._coming = sorted([*self._coming, *transactions], key=lambda each: each[1])

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0][1] <= offset:
            entry = self._coming.pop(0)
            self._aborted.setdefault(entry[0], (entry, False))

    def data(self, batch: Batch) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._reach(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted[batch.producer_id] = (self._aborted[batch.producer_id][0], True)
            return True
        self._committed.add(batch.producer_id)
        return False

    def control(self, batch: Batch, found: list[Record]) -> bool:
        """Whether the marker is no longer needed."""
        self._reach(batch.last_offset)
        if not found:
            return True
        if found[0].control_type == 0:
            entry, seen = self._aborted.pop(batch.producer_id, (None, False))
            if entry is not None and seen:
                self.kept.append(entry)
                return False
            return True
        if found[0].control_type == 1:
            gone = batch.producer_id not in self._committed
            self._committed.discard(batch.producer_id)
            return gone
        return False


class Whole(NamedTuple):
    """A batch with its bytes and records."""

    batch: Batch
    data: bytes
    records: list[Record]


def batches_of(path: str, start: int, end: int) -> Iterable[Whole]:
    content = Path(path).read_bytes()[:end]
    position = start
    while position < end:
        size = int.from_bytes(content[position + 8 : position + 12], "big") + 12
        data = content[position : position + size]
        try:
            (batch,) = records.scan(data)
            found = list(records.read(data)) if batch.count else []
        except (records.RecordsError, ValueError) as error:
            raise CleanerError(path, position, str(error)) from error
        if batch.magic < 2:
            raise NotImplementedError("formats 0 and 1")
        yield Whole(batch, data, found)
        position += size


def index_keys(
    path: str,
    position: int,
    end: int,
    start_offset: int,
    end_offset: int,
    keys: KeyMap,
    max_keys: int,
    aborted: AbortedTransactions,
    round: Round,
) -> tuple[int, bool]:
    round.check()
    for batch, data, found in batches_of(path, position, end):
        round.index_bytes_read += len(data)
        if batch.is_control:
            aborted.control(batch, found)
        elif not aborted.data(batch):
            for record in found:
                if record.key is not None and record.offset >= start_offset:
                    if keys.size >= max_keys:
                        return keys.latest_offset + 1, True
                    keys.put(bytes(record.key), record.offset)
                round.index_messages_read += 1
        if batch.last_offset >= start_offset:
            keys.latest_offset = batch.last_offset
    keys.latest_offset = max(keys.latest_offset, end_offset - 1)
    return keys.latest_offset + 1, False


class Rewriter:
    def __init__(
        self,
        directory: str,
        base_offset: int,
        keys: KeyMap,
        aborted: AbortedTransactions,
        round: Round,
        *,
        last_records_of_producers: Mapping[int, tuple[int | None, int]],
        now_ms: int,
        delete_retention_ms: int,
        end_of_round: int,
        index_interval_bytes: int = 4096,
        suffix: str = ".cleaned",
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.batches = 0
        self.max_timestamp, self.max_timestamp_offset = -1, base_offset
        self.first_timestamp = -1
        self._stem = f"{directory}/{base_offset:020d}"
        self._suffix = suffix
        self._keys, self._aborted, self._round = keys, aborted, round
        self._producers = last_records_of_producers
        self._now_ms, self._delete_retention_ms = now_ms, delete_retention_ms
        self._end_of_round = end_of_round
        self._interval = index_interval_bytes
        self._out = bytearray()
        self._index: list[bytes] = []
        self._times: list[tuple[int, int]] = []
        self._unindexed = 0
        aborted.kept = []
        self._write()

    @property
    def size(self) -> int:
        return len(self._out)

    @property
    def aborted_transactions(self) -> list[Transaction]:
        return self._aborted.kept

    @property
    def paths(self) -> list[str]:
        kinds = ["log", "index", "timeindex", *(["txnindex"] if self._aborted.kept else [])]
        return [f"{self._stem}.{kind}{self._suffix}" for kind in kinds]

    def add(self, path: str, size: int, keep_legacy_deletes: bool) -> None:
        self._round.check()
        for batch, data, found in batches_of(path, 0, size):
            self._round.bytes_read += len(data)
            kept = self._filtered(batch, data, found)
            if kept:
                self._append(kept)

    def _filtered(self, batch: Batch, data: bytes, found: list[Record]) -> bytes | None:
        retention, discard, bare_marker = self._fate(batch, found)
        if retention == DELETE:
            return None
        self._round.messages_read += len(found)
        kept = [record for record in found if not discard and self._stays(batch, record)]
        horizon = batch.delete_horizon_ms
        if kept:
            self._round.messages_written += len(kept)
            tombstones = any(record.value is None for record in kept)
            set_horizon = (tombstones or bare_marker) and horizon is None
            if len(kept) == len(found) and not set_horizon:
                return data
            if set_horizon:
                horizon = self._now_ms + self._delete_retention_ms
            return rebuilt(batch, data, kept, horizon)
        if retention == KEEP_EMPTY:
            self._round.batches_emptied += 1
            return emptied(batch, data)
        return None

    def _fate(self, batch: Batch, found: list[Record]) -> tuple[str, bool, bool]:
        """What becomes of the batch: whether its records are removed, and whether it is a marker that is no longer
        needed."""
        if batch.is_control:
            can_go = self._aborted.control(batch, found)
            horizon = batch.delete_horizon_ms
            discard = can_go and horizon is not None and horizon <= self._now_ms
        else:
            discard = can_go = self._aborted.data(batch)
        if self._is_last_of_producer(batch) or batch.last_offset + 1 == self._end_of_round:
            retention = KEEP_EMPTY
        else:
            retention = DELETE if discard else DELETE_EMPTY
        return retention, discard, can_go and batch.is_control

    def _is_last_of_producer(self, batch: Batch) -> bool:
        if batch.producer_id < 0 or batch.producer_id not in self._producers:
            return False
        offset, epoch = self._producers[batch.producer_id]
        if offset is not None:
            return batch.last_offset == offset
        return batch.is_control and batch.producer_epoch == epoch

    def _stays(self, batch: Batch, record: Record) -> bool:
        if batch.is_control or record.offset > self._keys.latest_offset:
            return True
        if record.key is None:
            self._round.invalid_messages += 1
            return False
        horizon = batch.delete_horizon_ms
        wanted = record.value is not None or horizon is None or self._now_ms < horizon
        return wanted and record.offset >= self._keys.get(bytes(record.key))

    def _append(self, data: bytes) -> None:
        (batch,) = records.scan(data)
        position = len(self._out)
        if self.batches == 0:
            self.first_timestamp = batch.max_timestamp
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = batch.max_timestamp, batch.last_offset
        if self._unindexed > self._interval:
            self._index.append(OFFSET_ENTRY.pack(batch.last_offset - self.base_offset, position))
            self._note_time()
            self._unindexed = 0
        self._unindexed += len(data)
        self._out += data
        self.batches += 1
        self.end_offset = batch.last_offset + 1
        self._round.bytes_written += len(data)

    def _note_time(self) -> None:
        if self.max_timestamp > (self._times[-1][0] if self._times else -1):
            self._times.append((self.max_timestamp, self.max_timestamp_offset - self.base_offset))

    def finish(self, modified_ms: int) -> None:
        self._note_time()
        self._write()
        for path in self.paths:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def _write(self) -> None:
        contents = [
            bytes(self._out),
            b"".join(self._index),
            b"".join(TIME_ENTRY.pack(*entry) for entry in self._times),
            b"".join(ABORTED_ENTRY.pack(0, *entry) for entry in self._aborted.kept),
        ]
        for path, content in zip(self.paths, contents, strict=False):
            Path(path).write_bytes(content)

    def discard(self) -> None:
        for kind in ("log", "index", "timeindex", "txnindex"):
            Path(f"{self._stem}.{kind}{self._suffix}").unlink(missing_ok=True)


# -- batches


def rebuilt(batch: Batch, data: bytes, kept: list[Record], horizon: int | None) -> bytes:
    """The batch with these records only: its identity stays, and the fields about its records follow them."""
    base_timestamp = kept[0].timestamp if horizon is None else horizon
    payload = b"".join(encoded(record, batch.base_offset, base_timestamp) for record in kept)
    max_timestamp = max(record.timestamp for record in kept)
    attributes = batch.attributes & ~HORIZON | (0 if horizon is None else HORIZON)
    codec = attributes & CODEC
    if codec:
        compressor = compression.compressor(codec)
        payload = compressor.compress(payload) + compressor.flush()
    return framed(batch, attributes, base_timestamp, max_timestamp, len(kept), payload)


def emptied(batch: Batch, data: bytes) -> bytes:
    attributes = batch.attributes & ~(HORIZON | CODEC)
    return framed(batch, attributes, -1, batch.max_timestamp, 0, b"")


def framed(
    batch: Batch, attributes: int, base_timestamp: int, max_timestamp: int, count: int, payload: bytes
) -> bytes:
    fields = (
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    size = HEADER_BYTES - 12 + len(payload)
    data = bytearray(HEADER.pack(batch.base_offset, size, batch.leader_epoch, 2, 0, *fields) + payload)
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    return bytes(data)


def encoded(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    body = bytearray(b"\0")
    body += varint(record.timestamp - base_timestamp)
    body += varint(record.offset - base_offset)
    body += nullable(record.key) + nullable(record.value)
    body += varint(len(record.headers))
    for name, value in record.headers:
        body += nullable(name.encode()) + nullable(value)
    return varint(len(body)) + bytes(body)


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + bytes(data)


def varint(value: int) -> bytes:
    left = (value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
