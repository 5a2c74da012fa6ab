"""Questions about a log that are rarer than reading it: by timestamp, aborted transactions, what to sync.

Those by timestamp are work (slices.py), since they unfold whole batches. Who drives it looks between two slices whether
the partition is still there; whether its segments are is looked at here."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from pykafkad.hot import records
from pykafkad.storage import files
from pykafkad.storage.log import transaction_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import Any

    from pykafkad.hot.segment import BatchHeader, FileRange, Segment
    from pykafkad.storage.log.log import Found, Log
    from pykafkad.storage.syncs import Syncs

    Finding = Generator[Any, None, Found | None]  # work in slices, which yields what a codec keeps

SEGMENTS_AT_ONCE = 64


class SegmentGone(Exception):
    """Retention or the cleaner took it between two slices."""


def offset_for_timestamp(partition: Log, timestamp: int) -> Finding:
    """The first segment that reaches the timestamp has the answer, or nobody has. What the cleaner emptied is passed
    over: for Kafka it is as old as its file, and hides what comes after it."""
    for is_turn, segment in in_turns(partition.segments):
        if is_turn:
            yield
            check_there(partition, segment)
        if segment.size and segment_timestamp(segment) >= timestamp:
            return (yield from first_record_since(partition, segment, timestamp))
    return None


def in_turns(segments: Iterable[Segment]) -> Iterator[tuple[bool, Segment]]:
    """Each with whether others should have a turn before it."""
    for place, segment in enumerate(segments, start=1):
        yield place % SEGMENTS_AT_ONCE == 0, segment


def check_there(partition: Log, segment: Segment) -> None:
    """After a yield."""
    if segment not in partition.segments:
        raise SegmentGone


def segment_timestamp(segment: Segment) -> int:
    """The largest timestamp; records without any count as old as the file."""
    load_maxima(segment)
    return segment.max_timestamp if segment.max_timestamp >= 0 else files.modified_ms(segment.path)


def load_maxima(segment: Segment) -> None:
    """What the start left in the time index until somebody asks."""
    if segment.max_timestamp == -2:
        segment.max_timestamp, segment.max_timestamp_offset = segment.time_index.last_entry


def first_record_since(partition: Log, segment: Segment, timestamp: int) -> Finding:
    start = partition.log_start_offset
    header = segment.batch_since(timestamp, start)
    while header is not None:
        found = yield from records.search(bytes_of(segment, header), timestamp, start)
        if found is not None:
            return *found, header.leader_epoch
        check_there(partition, segment)
        header = segment.batch_since(timestamp, header.last_offset + 1)
    return None


def times_of_segments(partition: Log) -> Generator[Any, None, list[tuple[int, int]]]:
    """Where each segment begins, and when it was last written to."""
    found = []
    for is_turn, segment in in_turns(partition.segments):
        if is_turn:
            yield
            check_there(partition, segment)
        found.append((max(segment.base_offset, partition.log_start_offset), files.modified_ms(segment.path)))
    return found


def max_timestamp_offset(partition: Log) -> Finding:
    for is_turn, segment in in_turns(partition.segments):
        if is_turn:
            yield
        load_maxima(segment)
    newest = max(partition.segments, key=lambda segment: segment.max_timestamp)
    if newest.max_timestamp < 0:
        return None
    header = newest.batch_reaching(newest.max_timestamp_offset)
    while header is not None and header.max_timestamp != newest.max_timestamp:
        header = next_batch(newest, header)
    if header is None:
        return None
    found = yield from records.search(bytes_of(newest, header), header.max_timestamp, 0, exactly=True)
    return None if found is None else (*found, header.leader_epoch)


def next_batch(segment: Segment, header: BatchHeader) -> BatchHeader | None:
    return next(segment.headers(header.position + header.size), None)


def bytes_of(segment: Segment, header: BatchHeader) -> bytes:
    return segment.bytes_at(header.position, header.size)


def aborted_transactions(partition: Log, offset: int, data: FileRange) -> list[tuple[int, int]]:
    """Those in the transaction indexes from the read segment on, until one vouches that there are no more."""
    slot = max(0, bisect_right(partition.bases, offset) - 1)
    while slot + 1 < len(partition.segments) and partition.segments[slot].path != data.file.path:
        slot += 1
    upper_bound = bound_after(partition, slot, data.offset + data.size)
    found: list[tuple[int, int]] = []
    bases = bases_with_aborted(partition)
    for base in bases[bisect_left(bases, partition.bases[slot]) :]:
        more, complete = transaction_index.collect(partition.directory, base, offset, upper_bound)
        found += more
        if complete:
            break
    return found


def bases_with_aborted(partition: Log) -> list[int]:
    """The segments that have a transaction index: most have none, and of many it would take long to find that out."""
    if partition.aborted_bases is None:
        there = set(partition.bases)
        names = os.listdir(partition.directory)
        partition.aborted_bases = [base for base in transaction_index.bases_of(names) if base in there]
    return partition.aborted_bases


def bound_after(partition: Log, slot: int, position: int) -> int:
    """An offset that nothing before `position` reaches: the next index entry's, else the segment's end."""
    index = partition.segments[slot].offset_index
    low, high = 0, index.entries
    while low < high:
        middle = (low + high) // 2
        if index.entry(middle)[1] < position:
            low = middle + 1
        else:
            high = middle
    if low < index.entries:
        return index.entry(low)[0]
    return partition.bases[slot + 1] if slot + 1 < len(partition.bases) else partition.log_end_offset


def sync_files(syncs: Syncs, directory: str, recovery_point: int, offsets: list[int]) -> None:
    """fsync what may not be on the disk of the files named after these offsets: from the one that the
    recovery point lies in on (`offsets`: base offsets of segments, ascending, and perhaps the log's end: its
    snapshot).

    Data first, then the files made from it, then the names; the checkpoint that vouches for them comes later.
    Runs in a thread: it opens the files itself and touches no partition.
    """
    first = max(0, bisect_right(offsets, recovery_point) - 1)
    for suffix in (files.LOG, files.INDEX, files.TIME_INDEX, files.TRANSACTION_INDEX, files.SNAPSHOT):
        for offset in offsets[first:]:
            syncs.path(f"{directory}/{files.offset_name(offset, suffix)}")
    for name in (files.LEADER_EPOCHS, files.PARTITION_METADATA):
        syncs.path(f"{directory}/{name}")
    syncs.path(directory)
