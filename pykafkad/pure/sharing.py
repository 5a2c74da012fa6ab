"""Small values that thousands have alike (the topics of a subscription, a member's protocols) as one object each.

They may be shared since they cannot be changed. What is large is not kept here, so that what clients send cannot fill the
memory: it is as it came. Tables that mostly have nothing in them share NONE, which stays empty: who puts something into
one does so into `own(table)`.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any, TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")

KEPT = 1_000
FEW = 8  # items
SHORT = 256  # characters and bytes of all


NONE: dict[Any, Any] = {}


def own(table: dict[Key, Value]) -> dict[Key, Value]:
    return {} if table is NONE else table


def without(table: dict[Key, Value], key: Key) -> dict[Key, Value]:
    """When the key is taken out, if it was in it."""
    table.pop(key, None)
    return table or NONE


def set_of_numbers(items: Collection[int]) -> frozenset[int]:
    return _set_of(*items) if len(items) <= FEW else frozenset(items)


def set_of_texts(items: Collection[str]) -> frozenset[str]:
    return _set_of(*items) if are_small(items) else frozenset(items)


def tuple_of_texts(items: Collection[str]) -> tuple[str, ...]:
    return _tuple_of(*items) if are_small(items) else tuple(items)


def pairs_of(items: Collection[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    are_few = len(items) <= FEW and sum([len(text) + len(data) for text, data in items]) <= SHORT
    return _tuple_of(*items) if are_few else tuple(items)


def are_small(items: Collection[str]) -> bool:
    return len(items) <= FEW and sum(map(len, items)) <= SHORT


@lru_cache(maxsize=KEPT)
def _set_of(*items: Any) -> frozenset[Any]:
    return frozenset(items)


@lru_cache(maxsize=KEPT)
def _tuple_of(*items: Any) -> tuple[Any, ...]:
    return items
