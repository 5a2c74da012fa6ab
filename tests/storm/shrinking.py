"""Reduces what failed to what is enough to fail: fewer requests first, then smaller ones. Pure: `fails` tries them.

A request is shrunk in the form of a file (asked.to_json): fields left out, arrays and texts halved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Tree = dict[str, Any]


class OutOfTime(Exception):
    """Raised by `fails`: the best result so far is returned."""


def fewest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Some of the items, in order, that fail, and no longer if any of them is left out."""
    kept = list(items)
    size = (len(kept) + 1) // 2
    try:
        while kept and size:
            start = 0
            while start < len(kept):
                fewer = kept[:start] + kept[start + size :]
                if fewer and fails(fewer):
                    kept = fewer
                else:
                    start += size
            size = 0 if size == 1 else (size + 1) // 2
    except OutOfTime:
        pass
    return kept


def smallest(tree: Tree, fails: Callable[[Tree], bool]) -> Tree:
    """The same request with less in it, as long as it fails."""
    try:
        again = True
        while again:
            again = False
            for smaller in simpler(tree):
                if fails(smaller):
                    tree, again = smaller, True
                    break
    except OutOfTime:
        pass
    return tree


def simpler(tree: Tree) -> Iterator[Tree]:
    """Requests that are a step simpler, the boldest steps first."""
    if tree["patches"]:
        yield tree | {"patches": []}
        if len(tree["patches"]) > 1:
            half = len(tree["patches"]) // 2
            yield tree | {"patches": tree["patches"][:half]}
            yield tree | {"patches": tree["patches"][half:]}
    for message in simpler_value(tree["message"]):
        yield tree | {"message": message}
    client = tree["client"]
    if client and not client.startswith("storm"):
        yield tree | {"client": "storm"}


def simpler_value(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
    elif isinstance(value, dict):
        yield from simpler_array(value) if "array" in value else simpler_struct(value)


def simpler_struct(value: Tree) -> Iterator[Tree]:
    if "hex" in value and isinstance(value["hex"], str):
        half = len(value["hex"]) // 4 * 2
        if half:
            yield {"hex": value["hex"][:half]}
        return
    for name in value:
        without = copy.copy(value)
        del without[name]
        yield without
    for name, part in value.items():
        for less in simpler_value(part):
            yield value | {name: less}


def simpler_array(value: Tree) -> Iterator[Tree]:
    """Runs of equal elements: fewer runs, shorter runs, simpler elements."""
    runs = value["array"]
    size = len(runs)
    while size > 1:
        size = (size + 1) // 2
        for start in range(0, len(runs), size):
            yield {"array": runs[:start] + runs[start + size :]}
        if size == 1:
            break
    for index, (count, element) in enumerate(runs):
        before, after = runs[:index], runs[index + 1 :]
        for fewer in dict.fromkeys((1, count // 2, count - 1)):
            if 0 < fewer < count:
                yield {"array": [*before, [fewer, element], *after]}
        for less in simpler_value(element):
            yield {"array": [*before, [count, less], *after]}
