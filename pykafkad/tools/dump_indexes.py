"""`pykafkad dump-log` for the files beside a log: offset, time and transaction indexes, producers' snapshots.

    .index      8 bytes: int32 offset relative to the file's, int32 position
    .timeindex 12 bytes: int64 timestamp, int32 relative offset
    .txnindex, .snapshot: storage/log/transaction_index.py, storage/log/snapshots.py

An index that was not truncated ends in zeros. Each entry is compared with the log of the same name; mismatches are
collected in Faults and printed at the end, on standard error, as Kafka does.
"""

from __future__ import annotations

import os
from struct import Struct

from pykafkad.hot import records
from pykafkad.net.client import ClientError
from pykafkad.tools import output
from pykafkad.tools.dump_batches import INTEGER_MAX, LogFile, header_of, optional_long
from pykafkad.tools.java import hash_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.hot.records import Batch

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
NO_OFFSET = NO_TIMESTAMP = -1

(MISMATCH, WRONG_TIME, UNORDERED_TIME, MISSING_OFFSET, GAP) = range(5)
# kind of mismatch -> the title before those of a file, the line for each
TEXTS = {
    MISMATCH: ("Mismatches in :{}", "  Index offset: {}, log offset: {}"),
    WRONG_TIME: ("Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"),
    UNORDERED_TIME: (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    ),
    MISSING_OFFSET: (
        "The following indexed offsets are not found in :{}",
        "Indexed offset: {}, found log offset: {}",
    ),
    GAP: ("Non-consecutive offsets in {}", "  {} is followed by {}"),
}


class Faults:
    """Mismatches by kind and file; each is a pair of numbers."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, list[tuple[int, int]]]] = {kind: {} for kind in TEXTS}

    def add(self, kind: int, path: str, first: int, second: int) -> None:
        self._found[kind].setdefault(os.path.join(os.getcwd(), path), []).append((first, second))

    def gap(self, path: str, offset: int, following: int) -> None:
        self.add(GAP, path, offset, following)

    def report(self) -> None:
        for kind, (title, row) in TEXTS.items():
            for path in hash_order(self._found[kind]):
                output.error(title.format(path))
                pairs = self._found[kind][path]
                if kind in (MISMATCH, GAP):  # of several with the same first number, the last counts
                    pairs = sorted(dict(pairs).items(), reverse=kind == MISMATCH)
                for first, second in pairs:
                    output.error(row.format(first, second))


def base_offset_of(path: str) -> int:
    stem = os.path.basename(path).partition(".")[0]
    if not stem.isdecimal():
        raise ClientError(f"{path}: these files are called by their first offset, as in {0:020d}.log")
    return int(stem)


def _beside(path: str, suffix: str) -> str:
    stem = os.path.basename(path).partition(".")[0]
    return os.path.join(os.path.dirname(path), stem + suffix)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class _Log:
    """The log an index belongs to."""

    def __init__(self, path: str) -> None:
        self._path = path
        os.stat(path)  # a missing log is reported at once

    def batch_at(self, position: int, max_bytes: int) -> Batch | None:
        for batch, _ in self.batches(position, max_bytes):
            return batch
        return None

    def batches(self, position: int, max_bytes: int = INTEGER_MAX) -> Iterator[tuple[Batch, bytes]]:
        with LogFile(self._path, max_bytes, position) as log:
            for data in log.batches():
                yield header_of(data), data


# -- offset indexes


def offset_index(
    path: str, faults: Faults, only_sanity: bool, only_verify: bool, max_message_bytes: int
) -> None:
    base = base_offset_of(path)
    log = _Log(_beside(path, ".log"))
    data = _read(path)
    entries = offset_entries(data, base)
    if not entries:
        output.line(f"{path} is empty.")
        return
    if only_sanity:
        _check_offset_index(path, data, entries, base)
        output.line(f"{path} passed sanity check.")
        return
    for slot, (offset, position) in enumerate(entries):
        if offset == base and slot > 0:
            return
        batch = log.batch_at(position, max_message_bytes)
        if batch is None:
            raise ClientError(f"{path}: no whole batch of at most {max_message_bytes} bytes at {position}")
        if batch.last_offset != offset:
            faults.add(MISMATCH, path, offset, batch.last_offset)
        if not only_verify:
            output.line(f"offset: {offset} position: {position}")


def offset_entries(data: bytes, base: int) -> list[tuple[int, int]]:
    whole = len(data) // OFFSET_ENTRY.size * OFFSET_ENTRY.size
    return [(base + relative, position) for relative, position in OFFSET_ENTRY.iter_unpack(data[:whole])]


def _check_offset_index(path: str, data: bytes, entries: list[tuple[int, int]], base: int) -> None:
    absolute = os.path.join(os.getcwd(), path)
    if entries[-1][0] < base:
        raise ClientError(
            f"Corrupt index found, index file {absolute} has non-zero size but the last offset is "
            f"{entries[-1][0]} which is less than the base offset {base}"
        )
    if len(data) % OFFSET_ENTRY.size:
        raise ClientError(
            f"Index file {absolute} is corrupt, found {len(data)} bytes which is neither positive nor a "
            f"multiple of {OFFSET_ENTRY.size}"
        )


# -- time indexes


def time_index(path: str, faults: Faults, only_sanity: bool, only_verify: bool) -> None:
    base = base_offset_of(path)
    log = _Log(_beside(path, ".log"))
    positions = offset_entries(_read(_beside(path, ".index")), base)
    data = _read(path)
    whole = len(data) // TIME_ENTRY.size * TIME_ENTRY.size
    entries = [(time, base + relative) for time, relative in TIME_ENTRY.iter_unpack(data[:whole])]
    if only_sanity:
        _check_time_index(path, data, entries, base)
        output.line(f"{path} passed sanity check.")
        return
    earlier = NO_TIMESTAMP
    for slot, (time, offset) in enumerate(entries):
        if offset == base and slot > 0:
            return
        _verify_time(path, faults, log, _position_of(positions, offset), time, offset, earlier)
        if not only_verify:
            output.line(f"timestamp: {time} offset: {offset}")
        earlier = time


def _position_of(positions: list[tuple[int, int]], offset: int) -> int:
    """The position at which the search for an offset begins; the entries may end in zeros."""
    found = 0
    highest = NO_OFFSET
    for known, position in positions:
        if known < highest:
            break
        if known > offset:
            break
        found, highest = position, known
    return found


def _verify_time(
    path: str, faults: Faults, log: _Log, position: int, time: int, offset: int, earlier: int
) -> None:
    for batch, data in log.batches(position):
        if batch.last_offset < offset:
            continue
        if batch.last_offset > offset:
            faults.add(MISSING_OFFSET, path, offset, batch.last_offset)
            return
        newest = max((record.timestamp for record in records.batch_records(data)), default=NO_TIMESTAMP)
        if newest != time:
            faults.add(WRONG_TIME, path, time, newest)
        if earlier >= time:
            faults.add(UNORDERED_TIME, path, time, earlier)
        return
    faults.add(MISSING_OFFSET, path, offset, NO_OFFSET)


def _check_time_index(path: str, data: bytes, entries: list[tuple[int, int]], base: int) -> None:
    absolute = os.path.join(os.getcwd(), path)
    if entries and entries[-1][0] < entries[0][0]:
        raise ClientError(
            f"Corrupt time index found, time index file ({absolute}) has non-zero size but the last timestamp "
            f"is {entries[-1][0]} which is less than the first timestamp {entries[0][0]}"
        )
    if entries and entries[-1][1] < base:
        raise ClientError(
            f"Corrupt time index found, time index file ({absolute}) has non-zero size but the last offset is "
            f"{entries[-1][1]} which is less than the first offset {base}"
        )
    if len(data) % TIME_ENTRY.size:
        raise ClientError(
            f"Time index file {absolute} is corrupt, found {len(data)} bytes which is neither positive nor a "
            f"multiple of {TIME_ENTRY.size}"
        )


# -- producers and transactions


def producer_snapshot(path: str) -> None:
    from pykafkad.storage.log import snapshots

    try:
        entries = snapshots.decode(_read(path))
    except snapshots.SnapshotError as problem:
        output.error(_snapshot_fault(_read(path), problem))
        return
    for entry in entries:
        first_transaction = entry.transaction_start if entry.transaction_start >= 0 else None
        shown = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {optional_long(first_transaction)} lastTimestamp: {entry.last_timestamp}"
        )
        if entry.batches:
            first_sequence, last_sequence, last_offset, delta, timestamp = entry.batches[-1]
            shown += (
                f" firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
                f"offsetDelta: {delta} timestamp: {timestamp}"
            )
        output.line(shown)


def _snapshot_fault(data: bytes, problem: Exception) -> str:
    """Kafka's message for what is wrong with a snapshot."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) >= 2 and version != 1:
        return f"Snapshot contained an unknown file version {version}"
    written, computed = int.from_bytes(data[2:6], "big"), records.crc32c(data[6:])
    if len(data) >= 6 and written != computed:
        return (
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {written}. Computed crc: {computed}"
        )
    return f"Snapshot failed schema validation: {problem}"


def transaction_index(path: str) -> None:
    from pykafkad.storage.log import transaction_index

    base = base_offset_of(path)
    try:
        for producer_id, first, last, stable in transaction_index.read(os.path.dirname(path) or ".", base):
            output.line(
                f"version: {transaction_index.VERSION} producerId: {producer_id} firstOffset: {first} "
                f"lastOffset: {last} lastStableOffset: {stable}"
            )
    except transaction_index.TransactionIndexError as problem:
        raise ClientError(f"{path}: {problem}") from problem
