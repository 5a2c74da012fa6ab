"""Mutated messages into the codec: `python tests/fuzz/fuzz_wire.py --seconds 60 --seed 1`.

Each case takes a golden vector, mutates it and decodes it out of a larger buffer of noise. Only WireError
may come out; what decodes must not depend on the noise, and must survive being encoded and decoded again.
Meant to be run under ASAN (`make asan`) with PYTHONMALLOC=malloc, so it needs nothing but the standard
library. A failure prints the seed and the case.
"""

from __future__ import annotations

import argparse
import array
import gzip
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from pykafkad import messages  # noqa: E402
from pykafkad.hot import wire  # noqa: E402

LENGTHS = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x00\xff\xff",
    b"\x7f\xff",
    b"\xff\xff",
    b"\x80\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x08",
    b"\x80\x80\x80\x80\x80\x00",
    b"\xff\xff\x03",
    b"\x80\x01",
]
BYTES = b"\x00\x01\x02\x7f\x80\x81\xfe\xff"
LARGEST = 20000


def golden() -> list[tuple[str, int, bytes]]:
    with gzip.open(ROOT / "tests" / "golden" / "messages.jsonl.gz", "rt", encoding="utf-8") as file:
        vectors = [json.loads(line) for line in file]
    cases = [(vector["message"], vector["version"], bytes.fromhex(vector["hex"])) for vector in vectors]
    return [case for case in cases if len(case[2]) <= LARGEST]


def mutate(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """One change, of a kind that decoders may not expect."""
    out = bytearray(data)
    at = chance.randrange(len(out) + 1)
    kind = chance.randrange(8)
    if kind == 0 and at < len(out):
        out[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and at < len(out):
        out[at] = chance.choice(BYTES)
    elif kind == 2:
        out[at : at + chance.choice((1, 2, 4, 8))] = b""
    elif kind == 3:
        out[at:at] = chance.randbytes(chance.choice((1, 2, 4, 16)))
    elif kind == 4:
        del out[at:]
    elif kind == 5:
        value = chance.choice(LENGTHS)
        out[at : at + (len(value) if chance.random() < 0.7 else 0)] = value
    elif kind == 6:
        start = chance.randrange(len(other) + 1)
        out[at : at + 8] = other[start : start + chance.randrange(64)]
    else:
        out[at:at] = out[chance.randrange(at + 1) : at][:64]
    return bytes(out)


def mutant(chance: random.Random, cases: list[tuple[str, int, bytes]]) -> tuple[str, int, bytes]:
    name, version, data = chance.choice(cases)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        data = mutate(chance, data, chance.choice(cases)[2])
    if chance.random() < 0.05:
        version += chance.choice((-1, 1))
    return name, version, data


def verdict(cls: Any, version: int, buffer: Any, start: int, end: int) -> tuple[str, Any, int]:
    """The result of decoding: ("ok", object, bytes used) or ("refused", None, 0)."""
    try:
        made, stop = cls.decode_prefix(buffer, version, start, end)
    except wire.WireError:
        return "refused", None, 0
    return "ok", made, stop - start


def encoded(made: Any, version: int) -> bytes | None:
    try:
        return made.encode(version)
    except wire.WireError:
        return None


def try_message(name: str, version: int, data: bytes, noise: bytes) -> str:
    cls = getattr(messages, name)
    exact = memoryview(array.array("B", data))  # an allocation that ends where the data ends
    result, made, used = verdict(cls, version, exact, 0, len(data))
    around = array.array("B", noise + data + noise)
    again, same, used_again = verdict(cls, version, around, len(noise), len(noise) + len(data))
    if (result, used) != (again, used_again):
        raise AssertionError(f"the bytes around a message matter: {result} {used}, {again} {used_again}")
    if result == "ok":
        repr(made)
        first = encoded(made, version)
        if first != encoded(same, version):
            raise AssertionError("the bytes around a message matter")
        if first is not None and encoded(cls.decode(first, version), version) != first:
            raise AssertionError("encoding is not stable")
    return result


def try_header(reader: wire.RequestReader, chance: random.Random, noise: bytes) -> str:
    client = chance.randbytes(chance.randrange(20))
    length = chance.choice((len(client), len(client), -1, 32767, -32768))
    header = chance.randrange(-2, 100).to_bytes(2, "big", signed=True) + chance.randrange(20).to_bytes(
        2, "big"
    )
    data = (
        header
        + chance.randbytes(4)
        + length.to_bytes(2, "big", signed=True)
        + client
        + chance.choice(LENGTHS)
    )
    data = mutate(chance, data, noise)
    try:
        exchange, request = reader.read(None, memoryview(array.array("B", data)), 0, len(data))
    except wire.WireError:
        return "refused"
    if exchange.route is None and request is not None:
        raise AssertionError(f"{request} for an API that is not served")
    return "ok"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    cases = golden()
    requests = [
        getattr(messages, name) for name in {name for name, _, _ in cases} if name.endswith("Request")
    ]
    reader = wire.RequestReader({each.api_key: wire.Route(each, (0, 99), None) for each in requests}.get)
    counts = {"ok": 0, "refused": 0}
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end and sum(counts.values()) < arguments.cases:
        name, version, data = mutant(chance, cases)
        noise = chance.randbytes(chance.randrange(32))
        try:
            counts[try_message(name, version, data, noise)] += 1
            counts[try_header(reader, chance, noise)] += 1
        except BaseException:
            print(f"seed {arguments.seed}: {name} v{version} {data.hex()} in {noise.hex()}", file=sys.stderr)
            raise
    print(f"wire: {sum(counts.values())} cases, {counts['ok']} decoded, {counts['refused']} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
