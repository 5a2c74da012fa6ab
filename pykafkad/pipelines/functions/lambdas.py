"""Functions that take lambdas."""

from __future__ import annotations

from collections.abc import Callable

from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.registry import scalar

CATEGORY = "LAMBDA"
Function = Callable[..., Value]


@scalar("TRANSFORM", CATEGORY, "(ARRAY<T>, (T) => U) ARRAY<U>")
def transform(items: list[Value], change: Function) -> list[Value]:
    """The items of an array, or the keys and values of a map, as lambdas change them."""
    return [change(item) for item in items]


@scalar("TRANSFORM", CATEGORY, "(MAP<K, V>, (K, V) => L, (K, V) => W) MAP<L, W>")
def transform_map(entries: dict[Value, Value], key: Function, value: Function) -> dict[Value, Value]:
    return {key(k, v): value(k, v) for k, v in entries.items()}


@scalar("FILTER", CATEGORY, "(ARRAY<T>, (T) => BOOLEAN) ARRAY<T>")
def keep(items: list[Value], wanted: Function) -> list[Value]:
    """The items of an array, or the entries of a map, for which a lambda is true."""
    return [item for item in items if wanted(item)]


@scalar("FILTER", CATEGORY, "(MAP<K, V>, (K, V) => BOOLEAN) MAP<K, V>")
def keep_entries(entries: dict[Value, Value], wanted: Function) -> dict[Value, Value]:
    return {k: v for k, v in entries.items() if wanted(k, v)}


@scalar("REDUCE", CATEGORY, "(ARRAY<T>, S, (S, T) => S) S", nulls=True)
def reduce(items: list[Value] | None, state: Value, step: Function) -> Value:
    """What a lambda makes of a state and one item (or key and value) after the other."""
    if items is None or state is None:
        return state
    for item in items:
        state = step(state, item)
    return state


@scalar("REDUCE", CATEGORY, "(MAP<K, V>, S, (S, K, V) => S) S", nulls=True)
def reduce_map(entries: dict[Value, Value] | None, state: Value, step: Function) -> Value:
    if entries is None or state is None:
        return state
    for k, v in entries.items():
        state = step(state, k, v)
    return state
