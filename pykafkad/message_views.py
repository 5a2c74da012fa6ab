"""What is in a message, for people: a shortened view of it, the error codes in it, the topics and groups it names.

Invariants: whatever a client sent, no view has more than NODES values, an array more than ELEMENTS of its elements or a
text more than CHARACTERS of its own, and what is left out is counted; bytes are told by their size alone, and secrets
not at all. No value of the view is part of the message, so whoever keeps the view keeps nothing of the message.
"""

from __future__ import annotations

from functools import cache

from pykafkad.hot import wire
from pykafkad.uuids import ZERO, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NODES = 400  # values in a view
ELEMENTS = 8  # of an array
CHARACTERS = 200  # of a text
LOOKED_AT = 2_000  # structs of a message that are searched for errors and names

TOPIC, GROUP = "topicName", "groupId"  # entities, as the schemas name them
NUMBERS = (int, float, type(None))
SECRETS = ("password", "secret", "jaas")  # in the names of configs whose values nobody is shown
HIDDEN = "<hidden>"


# -- a shortened view


class _Left:
    """How many more values the view may have."""

    def __init__(self) -> None:
        self.nodes = NODES


def view(message: Any, version: int) -> Any:
    """The message as what JSON has: dicts, lists, texts and numbers."""
    return _struct(message, version, _Left())


def _struct(struct: Any, version: int, left: _Left) -> Any:
    shown = {}
    for attribute, first, last in _shown_fields(struct.__class__):
        if first <= version <= last:
            if left.nodes <= 0:
                shown["…"] = "cut"
                break
            shown[attribute] = _value(getattr(struct, attribute), version, left)
    if shown.get("value") is not None and any(secret in str(shown.get("name")).lower() for secret in SECRETS):
        shown["value"] = HIDDEN
    return shown


def _value(value: Any, version: int, left: _Left) -> Any:
    left.nodes -= 1
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, wire.Struct):
        return _struct(value, version, left)
    if isinstance(value, list | tuple):
        return _array(value, version, left)
    size = getattr(value, "size", None)  # of a range of a file, which has no len()
    if isinstance(value, bytes) and len(value) == len(ZERO):
        return to_text(value)  # as ids are
    return f"<{len(value) if size is None else size} bytes>"


def _array(values: Any, version: int, left: _Left) -> list[Any]:
    shown = []
    for value in values[:ELEMENTS]:
        if left.nodes <= 0:
            break
        shown.append(_value(value, version, left))
    if len(values) > len(shown):
        shown.append(f"… {len(values) - len(shown)} more")
    return shown


def cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}… {len(text) - CHARACTERS} more"


@cache
def _shown_fields(kind: Any) -> tuple[tuple[str, int, int], ...]:
    return tuple((each.attribute, *each.versions) for each in wire.fields(kind) if each.type != "constant")


# -- what is in it


def error_codes(message: Any) -> list[int]:
    """The different error codes in an answer, those of its topics and partitions too, in their order."""
    found: dict[int, None] = {}
    for struct in _structs(message):
        for attribute in _places(struct.__class__).errors:
            found[getattr(struct, attribute)] = None
    if len(found) > 1:
        found.pop(0, None)  # what went well besides what failed
    return list(found)


def names(message: Any) -> tuple[list[str | bytes], list[str]]:
    """The topics (names, or ids where it has those) and the groups that it is about."""
    topics: dict[str | bytes, None] = {}
    groups: dict[str, None] = {}
    for struct in _structs(message):
        places = _places(struct.__class__)
        for attributes, found in ((places.topics, topics), (places.groups, groups)):
            for attribute in attributes:
                named: Any = getattr(struct, attribute)
                found.update(dict.fromkeys(named[:LOOKED_AT] if isinstance(named, list) else [named]))
    return [each for each in topics if each and each != ZERO], [each for each in groups if each]


def _structs(message: Any) -> Iterator[Any]:
    """The structs of a message, the outer ones first; no more of them than may be looked at."""
    queue = [message]
    for struct in queue:
        yield struct
        for attribute in _places(struct.__class__).structs:
            value = getattr(struct, attribute)
            if value is not None and len(queue) < LOOKED_AT:
                queue += value[: LOOKED_AT - len(queue)] if isinstance(value, list) else [value]


class _Places:
    """Where a struct has what is looked for: names of attributes."""

    def __init__(self, kind: Any) -> None:
        fields = [each for each in wire.fields(kind) if each.type != "constant"]
        self.errors = [each.attribute for each in fields if each.attribute == "error_code"]
        self.groups = [each.attribute for each in fields if each.entity == GROUP]
        self.topics = [
            each.attribute
            for each in fields
            if each.entity == TOPIC or (each.attribute == "topic_id" and each.type == "uuid")
        ]
        self.structs = [each.attribute for each in fields if each.struct is not None]


_places = cache(_Places)
