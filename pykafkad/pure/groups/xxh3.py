"""XXH3's 64-bit hash with seed 0, which Kafka uses for a group's topics (ConsumerGroupMetadataValue.metadata_hash).

Plain Python, since a topic is hashed once for each change of it (topic_watch keeps the result). The algorithm is
described in https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md; it has four cases by length.
"""

from __future__ import annotations

import struct

MASK_64 = (1 << 64) - 1
PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1 = 0x9E3779B185EBCA87
PRIME64_2 = 0xC2B2AE3D27D4EB4F
PRIME64_3 = 0x165667B19E3779F9
PRIME64_4 = 0x85EBCA77C2B2AE63
PRIME64_5 = 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

STRIPE_BYTES = 64
STRIPES_A_BLOCK = (192 - STRIPE_BYTES) // 8
BLOCK_BYTES = STRIPES_A_BLOCK * STRIPE_BYTES
SHORT_BYTES, MIDDLE_BYTES, LONGER_BYTES = 16, 128, 240


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(left: int, right: int) -> int:
    """The 128-bit product of two numbers, its halves combined by xor."""
    product = left * right
    return (product & MASK_64) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * PRIME_MX1 & MASK_64
    return value ^ value >> 32


def _mix_16(data: bytes, at: int, secret_at: int) -> int:
    return _fold(
        _u64(data, at) ^ _u64(SECRET, secret_at),
        _u64(data, at + 8) ^ _u64(SECRET, secret_at + 8),
    )


def xxh3_64(data: bytes) -> int:
    """The hash, as an unsigned number."""
    size = len(data)
    if size <= SHORT_BYTES:
        return _short(data, size)
    if size <= MIDDLE_BYTES:
        return _middle(data, size)
    if size <= LONGER_BYTES:
        return _longer(data, size)
    return _long(data, size)


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ (_u64(SECRET, 24) ^ _u64(SECRET, 32))
        high = _u64(data, size - 8) ^ (_u64(SECRET, 40) ^ _u64(SECRET, 48))
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & MASK_64)
    if size >= 4:
        first = int.from_bytes(data[:4], "little")
        last = int.from_bytes(data[-4:], "little")
        keyed = (last + (first << 32)) ^ (_u64(SECRET, 8) ^ _u64(SECRET, 16))
        return _rrmxmx(keyed, size)
    if size:
        combined = data[size >> 1] << 24 | data[0] << 16 | size << 8 | data[-1]
        return _avalanche_64(combined ^ (_u32(SECRET, 0) ^ _u32(SECRET, 4)))
    return _avalanche_64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _rrmxmx(value: int, size: int) -> int:
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * PRIME_MX2 & MASK_64
    value ^= (value >> 35) + size
    value = value * PRIME_MX2 & MASK_64
    return value ^ value >> 28


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & MASK_64


def _avalanche_64(value: int) -> int:
    """The final mixing step of XXH64, which is used for the shortest inputs."""
    value ^= value >> 33
    value = value * PRIME64_2 & MASK_64
    value ^= value >> 29
    value = value * PRIME64_3 & MASK_64
    return value ^ value >> 32


def _middle(data: bytes, size: int) -> int:
    result = size * PRIME64_1
    for pair in range((size - 1) // 32 + 1):
        result += _mix_16(data, 16 * pair, 32 * pair)
        result += _mix_16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(result & MASK_64)


def _longer(data: bytes, size: int) -> int:
    result = size * PRIME64_1
    for part in range(8):
        result += _mix_16(data, 16 * part, 16 * part)
    result = _avalanche(result & MASK_64)
    for part in range(8, size // 16):
        result += _mix_16(data, 16 * part, 16 * (part - 8) + 3)
    result += _mix_16(data, size - 16, 136 - 17)
    return _avalanche(result & MASK_64)


def _long(data: bytes, size: int) -> int:
    lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    keys = [struct.unpack_from("<8Q", SECRET, 8 * stripe) for stripe in range(STRIPES_A_BLOCK)]
    scramble_keys = struct.unpack_from("<8Q", SECRET, 192 - STRIPE_BYTES)
    blocks = (size - 1) // BLOCK_BYTES
    at = 0
    for _ in range(blocks):
        for key in keys:
            _accumulate(lanes, data, at, key)
            at += STRIPE_BYTES
        _scramble(lanes, scramble_keys)
    for stripe in range((size - 1 - at) // STRIPE_BYTES):
        _accumulate(lanes, data, at, keys[stripe])
        at += STRIPE_BYTES
    last_key = struct.unpack_from("<8Q", SECRET, 192 - STRIPE_BYTES - 7)
    _accumulate(lanes, data, size - STRIPE_BYTES, last_key)
    return _merged(lanes, size * PRIME64_1 & MASK_64)


def _accumulate(lanes: list[int], data: bytes, at: int, key: tuple[int, ...]) -> None:
    words = struct.unpack_from("<8Q", data, at)
    for index in range(8):
        value = words[index]
        keyed = value ^ key[index]
        lanes[index ^ 1] = lanes[index ^ 1] + value & MASK_64
        lanes[index] = lanes[index] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & MASK_64


def _scramble(lanes: list[int], key: tuple[int, ...]) -> None:
    for index in range(8):
        lane = lanes[index]
        lanes[index] = (lane ^ lane >> 47 ^ key[index]) * PRIME32_1 & MASK_64


def _merged(lanes: list[int], start: int) -> int:
    result = start
    for pair in range(4):
        left = lanes[2 * pair] ^ _u64(SECRET, 11 + 16 * pair)
        right = lanes[2 * pair + 1] ^ _u64(SECRET, 19 + 16 * pair)
        result += _fold(left, right)
    return _avalanche(result & MASK_64)
