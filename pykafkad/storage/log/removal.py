"""Segments that leave a log: their files are `.deleted` at once, and unlinked later (storage/deletions.py)."""

from __future__ import annotations

from pykafkad.storage import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.segment import Segment


def mark_deleted(directory: str, base_offset: int, *, snapshot: bool) -> list[str]:
    """Rename a segment's files, and the producers' snapshot at its base: the new names of those that were there. The
    log is the first: without it the others belong to nothing, whenever a crash comes."""
    renamed = []
    for suffix in (*files.OF_SEGMENT, files.SNAPSHOT) if snapshot else files.OF_SEGMENT:
        path = f"{directory}/{files.offset_name(base_offset, suffix)}"
        try:
            files.rename(path, path + files.DELETED)
        except FileNotFoundError:
            continue
        renamed.append(path + files.DELETED)
    return renamed


def mark_all_deleted(directory: str, segments: list[Segment]) -> list[str]:
    paths = []
    for segment in segments:
        segment.release()
        paths += mark_deleted(directory, segment.base_offset, snapshot=True)
    return paths
