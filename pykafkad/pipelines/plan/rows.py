"""Rows: what operators take and emit.

A stream's row has no `old`. A table's row is a change: `old` is what its key held before, `columns` what it holds now;
None in either is "nothing". A stream's row with null for its value has None for its columns too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableMapping
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

T = TypeVar("T")

Columns: TypeAlias = tuple[Any, ...]
Window: TypeAlias = tuple[int, int]
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Evaluate: TypeAlias = Callable[[Columns], Any]
State: TypeAlias = MutableMapping[Hashable, Any]


class Row(NamedTuple):
    key: Columns | None
    columns: Columns | None
    time: int
    old: Columns | None = None
    window: Window | None = None
    headers: Headers = ()


def made_of(kind: type[T]) -> Callable[[tuple[Any, ...]], T]:
    """What makes a named tuple of a tuple that is known to fit, which its _make looks for."""
    return partial(tuple.__new__, kind)  # type: ignore[type-var]


row_of = made_of(Row)


class Operator(Protocol):
    """A step of a plan. `port` says which of its inputs the row comes from: 0, or 0 and 1 of a join."""

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]: ...


PLAIN = frozenset((str, int, float, bool, bytes, NoneType))


def hashable(value: Any) -> Hashable:
    """The value as a part of a state's key: lists and mappings have no hash of their own."""
    if type(value) is tuple and len(value) == 1 and type(value[0]) in PLAIN:
        return value
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    if isinstance(value, dict):
        return frozenset((name, hashable(item)) for name, item in value.items())
    return value  # type: ignore[no-any-return]


def state_key(row: Row) -> Hashable:
    """What a row is kept by: its key, and its window where the key is windowed."""
    return hashable(row.key), row.window
