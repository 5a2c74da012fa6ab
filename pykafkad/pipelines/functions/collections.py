"""Functions of arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.expressions.texts import texts_of
from pykafkad.pipelines.functions.registry import Call, scalar
from pykafkad.pipelines.types import Array, Field, Map, Primitive, SqlType, Struct
from pykafkad.pipelines.types import Decimal as DecimalType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CATEGORY = "ARRAY"
Items = list[Value]


def hashable(value: Value) -> Any:
    """What stands for the value in a set: equal values have equal ones."""
    if isinstance(value, list):
        return ("array", tuple(map(hashable, value)))
    if isinstance(value, dict):
        return ("map", frozenset((key, hashable(each)) for key, each in value.items()))
    return (type(value) is bool, value)


@scalar("ARRAY_LENGTH", CATEGORY, "(ARRAY<T>) INTEGER")
def array_length(items: Items) -> int:
    """The number of items."""
    return len(items)


@scalar("ARRAY_CONTAINS", CATEGORY, "(ARRAY<T>, T) BOOLEAN", nulls=True)
def array_contains(items: Items | None, wanted: Value) -> bool:
    """Whether a value is one of the items."""
    return items is not None and wanted in items


@scalar("ARRAY_DISTINCT", CATEGORY, "(ARRAY<T>) ARRAY<T>")
def distinct(items: Items) -> Items:
    """Each item once, where it first is."""
    first: dict[Any, Value] = {}
    for item in items:
        first.setdefault(hashable(item), item)
    return list(first.values())


@scalar("ARRAY_UNION", CATEGORY, "(ARRAY<T>, ARRAY<T>) ARRAY<T>")
def array_union(left: Items, right: Items) -> Items:
    """Each item of either array once."""
    return distinct([*left, *right])


@scalar("ARRAY_INTERSECT", CATEGORY, "(ARRAY<T>, ARRAY<T>) ARRAY<T>")
def array_intersect(left: Items, right: Items) -> Items:
    """Each item of the first array that is in the second, once."""
    wanted = set(map(hashable, right))
    return [item for item in distinct(left) if hashable(item) in wanted]


@scalar("ARRAY_EXCEPT", CATEGORY, "(ARRAY<T>, ARRAY<T>) ARRAY<T>")
def array_except(left: Items, right: Items) -> Items:
    """Each item of the first array that is not in the second, once."""
    unwanted = set(map(hashable, right))
    return [item for item in distinct(left) if hashable(item) not in unwanted]


@scalar("ARRAY_CONCAT", CATEGORY, "(ARRAY<T>, ARRAY<T>) ARRAY<T>", nulls=True)
def array_concat(left: Items | None, right: Items | None) -> Items | None:
    """The items of the first array, then those of the second."""
    return None if left is None and right is None else [*(left or []), *(right or [])]


@scalar("ARRAY_REMOVE", CATEGORY, "(ARRAY<T>, T) ARRAY<T>", nulls=True)
def array_remove(items: Items | None, unwanted: Value) -> Items | None:
    """The items that are not equal to a value."""
    return None if items is None else [item for item in items if item != unwanted]


@scalar("ARRAY_MAX", CATEGORY, "(ARRAY<T>) T")
def array_max(items: Items) -> Value:
    """The largest item; nulls do not count."""
    return max((item for item in items if item is not None), default=None)


@scalar("ARRAY_MIN", CATEGORY, "(ARRAY<T>) T")
def array_min(items: Items) -> Value:
    """The smallest item; nulls do not count."""
    return min((item for item in items if item is not None), default=None)


@scalar("ARRAY_SORT", CATEGORY, "(ARRAY<T>) ARRAY<T>")
def array_sort(items: Items) -> Items | None:
    """The items in ascending ('ASC') or descending ('DESC') order, nulls last."""
    return array_sort_as(items, "ASC")


@scalar("ARRAY_SORT", CATEGORY, "(ARRAY<T>, STRING) ARRAY<T>")
def array_sort_as(items: Items, order: str) -> Items | None:
    if order.upper() not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        return None
    present = sorted((item for item in items if item is not None), reverse=order.upper().startswith("DESC"))
    return [*present, *(item for item in items if item is None)]


@scalar("ARRAY_JOIN", CATEGORY, "(ARRAY<T>) STRING", "(ARRAY<T>, STRING) STRING", types=True, nulls=True)
def array_join(call: Call) -> Callable[..., str | None]:
    """The items as text with a delimiter between them, which is a comma where none is said."""
    of = call.types[0]
    if not isinstance(of, Array) or not isinstance(of.element, (Primitive, DecimalType)):
        raise StatementError("ARRAY_JOIN joins items that are no arrays, maps or structs")
    write = texts_of(of.element)

    def join(items: Items | None, delimiter: str | None = ",") -> str | None:
        return None if items is None else (delimiter or "").join(map(write, items))

    return join


@scalar("SLICE", CATEGORY, "(ARRAY<T>, INTEGER, INTEGER) ARRAY<T>", nulls=True)
def slice_of(items: Items | None, first: int | None, last: int | None) -> Items | None:
    """The items from one position to another, both included; null is the end."""
    if items is None:
        return None
    start = 1 if first is None else first
    end = len(items) if last is None else last
    return None if start < 1 or end > len(items) or start > end else items[start - 1 : end]


@scalar("AS_MAP", "MAP", "(ARRAY<STRING>, ARRAY<T>) MAP<STRING, T>")
def as_map(keys: list[str], values: Items) -> dict[str, Value]:
    """A map of an array of keys and one of values."""
    return dict(zip(keys, values, strict=False))


@scalar("MAP_KEYS", "MAP", "(MAP<STRING, T>) ARRAY<STRING>")
def map_keys(value: dict[str, Value]) -> list[str]:
    """The keys of a map."""
    return list(value)


@scalar("MAP_VALUES", "MAP", "(MAP<STRING, T>) ARRAY<T>")
def map_values(value: dict[str, Value]) -> Items:
    """The values of a map."""
    return list(value.values())


@scalar("MAP_UNION", "MAP", "(MAP<STRING, T>, MAP<STRING, T>) MAP<STRING, T>", nulls=True)
def map_union(left: dict[str, Value] | None, right: dict[str, Value] | None) -> dict[str, Value] | None:
    """The entries of both maps; the second's where both have a key."""
    return None if left is None and right is None else {**(left or {}), **(right or {})}


def _entry_type(types: Sequence[SqlType | None]) -> SqlType:
    of = types[0]
    if not isinstance(of, Map):
        raise StatementError("ENTRIES needs a map of a known type")
    return Array(Struct((Field("K", of.key), Field("V", of.value))))


@scalar("ENTRIES", "MAP", "(MAP<STRING, T>, BOOLEAN) ARRAY<T>", result=_entry_type)
def entries(value: dict[str, Value], in_order: bool) -> list[dict[str, Value]]:
    """The entries of a map as structs of a key K and a value V, in the order of their keys where that is asked for."""
    items = sorted(value.items()) if in_order else list(value.items())
    return [{"K": key, "V": each} for key, each in items]
