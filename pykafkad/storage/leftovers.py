"""What a crash may leave in a partition's directory: half-done deletions, cleanings and checkpoints.

A cleaning writes `.cleaned`, renames it to `.swap` (highest base offset first), renames the old files to
`.deleted` and the new ones to their names. So `.cleaned` is worthless, and `.swap` replaces what it covers,
except where a `.cleaned` of the same or a lower offset shows that its renaming never came to the end.
"""

from __future__ import annotations

import os

from pykafkad.hot.segment import Inspection
from pykafkad.storage.files import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_name,
    offset_of,
)

SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)


class Plan:
    """What is to be done: files to unlink, then names to give; and what is there afterwards (name -> name now)."""

    __slots__ = ("names", "renames", "unlinks")

    def __init__(self, names: list[str]) -> None:
        self.unlinks: list[str] = []
        self.renames: list[tuple[str, str]] = []
        self.names = {name: name for name in names}

    def unlink(self, name: str) -> None:
        self.unlinks.append(name)
        del self.names[name]

    def rename(self, name: str, target: str) -> None:
        self.renames.append((name, target))
        self.names.pop(name)
        self.names[target] = name


def tidy(directory: str, names: list[str]) -> list[str]:
    """Finish or undo what was under way; the names of the files that are there afterwards."""
    todo = plan(directory, names)
    for name in todo.unlinks:
        os.unlink(f"{directory}/{name}")
    for name, target in todo.renames:
        os.replace(f"{directory}/{name}", f"{directory}/{target}")
    return list(todo.names)


def plan(directory: str, names: list[str]) -> Plan:
    """Nothing is changed yet: the files are only looked at."""
    todo = Plan(names)
    suspicious = [name for name in names if name.endswith((DELETED, CLEANED, SWAP, ".tmp"))]
    if suspicious:
        cleaned = [int(name[:20]) for name in suspicious if name.endswith(CLEANED) and name[:20].isdecimal()]
        for name in suspicious:
            unfinished = name.endswith(SWAP) and bool(cleaned) and int(name[:20]) >= min(cleaned)
            if not name.endswith(SWAP) or unfinished:
                todo.unlink(name)
        plan_swaps(directory, todo)
    plan_orphans(todo)
    return todo


def plan_swaps(directory: str, todo: Plan) -> None:
    """Complete output replaces the segments in the range of offsets it covers."""
    names = list(todo.names)
    swapped = {base for name in names if (base := offset_of(name, LOG + SWAP)) is not None}
    if swapped:
        first, end = min(swapped), max(next_offset(directory, base) for base in swapped)
        for name in names:
            if is_of_segment(name) and (first <= int(name[:20]) < end or int(name[:20]) in swapped):
                todo.unlink(name)
    for name in names:
        if name.endswith(SWAP):
            todo.rename(name, name.removesuffix(SWAP))


def next_offset(directory: str, base: int) -> int:
    """Where the offsets of a swapped-in segment end: it is walked, as it has no index that says so yet."""
    inspection = Inspection(f"{directory}/{offset_name(base, LOG)}{SWAP}", base)
    while not inspection.is_over:
        inspection.turn()
    return inspection.end_offset


def plan_orphans(todo: Plan) -> None:
    """Indexes of segments that are not there go."""
    logs = {name[:20] for name in todo.names if offset_of(name, LOG) is not None}
    for name in list(todo.names):
        if name.endswith(SEGMENT_SUFFIXES[1:]) and name[:20] not in logs and is_of_segment(name):
            todo.unlink(name)


def is_of_segment(name: str) -> bool:
    return any(offset_of(name, suffix) is not None for suffix in SEGMENT_SUFFIXES)
