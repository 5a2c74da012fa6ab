"""Mutated record batches: only RecordsError is raised, and what is accepted can be read, or is refused again.

    python tests/fuzz/fuzz_records.py --seconds N --seed S

Seeds are Kafka's golden batches and batches built here; mutations are of bytes, of header fields, of the records before
they are compressed, and of compressed bytes. Most get a right length and CRC, so that the code after those checks is
reached. A failure prints its seed, its round and the bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import struct
import sys
import time
from pathlib import Path

from pykafkad import compression
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError, Rules

GOLDEN = Path(__file__).parents[1] / "golden" / "batches"
NOW_MS = 1700000100000
LARGEST_SEED_BYTES = 8192
EDGES = [0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, -0x80000000, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000]

# position and format of the header's fields
FIELDS = [
    (0, ">q"),
    (8, ">i"),
    (12, ">i"),
    (16, ">b"),
    (21, ">h"),
    (23, ">i"),
    (27, ">q"),
    (35, ">q"),
    (43, ">q"),
    (51, ">h"),
    (53, ">i"),
    (57, ">i"),
]


def golden() -> list[bytes]:
    found = []
    for name in ("valid", "corrupt"):
        with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as lines:
            found += [bytes.fromhex(json.loads(line)["hex"]) for line in lines]
    return [data for data in found if len(data) <= LARGEST_SEED_BYTES]


def some_rules(chance: random.Random) -> Rules:
    return Rules(
        max_message_bytes=chance.choice([1048588, 1048588, 300]),
        compression=chance.choice(["producer", "producer", "uncompressed", *records.CODECS[1:]]),
        log_append_time=chance.random() < 0.2,
        timestamp_before_max_ms=chance.choice([2**63 - 1, 1000]),
        timestamp_after_max_ms=chance.choice([2**63 - 1, 3600000]),
        compacted=chance.random() < 0.2,
        client=chance.random() < 0.8,
    )


def mutate(chance: random.Random, data: bytearray, times: int) -> None:
    """Flip, insert, delete and copy bytes."""
    for _ in range(times):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[place:place] = chance.randbytes(chance.randrange(1, 6))
        elif kind == 2:
            del data[place : place + chance.randrange(1, 6)]
        elif kind == 3:
            data[place:place] = chance.choice([b"\xff" * 5, b"\xff" * 10, b"\xfe\xff\xff\xff\x0f", b"\x01"])
        elif kind == 4:
            data[place:place] = data[: chance.randrange(len(data) + 1)]


def mutate_header(chance: random.Random, data: bytearray) -> None:
    place, form = chance.choice(FIELDS)
    size = struct.calcsize(form)
    if len(data) >= place + size:
        value = chance.choice(EDGES) & ((1 << 8 * size) - 1)
        data[place : place + size] = value.to_bytes(size, "big")


def mutate_inside(chance: random.Random, data: bytearray) -> None:
    """Decompress the records, mutate them, compress them again, perhaps with another codec."""
    if len(data) < 61 or data[16] != 2:
        return
    try:
        plain = bytearray(b"".join(records.Pieces(data[22] & 7, memoryview(bytes(data[61:])))))
    except (RecordsError, ValueError):
        return
    mutate(chance, plain, chance.randrange(3))
    codec = chance.randrange(5)
    packed = bytes(plain)
    if codec:
        compressor = compression.compressor(codec)
        packed = compressor.compress(packed) + compressor.flush()
    data[61:] = packed
    data[22] = data[22] & 0xF8 | codec


def put_right(data: bytearray) -> None:
    if len(data) >= 61:
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[17:21] = records.crc32c(data[21:]).to_bytes(4, "big")


def mutation(chance: random.Random, seeds: list[bytes]) -> bytearray:
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(4)
        if kind == 0:
            mutate(chance, data, 1)
        elif kind == 1:
            mutate_header(chance, data)
        else:
            mutate_inside(chance, data)
    if chance.random() < 0.8:
        put_right(data)
    return data


def attempt(data: bytearray, rules: Rules) -> None:
    """Call everything that reads bytes from outside."""
    for look in (
        records.scan,
        lambda found: list(records.read(found)),
        lambda found: records.check_produce(found, 9),
    ):
        try:
            look(bytes(data))
        except RecordsError:
            pass
    try:
        batches = records.validate(data, rules, NOW_MS, "fuzz-0")
    except RecordsError:
        return
    last = batches.assign(1000, 7)
    (batch,) = records.scan(batches.data)  # raises if the CRC were wrong now
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (1000, last, 7)
    assert batch.size == batches.size <= rules.max_message_bytes
    if (batches.converted or batch.codec == "none") and not batch.is_control:
        assert sum(1 for _ in records.read(batches.data)) == batch.count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    seeds = golden()
    print(f"fuzz_records: seed {options.seed}, {options.seconds} s")
    end = time.monotonic() + options.seconds
    rounds = 0
    while time.monotonic() < end:
        chance = random.Random(options.seed * 1_000_003 + rounds)
        data = mutation(chance, seeds)
        rules = some_rules(chance)
        kept = bytes(data)
        try:
            attempt(data, rules)
        except Exception:
            print(f"seed {options.seed} round {rounds}: {kept.hex()}", file=sys.stderr)
            raise
        rounds += 1
    print(f"fuzz_records: {rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
