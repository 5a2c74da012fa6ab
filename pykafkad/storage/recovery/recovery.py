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
from struct import Struct

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import CorruptSegment, Segment, Verdict
from pykafkad.logs import logger
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import (
    CORRUPT,
    INDEX,
    LOG,
    OF_SEGMENT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    fsync_path,
    last_bytes,
    offset_name,
    offset_of,
    remove,
)
from pykafkad.storage.log import snapshots, transaction_index
from pykafkad.storage.log.settings import index_room
from pykafkad.storage.recovery import leftovers
from pykafkad.storage.recovery.restoring import cover_start, replay_producers
from pykafkad.storage.recovery.walking import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.hot.segment import BatchHeader, Fault
    from pykafkad.storage.log.log import Log

    class StartHints(Protocol):
        clean: bool
        recovery_point: int


TIME_ENTRY = Struct(">qi")  # timestamp, offset from the segment's base
COPY_BYTES = 1 << 20

log = logger("recovery")


def keep(recovery_point: int) -> None:
    """There is no checkpoint to lower."""


def ignore(size: int) -> None:
    """Nobody wants to know how far the walk is."""


class Hints:
    """What the log directory's checkpoints say about a partition."""

    __slots__ = (
        "clean",
        "expiration_ms",
        "high_watermark",
        "is_cleaned",
        "log_start_offset",
        "lower",
        "now_ms",
        "recovery_point",
        "walked",
    )

    def __init__(
        self,
        *,
        clean: bool,
        now_ms: int,
        recovery_point: int,
        log_start_offset: int,
        high_watermark: int,
        expiration_ms: int,
        lower: Callable[[int], None] = keep,
    ) -> None:
        self.clean = clean
        self.now_ms = now_ms
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.expiration_ms = expiration_ms
        self.is_cleaned = False  # a cleaner has been at it
        self.lower = lower  # makes a lower recovery point durable
        self.walked: Callable[[int], None] = ignore  # told of bytes that were walked; may raise to end it


class Flaw:
    """Why a segment is not believed from a byte on; `why` is for the log."""

    __slots__ = ("position", "verdict", "why")

    def __init__(self, position: int, why: str, verdict: Verdict | None = None) -> None:
        self.position = position
        self.why = why
        self.verdict = verdict  # None: its batches are good, and do not fit the next segment


def load(partition: Log, hints: Hints) -> None:
    """Bring a partition up from its directory. OSError when the disk fails."""
    Loader(partition, hints).load()


class Loader:
    """One partition's start, step by step."""

    def __init__(self, partition: Log, hints: Hints) -> None:
        self.partition = partition
        self.hints = hints
        self.directory = partition.directory
        self.snapshots: list[int] = []
        self.epochs_damaged = False
        self.synced_to: int | None = None  # None: as the checkpoint says, or all there is after a clean stop

    def load(self) -> None:
        names = leftovers.tidy(self.directory)
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
            stored = tuple(checkpoints.read_epochs(self.directory))
            epochs = self.partition.epochs = LeaderEpochs(stored)
            self.partition.stored_epochs = epochs.entries if epochs.entries == stored else stored
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
        if offset_name(base, TRANSACTION_INDEX) not in present:
            return True
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
        if not self.ends_within(segment):
            return False
        if position < segment.size:
            if position == 0:
                return False  # not even the first batch is whole: look at it closely
            self.cut(segment, position, "the file does not end with a whole batch", [])
        self.load_producers(segment.end_offset)
        return True

    def ends_within(self, segment: Segment) -> bool:
        """Whether the last entry of its time index is one of its own: others are to be appended behind it."""
        path = f"{self.directory}/{offset_name(segment.base_offset, TIME_INDEX)}"
        entry = last_bytes(path, TIME_ENTRY.size)
        if len(entry) != TIME_ENTRY.size:
            return not entry
        _, offset = TIME_ENTRY.unpack(entry)
        return bool(0 <= offset < max(1, segment.end_offset - segment.base_offset))

    # -- after a crash ---------------------------------------------------------------------------------------

    def recover_from(self, first: int) -> None:
        """Walk the segments from `first` on; the first bad batch is the end of the log."""
        partition, hints = self.partition, self.hints
        compacts = "compact" in partition.config["cleanup.policy"] or hints.is_cleaned
        self.lower_recovery_point(first)
        self.load_producers(partition.bases[first])
        walk = Walk(partition)
        slot = first
        while slot < len(partition.segments):
            slot, flaw = self.recover(walk, slot)
            segment = partition.segments[slot]
            rest = partition.segments[slot + 1 :]
            if flaw is None:
                if rest and misses_its_end(hints, compacts, segment.end_offset, rest[0].base_offset):
                    why = f"no batch up to offset {rest[0].base_offset}, where the next segment begins,"
                    flaw = Flaw(segment.size, why)
            elif flaw.verdict == Verdict.TOO_FAR and self.split(slot, flaw.position):
                flaw = None
            if flaw is not None:
                # What follows without a gap is missing nothing: only noise was cut off in between.
                if (
                    rest
                    and segment.end_offset == rest[0].base_offset
                    and not loses(segment, flaw.position, flaw.verdict)
                ):
                    rest = []
                self.cut(segment, flaw.position, flaw.why, rest)
            self.partition.producers.end_offset = max(segment.end_offset, segment.base_offset)
            snapshots.write(self.directory, partition.producers)
            if flaw is not None and rest:
                return
            slot += 1

    def lower_recovery_point(self, first: int) -> None:
        """What is made anew from segment `first` on is not on the disk any more, whatever the checkpoint says
        of what was there before: it must say less before the first file is touched."""
        base, point = self.partition.bases[first], self.hints.recovery_point
        if self.hints.clean:
            self.synced_to = base
        elif first < bisect_right(self.partition.bases, point) - 1:
            self.hints.lower(base)
            self.synced_to = (
                base  # else the checkpoint holds: its segment is where the next start begins as well
            )

    def recover(self, walk: Walk, slot: int) -> tuple[int, Flaw | None]:
        """Check a segment and make its indexes anew. Which segment is good up to where: where the leader epoch falls
        the damage is where it rose, and that may be in an earlier one."""
        fault = self.check(walk, slot, -1)
        flaw = None if fault is None else Flaw(fault.position, str(fault), fault.verdict)
        if flaw is not None and flaw.verdict == Verdict.EPOCH and walk.rise is not None:
            slot, flaw.position, offset = walk.rise
            self.check_again(walk, slot, flaw.position, offset)
        segment = self.partition.segments[slot]
        beyond = batch_beyond(segment, self.partition.bases[slot + 1 : slot + 2]) if flaw is None else None
        if beyond is not None:
            flaw = Flaw(beyond.position, f"a batch that goes up to offset {beyond.last_offset}")
            self.check_again(walk, slot, beyond.position, beyond.base_offset)
        segment.seal()
        segment.offset_index.grow_to(0)
        segment.time_index.grow_to(0)
        return slot, flaw

    def check_again(self, walk: Walk, slot: int, limit: int, offset: int) -> None:
        """A segment, up to the batch with that offset that turned out to be bad."""
        self.rewind(self.partition.segments[slot], offset)
        walk.epoch = -1
        self.check(walk, slot, limit)

    def check(self, walk: Walk, slot: int, limit: int) -> Fault | None:
        segment, settings = self.partition.segments[slot], self.partition.settings
        room = index_room(segment.size, settings.index_interval_bytes)
        segment.offset_index.grow_to(max(room, settings.index_bytes))
        segment.time_index.grow_to(max(room, settings.index_bytes))
        segment.index_interval_bytes = settings.index_interval_bytes
        transaction_index.remove(self.directory, segment.base_offset)
        walk.begin(slot)
        return segment.check(walk.batch, limit, walk.epoch, self.hints.walked)

    def split(self, slot: int, position: int) -> bool:
        """Make what lies too far from the segment's name a segment of its own; whether it can be one."""
        from pykafkad.storage.recovery import splitting

        return splitting.split_segment(self.partition, slot, position, self.hints.now_ms)

    def rewind(self, segment: Segment, offset: int) -> None:
        """Forget the epochs from this offset on, and what walks over this segment, and later ones, made of
        producers."""
        self.partition.epochs.truncate_from_end(offset)
        for known in snapshots.offsets(os.listdir(self.directory)):
            if known > segment.base_offset:
                snapshots.remove(self.directory, known)
        self.load_producers(segment.base_offset)

    def cut(self, segment: Segment, position: int, why: str, rest: list[Segment]) -> None:
        """The log ends here. What lies behind cannot be believed, and is kept where nobody reads it."""
        lost = segment.size - position
        said = [f"offsets below {segment.end_offset} are kept"]
        if lost:
            said.append(f"{lost} bytes {keep_aside(segment, position)}")
        if rest:
            said.append(f"{len(rest)} later segment(s) from {rest[0].base_offset} on are set aside")
        log.warn(f"{segment.path}: {why} at byte {position}: {', '.join(said)}")
        segment.truncate(position)
        self.drop(rest)

    def drop(self, segments: list[Segment]) -> None:
        """These, the last ones, are no part of the log any more; their logs are kept aside."""
        partition = self.partition
        for segment in segments:
            segment.release()
            os.replace(segment.path, segment.path + CORRUPT)
            for suffix in OF_SEGMENT[1:]:
                remove(f"{self.directory}/{offset_name(segment.base_offset, suffix)}")
        del partition.segments[len(partition.segments) - len(segments) :]
        del partition.bases[len(partition.segments) :]

    # -- producers -------------------------------------------------------------------------------------------

    def load_producers(self, offset: int) -> None:
        """The producers' state as it was at `offset`: the newest snapshot up to there, and the batches after
        it."""
        partition = self.partition
        hints = self.hints
        had_any = bool(self.snapshots)
        start = max(hints.log_start_offset, partition.bases[0] if partition.bases else 0)
        for known in self.snapshots[:]:
            if known > offset or known < start:  # Kafka drops the one at the start, and with it who may go on
                snapshots.remove(self.directory, known)
                self.snapshots.remove(known)
        snapshots.load_newest(
            self.directory, self.snapshots, partition.producers, start, hints.now_ms, hints.expiration_ms
        )
        if hints.clean and not had_any and not self.epochs_damaged:
            partition.producers.end_offset = offset  # as Kafka: a log without any has no producers to find
            return
        replay_producers(partition, offset)

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
        partition.recovery_point = partition.flushed_offset = min(synced_to, log_end)
        if partition.recovery_point < hints.recovery_point:
            hints.lower(partition.recovery_point)
        partition.high_watermark = min(max(hints.high_watermark, partition.log_start_offset), log_end)
        partition.epochs.truncate_from_end(log_end)
        partition.epochs.truncate_from_start(partition.log_start_offset)
        cover_start(partition)
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
        if partition.segments:
            log.warn(
                f"{self.directory}: no offset of the log reaches its start {offset}; its segments are set aside"
            )
        self.drop(partition.segments[:])
        for known in self.snapshots:
            snapshots.remove(self.directory, known)
        partition.epochs = LeaderEpochs()
        partition.producers.clear(offset)
        partition.add_segment(offset, self.hints.now_ms)


def misses_its_end(hints: StartHints, compacts: bool, end_offset: int, next_base: int) -> bool:
    """A power cut may take the end of a closed segment and leave what was written after it: records would be
    missing in the middle. What a cleaner took out looks the same, so a log that it was ever at is believed."""
    is_unsynced = not hints.clean and end_offset >= hints.recovery_point
    return is_unsynced and not compacts and end_offset < next_base


def batch_beyond(segment: Segment, next_base: list[int]) -> BatchHeader | None:
    """The first batch whose offsets reach into the next segment, of which they cannot be."""
    if not next_base or segment.end_offset <= next_base[0]:
        return None
    return next(each for each in segment.headers() if each.last_offset >= next_base[0])


def loses(segment: Segment, position: int, verdict: Verdict | None) -> bool:
    """Whether the cut takes a batch that the log has nowhere else. Where an offset does not go up that may be a page
    that was written twice, and then it is no loss; or the offset before it is wrong, and what follows is missing."""
    if verdict != Verdict.ORDER:
        return False
    cut = next(segment.headers(position))
    same = next(each for each in segment.headers() if each.last_offset >= cut.base_offset)
    return segment.bytes_at(same.position, same.size) != segment.bytes_at(position, cut.size)


def keep_aside(segment: Segment, position: int) -> str:
    """Copy what is about to be cut off to `<name>.log.corrupt`, unless it is nothing but zeroes; what became of it."""
    if os.path.islink(segment.path):  # somebody else's (storage/overlay/overlay.py), of which nothing is cut
        return "stay where they are, and are not read"
    path = segment.path + CORRUPT
    with open(segment.path, "rb") as source, open(path, "ab") as target:
        source.seek(position)
        worth = False
        while chunk := source.read(COPY_BYTES):
            worth = worth or bool(chunk.strip(b"\0"))
            target.write(chunk)
    if worth:
        fsync_path(path)
        return f"are set aside in {os.path.basename(path)}"
    os.unlink(path)
    return "of zeroes are cut off"
