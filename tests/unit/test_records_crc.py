"""CRC-32C: every implementation that runs here gives what crcmod gives; xxHash32 its published values."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from crcmod.predefined import mkCrcFun  # type: ignore[import-untyped]

from pykafkad.hot import records

reference: Callable[..., int] = mkCrcFun("crc-32c")
every_path = pytest.mark.parametrize("path", records.crc32c_paths())

# Around the bounds of the eight-byte step and of the three short and long streams.
SIZES = [*range(40), 127, 383, 384, 385, 1023, 6143, 6144, 6145, 6528, 20000]


def test_the_check_value() -> None:
    assert records.crc32c(b"123456789") == 0xE3069283


def test_the_portable_path_is_always_there() -> None:
    assert "portable" in records.crc32c_paths()


@every_path
@pytest.mark.parametrize("size", SIZES)
def test_a_path_equals_the_reference(path: str, size: int) -> None:
    data = random.Random(size).randbytes(size + 7)
    for start in (0, 1, 3, 7):
        piece = data[start : start + size]
        assert records.crc32c_with(path, piece) == reference(piece)


@every_path
def test_checksums_chain(path: str) -> None:
    data = random.Random(1).randbytes(10000)
    for cut in (0, 1, 8, 500, 9999):
        first = records.crc32c_with(path, data[:cut])
        assert records.crc32c_with(path, data[cut:], first) == reference(data)


def test_a_large_buffer_and_a_view_of_it() -> None:
    data = random.Random(2).randbytes(200_000)
    assert records.crc32c(data) == reference(data)
    assert records.crc32c(memoryview(data)[5:150_000]) == reference(data[5:150_000])


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        records.crc32c_with("nonsense", b"")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxhash32(data: bytes, expected: int) -> None:
    assert records.xxhash32(data) == expected
