"""Large blocks of snappy, decompressed in steps: what the library says of a block in one piece is said of it in many."""

from __future__ import annotations

import random

import pytest

from pykafkad import compression
from pykafkad.hot.records import SnappyBlock

LARGE = 4 * compression.LIGHT_BYTES
BLOCKS = 400


def unfolded(block: bytes, step: int) -> bytes | None:
    """None: it is not valid."""
    claimed, start = compression.snappy_claim(memoryview(block))
    if claimed < 0 or claimed > compression.SNAPPY_GREATEST_RATIO * (len(block) + 3):
        return None
    decoder = SnappyBlock(block, start, claimed)
    try:
        while decoder.go_on(step):
            pass
    except ValueError:
        return None
    return decoder.piece(0, claimed)


def by_library(block: bytes) -> bytes | None:
    import snappy  # type: ignore[import-untyped]

    claimed, _ = compression.snappy_claim(memoryview(block))
    if claimed < 0 or claimed > compression.SNAPPY_GREATEST_RATIO * (len(block) + 3):
        return None  # we do not let it try
    try:
        found: bytes = snappy.uncompress(block)
    except Exception:
        return None
    return found


def some_bytes(chance: random.Random) -> bytes:
    size = chance.choice([0, 1, 59, 60, 61, 255, 256, 257, 3000, 70_000])
    unit = chance.choice([1, 3, 40, size or 1])
    return (chance.randbytes(unit) * (size // unit + 1))[:size]


def mutated(chance: random.Random, block: bytes) -> bytes:
    data = bytearray(block)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + 1] = chance.randbytes(1)
            case 1:
                data[at:at] = chance.randbytes(chance.randrange(1, 6))
            case 2:
                del data[at:]
            case _:
                data += chance.randbytes(chance.randrange(1, 5))
    return bytes(data)


@pytest.mark.parametrize("step", [1, 63, 65_536])
def test_blocks_are_what_the_library_says(step: int) -> None:
    import snappy

    chance, verdicts = random.Random(step), {True: 0, False: 0}
    for number in range(BLOCKS):
        block = mutated(chance, snappy.compress(some_bytes(chance)))
        expected = by_library(block)
        assert unfolded(block, step) == expected, f"block {number}: {block[:100].hex()}"
        verdicts[expected is None] += 1
    assert min(verdicts.values()) > BLOCKS // 10


@pytest.mark.parametrize("filler", [b"\0", b"some words ", random.Random(1).randbytes(LARGE)])
def test_other_work_may_be_done_between_the_steps_of_a_large_block(filler: bytes) -> None:
    import snappy

    data = (filler * (LARGE // len(filler) + 1))[: LARGE + 1]
    found = list(compression.pieces(compression.SNAPPY, memoryview(snappy.compress(data))))
    assert b"".join(found) == data
    assert max(map(len, found)) <= compression.SNAPPY_STEP_BYTES
    assert found.count(b"") >= LARGE // compression.SNAPPY_STEP_BYTES


@pytest.mark.parametrize("cut", [b"", b"\0\0"], ids=["its end is lost", "more follows"])
def test_of_a_large_block_that_is_not_valid_nothing_is_given(cut: bytes) -> None:
    import snappy

    block = snappy.compress(bytes(LARGE))
    pieces = compression.pieces(compression.SNAPPY, memoryview(block + cut if cut else block[:-1]))
    with pytest.raises(compression.DecompressionError, match="snappy: invalid block"):
        assert not any(map(len, pieces))


def test_a_frame_of_large_blocks_is_unfolded() -> None:
    """xerial's framing does not bound its blocks either."""
    import snappy

    block = snappy.compress(bytes(LARGE))
    frame = compression.XERIAL_HEADER + (len(block).to_bytes(4, "big") + block) * 2
    assert b"".join(compression.pieces(compression.SNAPPY, memoryview(frame))) == bytes(2 * LARGE)


def test_a_block_gives_no_more_than_it_has() -> None:
    decoder = SnappyBlock(b"\3\x08abc", 1, 3)
    assert not decoder.go_on(5)
    assert decoder.piece(1, 100) == b"bc" and decoder.piece(3, 1) == b"" and decoder.piece(9, 1) == b""
