"""Record batches as producers send them, and as none should."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

from pykafkad.hot import records
from tests.storm import values

TIMES = (0, 1, -1, 1_700_000_000_000, 1 << 62, (1 << 63) - 1, -(1 << 63))
MAGIC_AT, CRC_AT, CRC_FROM, COUNT_AT, HEADER = 16, 17, 21, 57, 61


def some(chance: random.Random, producer: tuple[int, int] = (-1, -1)) -> bytes | None:
    """What a Produce request may have for a partition; `producer` is an id that the broker gave out, with its epoch."""
    kind = chance.random()
    if kind < 0.05:
        return chance.choice((None, b"", values.some_bytes(chance)))
    if kind < 0.1:
        return b"".join(
            old_message(chance, magic) for magic in [chance.choice((0, 1))] * chance.randrange(1, 4)
        )
    count = 1 if kind < 0.85 else chance.randrange(2, 5)
    made = b"".join(batch(chance, producer) for _ in range(count))
    if chance.random() < 0.15:
        return values.damaged(chance, made, 1.0)
    if chance.random() < 0.25:
        return with_header_field(chance, made)
    return made


def batch(chance: random.Random, producer: tuple[int, int]) -> bytes:
    size = chance.choices((1, 3, 30, 1000), (60, 30, 9, 1))[0]
    now = 1_795_000_000_000
    idempotent = chance.random() < 0.3
    producer_id, epoch = producer if idempotent else (-1, -1)
    return records.build(
        [record(chance, now + index) for index in range(size)],
        codec=chance.choice(records.CODECS),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=chance.choice((0, 1, 2, (1 << 31) - 1)) if idempotent else -1,
        transactional=chance.random() < 0.03,
        control=chance.random() < 0.02,
        timestamp_type=int(chance.random() < 0.05),
        log_append_time=0 if chance.random() < 0.5 else -1,
    )


def record(
    chance: random.Random, time_ms: int
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]:
    key = chance.choice((None, b"", b"k", chance.randbytes(8)))
    size = chance.choices((0, 10, 200, 20_000, 900_000), (10, 60, 20, 3, 0.1))[0]
    value = None if chance.random() < 0.1 else chance.choice((bytes(size), chance.randbytes(size)))
    headers: list[tuple[str, bytes | None]] = [("h", None), ("", b"x")] if chance.random() < 0.1 else []
    return key, value, headers, time_ms if chance.random() < 0.95 else chance.choice(TIMES[:4])


# position and format of the fields of a batch's header
FIELDS = (
    (0, ">q"), (8, ">i"), (12, ">i"), (16, ">b"), (21, ">h"), (23, ">i"), (27, ">q"), (35, ">q"), (43, ">q"), (51, ">h"),
    (53, ">i"), (57, ">i"),
)  # fmt: skip


def with_header_field(chance: random.Random, made: bytes) -> bytes:
    """One field of the first batch's header at an extreme, with a right checksum."""
    changed = bytearray(made)
    position, form = chance.choice(FIELDS)
    bits = 8 * struct.calcsize(form)
    struct.pack_into(form, changed, position, values.integer(chance, f"int{bits}"))
    (size,) = struct.unpack_from(">i", changed, 8)
    end = 12 + size if HEADER <= 12 + size <= len(changed) else len(changed)
    struct.pack_into(">I", changed, CRC_AT, records.crc32c(memoryview(changed)[CRC_FROM:end]))
    return bytes(changed)


def old_message(chance: random.Random, magic: int) -> bytes:
    """A message of the formats before batches."""
    attributes = chance.choice((0, 0, 0, 1, 8, 7))
    key, value = chance.choice((None, b"k")), chance.choice((None, b"v" * 10, bytes(5000)))
    if attributes == 1 and value:
        value = zlib.compress(value, wbits=31)
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", chance.choice(TIMES))
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", chance.choice((0, -1, 7)), len(body) + 4, zlib.crc32(body)) + body


def bomb(codec: str, size: int) -> bytes:
    """A small batch that expands to `size` bytes."""
    return records.build([(None, bytes(size), [], 0)], codec=codec)


Maker = Callable[[random.Random, tuple[int, int]], bytes | None]
