"""`pykafkad check`: its findings, as objects and as JSON.

A problem is damage, or a contradiction to the log. A note is worth knowing, and nothing is wrong. `start` is what a
start would do.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.hot.segment import Verdict


class Problem:
    """Something that is wrong, and where, as far as that is known."""

    __slots__ = ("file", "offsets", "position", "text")

    def __init__(
        self, file: str, text: str, position: int | None = None, offsets: tuple[int, int] | None = None
    ) -> None:
        self.file = file
        self.text = text
        self.position = position
        self.offsets = offsets

    def __str__(self) -> str:
        where = "" if self.position is None else f" at byte {self.position}"
        which = "" if self.offsets is None else f" (offsets {self.offsets[0]} to {self.offsets[1]})"
        return f"{self.file}: {self.text}{where}{which}"

    def fields(self) -> dict[str, Any]:
        offsets = None if self.offsets is None else list(self.offsets)
        return {"file": self.file, "what": self.text, "position": self.position, "offsets": offsets}


class Hints:
    """What the directory's checkpoints and clean-shutdown marker say about a partition."""

    __slots__ = ("clean", "compacted", "high_watermark", "log_start_offset", "recovery_point", "topic_id")

    def __init__(self, clean: bool) -> None:
        self.clean = clean
        self.recovery_point = 0
        self.log_start_offset: int | None = None
        self.high_watermark: int | None = None
        self.compacted = False  # whether its cleanup.policy has `compact`, as far as that is known
        self.topic_id: bytes | None = None  # what the metadata log says; None: there is none here


class Segment:
    """What was found in one segment."""

    __slots__ = (
        "base",
        "batches",
        "cut_at",
        "end_offset",
        "gaps",
        "name",
        "path",
        "records",
        "size",
        "verdict",
    )

    def __init__(self, base: int, name: str, path: str) -> None:
        self.base = base
        self.name = name
        self.path = path
        self.size = os.stat(path).st_size
        self.end_offset = base  # the offset after the last batch before `cut_at`
        self.batches = self.records = self.gaps = 0
        self.cut_at: int | None = None  # the position of the first bad batch
        self.verdict: Verdict | None = None  # what is wrong with it


class Report:
    """What was found in one partition."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.segments: list[Segment] = []
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.start: list[str] = []  # what a start would do
        self.log_start_offset = 0
        self.start_after: int | None = None  # log start and end offset, if a start would change them
        self.end_after: int | None = None

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else self.log_start_offset

    @property
    def log_end_offset_after(self) -> int:
        """The log end offset after a start."""
        return self.log_end_offset if self.end_after is None else self.end_after

    @property
    def log_start_offset_after(self) -> int:
        return self.log_start_offset if self.start_after is None else self.start_after

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def batches(self) -> int:
        return sum(segment.batches for segment in self.segments)

    def fields(self) -> dict[str, Any]:
        return {
            "partition": self.name,
            "path": self.path,
            "segments": len(self.segments),
            "bytes": self.size,
            "batches": self.batches,
            "records": sum(segment.records for segment in self.segments),
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "problems": [problem.fields() for problem in self.problems],
            "notes": self.notes,
            "start": self.start,
            "log_start_offset_after_start": self.log_start_offset_after,
            "log_end_offset_after_start": self.log_end_offset_after,
        }
