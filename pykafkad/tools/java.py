"""The part of a tool's output that depends on Java: the order of its hash maps.

Kafka's tools print many lists in the order of a HashMap. That order depends on the keys alone and is the same each
time, so it is followed here: a diff of our output with theirs is empty.
"""

from __future__ import annotations

from pykafkad.pure.java import hash_code as string_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    K = TypeVar("K")

__all__ = ["hash_order", "long_hash", "partition_hash", "string_hash"]

DEFAULT_CAPACITY = 16
LOAD_PERCENT = 75


def partition_hash(key: tuple[str, int]) -> int:
    """TopicPartition.hashCode, unsigned."""
    return (31 * (31 + key[1]) + string_hash(key[0])) & 0xFFFFFFFF


def long_hash(key: int) -> int:
    """Long.hashCode, unsigned."""
    unsigned = key & 0xFFFFFFFFFFFFFFFF
    return (unsigned ^ unsigned >> 32) & 0xFFFFFFFF


def hash_order(
    keys: Iterable[K], hash_of: Callable[[Any], int] = string_hash, capacity: int = DEFAULT_CAPACITY
) -> list[K]:
    """The keys in the order of a HashMap that was created with this capacity and got the keys in this order."""
    distinct = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(distinct) * 100 > size * LOAD_PERCENT:
        size *= 2
    found = [(_spread(hash_of(key)) & (size - 1), at, key) for at, key in enumerate(distinct)]
    return [key for _, _, key in sorted(found, key=lambda row: row[:2])]


def _spread(value: int) -> int:
    return value ^ value >> 16
