"""One partition's log: what it takes in, what it has, what it gives out.

An append is checked, given its offsets and queued in the active segment; commit(), once a pass of the loop,
writes the queue with one call and only then tells the log's listener, its replica, how far it goes. Segments lie in
offset order, the last one is active; an append that does not fit it rolls a new one.

The high watermark is here since it bounds what may be deleted, compacted and checkpointed; how far it goes is the
replica's rule (pykafkad/cluster/replica.py), and so is who waits for it.

Invariants: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset; the bytes of a queued
batch stay as they are until commit(); the producers' state and the leader epochs include what is queued. An
I/O error takes the whole log directory offline, and what was queued is lost with nothing acknowledged.

Two offsets say what is on the disk: below `flushed_offset` the batches are; below `recovery_point`, which never
goes beyond the base of a segment that is still written to, all that was made from them is too.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from functools import cache

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.records import validate
from pykafkad.hot.segment import Appended, CorruptSegment, FileRange, Segment
from pykafkad.logs import logger
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.pure.producer_state import ProducerState
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import (
    INDEX,
    LOG,
    TIME_INDEX,
    NoDescriptors,
    StorageError,
    is_of_disk,
    is_shortage,
    offset_name,
    partition_directory,
    set_aside,
)
from pykafkad.storage.log import lookups, markers, snapshots, transaction_index
from pykafkad.storage.log.context import NOBODY
from pykafkad.storage.log.removal import mark_all_deleted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, TypeVar

    from _typeshed import ReadableBuffer

    from pykafkad.hot.cleaner import Rewriter
    from pykafkad.hot.records import Batches, Rules
    from pykafkad.pure.leader_epochs import Entries
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.context import Done, LogContext, LogListener
    from pykafkad.storage.log.settings import LogSettings, TopicConfig

    Answer = TypeVar("Answer")

Found = tuple[int, int, int]  # offset, timestamp, leader epoch

log = logger("storage")


class Log:
    __slots__ = (
        "__weakref__",
        "_dirty",
        "_unsaved",
        "aborted_bases",
        "active",
        "append_epoch",
        "bases",
        "context",
        "cuts",
        "epochs",
        "first_dirty_offset",
        "flushed_offset",
        "high_watermark",
        "index",
        "is_served",
        "last_flush_ms",
        "last_stable_offset",
        "listener",
        "log_directory",
        "log_end_offset",
        "log_start_offset",
        "name",
        "producers",
        "recovery_point",
        "rules",
        "segments",
        "settings",
        "start_is_stated",
        "stored_epochs",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        log_directory: LogDirectory,
        settings: LogSettings,
        context: LogContext,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.name = partition_directory(topic, index)
        self.log_directory = log_directory
        self.settings = settings
        self.rules: Rules = settings.rules
        self.context = context
        self.append_epoch = -1  # what appends carry
        self.log_start_offset = self.log_end_offset = 0
        self.high_watermark = self.last_stable_offset = 0
        self.recovery_point = self.flushed_offset = 0
        self.last_flush_ms = 0
        # How often its end was cut off: what a fsync is told to cover may be gone when it is done.
        self.cuts = 0
        self.first_dirty_offset: int | None = None  # below it the log is compacted; None: it never was
        self.producers = ProducerState()
        self.epochs = LeaderEpochs()
        self.stored_epochs: Entries | None = None  # what the file says; None: there is none
        self.segments: list[Segment] = []
        self.bases: list[int] = []  # of the segments, for the search by offset
        self.aborted_bases: list[int] | None = None  # segments with a transaction index; None: not looked at
        self.active: Segment
        # By a checkpoint, and the renames that say it too may not be on the disk.
        self.start_is_stated = False
        self._dirty = False
        self._unsaved = True  # the small files beside the log may be missing or old
        self.is_served = True
        self.listener: LogListener = context.listener_of(self)

    def anew(self) -> Log:
        """The same one as it was made, with nothing loaded."""
        for segment in self.segments:
            segment.release()
        return type(self)(
            self.topic, self.index, self.topic_id, self.log_directory, self.settings, self.context
        )

    @property
    def directory(self) -> str:
        return f"{self.log_directory.path}/{self.name}"

    @property
    def is_online(self) -> bool:
        return self.log_directory.failure is None

    @property
    def is_dirty(self) -> bool:
        """Whether something waits for commit()."""
        return self._dirty

    @property
    def config(self) -> TopicConfig:
        return self.settings.config

    @property
    def size(self) -> int:
        """Bytes of all segments, with what is queued."""
        return sum(segment.size for segment in self.segments) + self.active.queued_bytes

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.log_start_offset}..{self.log_end_offset})"

    # -- appending -------------------------------------------------------------------------------------------

    def append(self, data: ReadableBuffer, now_ms: int, *, verified: bool = False) -> Appended:
        """A client's batch: checked, given its offsets, queued. KafkaError or RecordsError says why not."""
        return self.append_checked(validate(data, self.rules, now_ms, self.name), now_ms, verified=verified)

    def append_checked(self, batches: Batches, now_ms: int, *, verified: bool = False) -> Appended:
        """The same for one whose records have been checked (by this partition's rules).

        `verified`: the transaction coordinator knows this partition to be part of the batch's transaction. A
        duplicate of one of the producer's last five batches is not appended and answers the original's
        offsets.
        """
        base_offset = self.log_end_offset
        if batches.producer_id < 0:
            return self._queue(batches, now_ms)
        verify = self.context.verify_transactions and not verified
        known = self.producers.check(batches, base_offset, verify, self.name)
        if known is not None:
            return Appended(known[2] - known[3], known[2], known[4], self.log_start_offset, True)
        appended = self._queue(batches, now_ms)
        self.producers.append(batches, base_offset, appended.last_offset, batches.max_timestamp)
        return appended

    def append_built(self, data: ReadableBuffer, now_ms: int, *, transaction_version: int = 0) -> Appended:
        """A batch of our own coordinators (records, or a transaction marker): what only a client gets wrong
        is not asked. `transaction_version` is that of a marker (KIP-1228)."""
        base_offset = self.log_end_offset
        batches = validate(data, self.settings.own_rules, now_ms, self.name)
        if batches.producer_id < 0:
            return self._queue(batches, now_ms)
        if batches.is_control:
            return self._append_marker(batches, now_ms, transaction_version)
        self.producers.check_own(batches, base_offset, self.name)
        appended = self._queue(batches, now_ms)
        self.producers.append(batches, base_offset, appended.last_offset, batches.max_timestamp)
        return appended

    def _append_marker(self, batches: Batches, now_ms: int, transaction_version: int) -> Appended:
        marker = markers.read(batches.data)
        if marker is None:
            return self._queue(batches, now_ms)
        producer_id, epoch = batches.producer_id, batches.producer_epoch
        offset = self.log_end_offset
        self.producers.check_marker(
            producer_id, epoch, marker.coordinator_epoch, offset, transaction_version, self.name
        )
        appended = self._queue(batches, now_ms)
        base = self.active.base_offset
        try:
            if markers.apply(self.producers, self.directory, base, producer_id, epoch, offset, marker):
                self.note_aborted(base)
        except OSError as error:
            raise self._failed(error) from error
        return appended

    def _queue(self, batches: Batches, now_ms: int) -> Appended:
        """Good batches get their offsets and their place in the active segment."""
        base_offset = self.log_end_offset
        epoch, start = self.append_epoch, self.log_start_offset
        try:
            if self._unsaved:  # here rather than for all of a pass at its end
                self.save_files()
            appended = self.active.append(batches, base_offset, epoch, now_ms, start)
            if appended is None:
                self._make_room(batches.size, now_ms)
                appended = self.active.append(batches, base_offset, epoch, now_ms, start)
        except OSError as error:
            raise self._failed(error) from error
        except OverflowError as error:
            log.error(str(error))
            raise KafkaError(errors.KAFKA_STORAGE_ERROR) from error
        assert appended is not None, "an empty segment takes any batch that fits it"
        self.log_end_offset = appended.last_offset + 1
        if not self._dirty:
            self._dirty = True
            self.context.dirty.append(self)
        return appended

    # -- following (storage/log/follower.py)

    def append_as_follower(self, data: ReadableBuffer, leader_epoch: int, now_ms: int) -> int:
        """What the leader of that epoch answered to a fetch, as it is: how many batches were queued."""
        try:
            taken: int = of_followers().append(self, data, leader_epoch, now_ms)
            return taken
        except OSError as error:
            raise self._failed(error) from error

    def truncate(self, offset: int, is_wanted: Callable[[], bool], done: Done) -> None:
        """Cut the log at `offset`, or below, where a batch reaches over it, if that is still wanted when the checkpoints
        allow it. Nothing may be appended before `done` is called."""
        self.context.cut(self, of_followers().truncate, offset, is_wanted, done)

    def start_anew(self, offset: int, is_wanted: Callable[[], bool], done: Done) -> None:
        """Forget the whole log, and begin at `offset`. The same holds."""
        self.context.cut(self, of_followers().start_anew, offset, is_wanted, done)

    def lower_flushed(self, offset: int) -> bool:
        """What lies above is about to be cut off, and no fsync under way speaks of what comes there; whether the
        recovery point was above."""
        self.cuts += 1
        self.flushed_offset = min(self.flushed_offset, offset)
        was_above = self.recovery_point > offset
        self.recovery_point = min(self.recovery_point, offset)
        return was_above

    # -- the end of a pass

    def _make_room(self, size: int, now_ms: int) -> None:
        """The active segment does not take `size` more bytes: another one, unless none could."""
        if size > self.settings.segment_bytes:
            raise KafkaError(errors.RECORD_LIST_TOO_LARGE)
        if self.active.size + self.active.queued_bytes > 0:
            self.roll(now_ms)

    def _failed(self, error: OSError) -> KafkaError:
        """An I/O error in the middle of an append or a read takes the directory offline, as one in commit() does."""
        if not is_shortage(error):
            self.fail(error)
        return KafkaError(errors.KAFKA_STORAGE_ERROR)

    def _unread(self, error: OSError) -> KafkaError:
        """The disk; or a file that somebody took away, or may not be opened now: that is this read's misfortune."""
        if is_of_disk(error) or not os.path.isdir(self.directory):
            return self._failed(error)
        log.error(f"{self.name} cannot be read: {error}")
        return KafkaError(errors.KAFKA_STORAGE_ERROR)

    def fail(self, error: OSError) -> StorageError:
        """The directory is broken; the manager takes it offline at the end of the pass."""
        self.active.discard()
        return self.log_directory.fail(f"{self.name}: {error}")

    def discard(self) -> None:
        """Nothing queued counts: the directory is offline."""
        self.active.discard()
        self._dirty = False

    def commit(self) -> None:
        """Write what is queued, and then tell the listener how far the log goes: what flush.messages wants on the
        disk counts when it is there."""
        self._dirty = False
        end = self.log_end_offset
        try:
            if self._unsaved:
                self.save_files()
            self.active.write()
            if end - self.flushed_offset >= self.settings.flush_messages:
                end = max(self.high_watermark, self.context.flush_due(self))
        except OSError as error:
            if is_shortage(error):
                self._dirty = True  # what is queued stays, and is written when it can be
                raise NoDescriptors(f"{self.name}: {error}") from error
            raise self.fail(error) from error
        self.listener.written(end)

    def advance_high_watermark(self, offset: int) -> None:
        """What lies below will not be taken back: it may be read, deleted, compacted."""
        self.high_watermark = offset
        producers = self.producers
        if producers.ongoing or producers.unreplicated:
            producers.replicated_to(offset)
            self.update_last_stable_offset()
        else:
            self.last_stable_offset = offset

    def commit_again(self) -> None:
        """Something is queued, or more is on the disk: the end of the pass looks how far the log goes."""
        if not self._dirty:
            self._dirty = True
            self.context.dirty.append(self)

    def update_last_stable_offset(self) -> None:
        first = self.producers.first_unstable_offset
        end = self.high_watermark
        self.last_stable_offset = end if first is None else min(end, max(first, self.log_start_offset))

    def move_to(self, log_directory: LogDirectory) -> None:
        """The files lie in another log directory now; they have to be synced there anew."""
        self.log_directory.partition_count -= 1
        self.log_directory = log_directory
        log_directory.partition_count += 1
        directory = self.directory
        for segment in self.segments:
            segment.release()
            segment.move(directory)
        self.recovery_point = self.flushed_offset = self.bases[0]

    # -- the start of the log --------------------------------------------------------------------------------

    def delete_records(self, before: int) -> int:
        """A client wants nothing below this offset any more (-1: below the high watermark): the log's start."""
        policy = self.config["cleanup.policy"]
        if "compact" in policy and "delete" not in policy:
            raise KafkaError(errors.POLICY_VIOLATION)
        offset = self.high_watermark if before == -1 else before
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        self.advance_log_start(offset)
        return self.log_start_offset

    def advance_log_start(self, offset: int) -> None:
        """What lies below is not read any more; its segments go with the next retention."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.producers.log_start_advanced(offset)
        if self.epochs.truncate_from_start(offset):
            self._unsaved = True
        self.update_last_stable_offset()
        self.listener.started()

    def retire(self, count: int, now_ms: int) -> None:
        """The `count` oldest segments go, and the log starts where the next one does: a new one, when they are all
        there are. Only what is below the high watermark may go."""
        if self.log_start_offset > self.bases[0]:
            self.start_is_stated = True
        going = self.segments[:count]
        all_go = count == len(self.segments)
        if all_go:
            self._begin_segment(now_ms)
        self.advance_log_start(self.bases[count])
        self.remove_segments(going)
        if all_go:
            self.context.flush_soon(self, self.log_end_offset, self.log_end_offset)

    # -- segments --------------------------------------------------------------------------------------------

    def remove_segments(self, segments: list[Segment]) -> None:
        """These are no part of the log any more, nor are the producers' snapshots at their bases. Their files are
        `.deleted` at once, oldest first, and unlinked after file.delete.delay.ms: readers under way go on."""
        self.aborted_bases = None
        gone = {id(segment) for segment in segments}
        self.segments = [segment for segment in self.segments if id(segment) not in gone]
        self.bases = [segment.base_offset for segment in self.segments]
        paths = mark_all_deleted(self.directory, segments)
        self.context.unlink_soon(self.log_directory, paths, self.settings.file_delete_delay_ms)

    def replace_segments(self, cleaned: Rewriter, old: list[Segment]) -> None:
        """What the cleaner made of `old` takes their place. OSError: the directory has failed."""
        from pykafkad.storage.cleaning.swapping import replace_segments

        replace_segments(self, cleaned, old)

    def roll(self, now_ms: int) -> None:
        """Close the active segment for appends and begin one at the log's end."""
        old = self.active
        self._begin_segment(now_ms)
        # Sealing changed the old segment's indexes, so it is synced again even if its batches were.
        self.context.flush_soon(self, old.base_offset, self.log_end_offset)

    def _begin_segment(self, now_ms: int) -> None:
        old = self.active
        old.write()
        old.seal()
        if self.settings.preallocate:
            old.give_back()
        self.producers.end_offset = self.log_end_offset
        snapshots.write(self.directory, self.producers)
        for suffix in (LOG, INDEX, TIME_INDEX):
            path = f"{self.directory}/{offset_name(self.log_end_offset, suffix)}"
            if os.path.lexists(path):  # Kafka deletes it
                set_aside(path)
        self.add_segment(self.log_end_offset, now_ms)
        old.offset_index.grow_to(0)
        old.time_index.grow_to(0)

    def add_segment(self, base_offset: int, now_ms: int, *, made: bool = False) -> None:
        """A new empty active segment. `made`: its files are there."""
        settings = self.settings
        directory = self.directory
        segment = Segment(
            directory,
            base_offset,
            OffsetIndex(directory, base_offset, settings.index_bytes, fresh=not made, made=made),
            TimeIndex(directory, base_offset, settings.index_bytes, fresh=not made, made=made),
            fresh=not made,
        )
        segment.created_ms = now_ms
        self.segments.append(segment)
        self.bases.append(base_offset)
        self.activate(segment)
        if settings.preallocate:
            segment.reserve()

    def activate(self, segment: Segment) -> None:
        """Appends go to this segment, under the topic's present configuration."""
        settings = self.settings
        self.active = segment
        segment.max_bytes = settings.segment_bytes
        segment.index_interval_bytes = settings.index_interval_bytes
        jitter_ms = min(settings.segment_jitter_ms, settings.segment_ms)
        segment.roll_ms = settings.segment_ms - (
            int.from_bytes(os.urandom(8)) % jitter_ms if jitter_ms > 0 else 0
        )
        segment.offset_index.grow_to(settings.index_bytes)
        segment.time_index.grow_to(settings.index_bytes)

    def update_settings(self, settings: LogSettings) -> None:
        """The topic's configuration changed; what is written stays as it is."""
        self.settings = settings
        self.rules = settings.rules
        self.activate(self.active)
        self.listener.reconfigured()

    def begin_epoch(self, leader_epoch: int) -> None:
        """Appends of a leader carry this epoch from now on; it begins where the log ends.

        A log that is ahead of the metadata (a damaged epoch, metadata put back from a copy) stays so: were its epochs
        to fall, the next recovery would have to take what follows for damage.
        """
        self.append_epoch = max(leader_epoch, self.epochs.latest)
        if self.epochs.assign(self.append_epoch, self.log_end_offset):
            self._unsaved = True

    def save_files(self) -> None:
        """The small files that must be there before the first batch (of an epoch) is: topic id, leader
        epochs.

        Not synced: the batches carry their epoch and the cluster's metadata the id, so both can be made anew,
        and the flush that lets recovery skip batches syncs them.
        """
        if not self.is_served:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        directory = self.directory
        if self.stored_epochs is None:
            checkpoints.write_topic_id(directory, self.topic_id)
        entries = self.epochs.entries
        if entries != self.stored_epochs:
            checkpoints.write_epochs(directory, entries)
            self.stored_epochs = entries
        self._unsaved = False

    def save_again(self) -> None:
        """What the small files say is not known any more."""
        self.stored_epochs, self._unsaved = None, True

    def leave(self) -> None:
        """It is deleted, or its directory is offline: whoever still has it appends nothing from now on."""
        self.is_served = False
        self._unsaved = True  # an append looks at this first
        self.listener = NOBODY  # the two would keep each other, and those of the start are frozen

    def flush(self) -> None:
        """Everything written is on the disk when this returns."""
        offset = self.active.end_offset
        lookups.sync_files(
            self.log_directory.syncs, self.directory, self.recovery_point, [*self.bases, offset]
        )
        self.note_flushed(offset, self.active.base_offset)

    def note_flushed(self, offset: int, recovery_point: int) -> None:
        self.flushed_offset = max(self.flushed_offset, offset)
        self.recovery_point = max(self.recovery_point, recovery_point)

    def close(self, *, clean: bool = True) -> None:
        """Write what a start without recovery needs: cut indexes, a producer snapshot, everything on the
        disk."""
        if clean:
            self.active.write()
            self.save_files()
            touched = self.active.changed or self.recovery_point < self.log_end_offset
            for segment in self.segments:
                segment.seal()
            if self.settings.preallocate:
                self.active.give_back()
            self.producers.end_offset = self.log_end_offset
            snapshots.write(self.directory, self.producers)
            if touched:
                self.recovery_point = min(self.recovery_point, self.active.base_offset)
                self.flush()
                self.recovery_point = self.log_end_offset
        for segment in self.segments:
            segment.release()

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, at_least_one: bool) -> FileRange | None:
        """Bytes from the batch that holds `offset` on, of offsets below `limit_offset`, out of one segment.

        At most `max_bytes`, and the last batch may be cut; a first batch that is larger comes whole with
        `at_least_one`, and an empty range without. OFFSET_OUT_OF_RANGE for what the log does not have.
        """
        if offset >= limit_offset:
            if offset > self.log_end_offset or offset < self.log_start_offset:
                raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
            return None
        if offset < self.log_start_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        active = self.active
        try:
            if offset >= active.base_offset:
                return active.read(offset, max_bytes, limit_offset, at_least_one)
            return self._read_closed(offset, max_bytes, limit_offset, at_least_one)
        except OSError as error:
            raise self._unread(error) from error
        except CorruptSegment as error:
            raise damaged(error) from error

    def _read_closed(
        self, offset: int, max_bytes: int, limit_offset: int, at_least_one: bool
    ) -> FileRange | None:
        # Compaction may have emptied the end of a segment: then the next one has the first batch.
        for slot in range(max(0, bisect_right(self.bases, offset) - 1), len(self.segments)):
            segment = self.segments[slot]
            if segment.base_offset >= limit_offset:
                return None
            found = segment.read(offset, max_bytes, limit_offset, at_least_one)
            if found is not None:
                return found
        return None

    def segment_at(self, offset: int) -> Segment:
        """The segment an offset would be in."""
        return self.segments[max(0, bisect_right(self.bases, offset) - 1)]

    def offset_for_timestamp(self, timestamp: int) -> lookups.Finding:
        """Work that finds the first record at or after the log's start with that timestamp or a later one."""
        return self._find(lambda: lookups.offset_for_timestamp(self, timestamp))

    def max_timestamp_offset(self) -> lookups.Finding:
        """Work that finds the first record with the log's greatest timestamp."""
        return self._find(lambda: lookups.max_timestamp_offset(self))

    def times_of_segments(self) -> Generator[Any, None, list[tuple[int, int]]]:
        """Work that finds (offset, time) of each segment: where it begins, and when it was last written to."""
        return self._find(lambda: lookups.times_of_segments(self))

    def _find(self, question: Callable[[], Generator[Any, None, Answer]]) -> Generator[Any, None, Answer]:
        while True:
            try:
                return (yield from question())
            except lookups.SegmentGone:
                yield  # and ask again
            except OSError as error:
                raise self._failed(error) from error
            except CorruptSegment as error:
                raise damaged(error) from error

    def aborted_transactions(self, offset: int, data: FileRange) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch what was read at `offset`."""
        return self._look(lookups.aborted_transactions, offset, data)

    def note_aborted(self, base_offset: int) -> None:
        """An aborted transaction was listed in the transaction index of this segment, the last one."""
        known = self.aborted_bases
        if known is not None and (not known or known[-1] != base_offset):
            known.append(base_offset)

    def _look(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        try:
            return question(self, *arguments)
        except OSError as error:
            raise self._unread(error) from error
        except (CorruptSegment, transaction_index.TransactionIndexError) as error:
            raise damaged(error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """As OffsetForLeaderEpoch answers: (largest epoch <= the asked one, its end offset), (-1, -1) if
        unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    @property
    def written_offset(self) -> int:
        """Up to which the files have it: what is queued is not there to be read yet."""
        return self.active.end_offset

    def epoch_at(self, offset: int) -> int:
        return self.epochs.epoch_at(offset)


@cache
def of_followers() -> Any:
    """storage/log/follower.py, which a single node does not load."""
    from pykafkad.storage.log import follower

    return follower


def damaged(error: CorruptSegment | transaction_index.TransactionIndexError) -> KafkaError:
    """Something has changed the file since it was checked. What cannot be found in it is said to be damaged; Kafka,
    where a batch seems to go on behind the end, gives a consumer nothing at all, for ever."""
    log.error(str(error))
    return KafkaError(errors.CORRUPT_MESSAGE)
