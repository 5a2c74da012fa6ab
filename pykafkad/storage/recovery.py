"""Start of one partition from its directory: after a clean stop at once, after a crash by walking what may be
torn.

Clean: the last index entry says where the end is; only what lies behind it is read, and it must end with a
whole batch. Unclean: from the segment with the recovery point on every batch is checked, indexes are made
anew, the producers' state and the leader epochs follow from the batches; at the first bad one the file is cut
(what is cut is kept aside in `.log.corrupt`) and all later segments go. Checkpoints are hints: they are
clamped to the data.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import BatchHeader, CorruptSegment, Segment
from pykafkad.logs import logger
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage import checkpoints, leftovers, markers, snapshots, transaction_index
from pykafkad.storage.files import CORRUPT, INDEX, LOG, TIME_INDEX, offset_name, offset_of, remove_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.storage.partition import Partition

ENTRY_ROOM = 12  # bytes of the larger index entry
COPY_BYTES = 1 << 20
EPOCH_FELL = "leader epoch"  # how a walk begins to say that an epoch is below the one before

log = logger("recovery")


def keep(recovery_point: int) -> None:
    """There is no checkpoint to lower."""


class Hints:
    """What the log directory's checkpoints say about a partition."""

    __slots__ = (
        "clean",
        "expiration_ms",
        "high_watermark",
        "log_start_offset",
        "lower",
        "now_ms",
        "recovery_point",
    )

    def __init__(
        self,
        *,
        clean: bool,
        now_ms: int,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        expiration_ms: int = 86_400_000,
        lower: Callable[[int], None] = keep,
    ) -> None:
        self.clean = clean
        self.now_ms = now_ms
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.expiration_ms = expiration_ms
        self.lower = lower  # makes a lower recovery point durable


def load(partition: Partition, hints: Hints) -> None:
    """Bring a partition up from its directory. OSError when the disk fails."""
    Loader(partition, hints).load()


class Loader:
    """One partition's start, step by step."""

    def __init__(self, partition: Partition, hints: Hints) -> None:
        self.partition = partition
        self.hints = hints
        self.directory = partition.directory
        self.snapshots: list[int] = []
        self.epochs_damaged = False
        self.synced_to: int | None = None  # None: everything that is there was synced by a clean stop

    def load(self) -> None:
        names = leftovers.tidy(self.directory, os.listdir(self.directory))
        self.read_epochs()
        self.open_segments(names)
        self.drop_stray_snapshots(names)
        first_unsure = self.first_unsure(names)
        if first_unsure < len(self.partition.segments):
            self.recover_from(first_unsure)
        elif self.partition.segments and not self.find_end():
            self.recover_from(len(self.partition.segments) - 1)
        self.settle()

    # -- what is there ---------------------------------------------------------------------------------------

    def read_epochs(self) -> None:
        try:
            entries = checkpoints.read_epochs(self.directory)
            self.partition.epochs = LeaderEpochs(entries)
            self.partition.stored_epochs = entries
        except (checkpoints.CheckpointError, ValueError) as error:
            log.warn(f"{error}; the leader epochs are read from the log")
            self.partition.epochs = LeaderEpochs()
            self.epochs_damaged = True

    def open_segments(self, names: list[str]) -> None:
        partition = self.partition
        bases = sorted(base for name in names if (base := offset_of(name, LOG)) is not None)
        for slot, base in enumerate(bases):
            size = os.stat(f"{self.directory}/{offset_name(base, LOG)}").st_size
            indexes = OffsetIndex(self.directory, base), TimeIndex(self.directory, base)
            segment = Segment(self.directory, base, *indexes, size)
            segment.created_ms = self.hints.now_ms
            if slot + 1 < len(bases):
                segment.end_offset = bases[slot + 1]
                segment.max_timestamp = -2  # looked up in the time index when somebody asks
            partition.segments.append(segment)
        partition.bases = bases
        if not partition.epochs.entries and not self.epochs_damaged:
            self.epochs_damaged = self.has_epochs()

    def has_epochs(self) -> bool:
        """Whether the log has leader epochs, so that an empty file of them is no history of it."""
        for segment in self.partition.segments:
            try:
                header = next(segment.headers(), None)
            except CorruptSegment:
                return True
            if header is not None:
                return header.magic >= 2 and header.leader_epoch >= 0
        return False

    def drop_stray_snapshots(self, names: list[str]) -> None:
        """Those that belong to no segment go, except the newest one if it lies beyond the last base
        offset."""
        bases = set(self.partition.bases)
        known = snapshots.offsets(names)
        strays = [offset for offset in known if offset not in bases]
        if strays and strays[-1] > max(bases, default=0):
            strays.pop()
        for offset in strays:
            snapshots.remove(self.directory, offset)
        self.snapshots = [offset for offset in known if offset not in strays]

    def first_unsure(self, names: list[str]) -> int:
        """The first segment that has to be walked; the number of segments when none has to."""
        partition = self.partition
        present = set(names)
        first = len(partition.segments)
        if not self.hints.clean and partition.segments:
            first = max(0, bisect_right(partition.bases, self.hints.recovery_point) - 1)
        if self.epochs_damaged:
            first = 0
        for slot, segment in enumerate(partition.segments[:first]):
            if not self.is_indexed(segment, present):
                return slot
        return first

    def is_indexed(self, segment: Segment, present: set[str]) -> bool:
        base = segment.base_offset
        if offset_name(base, INDEX) not in present or offset_name(base, TIME_INDEX) not in present:
            return False
        try:
            for _ in transaction_index.read(self.directory, base):
                pass
        except transaction_index.TransactionIndexError:
            return False
        return True

    # -- a clean end -----------------------------------------------------------------------------------------

    def find_end(self) -> bool:
        """The last segment's end by its index; false when index and log do not fit together."""
        segment = self.partition.segments[-1]
        if segment.size == 0:
            self.load_producers(segment.base_offset)
            return True
        try:
            position = segment.load_end()
        except (OverflowError, CorruptSegment):
            return False
        if position > segment.size or segment.end_offset < segment.base_offset:
            return False
        if position < segment.size:
            if position == 0:
                return False  # not even the first batch is whole: look at it closely
            self.cut(segment, position, "the file does not end with a whole batch")
        self.load_producers(segment.end_offset)
        return True

    # -- after a crash ---------------------------------------------------------------------------------------

    def recover_from(self, first: int) -> None:
        """Walk the segments from `first` on; the first bad batch is the end of the log."""
        partition = self.partition
        self.lower_recovery_point(first)
        self.load_producers(partition.bases[first])
        for slot in range(first, len(partition.segments)):
            segment = partition.segments[slot]
            bad = self.recover(segment)
            self.partition.producers.end_offset = max(segment.end_offset, segment.base_offset)
            snapshots.write(self.directory, partition.producers)
            # What follows without a gap is missing nothing: only noise was cut off in between.
            if bad and segment.end_offset not in partition.bases[slot + 1 : slot + 2]:
                self.drop_segments(slot + 1)
                return

    def lower_recovery_point(self, first: int) -> None:
        """What is made anew from segment `first` on is not on the disk any more, whatever the checkpoint says
        of what was there before: it must say less before the first file is touched."""
        base, point = self.partition.bases[first], self.hints.recovery_point
        if self.hints.clean:
            self.synced_to = base
        elif first < bisect_right(self.partition.bases, point) - 1:
            self.hints.lower(base)
            self.synced_to = base
        else:
            self.synced_to = point  # its segment is the first one that the next start walks as well

    def recover(self, segment: Segment) -> bool:
        """Check a segment and make its indexes anew; whether it had to be cut."""
        room = (segment.size // max(1, self.partition.settings.index_interval_bytes) + 2) * ENTRY_ROOM
        segment.offset_index.grow_to(max(room, self.partition.settings.index_bytes))
        segment.time_index.grow_to(max(room, self.partition.settings.index_bytes))
        segment.index_interval_bytes = self.partition.settings.index_interval_bytes
        transaction_index.remove(self.directory, segment.base_offset)
        walk = Walk(self.partition, segment)
        position, why = segment.check(walk.batch)
        if why is not None and why.startswith(EPOCH_FELL) and walk.rose_at is not None:
            # Where it rose wrongly is where the damage is: that part must not be believed.
            self.rewind(segment)
            position = walk.rose_at
            segment.check(Walk(self.partition, segment).batch, position)
        segment.seal()
        segment.offset_index.grow_to(0)
        segment.time_index.grow_to(0)
        if why is None:
            return False
        self.cut(segment, position, why)
        return True

    def rewind(self, segment: Segment) -> None:
        """Forget what a walk over this segment made of epochs, producers and aborted transactions."""
        partition = self.partition
        partition.epochs.truncate_from_end(segment.base_offset)
        transaction_index.remove(self.directory, segment.base_offset)
        self.load_producers(segment.base_offset)

    def cut(self, segment: Segment, position: int, why: str) -> None:
        lost = segment.size - position
        log.warn(f"{segment.path}: {why} at byte {position}; the log ends there, {lost} bytes are cut off")
        keep_aside(segment, position)
        segment.truncate(position)

    def drop_segments(self, first: int) -> None:
        """Segments behind a bad batch cannot be believed; their logs are kept aside."""
        partition = self.partition
        for segment in partition.segments[first:]:
            log.warn(f"{segment.path} lies behind a damaged batch and is set aside")
            segment.release()
            os.replace(segment.path, segment.path + CORRUPT)
            for suffix in leftovers.SEGMENT_SUFFIXES[1:]:
                remove_if_there(f"{self.directory}/{offset_name(segment.base_offset, suffix)}")
        del partition.segments[first:]
        del partition.bases[first:]

    # -- producers -------------------------------------------------------------------------------------------

    def load_producers(self, offset: int) -> None:
        """The producers' state as it was at `offset`: the newest snapshot up to there, and the batches after
        it."""
        partition = self.partition
        hints = self.hints
        start = max(hints.log_start_offset, partition.bases[0] if partition.bases else 0)
        for known in self.snapshots[:]:
            if known > offset or known <= start:
                snapshots.remove(self.directory, known)
                self.snapshots.remove(known)
        snapshots.load_newest(
            self.directory, self.snapshots, partition.producers, start, hints.now_ms, hints.expiration_ms
        )
        if hints.clean and not self.snapshots and not self.epochs_damaged:
            partition.producers.end_offset = offset  # as Kafka: a log without any has no producers to find
            return
        self.replay(offset)

    def replay(self, end_offset: int) -> None:
        partition = self.partition
        producers = partition.producers
        for segment in partition.segments:
            if segment.end_offset <= producers.end_offset or segment.base_offset >= end_offset:
                continue
            header = segment.batch_reaching(producers.end_offset)
            if header is None:
                continue
            for each in segment.headers(header.position):
                if each.base_offset >= end_offset:
                    break
                note_producer(partition, segment, each, index=False)
        producers.end_offset = max(producers.end_offset, end_offset)

    # -- the result ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Offsets, epochs and an active segment, whatever was found."""
        partition = self.partition
        hints = self.hints
        log_end = partition.segments[-1].end_offset if partition.segments else -1
        if log_end < hints.log_start_offset:
            self.start_empty(hints.log_start_offset)
            log_end = hints.log_start_offset
        partition.log_end_offset = log_end
        partition.log_start_offset = max(hints.log_start_offset, partition.bases[0])
        synced_to = self.synced_to
        if synced_to is None:
            synced_to = log_end if hints.clean else hints.recovery_point
        partition.recovery_point = min(synced_to, log_end)
        if partition.recovery_point < hints.recovery_point:
            hints.lower(partition.recovery_point)
        partition.high_watermark = min(max(hints.high_watermark, partition.log_start_offset), log_end)
        partition.epochs.truncate_from_end(log_end)
        partition.epochs.truncate_from_start(partition.log_start_offset)
        partition.producers.end_offset = log_end
        if not hints.clean:
            snapshots.write(self.directory, partition.producers)
        partition.producers.replicated_to(partition.high_watermark)
        partition.update_last_stable_offset()
        partition.activate(partition.segments[-1])
        for segment in partition.segments:
            segment.release()

    def start_empty(self, offset: int) -> None:
        """No data at or above the log's start: begin there."""
        partition = self.partition
        self.drop_segments(0)
        for known in self.snapshots:
            snapshots.remove(self.directory, known)
        partition.epochs = LeaderEpochs()
        partition.producers.clear(offset)
        partition.add_segment(offset, self.hints.now_ms)


class Walk:
    """Follows a check through one segment: epochs and producers, batch by batch."""

    def __init__(self, partition: Partition, segment: Segment) -> None:
        self.partition = partition
        self.segment = segment
        self.epoch = -1
        self.rose_at: int | None = None  # position of the first batch of the epoch, in this segment

    def batch(self, header: BatchHeader) -> None:
        epochs = self.partition.epochs
        epoch = header.leader_epoch
        if header.magic >= 2 and epoch > self.epoch:
            self.rose_at = header.position if self.epoch >= 0 else None
            self.epoch = epoch
            if epoch > epochs.latest:
                epochs.assign(epoch, header.base_offset)
        note_producer(self.partition, self.segment, header, index=True)


def note_producer(partition: Partition, segment: Segment, header: BatchHeader, *, index: bool) -> None:
    """What a batch that is in the log means for its producer; `index`: list an aborted transaction
    (again)."""
    if header.producer_id < 0:
        return
    producers = partition.producers
    if not header.is_control:
        producers.append(header, header.base_offset, header.last_offset, header.max_timestamp)
        return
    marker = markers.read(segment.bytes_at(header.position, header.size))
    if marker is not None:
        directory = partition.directory if index else None
        base, offset = segment.base_offset, header.base_offset
        markers.apply(producers, directory, base, header.producer_id, header.producer_epoch, offset, marker)


def keep_aside(segment: Segment, position: int) -> None:
    """Copy what is about to be cut off to `<name>.log.corrupt`, unless it is nothing but zeroes."""
    with open(segment.path, "rb") as source, open(segment.path + CORRUPT, "ab") as target:
        source.seek(position)
        worth = False
        while chunk := source.read(COPY_BYTES):
            worth = worth or bool(chunk.strip(b"\0"))
            target.write(chunk)
    if not worth:
        os.unlink(segment.path + CORRUPT)
