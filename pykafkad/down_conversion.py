"""Batches as messages of formats 0 and 1, for consumers of before Kafka 0.11 (Fetch to version 3).

What those formats cannot say is left out: headers, control batches. An answer is as large as Kafka would have said before
it converted: as the bytes of the log, or as the first batch that something is left of, if that has become larger. What
does not fit is cut, what is missing is filled with a message that is too long for it: consumers take neither for one.

All of it in steps. Whatever a batch expands to, it is not in memory as a whole, only its largest record. KIP-283.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from pykafkad import errors, legacy_records
from pykafkad.compression import LZ4, NONE, ZSTD, compressor, hashed
from pykafkad.errors import KafkaError
from pykafkad.hot import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.compression import Compressor
    from pykafkad.hot.records import Record
    from pykafkad.slices import Work

OLDEST, OLD, NOW = 0, 1, 2  # formats
LOG_OVERHEAD = 12
LEAST_LENGTH = 61  # of a message that is announced and not sent, as in Kafka
GROUP_BYTES = (
    128 * 1024
)  # that Kafka converts at once: a batch that cannot be converted takes those before it with it
STEP_BYTES = 65_536
FEW = 8  # records
CODEC_MASK, APPEND_TIME_FLAG, CONTROL_FLAG = 0x07, 0x08, 0x20
LZ4_CHECKSUM_AT = 6


class Header(NamedTuple):
    """What matters here of a batch's."""

    magic: int
    attributes: int
    max_timestamp: int

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        return bool(self.attributes & APPEND_TIME_FLAG) and self.magic > OLDEST

    @property
    def is_control(self) -> bool:
        return self.magic == NOW and bool(self.attributes & CONTROL_FLAG)


def converted(data: bytes, magic: int, first_offset: int) -> Work[bytes]:
    """`data`: batches from a log, of which the last may be cut. Of batches without codec nothing below `first_offset`.
    KafkaError: the first one cannot be converted."""
    out = bytearray()
    size, found = 0, False
    group_at = group_bytes = 0
    for batch in whole_batches(data):
        found = True
        header = header_of(batch)
        if header.codec == ZSTD and not header.is_control:
            if not size:
                raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
            del out[group_at:]
            break
        if size and group_bytes and group_bytes + len(batch) > GROUP_BYTES:
            group_at, group_bytes = len(out), 0
        part = yield from of_batch(batch, header, magic, first_offset)
        out += part
        if size:
            group_bytes += len(batch)
        elif part:
            size, group_at = max(len(data), len(part)), len(part)
        if size and len(out) >= size:
            break
    if found and not size:
        size = LOG_OVERHEAD
    while len(out) < size:
        out += missing(size - len(out))
    return bytes(out[:size])


def missing(left: int) -> bytes:
    head = (-1).to_bytes(8, "big", signed=True) + max(left + 1, LEAST_LENGTH).to_bytes(4, "big")
    return (head + bytes(max(0, min(left + 1, GROUP_BYTES) - LOG_OVERHEAD)))[:left]


def whole_batches(data: bytes) -> Iterator[bytes]:
    position = 0
    while len(data) - position > legacy_records.LEAST_SIZE:
        size = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if size < LOG_OVERHEAD + legacy_records.LEAST_SIZE:
            raise legacy_records.corrupt("record size is less than the minimum record overhead (14)")
        if size > len(data) - position:
            return
        yield data[position : position + size]
        position += size


def header_of(batch: bytes) -> Header:
    magic = batch[16]
    if magic < NOW:
        return Header(magic, batch[17], int.from_bytes(batch[18:26], "big", signed=True))
    attributes = int.from_bytes(batch[21:23], "big")
    return Header(magic, attributes, int.from_bytes(batch[35:43], "big", signed=True))


def of_batch(batch: bytes, header: Header, magic: int, first_offset: int) -> Work[bytes]:
    """What becomes of one batch: nothing, where it has nothing that these formats know."""
    if header.is_control:
        return b""
    if header.magic <= magic:
        return batch
    append_time = header.max_timestamp if header.is_append_time else None
    out: Messages | Wrapped = Messages(magic, append_time)
    if header.codec:
        out = Wrapped(magic, header.codec, append_time)
    for count, record in enumerate(records.read_in_slices(batch, with_headers=False)):
        if record is not None and (header.codec or record.offset >= first_offset):
            yield from out.add(record)
        if record is None or not count % FEW:
            yield
    return (yield from out.end())


class Messages:
    """One after another. `append_time`: of all of them, where the log gave them their time."""

    def __init__(self, magic: int, append_time: int | None) -> None:
        self.magic = magic
        self.append_time = append_time
        self.out = bytearray()

    def add(self, record: Record) -> Work[None]:
        for part in (yield from message(self.magic, record, record.offset, self.append_time)):
            self.out += part

    def end(self) -> Work[bytes]:
        yield from ()
        return bytes(self.out)


class Wrapped:
    """All of a batch as the compressed value of one message, which has the last one's offset. In format 1 those inside
    count from the first."""

    def __init__(self, magic: int, codec: int, append_time: int | None) -> None:
        self.magic = magic
        self.codec = codec
        self.append_time = append_time
        self.compressor: Compressor = compressor(codec)
        self.value = bytearray()
        self.base = self.last = -1
        self.max_timestamp = -1

    def add(self, record: Record) -> Work[None]:
        if self.last < 0:
            self.base = record.offset
        self.last = record.offset
        self.max_timestamp = max(self.max_timestamp, record.timestamp)
        offset = record.offset - self.base if self.magic > OLDEST else record.offset
        for part in (yield from message(self.magic, record, offset, self.append_time)):
            for start in range(0, len(part), STEP_BYTES):
                self.value += self.compressor.compress(part[start : start + STEP_BYTES])
                if start:
                    yield

    def end(self) -> Work[bytes]:
        if self.last < 0:
            return b""
        self.value += self.compressor.flush()
        if self.codec == LZ4 and self.magic == OLDEST:
            break_checksum(self.value)
        timestamp = self.max_timestamp if self.append_time is None else self.append_time
        outer = records.Record(self.last, timestamp, None, bytes(self.value), [])
        return b"".join((yield from message(self.magic, outer, self.last, self.append_time, self.codec)))


def break_checksum(frame: bytearray) -> None:
    """In format 0 that of LZ4's header is of the magic bytes, too: a mistake that Kafka's clients expect (KIP-57)."""
    frame[LZ4_CHECKSUM_AT] = hashed(memoryview(bytes(frame[:LZ4_CHECKSUM_AT]))) >> 8 & 0xFF


def message(
    magic: int, record: Record, offset: int, append_time: int | None, codec: int = NONE
) -> Work[list[bytes]]:
    """Its bytes, in order: large ones are not put together before they are where they belong."""
    attributes = codec | (APPEND_TIME_FLAG if append_time is not None and magic > OLDEST else 0)
    body = bytes((magic, attributes))
    if magic > OLDEST:
        body += (record.timestamp if append_time is None else append_time).to_bytes(8, "big", signed=True)
    parts = [body, *sized(record.key), *sized(record.value)]
    crc = 0
    for part in parts:
        for start in range(0, len(part), STEP_BYTES):
            crc = zlib.crc32(memoryview(part)[start : start + STEP_BYTES], crc)
            if start:
                yield
    size = 4 + sum(map(len, parts))
    head = offset.to_bytes(8, "big", signed=True) + size.to_bytes(4, "big") + crc.to_bytes(4, "big")
    return [head, *parts]


def sized(data: bytes | None) -> list[bytes]:
    if data is None:
        return [b"\xff\xff\xff\xff"]
    return [len(data).to_bytes(4, "big"), data]
