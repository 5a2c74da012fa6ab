"""Record batches: validation and offset assignment as in a Produce, CRC, codecs."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.hot.records import Rules

NOW_MS = 1700000100000
LARGE = Rules(max_message_bytes=1 << 24)


def batch(count: int, value_size: int, codec: str = "none") -> bytearray:
    value = bytes(place * 7 & 0x7F for place in range(value_size))
    return bytearray(records.build([(b"key-%d" % i, value, [], NOW_MS) for i in range(count)], codec=codec))


def validate_and_assign(data: memoryview) -> int:
    last: int = records.validate(data, LARGE, NOW_MS).assign(0, 3)
    return last


@pytest.mark.parametrize("size", [100, 1000])
def test_one_record(benchmark: Any, size: int) -> None:
    """The budget for a small Produce is 1 µs here."""
    benchmark(validate_and_assign, memoryview(batch(1, size)))


def test_one_mebibyte_of_small_records(benchmark: Any) -> None:
    data = memoryview(batch(9600, 91))
    benchmark(validate_and_assign, data)
    benchmark.extra_info["bytes"] = len(data)


@pytest.mark.parametrize("codec", records.CODECS[1:])
@pytest.mark.parametrize("count", [1, 1000])
def test_compressed(benchmark: Any, codec: str, count: int) -> None:
    benchmark(validate_and_assign, memoryview(batch(count, 100, codec)))


def test_recompression_to_the_topics_codec(benchmark: Any) -> None:
    rules = Rules(max_message_bytes=1 << 24, compression="lz4")
    data = memoryview(batch(1000, 100))
    benchmark(lambda: records.validate(data, rules, NOW_MS))


@pytest.mark.parametrize("path", records.crc32c_paths())
@pytest.mark.parametrize("size", [200, 1 << 20])
def test_crc32c(benchmark: Any, path: str, size: int) -> None:
    benchmark(records.crc32c_with, path, bytes(size))


def test_scan_of_small_batches(benchmark: Any) -> None:
    """As recovery scans a segment."""
    benchmark(records.scan, bytes(batch(1, 100)) * 1000)
