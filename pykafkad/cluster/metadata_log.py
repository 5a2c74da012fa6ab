"""The metadata log of a single node, `__cluster_metadata-0`, in the format of Apache Kafka 4.3.1 in
KRaft mode.

Owns the segments and the small files (metadata_files draws them all); snapshots are metadata_upkeep's. Nobody
else writes there. Invariants: one append is one batch, so a crash keeps all of it or nothing; nothing is answered
before it is fsynced; one write is under way at a time (the controller sees to it); all that is in the log is
committed. A torn last batch is cut at start-up; anything else that cannot be read is a refusal to start, never a
cut: what is behind it was acknowledged (KIP-500, KIP-595, KIP-630, KIP-868 for transactions of records).
"""

from __future__ import annotations

import os

from pykafkad.cluster import metadata_files, metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_files import (
    DIRECTORY,
    EPOCHS,
    NO_EPOCH,
    QUORUM_STATE,
    fsync_directory,
    fsync_file,
    segment_name,
)
from pykafkad.cluster.metadata_index import SegmentIndex
from pykafkad.cluster.metadata_reading import Contents, read_directory
from pykafkad.hot import records
from pykafkad.logs import logger
from pykafkad.messages import LeaderChangeMessage
from pykafkad.storage.files import CORRUPT, INDEX, LOG, TIME_INDEX, sync_data
from pykafkad.uuids import METADATA_TOPIC_ID, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.clock import Clock
    from pykafkad.cluster.metadata_records import Record

SEGMENT_BYTES, SEGMENT_MS = 1 << 30, 7 * 86_400_000

log = logger("metadata")


class MetadataLog:
    """`image` is what the log says. `write` and `settle` may run on a thread, all else is the loop's."""

    def __init__(
        self,
        log_directory: str,
        clock: Clock,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        segment_ms: int = SEGMENT_MS,
    ) -> None:
        self.log_directory = log_directory
        self.directory = os.path.join(log_directory, DIRECTORY)
        self.image = Image()
        self.contents = Contents()  # as found at start
        self.end_offset = 0
        self.epoch = NO_EPOCH
        self.last_epoch, self.last_timestamp = NO_EPOCH, -1  # of the last batch
        self.open_transaction = False  # the log ends within one: a take-over aborts it
        self.closed: list[tuple[int, int]] = []  # the segments before the active one: base offset, bytes
        self.roll_next = False  # whatever its size
        self.bytes_appended = 0  # since the last snapshot, or since the log began
        self.clock = clock
        self._segment_bytes, self._segment_ms = segment_bytes, segment_ms
        self._fd = -1
        self._old_fd = -1  # the segment before: `settle` may still be at it
        self._rolled: tuple[int, int] | None = None  # a segment that the write under way closed
        self._size = 0  # of the active segment
        self._first_ms = -1  # when its first batch was written; -1: it has none
        self._index = SegmentIndex(0)  # of the active segment

    @property
    def is_new(self) -> bool:
        """There is no metadata yet: the directory wants formatting."""
        return self.end_offset == 0

    @property
    def segments(self) -> list[tuple[int, int]]:
        """Base offset and bytes of each, the active one last."""
        return [*self.closed, (self._index.base_offset, self._size)]

    def forget_below(self, offset: int) -> None:
        """The segments that end there or before are gone."""
        bases = [base for base, _ in self.segments]
        self.closed = [each for each, end in zip(self.closed, bases[1:], strict=True) if end > offset]

    # -- start

    def open(self) -> None:
        """Replay what is there, cut a torn last batch, and be ready to append."""
        self.read()
        self.prepare()

    def read(self) -> None:
        """Replay what is there, and change nothing: MetadataError refuses it."""
        if not os.path.isdir(self.directory):
            return
        contents = self.contents = read_directory(self.directory, self.image)
        self.end_offset = contents.end_offset
        self.last_epoch, self.last_timestamp = contents.last_epoch, contents.last_timestamp
        self.bytes_appended = contents.replayed_bytes
        self.epoch = max(
            contents.last_epoch,
            max((epoch for epoch, _ in metadata_files.epoch_lines(self.directory)), default=NO_EPOCH),
            metadata_files.epoch_in_quorum_state(self.directory),
        )
        self.open_transaction = contents.open_transaction

    def prepare(self) -> None:
        """Cut a torn last batch, clear what a crash left over, open the segment that is appended to."""
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
            text = f"version: 0\ntopic_id: {to_text(METADATA_TOPIC_ID)}"
            metadata_files.write_text(self.directory, "partition.metadata", text)
        contents = self.contents
        for what in contents.unknown:
            log.warn(f"{what} is not known here: it is kept, and no snapshot is made without it")
        for path, why in contents.damaged:
            log.warn(f"{why}; the snapshot is set aside, since the log has all that it says")
            os.replace(path, path + CORRUPT)
        metadata_files.remove(self.directory, contents.leftovers)
        metadata_files.remove(self.directory, [segment_name(base) for base in contents.empty])
        if contents.active is None:
            self._forget_segments(contents.segments)
        else:
            self.closed = [(base, size) for base, size in contents.segments[:-1]]
        self._open_active_segment(contents)

    def _forget_segments(self, segments: list[list[int]]) -> None:
        """They end before the snapshot does: nothing that goes on behind it may follow them."""
        if segments:
            log.warn(f"{self.directory}: the log ends before its snapshot, and begins anew behind it")
        for base_offset, _ in segments:
            metadata_files.remove(
                self.directory, [segment_name(base_offset, suffix) for suffix in (LOG, INDEX, TIME_INDEX)]
            )

    def _open_active_segment(self, contents: Contents) -> None:
        self._index = contents.active or SegmentIndex(self.end_offset)
        self._size = contents.segments[-1][1] if contents.active is not None else 0
        path = os.path.join(self.directory, segment_name(self._index.base_offset))
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if os.fstat(self._fd).st_size > self._size:
            log.warn(f"{path}: the last batch is torn, cut at byte {self._size} (offset {self.end_offset})")
            os.ftruncate(self._fd, self._size)
        self._first_ms = int.from_bytes(os.pread(self._fd, 8, 35), "big") if self._size else -1
        # Its index files would soon be out of date; they are written when the segment is closed.
        names = [segment_name(self._index.base_offset, suffix) for suffix in (INDEX, TIME_INDEX)]
        metadata_files.remove(self.directory, names)

    def begin_epoch(self, node_id: int) -> None:
        """A new quorum epoch, led by this node, noted in its two files (durable with `settle`)."""
        self.epoch = max(self.epoch, 0) + 1
        lines = metadata_files.epoch_lines(self.directory)
        lines = [line for line in lines if line[0] < self.epoch and line[1] < self.end_offset]
        metadata_files.write_epochs(self.directory, [*lines, (self.epoch, self.end_offset)])
        metadata_files.write_quorum_state(self.directory, node_id, self.epoch, self.contents.kraft_version)

    # -- appending

    def build(self, batch: Sequence[Record]) -> bytes:
        """The bytes of one batch."""
        return self.framed(metadata_records.encode_all(batch))

    def framed(self, values: Sequence[bytes]) -> bytes:
        """The same, of records that are encoded already."""
        now_ms = self.clock.now_ms()
        data: bytes = records.build(
            [(None, value, [], now_ms) for value in values],
            base_offset=self.end_offset,
            leader_epoch=self.epoch,
        )
        return data

    def write(self, data: bytes, *, sync: bool = True) -> None:
        """Put the bytes behind the end, and on the disk. OSError: nothing is there (but see UnsafeLog)."""
        if self._must_roll(len(data)):
            self._roll()
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], self._size + written)
        except OSError:
            self._take_back()
            raise
        if sync:
            self.sync()

    def sync(self) -> None:
        try:
            sync_data(self._fd)
        except OSError as error:
            # What a failed fsync left on the disk is unknown, and asking again would lie.
            raise UnsafeLog(f"{self.directory}: fsync failed: {error}") from error

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError as error:
            raise UnsafeLog(f"{self.directory}: a failed write could not be undone: {error}") from error

    def _must_roll(self, size: int) -> bool:
        if not self._size:
            return False
        return (
            self.roll_next
            or self._size + size > self._segment_bytes
            or self.clock.now_ms() - self._first_ms > self._segment_ms
        )

    def _roll(self) -> None:
        """The active segment is complete and on the disk before the next one is there."""
        self.sync()
        self._index.save(self.directory)
        path = os.path.join(self.directory, segment_name(self.end_offset))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        fsync_directory(self.directory)
        if self._old_fd >= 0:
            os.close(self._old_fd)
        self._rolled = (self._index.base_offset, self._size)
        self._old_fd, self._fd, self._size, self._first_ms = self._fd, fd, 0, -1
        self._index = SegmentIndex(self.end_offset)
        self.roll_next = False
        log.info(f"rolled the metadata log at offset {self.end_offset}")

    def committed(self, data: bytes, batch: Sequence[Record]) -> None:
        """These bytes and records are on disk: count them, and make them true. All are counted and tried, whatever is
        raised, since the log has them."""
        first_error = None
        for record, _ in batch:
            try:
                self.image.apply(record, self.end_offset)
            except Exception as error:
                first_error = first_error or error
            self.end_offset += 1
        self._count(data)
        if first_error is not None:
            raise first_error

    def _count(self, data: bytes) -> None:
        if self._rolled is not None:
            self.closed.append(self._rolled)
            self._rolled = None
        timestamp = int.from_bytes(data[35:43], "big")
        if not self._size:
            self._first_ms = timestamp
        self._index.add(self.end_offset - 1, self._size, len(data), timestamp)
        self._size += len(data)
        self.bytes_appended += len(data)
        self.last_epoch, self.last_timestamp = self.epoch, timestamp

    def append(self, *batches: Sequence[Record]) -> None:
        """Write batches and apply them: for start-up and shutdown, which sync afterwards."""
        for batch in batches:
            data = self.build(batch)
            self.write(data, sync=False)
            self.committed(data, batch)

    def settle(self) -> None:
        """What was appended at start-up gets to the disk, and the small files and new entries with it."""
        self.sync()
        for name in (EPOCHS, QUORUM_STATE):
            fsync_file(os.path.join(self.directory, name))
        for directory in (self.directory, os.path.dirname(self.directory)):
            fsync_directory(directory)

    def append_leader_change(self, node_id: int) -> None:
        """The control record that begins an epoch. Version 0 also in a dynamic quorum: Kafka insists."""
        voters = [LeaderChangeMessage.Voter(voter_id=node_id)]
        message = LeaderChangeMessage(version=0, leader_id=node_id, voters=voters, granting_voters=voters)
        rows = [(metadata_records.LEADER_CHANGE, bytes(message.encode(0)))]
        if self.is_new and self.contents.kraft_version > 0:  # formatted so: the log says it from now on
            rows += metadata_records.quorum(self.contents.kraft_version, self.contents.voters)
        now_ms = self.clock.now_ms()
        data = records.build(
            [(metadata_records.control_key(kind), value, [], now_ms) for kind, value in rows],
            base_offset=self.end_offset,
            leader_epoch=self.epoch,
            control=True,
        )
        self.write(data, sync=False)
        self.end_offset += len(rows)
        self._count(data)

    def close(self, *, clean: bool = False) -> None:
        """A clean end leaves indexes, so that the next start need not walk what a snapshot covers."""
        if self._fd >= 0:
            if clean:
                self._index.save(self.directory)
            for fd in (self._fd, self._old_fd):
                if fd >= 0:
                    os.close(fd)
            self._fd = self._old_fd = -1


class UnsafeLog(OSError):
    """The log's end on disk is unknown: nothing more may be appended in this process."""
