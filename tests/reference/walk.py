"""The result of a walk over a segment's bytes, computed slowly and plainly: the reference for ext/c/segment_check.c."""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from pykafkad.hot.records import crc32c
from pykafkad.hot.segment import Verdict

# base offset, length, leader epoch (or CRC-32), magic, crc, attributes, last offset delta, timestamps
HEAD = Struct(">qiiB")
V2 = Struct(">qiibIhiqqqhii")
LARGEST = (1 << 63) - 1 - (1 << 32)  # the largest offset of a log: adding one to it still fits
LEAST = {0: 26, 1: 34, 2: 61}


class Found(NamedTuple):
    position: int  # where the good part ends
    end_offset: int
    verdict: Verdict | None
    batches: int
    max_timestamp: int


def walk(data: bytes, base_offset: int) -> Found:
    position, end_offset, epoch, batches, newest = 0, base_offset, -1, 0, -1
    while position < len(data):
        verdict, size, last_offset, batch_epoch, timestamp = look(
            data[position:], base_offset, end_offset, epoch
        )
        if verdict is not None:
            return Found(position, end_offset, verdict, batches, newest)
        position += size
        end_offset = last_offset + 1
        epoch = max(epoch, batch_epoch)
        newest = max(newest, timestamp)
        batches += 1
    return Found(position, end_offset, None, batches, newest)


def look(
    data: bytes, base_offset: int, least_offset: int, epoch_before: int
) -> tuple[Verdict | None, int, int, int, int]:
    """Of the first batch: what is wrong with it, its size, last offset, leader epoch and largest timestamp."""
    if len(data) < HEAD.size:
        return Verdict.TORN, 0, 0, -1, -1
    offset, length, _, magic = HEAD.unpack_from(data)
    size = length + 12
    if magic not in LEAST or not 0 <= offset <= LARGEST or size < LEAST[magic]:
        return Verdict.IMPOSSIBLE, 0, 0, -1, -1
    if size > len(data):
        return Verdict.TORN, 0, 0, -1, -1
    if magic == 2:
        _, _, epoch, _, crc, _, delta, _, timestamp, *_ = V2.unpack_from(data)
        if delta < 0 or offset + delta > LARGEST:
            return Verdict.IMPOSSIBLE, 0, 0, -1, -1
        last_offset, is_right = offset + delta, crc32c(data[21:size]) == crc
    else:
        epoch, last_offset = -1, offset
        timestamp = int.from_bytes(data[18:26], "big", signed=True) if magic == 1 else -1
        is_right = zlib.crc32(data[16:size]) == int.from_bytes(data[12:16], "big")
    verdict = None
    if not is_right:
        verdict = Verdict.CHECKSUM
    elif offset < least_offset:
        verdict = Verdict.ORDER
    elif last_offset - base_offset > 0x7FFFFFFF:
        verdict = Verdict.TOO_FAR
    elif 0 <= epoch < epoch_before:
        verdict = Verdict.EPOCH
    return verdict, size, last_offset, epoch, timestamp
