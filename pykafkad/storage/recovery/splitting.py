"""A segment whose offsets reach too far: brokers before Kafka 1.1 could make such ones by cleaning.

An index holds offsets as 31 bits from the segment's name, so what lies further away becomes a segment of its own. The
order is that of a cleaning (leftovers.py finishes it after a crash): a complete copy as `.cleaned`, synced, renamed to
`.swap`; the old file cut; `.swap` renamed to its name.
"""

from __future__ import annotations

import os

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import Inspection, Segment
from pykafkad.logs import logger
from pykafkad.storage.files import CLEANED, LOG, SWAP, fsync_path, offset_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.storage.log.log import Log

COPY_BYTES = 1 << 20

log = logger("recovery")


def split_segment(partition: Log, slot: int, position: int, now_ms: int) -> bool:
    """Split the partition's segment at this byte, where the offsets are too far; whether it could be."""
    segment, bases, directory = partition.segments[slot], partition.bases, partition.directory
    next_base = bases[slot + 1] if slot + 1 < len(bases) else None
    first = first_offset(segment.path, position)
    # A crash in the middle of a split left the copy, which is the next segment then.
    if first != next_base and tail_end(segment.path, position, next_base) is None:
        return False
    log.warn(f"{segment.path}: the offsets from {first} on are too far from its name, and become a segment")
    size = segment.size - position
    split(directory, segment.base_offset, position, first)
    segment.truncate(position)
    if first != next_base:
        new = Segment(directory, first, OffsetIndex(directory, first), TimeIndex(directory, first), size)
        new.created_ms = now_ms
        partition.segments.insert(slot + 1, new)
        bases.insert(slot + 1, first)
    return True


def first_offset(path: str, position: int) -> int:
    """Of the batch that begins there."""
    with open(path, "rb", buffering=0) as file:
        file.seek(position)
        return int.from_bytes(file.read(8), "big")


def tail_end(path: str, position: int, next_base: int | None) -> int | None:
    """Where what lies from there on ends, when it is a good log of its own and ends before the next segment. None: a
    single batch whose offset is wrong looks the same, and nothing behind it speaks for it."""
    inspection = Inspection(path, first_offset(path, position), position=position)
    while not inspection.is_over:
        inspection.turn()
    witnesses = inspection.batches - 1 + (next_base is not None and inspection.fault is None)
    if witnesses < 1 or (next_base is not None and inspection.end_offset > next_base):
        return None
    return inspection.end_offset


def split(directory: str, base: int, position: int, first: int) -> None:
    """Make the rest of a segment, which begins with this offset, a segment of its own."""
    source, target = f"{directory}/{offset_name(base, LOG)}", f"{directory}/{offset_name(first, LOG)}"
    if not os.path.exists(target):
        with open(source, "rb") as old, open(target + CLEANED, "wb") as new:
            old.seek(position)
            while data := old.read(COPY_BYTES):
                new.write(data)
        fsync_path(target + CLEANED)
        os.replace(target + CLEANED, target + SWAP)
        fsync_path(directory)
    if not os.path.islink(source):  # else it is somebody else's (overlay.py), and cut in memory alone
        os.truncate(source, position)
        fsync_path(source)
    if os.path.exists(target + SWAP):
        os.replace(target + SWAP, target)
        fsync_path(directory)
