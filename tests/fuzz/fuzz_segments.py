"""Mutated segments: the walk over them finds what a slow one finds, and indexes full of noise are compared safely.

    python tests/fuzz/fuzz_segments.py --seconds N --seed S

Seeds are random logs of all formats; mutations are of bytes, header fields and the file's length. Some get a right
checksum, so that the code after the check is reached. A failure prints its seed.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pykafkad.hot import records
from pykafkad.hot.segment import Inspection
from tests.reference import walk

EDGES = [0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, -0x80000000, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000]
FIELDS = [(0, "q"), (8, "i"), (12, "i"), (16, "b"), (21, "h"), (23, "i"), (35, "q"), (43, "q"), (57, "i")]
BITS = {"q": 64, "i": 32, "h": 16, "b": 8}


def log_of(chance: random.Random, base: int) -> list[bytearray]:
    """Batches as in a segment, with gaps as a cleaning leaves them."""
    offset, epoch, batches = base, 0, []
    for _ in range(chance.randrange(1, 12)):
        count = chance.choice((1, 1, 1, 3))
        offset += chance.choice((0, 0, 0, 1, 1000))
        epoch += chance.choice((0, 0, 0, 1))
        data = records.build(
            [(None, chance.randbytes(chance.choice((0, 5, 300))), [], chance.randrange(1 << 40))] * count,
            base_offset=offset,
            leader_epoch=epoch,
        )
        if chance.random() < 0.1:
            data = old_format(chance, offset)
            count = 1
        batches.append(bytearray(data))
        offset += count
    return batches


def old_format(chance: random.Random, offset: int) -> bytes:
    magic = chance.randrange(2)
    value = chance.randbytes(20)
    body = bytes([magic, 0]) + (struct.pack(">q", chance.randrange(1 << 40)) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    import zlib

    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def mutate(chance: random.Random, batch: bytearray) -> None:
    if chance.random() < 0.6:
        place, form = chance.choice(FIELDS)
        bits = BITS[form]
        value = chance.choice([*EDGES, chance.getrandbits(bits)]) & ((1 << bits) - 1)
        value -= (value >> (bits - 1)) << bits
        if place + bits // 8 <= len(batch):
            struct.pack_into(f">{form}", batch, place, value)
    else:
        batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
    if len(batch) >= 61 and chance.random() < 0.5:
        batch[17:21] = records.crc32c(bytes(batch[21:])).to_bytes(4, "big")


def damaged(chance: random.Random, batches: list[bytearray]) -> bytes:
    for _ in range(chance.randrange(3)):
        mutate(chance, chance.choice(batches))
    if chance.random() < 0.1:
        chance.shuffle(batches)
    data = b"".join(batches)
    way = chance.random()
    if way < 0.1:
        return data[: chance.randrange(len(data) + 1)]
    return data + chance.randbytes(chance.randrange(100)) if way < 0.2 else data


def run_one(seed: int, directory: Path) -> None:
    chance = random.Random(seed)
    base = chance.choice((0, 7, 1 << 40))
    data = damaged(chance, log_of(chance, base))
    path = directory / f"{base:020d}.log"
    path.write_bytes(data)
    noise = chance.randbytes(chance.randrange(100)) if chance.random() < 0.5 else bytes(chance.randrange(100))
    inspection = Inspection(str(path), base, offset_index=noise, time_index=noise[::-1])
    turn = chance.choice((1, 100, 1 << 30))
    while not inspection.is_over:
        inspection.turn(turn)
    expected = walk.walk(data, base)
    found = inspection.position, inspection.end_offset, inspection.batches
    assert found == (expected.position, expected.end_offset, expected.batches), (found, expected)
    fault = inspection.fault
    assert (fault and fault.verdict) == expected.verdict, (str(fault), expected)
    while inspection.is_over and inspection.skip():
        inspection.turn(turn)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args()
    end = time.monotonic() + chosen.seconds
    seed = chosen.seed
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end:
            try:
                run_one(seed, Path(directory))
            except BaseException:
                print(f"seed {seed}", file=sys.stderr)
                raise
            seed += 1
    print(f"fuzz_segments: seeds {chosen.seed} to {seed - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
