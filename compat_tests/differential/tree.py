"""Two answers compared field by field: where they differ, and whether a difference is meant.

A message is compared as a tree; a path is written `FetchResponse.responses[0].partitions[2].error_code`, and without
the indices for the lookup of a rule. `meant.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from compat_tests.differential import meant

if TYPE_CHECKING:
    from compat_tests.differential.pair import Pair

SHOWN_CHARACTERS = 300


class Difference(NamedTuple):
    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.path}: ours {shown(self.ours)}, Kafka's {shown(self.theirs)}"


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"


def field_names(message: Any) -> list[str]:
    return [name for name, attribute in vars(type(message)).items() if hasattr(attribute, "__set__")]


def is_message(value: Any) -> bool:
    return hasattr(value, "unknown_tags")


def differences(pair: Pair, ours: Any, theirs: Any) -> list[Difference]:
    name = type(theirs).__name__
    return list(_compare(pair, name, name, ours, theirs))


def _compare(pair: Pair, path: str, rule_path: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    ours, theirs = (bytes(value) if isinstance(value, memoryview) else value for value in (ours, theirs))
    rule = meant.RULES.get(rule_path)
    if rule is not None:
        if not rule.accepts(pair, ours, theirs):
            yield Difference(path, ours, theirs)
    elif is_message(ours) and is_message(theirs) and type(ours) is type(theirs):
        for name in field_names(theirs):
            mine, other = getattr(ours, name), getattr(theirs, name)
            yield from _compare(pair, f"{path}.{name}", f"{rule_path}.{name}", mine, other)
    elif isinstance(ours, list) and isinstance(theirs, list):
        yield from _compare_lists(pair, path, rule_path, ours, theirs)
    elif isinstance(ours, str) and isinstance(theirs, str):
        if not meant.same_text(ours, theirs):
            yield Difference(path, ours, theirs)
    elif ours != theirs:
        yield Difference(path, ours, theirs)


def _compare_lists(
    pair: Pair, path: str, rule_path: str, ours: list[Any], theirs: list[Any]
) -> Iterator[Difference]:
    key = meant.UNORDERED.get(rule_path)
    if key is not None:
        ours = sorted(ours, key=lambda item: key(pair.ours, item))
        theirs = sorted(theirs, key=lambda item: key(pair.theirs, item))
    keep = meant.LEFT_OUT.get(rule_path)
    if keep is not None and pair.ours.is_pykafkad:
        ours, theirs = keep(ours, theirs)
    if len(ours) != len(theirs):
        yield Difference(f"{path}.length", len(ours), len(theirs))
        yield Difference(path, ours, theirs)
        return
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        yield from _compare(pair, f"{path}[{index}]", f"{rule_path}[]", mine, other)
