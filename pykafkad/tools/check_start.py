"""`pykafkad check`: what a start would do with a partition, as storage/recovery/recovery.py does it."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import takewhile

from pykafkad.hot import segment as hot
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.storage import files
from pykafkad.storage.recovery import recovery, splitting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.tools.check_report import Hints, Report, Segment


def foresee(report: Report, hints: Hints, walked: int) -> None:
    """`walked` is the first segment that is walked in any case, whatever the last one looks like."""
    segments = report.segments
    if not segments:
        report.start.append(f"begin a new log at offset {report.log_start_offset}")
        return
    if walked == len(segments):
        position, end_offset = clean_end(report, segments[-1])
        if position < 0:
            walked -= 1
        elif position < segments[-1].size:
            foresee_cut(report, len(segments) - 1, position, end_offset)
            segments = segments[:-1]
            walked -= 1
        else:
            report.end_after = end_offset
    if walked < len(segments):
        size = sum(segment.size for segment in segments[walked:])
        count = f"{len(segments) - walked} of {len(segments)} segment(s)"
        report.start.append(f"walk {count}, {size} bytes, from offset {segments[walked].base}")
    for slot, segment in enumerate(segments):
        if segment.cut_at is None:
            following = segments[slot + 1 : slot + 2]
            if slot < walked or not following:
                continue
            position, end_offset = end_before(report, segment, following[0])
            if position < segment.size:
                if foresee_cut(report, slot, position, end_offset):
                    break
            elif recovery.misses_its_end(hints, hints.compacted, end_offset, following[0].base):
                foresee_cut(report, slot, position, end_offset)
                break
            continue
        if slot < walked:
            report.start.append(f"serve the rest of {segment.name} as it is")
        elif not foresee_split(report, slot, segment.cut_at) and foresee_cut(
            report, slot, segment.cut_at, segment.end_offset
        ):
            break
    if hints.log_start_offset is not None and hints.log_start_offset > report.log_end_offset_after:
        report.start.append(f"set the segments aside, and begin a new log at offset {hints.log_start_offset}")
        report.start_after = report.end_after = hints.log_start_offset


def end_before(report: Report, segment: Segment, following: Segment) -> tuple[int, int]:
    """Where the segment's batches end that do not reach into the next one: position and offset."""
    with opened(report, segment) as log:
        log.end_offset = segment.end_offset
        beyond = recovery.batch_beyond(log, [following.base])
        if beyond is None:
            return segment.size, segment.end_offset
        end_offset = segment.base
        for header in takewhile(lambda each: each.position < beyond.position, log.headers()):
            end_offset = header.last_offset + 1
    return beyond.position, end_offset


def loses_batch(report: Report, segment: Segment, position: int) -> bool:
    with opened(report, segment) as log:
        return recovery.loses(log, position, segment.verdict)


def clean_end(report: Report, last: Segment) -> tuple[int, int]:
    """The end of the last segment, and the log end offset, that a start after a clean stop finds. It looks only at the
    sizes of the batches behind the last index entry. (-1, …) means that the segment has to be walked."""
    if last.size == 0:
        return 0, last.base
    with opened(report, last) as log:
        try:
            position = log.load_end()
        except (OverflowError, hot.CorruptSegment):
            position = -1
        return position or -1, log.end_offset


@contextmanager
def opened(report: Report, segment: Segment) -> Iterator[hot.Segment]:
    """The segment as a start opens it; nothing is written."""
    indexes = OffsetIndex(report.path, segment.base), TimeIndex(report.path, segment.base)
    log = hot.Segment(report.path, segment.base, *indexes, segment.size)
    try:
        yield log
    finally:
        log.release()


def foresee_split(report: Report, slot: int, position: int) -> bool:
    """Whether the rest of the segment is good but too far from its base offset: then it is split, and nothing is lost."""
    segment, rest = report.segments[slot], report.segments[slot + 1 :]
    if segment.verdict != hot.Verdict.TOO_FAR:
        return False
    next_base = rest[0].base if rest else None
    end_offset = splitting.tail_end(segment.path, position, next_base)
    if end_offset is None:
        return False
    first = splitting.first_offset(segment.path, position)
    report.start.append(
        f"split {segment.name} at byte {position}: the offsets from {first} on become a segment"
    )
    if not rest:
        report.end_after = end_offset
    return True


def foresee_cut(report: Report, slot: int, position: int, end_offset: int) -> bool:
    """Cut off the rest of this segment; whether the log ends there."""
    segment, rest = report.segments[slot], report.segments[slot + 1 :]
    lost = segment.size - position
    if lost:
        report.start.append(
            f"cut {segment.name} at byte {position}, keep the offsets below {end_offset}, "
            f"set {lost} bytes aside in {segment.name}{files.CORRUPT}"
        )
    if rest and rest[0].base == end_offset and not loses_batch(report, segment, position):
        return False
    report.end_after = end_offset
    if rest:
        report.start.append(f"set {len(rest)} later segment(s) aside, from {rest[0].name} on")
    return True
