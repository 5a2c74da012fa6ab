"""Questions about a log that are rarer than reading it: by timestamp, aborted transactions, what to sync."""

from __future__ import annotations

from bisect import bisect_right

from pykafkad.hot import records
from pykafkad.storage import files, transaction_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.segment import BatchHeader, FileRange, Segment
    from pykafkad.storage.partition import Found, Partition


def offset_for_timestamp(partition: Partition, timestamp: int) -> Found | None:
    """The first segment that reaches the timestamp has the answer, or nobody has. What the cleaner emptied is passed
    over: for Kafka it is as old as its file, and hides what comes after it."""
    start = partition.log_start_offset
    for segment in partition.segments:
        if segment.size and segment_timestamp(segment) >= timestamp:
            return first_record_since(segment, timestamp, start)
    return None


def segment_timestamp(segment: Segment) -> int:
    """The largest timestamp; records without any count as old as the file."""
    load_maxima(segment)
    return segment.max_timestamp if segment.max_timestamp >= 0 else files.modified_ms(segment.path)


def load_maxima(segment: Segment) -> None:
    """What the start left in the time index until somebody asks."""
    if segment.max_timestamp == -2:
        segment.max_timestamp, segment.max_timestamp_offset = segment.time_index.last_entry


def first_record_since(segment: Segment, timestamp: int, start_offset: int) -> Found | None:
    header = segment.batch_since(timestamp, start_offset)
    while header is not None:
        for record in records_of(segment, header):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return record.offset, record.timestamp, header.leader_epoch
        header = next_batch(segment, header)
    return None


def max_timestamp_offset(partition: Partition) -> Found | None:
    for segment in partition.segments:
        load_maxima(segment)
    newest = max(partition.segments, key=lambda segment: segment.max_timestamp)
    if newest.max_timestamp < 0:
        return None
    header = newest.batch_reaching(newest.max_timestamp_offset)
    while header is not None and header.max_timestamp != newest.max_timestamp:
        header = next_batch(newest, header)
    if header is None:
        return None
    for record in records_of(newest, header):
        if record.timestamp == header.max_timestamp:
            return record.offset, record.timestamp, header.leader_epoch
    return None


def next_batch(segment: Segment, header: BatchHeader) -> BatchHeader | None:
    return next(segment.headers(header.position + header.size), None)


def records_of(segment: Segment, header: BatchHeader) -> list[records.Record]:
    return list(records.read(segment.bytes_at(header.position, header.size)))


def aborted_transactions(partition: Partition, offset: int, data: FileRange) -> list[tuple[int, int]]:
    """Those in the transaction indexes from the read segment on, until one vouches that there are no more."""
    slot = max(0, bisect_right(partition.bases, offset) - 1)
    while slot + 1 < len(partition.segments) and partition.segments[slot].path != data.file.path:
        slot += 1
    upper_bound = bound_after(partition, slot, data.offset + data.size)
    found: list[tuple[int, int]] = []
    for segment in partition.segments[slot:]:
        more, complete = transaction_index.collect(
            partition.directory, segment.base_offset, offset, upper_bound
        )
        found += more
        if complete:
            break
    return found


def bound_after(partition: Partition, slot: int, position: int) -> int:
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


def sync_files(directory: str, recovery_point: int, offsets: list[int]) -> None:
    """fsync what may not be on the disk of the files named after these offsets: from the one that the
    recovery point lies in on (`offsets`: base offsets of segments, ascending, and perhaps the log's end: its
    snapshot).

    Data first, then the files made from it, then the names; the checkpoint that vouches for them comes later.
    Runs in a thread: it opens the files itself and touches no partition.
    """
    first = max(0, bisect_right(offsets, recovery_point) - 1)
    for suffix in (files.LOG, files.INDEX, files.TIME_INDEX, files.TRANSACTION_INDEX, files.SNAPSHOT):
        for offset in offsets[first:]:
            files.fsync_path(f"{directory}/{files.offset_name(offset, suffix)}")
    for name in (files.LEADER_EPOCHS, files.PARTITION_METADATA):
        files.fsync_path(f"{directory}/{name}")
    files.fsync_path(directory)
