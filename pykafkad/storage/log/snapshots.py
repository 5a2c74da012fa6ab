"""Producer snapshots: `<offset>.snapshot` holds the producers' state up to, not including, that offset.

     0 int16  version 1
     2 uint32 CRC-32C of everything from byte 6
     6 int32  count
    10 count times 46 bytes:
       int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta,
       int64 timestamp, int32 coordinator epoch, int64 first offset of the ongoing transaction (-1: none)

Only the last batch of each producer is kept, so after a restart an older one of the five remembered ones is
out of order where it was a duplicate before; Kafka does the same.
"""

from __future__ import annotations

from struct import Struct

from pykafkad.hot.records import crc32c
from pykafkad.pure.producer_state import ProducerEntry, ProducerState, first_sequence_of
from pykafkad.storage import files
from pykafkad.storage.files import SNAPSHOT, offset_name, offset_of, read_file, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
_HEAD = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")


class SnapshotError(Exception):
    """Not a whole snapshot."""


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_start,
        )
        for entry in entries
    ]
    data = bytearray(_HEAD.pack(VERSION, 0, len(rows)) + b"".join(rows))
    data[2:6] = crc32c(memoryview(data)[6:]).to_bytes(4, "big")
    return bytes(data)


def decode(data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEAD.size:
        raise SnapshotError(f"{len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"version {version}")
    if crc32c(data[6:]) != crc:
        raise SnapshotError("a checksum that does not match")
    if len(data) < _HEAD.size + count * _ENTRY.size or count < 0:
        raise SnapshotError(f"{count} entries in {len(data)} bytes")
    return [_entry(data, _HEAD.size + slot * _ENTRY.size) for slot in range(count)]


def _entry(data: bytes, position: int) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = _ENTRY.unpack_from(
        data, position
    )
    entry = ProducerEntry(producer_id)
    entry.epoch = epoch
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.transaction_start = start
    if offset >= 0:
        entry.batches.append((first_sequence_of(sequence, delta), sequence, offset, delta, timestamp))
    return entry


def offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among a directory's files, ascending."""
    return sorted(offset for name in names if (offset := offset_of(name, SNAPSHOT)) is not None)


def write(directory: str, producers: ProducerState) -> None:
    """A snapshot at the state's end, unless there is one already. It is made durable with the segment before
    it."""
    if producers.end_offset > producers.snapshot_offset:
        path = f"{directory}/{offset_name(producers.end_offset, SNAPSHOT)}"
        write_file(path, encode(producers))
        producers.snapshot_offset = producers.end_offset


def remove(directory: str, offset: int) -> None:
    files.remove(f"{directory}/{offset_name(offset, SNAPSHOT)}")


def load_newest(
    directory: str,
    known: list[int],
    producers: ProducerState,
    log_start_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> None:
    """Take the newest whole one of the `known` snapshots (damaged ones are deleted, and known no more), or start
    empty."""
    for offset in reversed(known[:]):
        path = f"{directory}/{offset_name(offset, SNAPSHOT)}"
        try:
            entries = decode(read_file(path))
        except (SnapshotError, FileNotFoundError):
            files.remove(path)
            known.remove(offset)
            continue
        producers.load(entries, offset, now_ms, expiration_ms)
        return
    producers.clear(log_start_offset)
