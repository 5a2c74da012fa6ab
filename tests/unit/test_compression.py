"""Framings of codecs, read as strictly or as loosely as the Java libraries of Kafka read them."""

from __future__ import annotations

import gzip
import zlib

import pytest
import snappy  # type: ignore[import-untyped]

from pykafkad import compression
from pykafkad.compression import GZIP, SNAPPY, DecompressionError, ExpansionError

MEMBER = gzip.compress(b"first", mtime=0)
DEFLATED, TRAILER = MEMBER[10:-8], MEMBER[-8:]
EXTRA, NAME, COMMENT, HEADER_CRC = 4, 8, 16, 2


def read(codec: int, payload: bytes, most: int | None = None) -> bytes:
    return b"".join(compression.pieces(codec, memoryview(payload), most=most))


def why_not(codec: int, payload: bytes) -> str | None:
    try:
        read(codec, payload)
    except DecompressionError as problem:
        return str(problem)
    return None


# -- gzip


def member(flags: int, fields: bytes = b"", crc_change: int = 0) -> bytes:
    """The first one with these fields in its header."""
    head = MEMBER[:3] + bytes([flags]) + MEMBER[4:10] + fields
    if flags & HEADER_CRC:
        head += ((zlib.crc32(head) & 0xFFFF) ^ crc_change).to_bytes(2, "little")
    return head + DEFLATED + TRAILER


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        (0, b""),
        (EXTRA, b"\3\0abc"),
        (EXTRA, b"\0\1" + bytes(range(256))),
        (NAME, b"name\0"),
        (NAME, b"\0"),
        (NAME, b"n" * 20_000 + b"\0"),
        (COMMENT, b"text\0"),
        (EXTRA | NAME | COMMENT, b"\1\0xname\0text\0"),
        (HEADER_CRC, b""),
        (HEADER_CRC | EXTRA | NAME | COMMENT, b"\1\0xname\0text\0"),
    ],
)
def test_whatever_a_header_has_is_passed_over(flags: int, fields: bytes) -> None:
    assert read(GZIP, member(flags, fields) + member(flags, fields)) == b"firstfirst"


@pytest.mark.parametrize(
    "payload",
    [
        b"\0" + MEMBER,
        MEMBER[:9],
        b"\x1f\x8b\x07" + MEMBER[3:],
        member(HEADER_CRC, crc_change=1),
        member(NAME, b"without an end" * 1000)[:10_000],
        member(EXTRA, b"\xff\xff"),
    ],
)
def test_what_has_no_header_is_no_gzip(payload: bytes) -> None:
    assert why_not(GZIP, payload) == "not in gzip format"
    assert why_not(GZIP, b"") == "unexpected end of gzip stream"


@pytest.mark.parametrize("size", [10, 11, len(MEMBER) - 8, len(MEMBER) - 1])
def test_a_member_that_ends_early_is_refused(size: int) -> None:
    assert why_not(GZIP, MEMBER[:size]) == "unexpected end of gzip stream"


@pytest.mark.parametrize("place", [-8, -5, -4, -1])
def test_a_wrong_sum_or_size_is_refused(place: int) -> None:
    wrong = bytearray(MEMBER)
    wrong[place] ^= 1
    assert why_not(GZIP, bytes(wrong)) == "corrupt gzip trailer"
    assert why_not(GZIP, MEMBER + bytes(wrong)) == "corrupt gzip trailer"


def test_little_behind_a_member_is_no_other_one() -> None:
    """Java looks for one only where more than 18 bytes follow."""
    assert read(GZIP, MEMBER + b"anything that is no header of gzip") == b"first"
    assert read(GZIP, MEMBER + MEMBER[:18]) == b"first"
    assert why_not(GZIP, MEMBER + MEMBER[:19]) == "unexpected end of gzip stream"
    assert read(GZIP, MEMBER + gzip.compress(b"")) == b"first"


def test_bytes_that_cannot_be_inflated_are_told_and_those_before_are_given() -> None:
    found = compression.pieces(GZIP, memoryview(MEMBER + MEMBER[:10] + b"\xff" * 20))
    assert next(found) == b"first"
    with pytest.raises(DecompressionError, match=r"^gzip: "):
        list(found)


def test_a_large_member_comes_in_pieces_and_no_larger_than_is_allowed() -> None:
    data = bytes(range(256)) * 1000
    found = list(compression.pieces(GZIP, memoryview(gzip.compress(data))))
    assert b"".join(found) == data and max(map(len, found)) <= 16 * 1024
    assert read(GZIP, gzip.compress(data), len(data)) == data
    with pytest.raises(ExpansionError, match="more than 255999 bytes"):
        read(GZIP, gzip.compress(data), len(data) - 1)


# -- snappy

HEADER = compression.XERIAL_HEADER


def chunk(data: bytes) -> bytes:
    packed: bytes = snappy.compress(data)
    return len(packed).to_bytes(4, "big") + packed


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        (snappy.compress(b"bare"), b"bare"),
        (HEADER + chunk(b"one"), b"one"),
        (HEADER + chunk(b"one") + chunk(b"two"), b"onetwo"),
        (HEADER + chunk(b"one") + HEADER + chunk(b"two"), b"onetwo"),
        (HEADER[:8] + b"\0\0\0\2\0\0\0\2" + chunk(b"newer"), b"newer"),
        (HEADER + chunk(b"one") + b"\0\0\0", b"one"),
        (HEADER, b""),
    ],
)
def test_streams_of_snappy(payload: bytes, data: bytes) -> None:
    assert read(SNAPPY, payload) == data


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "cannot decompress an empty snappy stream"),
        (HEADER + b"\xff\xff\xff\xff", "failed to read a snappy chunk"),
        (HEADER + chunk(b"one")[:-1], "failed to read a snappy chunk"),
        (HEADER + HEADER[:15], "insufficient header size in a concatenated snappy stream"),
        (HEADER[:8] + bytes(8), "incompatible version of the snappy framing"),
        (HEADER[:8] + b"\xff" * 8, "incompatible version of the snappy framing"),
        (HEADER + b"\0\0\0\0", "invalid snappy block"),
        (b"\xff\xff\xff\xff\xff", "invalid snappy block"),
    ],
)
def test_what_is_no_stream_of_snappy(payload: bytes, why: str) -> None:
    assert why_not(SNAPPY, payload) == why


def test_a_block_claims_no_more_than_it_could_hold_and_than_is_allowed() -> None:
    packed: bytes = snappy.compress(bytes(1000))
    assert read(SNAPPY, packed, 1000) == bytes(1000)
    with pytest.raises(ExpansionError):
        read(SNAPPY, packed, 999)
    assert why_not(SNAPPY, b"\xff\x7f" + packed[2:]) == "invalid snappy block"


@pytest.mark.parametrize(
    "sizes", [[0], [1], [32 * 1024], [32 * 1024 + 1], [100, 70_000, 5], [40_000, 40_000]]
)
def test_what_is_compressed_in_any_parts_reads_as_it_was(sizes: list[int]) -> None:
    parts = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    for codec in (GZIP, SNAPPY, compression.LZ4, compression.ZSTD):
        made = compression.compressor(codec)
        packed = b"".join([*map(made.compress, parts), made.flush()])
        assert read(codec, packed) == b"".join(parts)
        if codec == SNAPPY:
            assert packed.startswith(HEADER)
