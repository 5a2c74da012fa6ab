"""Mutated segments: a cleaning raises nothing but CleanerError, and what it writes can be read.

    python tests/fuzz/fuzz_cleaner.py --seconds N --seed S

Seeds are random compacted logs; mutations are of bytes and of header fields. Most get a right checksum, so that the
code after the check is reached. A failure prints its seed and its round.
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

from pykafkad.hot import cleaner, records
from tests import cleaner_logs as kit

EDGES = [0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, -0x80000000, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000]
FIELDS = [
    (0, ">q"),
    (8, ">i"),
    (16, ">b"),
    (21, ">h"),
    (23, ">i"),
    (27, ">q"),
    (35, ">q"),
    (43, ">q"),
    (57, ">i"),
]
SIZES = {"q": 64, "i": 32, "h": 16, "b": 8}


def mutate(chance: random.Random, batch: bytearray) -> None:
    for _ in range(chance.randrange(1, 4)):
        if chance.random() < 0.5:
            place, form = chance.choice(FIELDS)
            bits = SIZES[form[1]]
            value = chance.choice(EDGES) & ((1 << bits) - 1)
            value -= (value >> (bits - 1)) << bits
            if place + bits // 8 <= len(batch):
                struct.pack_into(form, batch, place, value)
        else:
            place = chance.randrange(len(batch))
            batch[place] ^= 1 << chance.randrange(8)
    if len(batch) >= 61 and chance.random() < 0.8:
        batch[17:21] = records.crc32c(bytes(batch[21:])).to_bytes(4, "big")


def damaged(chance: random.Random, data: bytes) -> bytes:
    batches = [data[each.position : each.position + each.size] for each in records.scan(data)]
    for _ in range(chance.randrange(1, 3)):
        if batches:
            place = chance.randrange(len(batches))
            batch = bytearray(batches[place])
            mutate(chance, batch)
            batches[place] = bytes(batch)
    whole = b"".join(batches)
    return whole[: chance.randrange(len(whole) + 1)] if chance.random() < 0.1 else whole


def run_one(seed: int, directory: Path) -> None:
    chance = random.Random(seed)
    log = kit.Maker(seed, codecs=(0, 0, 1, 2, 3, 4), magics=(0, 1, 2, 2, 2), batches=20).make()
    segments = {base: damaged(chance, data) for base, data in log.segments.items()}
    kit.write_log(directory, segments)
    bases = list(segments)
    memory = chance.choice([24, 240, 24_000])
    work = kit.Work(directory, bases, bases[0], bases[-1], producers=log.producers, aborted=log.aborted)
    try:
        cleaned = kit.clean(
            cleaner, work._replace(memory_bytes=memory, buffer_bytes=chance.choice([1, 5000]))
        )
    except cleaner.CleanerError:
        return
    for rewriter in cleaned.rewriters:
        list(records.read(Path(rewriter.paths[0]).read_bytes()))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args()
    end = time.monotonic() + chosen.seconds
    seed = chosen.seed
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as directory:
            try:
                run_one(seed, Path(directory))
            except BaseException:
                print(f"seed {seed}", file=sys.stderr)
                raise
        seed += 1
    print(f"fuzz_cleaner: seeds {chosen.seed} to {seed - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
