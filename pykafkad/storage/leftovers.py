"""What a crash may leave in a partition's directory: half-done deletions, cleanings and checkpoints.

A cleaning writes `.cleaned`, renames it to `.swap` (highest base offset first), renames the old files to
`.deleted` and the new ones to their names. So `.cleaned` is worthless, and `.swap` replaces what it covers,
except where a `.cleaned` of the same or a lower offset shows that its renaming never came to the end.
"""

from __future__ import annotations

import os

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import Segment
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


def tidy(directory: str, names: list[str]) -> list[str]:
    """Finish or undo what was under way; the names of the files that are there afterwards."""
    suspicious = [name for name in names if name.endswith((DELETED, CLEANED, SWAP, ".tmp"))]
    if suspicious:
        cleaned = [int(name[:20]) for name in suspicious if name.endswith(CLEANED) and name[:20].isdecimal()]
        for name in suspicious:
            unfinished = name.endswith(SWAP) and bool(cleaned) and int(name[:20]) >= min(cleaned)
            if not name.endswith(SWAP) or unfinished:
                os.unlink(f"{directory}/{name}")
        finish_swaps(directory)
        names = os.listdir(directory)
    return drop_orphans(directory, names)


def finish_swaps(directory: str) -> None:
    """Complete output replaces the segments in the range of offsets it covers."""
    names = os.listdir(directory)
    bases = sorted(base for name in names if (base := offset_of(name, LOG + SWAP)) is not None)
    if bases:
        first, end = bases[0], max(next_offset(directory, base, LOG + SWAP) for base in bases)
        for name in names:
            base = next((b for s in SEGMENT_SUFFIXES if (b := offset_of(name, s)) is not None), None)
            if base is not None and first <= base < end and f"{offset_name(base, LOG)}{SWAP}" not in names:
                os.unlink(f"{directory}/{name}")
    for name in names:
        if name.endswith(SWAP):
            os.replace(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")


def next_offset(directory: str, base: int, suffix: str) -> int:
    """Where the offsets of a swapped-in segment end: it is walked, as it is complete and has no index yet."""
    size = os.stat(f"{directory}/{offset_name(base, suffix)}").st_size
    indexes = OffsetIndex(directory, base), TimeIndex(directory, base)  # never opened: they are not there yet
    end = base
    for header in Segment(directory, base, *indexes, size, suffix=suffix).headers():
        end = header.last_offset + 1
    return end


def drop_orphans(directory: str, names: list[str]) -> list[str]:
    """Indexes of segments that are not there."""
    logs = {base for name in names if (base := offset_of(name, LOG)) is not None}
    kept = []
    for name in names:
        base = next((b for s in SEGMENT_SUFFIXES[1:] if (b := offset_of(name, s)) is not None), None)
        if base is not None and base not in logs:
            os.unlink(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept
