"""Messages of formats 0 and 1: read from old logs, and converted to format 2 when they are validated.

    0 int64 offset, 8 int32 size, 12 uint32 CRC-32 of what follows, 16 int8 magic,
    17 int8 attributes (0-2 codec, 3 log append time), format 1 only: 18 int64 timestamp,
    then int32 key size, key, int32 value size, value

The value of a message with a codec is a set of messages, compressed. Inner offsets of format 1 are relative to the last
one, whose absolute offset is that of the outer message. No Produce version that is served carries these formats, so
this is plain Python. What is accepted and refused is as in Kafka. KIP-31 (relative offsets), KIP-32 (timestamps).
"""

from __future__ import annotations

import zlib

from pykafkad import errors
from pykafkad.hot import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from pykafkad.hot.records import Batches, Record, Rules

LOG_OVERHEAD = 12
LEAST_SIZE = 14
CODEC_MASK, APPEND_TIME_FLAG = 0x07, 0x08
ZSTD, CODEC_COUNT = 4, 5
NO_TIMESTAMP = -1
SEARCHED_AT_ONCE = 64  # messages


def invalid(detail: str) -> records.RecordsError:
    return records.RecordsError(errors.INVALID_RECORD, detail=detail)


def corrupt(detail: str) -> records.RecordsError:
    return records.RecordsError(errors.CORRUPT_MESSAGE, detail=detail)


def unexpected(detail: str) -> records.RecordsError:
    """Kafka's code fails here by accident, with this error."""
    return records.RecordsError(errors.UNKNOWN_SERVER_ERROR, detail=detail)


class Message:
    """One message. `outer_time` is the timestamp of the set it was in, if that has log append time."""

    __slots__ = ("body", "offset", "outer_time")

    def __init__(self, offset: int, body: bytes, outer_time: int | None = None) -> None:
        self.offset = offset
        self.body = body
        self.outer_time = outer_time

    @property
    def magic(self) -> int:
        return self._int(4, 1)

    @property
    def codec(self) -> int:
        return self._int(5, 1) & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        return self.outer_time is not None or (self.magic > 0 and bool(self._int(5, 1) & APPEND_TIME_FLAG))

    @property
    def timestamp(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        return self.outer_time if self.outer_time is not None else self._int(6, 8)

    @property
    def crc_fits(self) -> bool:
        body = self.body
        return len(body) >= LEAST_SIZE and int.from_bytes(body[:4], "big") == zlib.crc32(body[4:])

    @property
    def key(self) -> bytes | None:
        return self._sized(6 if self.magic == 0 else 14)

    @property
    def value(self) -> bytes | None:
        at = 6 if self.magic == 0 else 14
        return self._sized(at + 4 + max(0, self._int(at, 4)))

    def _sized(self, at: int) -> bytes | None:
        size = self._int(at, 4)
        if size < 0:
            return None
        if size > len(self.body) - at - 4:
            raise unexpected("a key or value goes beyond its message")
        return self.body[at + 4 : at + 4 + size]

    def _int(self, at: int, size: int) -> int:
        if len(self.body) - at < size:
            raise unexpected("a message is shorter than its fields")
        return int.from_bytes(self.body[at : at + size], "big", signed=True)

    def as_record(self) -> Record:
        return records.Record(self.offset, self.timestamp, self.key, self.value, [])


def outer(data: bytes) -> Message:
    """The one message in `data`."""
    return Message(int.from_bytes(data[:8], "big", signed=True), data[LOG_OVERHEAD:])


def crc_fits(data: bytes) -> bool:
    return outer(data).crc_fits


def first_offset(data: bytes) -> int:
    return next(messages(outer(data))).offset


def count(data: bytes) -> int:
    return sum(1 for _ in messages(outer(data)))


def read(data: bytes) -> Iterator[Record]:
    """The records of one batch, read like a consumer that checks the inner messages' checksums."""
    found = outer(data)
    for message in messages(found):
        if found.codec and not message.crc_fits:
            raise corrupt("inner message is corrupt")
        yield message.as_record()


def search(
    data: bytes, timestamp: int, start_offset: int, exactly: bool
) -> Generator[None, None, tuple[int, int] | None]:
    """The same as records.search."""
    for place, record in enumerate(read(data)):
        if place % SEARCHED_AT_ONCE == 0:
            yield
        if record.offset >= start_offset and (
            record.timestamp == timestamp if exactly else record.timestamp >= timestamp
        ):
            return record.offset, record.timestamp
    return None


def messages(message: Message) -> Iterator[Message]:
    """The messages of a set with their absolute offsets, or the one uncompressed message itself."""
    if message.codec >= CODEC_COUNT:
        raise unexpected("unknown compression codec")
    if not message.codec:
        yield message
        return
    inner = unpacked(message)
    base = 0
    if message.magic == 1 and message.offset != 0:  # some clients wrote 0 there, and absolute offsets inside
        base = message.offset - inner[-1].offset
        if base < 0:
            raise invalid("the offset of a compressed message is below the last one inside")
    for found in inner:
        found.offset = as_long(found.offset + base)
        if found.codec:
            raise invalid("inner messages must not be compressed")
        yield found


def as_long(value: int) -> int:
    """A number as a Java long, which overflows."""
    return (value + 2**63) % 2**64 - 2**63


def unpacked(message: Message) -> list[Message]:
    """The messages of a compressed set, with the offsets that are written there; a torn last one is dropped."""
    if message.codec == ZSTD:
        raise invalid("zstd in a message of format 0 or 1")
    value = message.value
    if value is None:
        raise invalid("compressed messages with null value")
    data = b"".join(records.Pieces(message.codec, memoryview(value), message.magic))
    outer_time = message.timestamp if message.is_append_time else None
    inner = []
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        found = outer(data[position : position + LOG_OVERHEAD])
        size = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if size < LEAST_SIZE:
            raise corrupt("record size is less than the minimum record overhead (14)")
        position += LOG_OVERHEAD + size
        if position > len(data):
            break
        found.body = data[position - size : position]
        if found.magic == 1:
            found.outer_time = outer_time
        inner.append(found)
    if not inner:
        raise invalid("compressed messages with nothing inside")
    return inner


# -- validation: what LogValidator does with these formats, which ends in one batch of format 2


def validated(buffer: Any, rules: Rules, now_ms: int, partition: str, as_append: bool) -> Batches:
    outers = framed(bytes(buffer), rules, as_append)
    source = next((message.codec for message in reversed(outers) if message.codec), 0)
    if source >= CODEC_COUNT:
        raise unexpected("unknown compression codec")
    if source and len(outers) > 1:
        raise invalid("more than one compressed batch")
    found: list[Message] = []
    for message in outers:
        if message.magic != outers[0].magic:
            raise invalid("batches of several formats")
        found += accepted(message, rules, now_ms, partition)
    if any(message.timestamp < NO_TIMESTAMP for message in found):
        raise unexpected("invalid negative timestamp")
    codec = records.CODECS[source] if rules.compression == "producer" else rules.compression
    data = records.build(
        [(message.key, message.value, [], message.timestamp) for message in found],
        codec="none" if codec == "uncompressed" else codec,
        level=rules.compression_level,
        timestamp_type=int(rules.log_append_time),
        log_append_time=now_ms,
    )
    if len(data) > rules.max_message_bytes:
        raise records.RecordsError(errors.MESSAGE_TOO_LARGE, detail="batch exceeds max.message.bytes")
    return records.built(data, rules, now_ms)


def framed(data: bytes, rules: Rules, as_append: bool) -> list[Message]:
    """The outer messages, after the checks of an append."""
    found = []
    for batch in records.scan(data, check_crc=False):
        if batch.magic == 2:
            raise invalid("batches of several formats")
        message = outer(data[batch.position : batch.position + batch.size])
        if as_append and batch.size > rules.max_message_bytes:
            raise records.RecordsError(errors.MESSAGE_TOO_LARGE, detail="message exceeds max.message.bytes")
        if as_append and not message.crc_fits:
            raise corrupt("message is corrupt")
        found.append(message)
    return found


def accepted(outer_message: Message, rules: Rules, now_ms: int, partition: str) -> list[Message]:
    """The messages of a set, if all of them satisfy the topic's rules."""
    found = []
    record_errors = []
    by_time = False
    for index, message in enumerate(messages(outer_message)):
        text, is_time = fault(outer_message, message, rules, now_ms, partition)
        if text:
            record_errors.append((index, text))
            by_time = by_time or is_time
        found.append(message)
    if record_errors:
        raise records.rejected(record_errors, by_time)
    return found


def fault(
    outer_message: Message, message: Message, rules: Rules, now_ms: int, partition: str
) -> tuple[str | None, bool]:
    """What is wrong with a message, and whether it is its timestamp."""
    magic = outer_message.magic
    if message.magic != magic:
        return f"Record's magic does not match outer magic {magic} in topic partition {partition}", False
    if outer_message.codec and not message.crc_fits:
        raise corrupt(f"inner message is corrupt in topic partition {partition}")
    if rules.compacted and message.key is None:
        return f"Compacted topic cannot accept message without key in topic partition {partition}", False
    timestamp = message.timestamp
    if not rules.log_append_time and timestamp != NO_TIMESTAMP:
        earliest = now_ms - rules.timestamp_before_max_ms
        latest = now_ms + rules.timestamp_after_max_ms
        if not earliest <= timestamp <= latest:
            text = f"Timestamp {timestamp} of message with offset {message.offset} is out of range. "
            return f"{text}The timestamp should be within [{earliest}, {latest}]", True
    elif outer_message.is_append_time:
        text = f"Invalid timestamp type in message with offset {message.offset}. "
        return f"{text}Producer should not set timestamp type to LogAppendTime.", True
    return None, False
