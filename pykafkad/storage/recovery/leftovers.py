"""What a crash may leave in a partition's directory: half-done deletions, cleanings and checkpoints.

A cleaning writes `.cleaned`, renames it to `.swap` (highest base offset first), renames the old files to
`.deleted` and the new ones to their names. So `.cleaned` is worthless, and `.swap` replaces what it covers,
except where a `.cleaned` of the same or a lower offset shows that its renaming never came to the end.

And what else may lie there: what is no file but has the name of one of ours is set aside, any other is left alone.
"""

from __future__ import annotations

import os

from pykafkad.hot.segment import Inspection
from pykafkad.logs import logger
from pykafkad.storage import files
from pykafkad.storage.files import (
    CLEANED,
    DELETED,
    LOG,
    OF_SEGMENT,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    WHOLE,
    offset_name,
    offset_of,
)

WORTHLESS = (DELETED, CLEANED, TEMPORARY)

log = logger("recovery")


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


def tidy(directory: str) -> list[str]:
    """Finish or undo what was under way; the names of the files that are there afterwards."""
    names, others = look(directory)
    for name in others:
        if is_ours(name):
            files.set_aside(f"{directory}/{name}")
        else:
            log.warn(f"{directory}/{name} is no file of a log, and is left alone")
    todo = plan(directory, names)
    for name in todo.unlinks:
        files.remove(f"{directory}/{name}")
    for name, target in todo.renames:
        os.replace(f"{directory}/{name}", f"{directory}/{target}")
    return list(todo.names)


def look(directory: str) -> tuple[list[str], list[str]]:
    """The names of the files, and of what is none and will not be removed anyway."""
    names: list[str] = []
    others: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            goes = entry.name.endswith(WORTHLESS) and is_ours(entry.name)
            (names if goes or is_file(entry) else others).append(entry.name)
    return names, others


def is_file(entry: os.DirEntry[str]) -> bool:
    """Or a link to one."""
    try:
        return entry.is_file()
    except OSError as error:  # of a link that leads nowhere
        if files.is_of_disk(error):
            raise
        return False


def is_ours(name: str) -> bool:
    """Whether we give a file that name."""
    stem = stem_of(name)
    return stem in WHOLE or is_of_segment(stem) or offset_of(stem, SNAPSHOT) is not None


def stem_of(name: str) -> str:
    """The file's name without what says that something is under way with it."""
    for mark in (*WORTHLESS, SWAP):
        name = name.removesuffix(mark)
    return name


def set_unreadable_aside(directory: str) -> None:
    """What this process may not read or write; but for the logs, all of it can be made anew."""
    for name in look(directory)[0]:
        if (
            is_ours(name)
            and not name.endswith(LOG)
            and not os.access(f"{directory}/{name}", os.R_OK | os.W_OK)
        ):
            files.set_aside(f"{directory}/{name}")


def plan(directory: str, names: list[str]) -> Plan:
    """Nothing is changed yet: the files are only looked at."""
    todo = Plan(names)
    suspicious = [name for name in names if name.endswith((*WORTHLESS, SWAP))]
    if suspicious:
        cleaned = [
            int(name[:20]) for name in suspicious if name.endswith(CLEANED) and is_of_segment(stem_of(name))
        ]
        for name in suspicious:
            unfinished = is_swap(name) and bool(cleaned) and int(name[:20]) >= min(cleaned)
            if name.endswith(WORTHLESS) or unfinished:
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
        if is_swap(name):
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
        if name.endswith(OF_SEGMENT[1:]) and name[:20] not in logs and is_of_segment(name):
            todo.unlink(name)


def is_swap(name: str) -> bool:
    return name.endswith(SWAP) and is_of_segment(stem_of(name))


def is_of_segment(name: str) -> bool:
    return any(offset_of(name, suffix) is not None for suffix in OF_SEGMENT)
