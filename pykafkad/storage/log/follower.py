"""What a follower's log does that a leader's does not: take batches as the leader has them, and be cut where they part.

An append keeps every byte: offsets, leader epochs, timestamps and checksums are the leader's. A cut leaves whole batches
and everything made from them: indexes, leader epochs, producers' state, as a start after a crash makes them. The
recovery point must be below the cut before, and the cut on the disk before an append: storage/log/truncations.py.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import Segment
from pykafkad.logs import logger
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage.log import markers, snapshots, transaction_index
from pykafkad.storage.log.settings import index_room
from pykafkad.storage.recovery.walking import Walk, note_producer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from pykafkad.hot.records import Batch
    from pykafkad.storage.log.log import Log

OFFSET_MAX = (1 << 63) - 1  # where a log may end
FOREVER_MS = 1 << 62  # no producer expires because a log is cut

log = logger("storage")


class OffsetsDoNotFollow(KafkaError):
    """What was fetched begins below the log's end."""

    def __init__(self, name: str, first: int, end: int) -> None:
        super().__init__(errors.OFFSET_OUT_OF_RANGE, f"{name} ends at {end}, and a batch begins at {first}")


# -- appending


def append(partition: Log, data: ReadableBuffer, leader_epoch: int, now_ms: int) -> int:
    """Queue the whole batches of a leader's answer; how many. The last one may be cut off, and is left out, and so is
    what comes from a later epoch than the leader that was asked (KAFKA-18723). RecordsError for damaged bytes."""
    view = memoryview(data)
    taken = 0
    for batch in records.scan(view):
        if batch.leader_epoch > leader_epoch:
            log.warn(
                f"{partition.name}: a batch of epoch {batch.leader_epoch} came from the leader of {leader_epoch}"
            )
            break
        if not 0 <= batch.base_offset <= batch.last_offset < OFFSET_MAX:
            raise KafkaError(
                errors.CORRUPT_MESSAGE,
                f"{partition.name}: a batch from {batch.base_offset} to {batch.last_offset} goes backwards",
            )
        if batch.base_offset < partition.log_end_offset:
            begin_below(partition, batch, now_ms)
        if 0 <= batch.leader_epoch < partition.epochs.latest:
            raise KafkaError(
                errors.CORRUPT_MESSAGE, f"{partition.name}: the leader epoch falls at {batch.base_offset}"
            )
        queue(partition, batch, view[batch.position : batch.position + batch.size], now_ms)
        taken += 1
    return taken


def begin_below(partition: Log, batch: Batch, now_ms: int) -> None:
    """The leader's log may start in the middle of a batch, since records were deleted: an empty log takes all of it."""
    start, end = partition.log_start_offset, partition.log_end_offset
    if start != end or batch.last_offset < end:
        raise OffsetsDoNotFollow(partition.name, batch.base_offset, end)
    mark = partition.high_watermark
    start_anew(partition, batch.base_offset, now_ms)
    partition.log_start_offset = start
    partition.advance_high_watermark(mark)


def queue(partition: Log, batch: Batch, data: memoryview, now_ms: int) -> None:
    """One whole batch that continues the log; between the two a compaction may have left a gap."""
    offset, last_offset = batch.base_offset, batch.last_offset
    if batch.leader_epoch >= 0 and partition.epochs.assign(batch.leader_epoch, offset):
        partition.save_files()
    if partition.active.must_roll(batch.size, last_offset, batch.max_timestamp, now_ms):
        partition.log_end_offset = (
            offset  # the new segment's name, from which its offsets must not be too far
        )
        partition.roll(now_ms)
    partition.active.queue(data, offset, last_offset, batch.max_timestamp)
    note(partition, batch, data)
    partition.log_end_offset = last_offset + 1
    partition.commit_again()


def note(partition: Log, batch: Batch, data: memoryview) -> None:
    """What an appended batch means for its producer: as the leader found, so nothing is checked."""
    if batch.producer_id < 0:
        return
    if not batch.is_control:
        partition.producers.append(batch, batch.base_offset, batch.last_offset, batch.max_timestamp)
        return
    marker = markers.read(data)
    if marker is not None:
        base, offset = partition.active.base_offset, batch.base_offset
        producer = batch.producer_id, batch.producer_epoch
        if markers.apply(partition.producers, partition.directory, base, *producer, offset, marker):
            partition.note_aborted(base)


# -- cutting


def truncate(partition: Log, offset: int, now_ms: int) -> None:
    """Nothing at or above `offset` is left, nor is a batch that reaches it: the log may end below."""
    partition.active.write()
    if offset >= partition.log_end_offset:
        # An epoch that was begun here, and has no batch, may be another one's at the leader.
        partition.epochs.truncate_from_end(partition.log_end_offset)
        partition.save_files()
        return
    if offset < partition.bases[0]:
        start_anew(partition, offset, now_ms)
        return
    slot = bisect_right(partition.bases, offset) - 1
    # The last one first: what is left is a log at each moment.
    partition.remove_segments(partition.segments[slot + 1 :][::-1])
    segment = partition.segments[slot]
    header = segment.batch_reaching(offset)
    if header is not None:
        offset = min(offset, header.base_offset)
        segment.truncate(header.position)
    partition.epochs.truncate_from_end(offset)
    if offset < partition.high_watermark:
        log.warn(f"{partition.name} is cut at {offset}, below its high watermark {partition.high_watermark}")
    settle(partition, make_anew(partition, slot, offset, now_ms))


def make_anew(partition: Log, slot: int, end_offset: int, now_ms: int) -> int:
    """Of a segment that was cut: its indexes, and what its batches say of producers. Where the log ends: lower still
    where the segment turns out to be damaged; the leader has it whole."""
    old = partition.segments[slot]
    old.release()
    directory, base, size = partition.directory, old.base_offset, old.size
    segment = Segment(directory, base, OffsetIndex(directory, base), TimeIndex(directory, base), size)
    segment.created_ms = old.created_ms
    partition.segments[slot] = segment
    settings = partition.settings
    room = max(index_room(size, settings.index_interval_bytes), settings.index_bytes)
    segment.offset_index.grow_to(room)
    segment.time_index.grow_to(room)
    segment.index_interval_bytes = settings.index_interval_bytes
    transaction_index.remove(directory, base)
    partition.aborted_bases = None
    load_producers(partition, base, end_offset, now_ms)
    walk = Walk(partition)
    walk.begin(slot)
    fault = segment.check(walk.batch)
    if fault is not None:
        log.error(f"{segment.path}: {fault} at byte {fault.position}; what follows is fetched anew")
        segment.truncate(fault.position)
        end_offset = segment.end_offset
    segment.seal()
    partition.activate(segment)
    return end_offset


def load_producers(partition: Log, offset: int, end_offset: int, now_ms: int) -> None:
    """As they were at `offset`: the newest snapshot up to there, and the batches behind it."""
    directory, producers, start = partition.directory, partition.producers, partition.log_start_offset
    known = snapshots.offsets(os.listdir(directory))
    for each in [each for each in known if each > end_offset]:
        snapshots.remove(directory, each)
    usable = [each for each in known if start <= each <= offset]
    snapshots.load_newest(directory, usable, producers, start, now_ms, FOREVER_MS)
    for segment in partition.segments:
        if segment.end_offset <= producers.end_offset or segment.base_offset >= offset:
            continue
        first = segment.batch_reaching(producers.end_offset)
        for header in segment.headers(first.position) if first is not None else ():
            note_producer(partition, segment, header, index=False)


def start_anew(partition: Log, offset: int, now_ms: int) -> None:
    """Nothing is left, and the log begins at `offset`: the leader has nothing below."""
    partition.active.discard()
    for known in snapshots.offsets(os.listdir(partition.directory)):
        snapshots.remove(partition.directory, known)
    partition.remove_segments(partition.segments[::-1])
    partition.epochs = LeaderEpochs()
    partition.producers.clear(offset)
    partition.add_segment(offset, now_ms)
    partition.log_start_offset = offset
    settle(partition, offset)


def settle(partition: Log, offset: int) -> None:
    """All offsets that the log knows of itself follow from where it ends now."""
    partition.log_end_offset = partition.producers.end_offset = offset
    partition.lower_flushed(offset)
    partition.log_start_offset = min(partition.log_start_offset, offset)
    if partition.first_dirty_offset is not None:
        partition.first_dirty_offset = min(partition.first_dirty_offset, offset)
    partition.advance_high_watermark(max(min(partition.high_watermark, offset), partition.log_start_offset))
    partition.save_files()
