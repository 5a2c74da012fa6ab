"""Messages of formats 0 and 1: read from old logs, and converted to format 2 when they are validated.

    0 int64 offset, 8 int32 size, 12 uint32 CRC-32 of what follows, 16 int8 magic,
    17 int8 attributes (0-2 codec, 3 log append time), format 1 only: 18 int64 timestamp,
    then int32 key size, key, int32 value size, value

The value of a message with a codec is a set of messages, compressed. Inner offsets of format 1 are relative to the last
one, whose absolute offset is that of the outer message. Only clients of before 2017 send these formats, so this is plain
Python, and what they send is converted in steps. What is accepted and refused is as in Kafka. KIP-31 (relative offsets),
KIP-32 (timestamps).
"""

from __future__ import annotations

import zlib

from pykafkad import errors
from pykafkad.compression import Kept
from pykafkad.hot import records
from pykafkad.slices import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from pykafkad.hot.records import Batches, Record, Rules
    from pykafkad.slices import Work

LOG_OVERHEAD = 12
MAGIC_AT, BATCHES = 16, 2
LEAST_SIZE = 14
CODEC_MASK, APPEND_TIME_FLAG = 0x07, 0x08
ZSTD, CODEC_COUNT = 4, 5
NO_TIMESTAMP = -1
SEARCHED_AT_ONCE = 64  # messages
FEW = 16  # of which more is done
WINDOW = 1024  # bytes of small messages that are looked at at once
SETTLED_AT_ONCE = 16_384  # bytes
STEPS_AT_ONCE = 4
RECORD_ERRORS_MAX = 20_000
INSIDE_MAX = 32 << 20  # bytes of a compressed set: all of it is in memory, as in Kafka, which has no bound


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
    inner = list(walk(message, b"".join(packed(message))))
    base = base_of(message, inner[-1].offset if inner else None)
    for found in inner:
        place(found, base)
        yield found


def base_of(message: Message, last: int | None) -> int:
    """What is added to the offsets inside, of which this is the last."""
    if last is None:
        raise invalid("compressed messages with nothing inside")
    if message.magic != 1 or message.offset == 0:  # some clients wrote 0 there, and absolute offsets inside
        return 0
    base = message.offset - last
    if base < 0:
        raise invalid("the offset of a compressed message is below the last one inside")
    return base


def place(inner: Message, base: int) -> None:
    inner.offset = as_long(inner.offset + base)
    if inner.codec:
        raise invalid("inner messages must not be compressed")


def as_long(value: int) -> int:
    """A number as a Java long, which overflows."""
    return (value + 2**63) % 2**64 - 2**63


def packed(message: Message) -> Iterator[bytes]:
    """What is in a compressed set, decompressed piece by piece."""
    if message.codec == ZSTD:
        raise invalid("zstd in a message of format 0 or 1")
    value = message.value
    if value is None:
        raise invalid("compressed messages with null value")
    return iter(records.Pieces(message.codec, memoryview(value), message.magic))


def walk(message: Message, data: bytes | bytearray) -> Iterator[Message]:
    """The messages of a compressed set, with the offsets that are written there; a torn last one is dropped."""
    outer_time = message.timestamp if message.is_append_time else None
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        found = outer(bytes(data[position : position + LOG_OVERHEAD]))
        size = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if size < LEAST_SIZE:
            raise corrupt("record size is less than the minimum record overhead (14)")
        position += LOG_OVERHEAD + size
        if position > len(data):
            return
        found.body = bytes(data[position - size : position])
        if found.magic == 1:
            found.outer_time = outer_time
        yield found


# -- validation: what LogValidator does with these formats, which ends in one batch of format 2


def has_batch(data: Any) -> bool:
    """Whether there is any, of whatever format."""
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    return bool(records.scan(data[: max(LOG_OVERHEAD, size)], check_crc=False))


def is_legacy(data: Any) -> bool:
    return bool(data[MAGIC_AT] < BATCHES)


class Conversion:
    """As records.Validation: `advance` does a piece of the work and says whether that was the last one."""

    def __init__(self, buffer: Any, rules: Rules, now_ms: int, partition: str) -> None:
        self._kept = Kept()
        self._work = conversion(bytes(buffer), rules, now_ms, partition, True, self._kept)
        self._batches: Batches | None = None

    @property
    def kept(self) -> int:
        return self._kept.bytes

    def advance(self) -> bool:
        try:
            for _ in range(STEPS_AT_ONCE):
                next(self._work)
        except StopIteration as end:
            self._batches = end.value
            return True
        return False

    def finish(self, now_ms: int) -> Batches:
        assert self._batches is not None
        return self._batches


def validated(buffer: Any, rules: Rules, now_ms: int, partition: str, as_append: bool) -> Batches:
    return finish(conversion(bytes(buffer), rules, now_ms, partition, as_append, Kept()))


def conversion(
    data: bytes, rules: Rules, now_ms: int, partition: str, as_append: bool, kept: Kept
) -> Work[Batches]:
    """`kept` is told of what is kept of a compressed set, of which there is one at most."""
    source, magic = yield from framed(data, rules, as_append)
    codec = records.CODECS[source] if rules.compression == "producer" else rules.compression
    builder = records.Builder("none" if codec == "uncompressed" else codec, rules.compression_level)
    is_negative = False
    for message in outers(data):
        if message is None:
            yield
            continue
        if message.magic != magic:
            raise invalid("batches of several formats")
        for found in judged(message, rules, now_ms, partition, kept):
            if found is None:
                yield
                continue
            is_negative = is_negative or found.timestamp < NO_TIMESTAMP
            builder.add(found.key, found.value, [], found.timestamp)
            if builder.waiting >= SETTLED_AT_ONCE:
                yield from builder.settle()
    if is_negative:
        raise unexpected("invalid negative timestamp")
    yield from builder.settle()
    built = builder.finish(rules.log_append_time, now_ms)
    if len(built) > rules.max_message_bytes:
        raise records.RecordsError(errors.MESSAGE_TOO_LARGE, detail="batch exceeds max.message.bytes")
    return records.built(built, rules, now_ms, builder.max_timestamp_index)


def framed(data: bytes, rules: Rules, as_append: bool) -> Work[tuple[int, int]]:
    """The codec and the format of the outer messages, after the checks of an append."""
    codec = magic = count = 0
    for message in outers(data):
        if message is None:
            yield
            continue
        if as_append and len(message.body) + LOG_OVERHEAD > rules.max_message_bytes:
            raise records.RecordsError(errors.MESSAGE_TOO_LARGE, detail="message exceeds max.message.bytes")
        if as_append and not message.crc_fits:
            raise corrupt("message is corrupt")
        codec = message.codec or codec
        magic = magic if count else message.magic
        count += 1
    if codec >= CODEC_COUNT:
        raise unexpected("unknown compression codec")
    if codec and count > 1:
        raise invalid("more than one compressed batch")
    return codec, magic


def outers(data: bytes) -> Iterator[Message | None]:
    """The messages that lie there one after another; None where something else may be done. Of what is no whole message
    records.scan says what is wrong."""
    position = 0
    while True:
        size = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        window = data[position : position + max(WINDOW, size)]
        found = records.scan(window, check_crc=False)
        for batch in found:
            if batch.magic == 2:
                raise invalid("batches of several formats")
            yield outer(window[batch.position : batch.position + batch.size])
        if not found:
            return
        position += found[-1].position + found[-1].size
        yield None


def judged(
    message: Message, rules: Rules, now_ms: int, partition: str, kept: Kept
) -> Iterator[Message | None]:
    """The messages of a set, if all of them satisfy the topic's rules; None in between."""
    record_errors: list[tuple[int, str]] = []
    by_time = False
    index = 0
    for found in messages_in_steps(message, kept):
        if found is None:
            yield None
            continue
        text, is_time = fault(message, found, rules, now_ms, partition)
        if text:
            by_time = by_time or is_time
            if len(record_errors) < RECORD_ERRORS_MAX:
                record_errors.append((index, text))
        elif not record_errors:
            yield found
        index += 1
    if record_errors:
        raise records.rejected(record_errors, by_time)


def messages_in_steps(message: Message, kept: Kept) -> Iterator[Message | None]:
    """The same as `messages`, with None in between, and bounded."""
    if not message.codec or message.codec >= CODEC_COUNT:
        yield from messages(message)
        return
    data = bytearray()
    for piece in packed(message):
        data += piece
        if len(data) > INSIDE_MAX:
            raise invalid(f"a compressed message expands to more than {INSIDE_MAX} bytes")
        kept.say(2 << len(data).bit_length())  # and as much of the batch that is built of it
        yield None
    last = None
    for count, found in enumerate(walk(message, data)):
        last = found.offset
        if not count % SEARCHED_AT_ONCE:
            yield None
    base = base_of(message, last)
    for count, found in enumerate(walk(message, data)):
        place(found, base)
        yield found
        if not count % FEW:
            yield None


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
