"""What a start passed over, read after all: is every batch below the snapshot still good?

A start does not need those batches. Apache Kafka walks them all at each of its starts, though, and cuts the log where
one is bad, with everything behind it; so a directory with such a batch must not be handed over. Reads a piece at a
time, on a thread that owns nothing.
"""

from __future__ import annotations

import os

from pykafkad.cluster.metadata_files import segment_name
from pykafkad.cluster.metadata_reading import Window, good_batches

PIECE_BYTES = 256 << 10  # what is looked at in one go, with the interpreter's lock held

PassedOver = tuple[int, int]  # a segment's base offset, and the byte that its good part must reach


def first_damage(directory: str, parts: list[PassedOver]) -> tuple[str, int] | None:
    """The file and the byte where the first bad batch begins."""
    for base_offset, end in parts:
        path = os.path.join(directory, segment_name(base_offset))
        reached = good_up_to(path, end)
        if reached < end:
            return path, reached
    return None


def good_up_to(path: str, end: int) -> int:
    """Where the first bad batch begins; `end` or more if there is none before it."""
    window = Window(path, 0, PIECE_BYTES)
    try:
        while window.position < end:
            window.fill()
            _, used, torn = good_batches(window.data)
            is_last = window.is_last
            window.move(used)
            if torn or (is_last and used < len(window.data)):
                break
        return window.position
    finally:
        window.close()
