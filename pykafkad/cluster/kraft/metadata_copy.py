"""This broker's copy of the controllers' metadata log, in the files of Apache Kafka 4.3.1: `__cluster_metadata-0`.

The batches are the leader's, byte for byte. What is behind the high watermark may be cut off again, so it only waits
(`pending`), in memory as well as on the disk; a start cannot know how far the log was committed, so there all that is
behind the newest snapshot waits until the leader has said it. Nothing is synced: what a crash takes is fetched again.
Invariants: the copy continues at its end; nothing that was applied is cut off; a snapshot counts when all of it is there.
"""

from __future__ import annotations

import os
from collections import deque
from typing import NamedTuple

from pykafkad.cluster import metadata_files, metadata_records
from pykafkad.cluster.kraft.image import QuorumImage
from pykafkad.cluster.metadata_files import PART, Listing, segment_name, snapshot_name
from pykafkad.cluster.metadata_index import SegmentIndex
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.metadata_reading import (
    Contents,
    Replay,
    read_directory,
    read_file,
    read_snapshot,
)
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot import records
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage.files import INDEX, LOG, TIME_INDEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.clock import Clock

SnapshotId = tuple[int, int]


class Pending(NamedTuple):
    """A batch that is not known to be committed."""

    path: str
    header: records.Batch
    data: bytes

    @property
    def end_offset(self) -> int:
        return self.header.last_offset + 1


class Waiting(Replay):
    """What a snapshot says counts at once; batches of the log wait."""

    def __init__(self, image: QuorumImage, contents: Contents) -> None:
        super().__init__(image, contents)
        self.pending: deque[Pending] = deque()
        self.voters = contents.voters  # the newest VotersRecord, committed or not: it says who may be asked

    def take(self, path: str, batch: records.Batch, data: bytes, from_offset: int) -> None:
        self.pending.append(Pending(path, batch, bytes(data)))
        if batch.is_control:
            self._look_for_voters(data)

    def control(self, data: bytes) -> None:
        super().control(data)
        self._look_for_voters(data)

    def _look_for_voters(self, data: bytes) -> None:
        for record in records.batch_records(data):
            if metadata_records.control_type(record.key) == metadata_records.KRAFT_VOTERS:
                self.voters = bytes(record.value or b"")

    def apply(self, pending: Pending) -> None:
        """It is committed."""
        try:
            super().take(pending.path, pending.header, pending.data, 0)
        except records.RecordsError as error:
            raise MetadataError(f"{pending.path}: {error}") from None


class MetadataCopy(MetadataLog):
    image: QuorumImage

    def __init__(
        self,
        log_directory: str,
        clock: Clock,
        voters: Iterable[int],
        *,
        segment_bytes: int,
        segment_ms: int,
    ) -> None:
        """`voters`: those that the config names, if it does."""
        super().__init__(log_directory, clock, segment_bytes=segment_bytes, segment_ms=segment_ms)
        self.image = QuorumImage()
        self.replay = Waiting(self.image, Contents())
        self.leader = -1
        self.applied_offset = 0  # what comes next; all below is in the image
        self.applied_epoch = -1
        self.applied_timestamp = -1
        self.applied_bytes = 0  # since the last snapshot
        self._voters = tuple(voters)
        self._epochs = LeaderEpochs()
        self._part = -1  # of a snapshot that is being fetched

    @property
    def pending(self) -> deque[Pending]:
        return self.replay.pending

    # -- start

    def read(self) -> None:
        if not os.path.isdir(self.directory):
            return
        try:
            contents = self.contents = read_directory(self.directory, self.image, self.replay)
        except MetadataError as error:
            raise MetadataError(
                f"{error}. It is a copy: move {self.directory} away, and it is fetched again"
            ) from None
        self.end_offset, self.last_epoch = contents.end_offset, contents.last_epoch
        self.last_timestamp = contents.last_timestamp
        if contents.snapshot is not None:
            self.applied_offset, self.applied_epoch = contents.snapshot
        self._epochs = LeaderEpochs(metadata_files.epoch_lines(self.directory))
        self._epochs.truncate_from_end(self.end_offset)
        known = metadata_files.epoch_in_quorum_state(self.directory)
        self.epoch = max(contents.last_epoch, self._epochs.latest, known, 0)
        contents.passed_over = []  # which a leader had verified

    # -- the log

    def append_fetched(self, data: bytes) -> None:
        """What the leader has behind our end. MetadataError: it does not continue there."""
        for batch in records.scan(data):
            whole = data[batch.position : batch.position + batch.size]
            if batch.base_offset != self.end_offset or batch.leader_epoch < self.last_epoch:
                raise MetadataError(
                    f"offset {batch.base_offset} of epoch {batch.leader_epoch} was fetched, where the log ends at"
                    f" {self.end_offset} in epoch {self.last_epoch}"
                )
            self.write(whole, sync=False)
            if self._epochs.assign(batch.leader_epoch, batch.base_offset):
                self._save_epochs()
            self.end_offset = batch.last_offset + 1
            self._count(whole)
            self.last_epoch = batch.leader_epoch
            self.replay.take(self.directory, batch, whole, 0)

    def apply(self, pending: Pending) -> None:
        """It is committed: the image has it from now on."""
        self.replay.apply(pending)
        self.applied_offset, self.applied_epoch = pending.end_offset, pending.header.leader_epoch
        self.applied_timestamp = pending.header.max_timestamp
        self.applied_bytes += len(pending.data)
        self.image.offset = self.applied_offset - 1

    def cut(self, epoch: int, end_offset: int) -> int:
        """The leader's log parts from ours: the largest epoch that it knows up to our last ended there. Where ours ends
        then."""
        offset, _ = self._epochs.truncation(epoch, end_offset, self.end_offset)
        if offset < self.applied_offset:
            raise MetadataError(
                f"the controllers' log ends at {offset}, where ours was committed up to {self.applied_offset}"
            )
        self._truncate(offset)
        return self.end_offset

    def _truncate(self, offset: int) -> None:
        while self.pending and self.pending[-1].end_offset > offset:
            self.pending.pop()
        bases = [base for base, _ in self.segments]
        kept = [base for base in bases if base < offset] or bases[:1]
        self.close()
        self._remove_segments(base for base in bases if base not in kept)
        self.closed = [each for each in self.closed if each[0] in kept[:-1]]
        self._reopen(kept[-1], offset)
        if self._epochs.truncate_from_end(self.end_offset):
            self._save_epochs()

    def _reopen(self, base: int, offset: int) -> None:
        """Append to that segment from now on, of which what is below the offset stays."""
        self._index, self._size, self.end_offset = SegmentIndex(base), 0, base
        path = os.path.join(self.directory, segment_name(base))
        data = read_file(path) if os.path.exists(path) else b""
        for batch in records.scan(data):
            if batch.base_offset >= offset:
                break
            self._index.add(batch.last_offset, batch.position, batch.size, batch.max_timestamp)
            self._size, self.end_offset = batch.position + batch.size, batch.last_offset + 1
            self.last_epoch = batch.leader_epoch
        if not self._size:
            self.last_epoch = self._epochs.epoch_at(base - 1) if base else -1
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(self._fd, self._size)
        self._first_ms = int.from_bytes(os.pread(self._fd, 8, 35), "big") if self._size else -1
        metadata_files.remove(self.directory, [segment_name(base, each) for each in (INDEX, TIME_INDEX)])

    def _remove_segments(self, bases: Iterable[int]) -> None:
        for base in list(bases):
            metadata_files.remove(
                self.directory, [segment_name(base, each) for each in (LOG, INDEX, TIME_INDEX)]
            )

    # -- who leads

    def follow(self, epoch: int, leader: int) -> None:
        self.epoch, self.leader = epoch, leader
        metadata_files.write_quorum_state(
            self.directory, leader, epoch, self.image.kraft_version, self._voters
        )

    def _save_epochs(self) -> None:
        metadata_files.write_epochs(self.directory, self._epochs.entries)

    # -- snapshots that are fetched

    def begin_snapshot(self, snapshot: SnapshotId) -> None:
        self._end_part()
        path = self._path(snapshot) + PART
        self._part = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def add_piece(self, position: int, data: bytes) -> None:
        os.pwrite(self._part, data, position)

    def end_snapshot(self, snapshot: SnapshotId) -> None:
        """It is whole: the log begins anew behind it, and the image becomes what it says. MetadataError: it is not."""
        os.fsync(self._part)
        self._end_part()
        path = self._path(snapshot)
        os.replace(path + PART, path)
        metadata_files.fsync_directory(self.directory)
        fresh, contents = QuorumImage(), Contents()
        if not read_snapshot(self.directory, snapshot, contents, Waiting(fresh, contents)):
            os.remove(path)
            raise MetadataError(
                f"the snapshot {snapshot_name(snapshot)} that was fetched: {contents.damaged[0][1]}"
            )
        self._begin_behind(snapshot, contents)
        fresh.offset = snapshot[0] - 1
        self.image.become(fresh)

    def _begin_behind(self, snapshot: SnapshotId, contents: Contents) -> None:
        self.close()
        self._remove_segments(base for base, _ in self.segments)
        listing = Listing(self.directory)
        old = [each for each in listing.snapshots if each[0] and each != snapshot]
        metadata_files.remove(self.directory, map(snapshot_name, old))
        contents.snapshots = [snapshot]
        self.contents, self.closed, self._rolled = contents, [], None
        self.replay = Waiting(self.image, contents)
        self.applied_offset, self.applied_epoch = snapshot
        self.applied_timestamp, self.applied_bytes = contents.last_timestamp, 0
        self._epochs = LeaderEpochs([(snapshot[1], snapshot[0])])
        self._save_epochs()
        self._reopen(snapshot[0], snapshot[0])
        self.last_epoch = snapshot[1]

    def _path(self, snapshot: SnapshotId) -> str:
        return os.path.join(self.directory, snapshot_name(snapshot))

    def _end_part(self) -> None:
        if self._part >= 0:
            os.close(self._part)
            self._part = -1

    def close(self, *, clean: bool = False) -> None:
        super().close(clean=clean)
        self._end_part()
