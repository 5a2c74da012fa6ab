"""What a walk over a segment's bytes finds, slowly and plainly: the oracle of ext/c/segment_check.c."""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from pykafkad.hot.records import crc32c

# base offset, length, leader epoch (or CRC-32), magic, crc, attributes, last offset delta, timestamps
HEAD = Struct(">qiiB")
V2 = Struct(">qiibIhiqqqhii")
LEAST = {0: 26, 1: 34, 2: 61}
TORN, IMPOSSIBLE, SUM, ORDER, FAR, EPOCH = (
    "ends inside",
    "no batch can have",
    "checksum",
    " after ",
    "too far",
    "epoch",
)


class Found(NamedTuple):
    position: int  # where the good part ends
    end_offset: int
    why: str | None  # a word of it
    batches: int
    max_timestamp: int


def walk(data: bytes, base_offset: int) -> Found:
    position, end_offset, epoch, batches, newest = 0, base_offset, -1, 0, -1
    while position < len(data):
        why, size, last_offset, batch_epoch, timestamp = look(data[position:], base_offset, end_offset, epoch)
        if why is not None:
            return Found(position, end_offset, why, batches, newest)
        position += size
        end_offset = last_offset + 1
        epoch = max(epoch, batch_epoch)
        newest = max(newest, timestamp)
        batches += 1
    return Found(position, end_offset, None, batches, newest)


def look(
    data: bytes, base_offset: int, least_offset: int, epoch_before: int
) -> tuple[str | None, int, int, int, int]:
    """Of the first batch: why it is bad, its size, last offset, leader epoch and largest timestamp."""
    if len(data) < HEAD.size:
        return TORN, 0, 0, -1, -1
    offset, length, _, magic = HEAD.unpack_from(data)
    size = length + 12
    if magic not in LEAST or offset < 0 or size < LEAST[magic]:
        return IMPOSSIBLE, 0, 0, -1, -1
    if size > len(data):
        return TORN, 0, 0, -1, -1
    if magic == 2:
        _, _, epoch, _, crc, _, delta, _, timestamp, *_ = V2.unpack_from(data)
        if delta < 0 or offset + delta > (1 << 63) - 1:
            return IMPOSSIBLE, 0, 0, -1, -1
        last_offset, is_right = offset + delta, crc32c(data[21:size]) == crc
    else:
        epoch, last_offset = -1, offset
        timestamp = int.from_bytes(data[18:26], "big", signed=True) if magic == 1 else -1
        is_right = zlib.crc32(data[16:size]) == int.from_bytes(data[12:16], "big")
    why = None
    if not is_right:
        why = SUM
    elif offset < least_offset:
        why = ORDER
    elif last_offset - base_offset > 0x7FFFFFFF:
        why = FAR
    elif 0 <= epoch < epoch_before:
        why = EPOCH
    return why, size, last_offset, epoch, timestamp
