"""Malformed UTF-8: as Java reads it, in time that grows with the string and no faster."""

from __future__ import annotations

import random
import time
from typing import Any

from pykafkad.hot.wire import define

Text = define({"name": "Text", "versions": "0", "fields": [{"name": "Value", "type": "string"}]})
# Bytes at which the rules change, and whole characters of each length.
PARTS = [
    *(
        bytes([byte])
        for byte in (0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF)
    ),
    *(bytes([byte]) for byte in (0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)),
    *(text.encode("utf-8", "surrogatepass") for text in ("é", "€", "😀", "\ud800", "\udfff", "\U0010ffff")),
]


def read(raw: bytes) -> str:
    decoded: Any = Text.decode(len(raw).to_bytes(2) + raw, 0)
    text: str = decoded.value
    return text


def slow_twin(raw: bytes) -> str:
    """What Python's decoder finds, one fault after the other, and a surrogate's bytes taken together."""
    parts = []
    while True:
        try:
            parts.append(raw.decode())
            return "".join(parts)
        except UnicodeDecodeError as error:
            parts.append(raw[: error.start].decode())
            parts.append("\ufffd")
            raw = raw[max(error.end, error.start + surrogate_bytes(raw[error.start : error.start + 3])) :]


def surrogate_bytes(bad: bytes) -> int:
    if len(bad) < 2 or bad[0] != 0xED or not 0xA0 <= bad[1] <= 0xBF:
        return 0
    return 3 if len(bad) == 3 and 0x80 <= bad[2] <= 0xBF else 2


def test_every_two_bytes_and_every_two_before_the_rest_of_a_character_are_read_as_by_the_slow_twin() -> None:
    for pair in range(1 << 16):
        for rest in (b"", b"\x80", b"\x80\xbfa"):
            raw = pair.to_bytes(2) + rest
            assert read(raw) == slow_twin(raw), raw


def test_random_bytes_are_read_as_by_the_slow_twin() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        raw = b"".join(chance.choices(PARTS, k=chance.randrange(12)))
        assert read(raw) == slow_twin(raw), raw


def test_a_string_of_nothing_but_faults_costs_what_its_bytes_cost() -> None:
    for fault in (b"\xff", b"\xed\xa0", b"a\xe2\x82", b"\xf0\x9f\x98"):
        short, long = (fault * (size // len(fault)) for size in (2_000, 32_000))
        assert spent(long, 20) < 4 * spent(short, 20 * 16)


def spent(raw: bytes, times: int) -> float:
    """CPU time, the least of three."""
    found = []
    for _ in range(3):
        begun = time.thread_time()
        for _ in range(times):
            read(raw)
        found.append(time.thread_time() - begun)
    return min(found)
