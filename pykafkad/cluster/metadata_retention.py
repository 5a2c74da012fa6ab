"""What of the metadata log goes, by Kafka's rules: the oldest snapshot, and the segments that the next one covers.

As long as segments and snapshots together are larger than metadata.max.retention.bytes, and then as long as the
oldest snapshot's last record is older than metadata.max.retention.ms; negative numbers set no limit. The newest
snapshot and the active segment stay. Runs on a thread, on a list of its own; a crash in the middle leaves more than
need be there, since the oldest goes first.
"""

from __future__ import annotations

import os

from pykafkad.cluster import metadata_files
from pykafkad.cluster.metadata_files import segment_name, snapshot_name
from pykafkad.cluster.metadata_reading import snapshot_timestamp
from pykafkad.logs import logger
from pykafkad.storage.files import INDEX, LOG, TIME_INDEX

HEADER_BYTES = 4096  # enough for the first batch, which has the snapshot's time

SnapshotId = tuple[int, int]

log = logger("metadata")


class Retention:
    def __init__(
        self,
        directory: str,
        snapshots: list[SnapshotId],
        segments: list[tuple[int, int]],
        max_bytes: int,
        max_ms: int,
    ) -> None:
        self._directory = directory
        self._snapshots = list(snapshots)
        self._segments = segments
        self._max_bytes = max_bytes
        self._max_ms = max_ms

    def run(self, now_ms: int) -> int:
        """Removes what may go; the offset that the log and its snapshots now begin at, 0 if nothing went."""
        start = 0
        sizes = {each: self._size_of(each) for each in self._snapshots}
        while len(self._snapshots) > 1:
            oldest, following = self._snapshots[:2]
            total = sum(size for _, size in self._segments) + sum(sizes[each] for each in self._snapshots)
            if 0 <= self._max_bytes < total:
                why = f"all are {total} bytes, more than {self._max_bytes}"
            elif 0 <= self._max_ms < now_ms - self._timestamp_of(oldest):
                why = f"it is older than {self._max_ms} ms"
            else:
                break
            start = following[0]
            self._remove_before(following)
            log.info(
                f"removed the metadata snapshot {snapshot_name(oldest)}, and the log below {start}: {why}"
            )
        if start:
            metadata_files.fsync_directory(self._directory)
        return start

    def _remove_before(self, snapshot: SnapshotId) -> None:
        """What this snapshot covers, oldest first: segments, then the snapshot before it."""
        while len(self._segments) > 1 and self._segments[1][0] <= snapshot[0]:
            base_offset, _ = self._segments.pop(0)
            names = [segment_name(base_offset, suffix) for suffix in (LOG, INDEX, TIME_INDEX)]
            metadata_files.remove(self._directory, names)
        metadata_files.remove(self._directory, [snapshot_name(self._snapshots.pop(0))])

    def _path(self, snapshot: SnapshotId) -> str:
        return os.path.join(self._directory, snapshot_name(snapshot))

    def _size_of(self, snapshot: SnapshotId) -> int:
        return os.path.getsize(self._path(snapshot))

    def _timestamp_of(self, snapshot: SnapshotId) -> int:
        with open(self._path(snapshot), "rb") as file:
            return snapshot_timestamp(file.read(HEADER_BYTES))
