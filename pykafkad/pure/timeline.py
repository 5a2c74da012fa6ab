"""The order in which Kafka's own hash map (TimelineHashMap, over BaseHashTable) iterates over its keys.

Kafka keeps groups and the members of consumer groups in such maps, and lists them in their order. A table begins with 2
slots. It doubles when an element is put into it while three quarters of the next larger table would be more than its
slots, so it gets fuller than was intended; it never shrinks. The slot is selected by the top bits of a product of the
key's hash code. Within a slot the key that was put there last comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pykafkad.pure.java import as_int, hash_code

Value = TypeVar("Value")

FEWEST_PLACES = 2
FILLED = 3, 4  # a table grows when it is fuller than this
FIBONACCI = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def bits_for(most: int) -> int:
    """The bits of a slot's number, in a table into which an element was put when it held `most` - 1, and never more."""
    bits = FEWEST_PLACES.bit_length() - 1
    while most * FILLED[0] > FILLED[1] << bits:
        bits += 1
    return bits


def place_of(key: str, bits: int) -> int:
    return (as_int(hash_code(key)) * FIBONACCI & WORD) >> 64 - bits


def in_order(values: Sequence[Value], places: Sequence[int]) -> list[Value]:
    """The values in the table's order; each is given with its place, in the order of insertion."""
    backwards = range(len(values) - 1, -1, -1)
    return [values[at] for at in sorted(backwards, key=places.__getitem__)]


def map_order(keys: Iterable[str], most: int) -> list[str]:
    """The keys in the map's order, given in the order of insertion."""
    found, bits = list(keys), bits_for(most)
    return in_order(found, [place_of(key, bits) for key in found])
