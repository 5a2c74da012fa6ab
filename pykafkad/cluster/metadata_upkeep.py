"""The life of the metadata log: when a snapshot is made, and what goes once a newer one covers it (KIP-630).

A snapshot is due after metadata.log.max.record.bytes.between.snapshots, or metadata.log.max.snapshot.interval.ms
after the last one if there is anything new. Its batches are made on the loop, in slices; a thread writes them to
`….checkpoint.part`, syncs and renames. Once a minute the oldest snapshots go, and the segments that the next one
covers, as long as everything together is larger than metadata.max.retention.bytes or the oldest is older than
metadata.max.retention.ms. Invariants: the newest snapshot stays; what is removed is covered by one that stays; where
a record is not understood nothing is made and nothing goes. A snapshot that cannot be made is given up
for a minute: the log has everything. What a start passed over, since a snapshot has it, is verified once in the
background.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from pykafkad.cluster import metadata_files
from pykafkad.cluster.metadata_files import PART, READ_ONLY, snapshot_name, snapshot_of
from pykafkad.logs import logger
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.snapshots import Snapshot
    from pykafkad.config import BrokerConfig
    from pykafkad.slices import Run, Work
    from pykafkad.workers import Submit

    Commit = Callable[[Sequence[Any], Callable[[Any], None]], None]

CHECK_INTERVAL_MS = RETRY_MS = 60_000

SnapshotId = tuple[int, int]

log = logger("metadata")


class Upkeep:
    commit: Commit  # as the controller's, which sets it

    def __init__(
        self, config: BrokerConfig, metadata: MetadataLog, clock: Clock, submit: Submit, run: Run
    ) -> None:
        self._config = config
        self._log = metadata
        self._clock = clock
        self._submit = submit
        self._run = run
        self._max_bytes: int = config["metadata.log.max.record.bytes.between.snapshots"]
        self._interval_ms: int = config["metadata.log.max.snapshot.interval.ms"]
        damaged = [snapshot_of(os.path.basename(path)) for path, _ in metadata.contents.damaged]
        self.snapshots = [each for each in metadata.contents.snapshots if each not in damaged]
        self._last_ms = clock.monotonic_ms()
        self._not_before_ms = 0  # after a snapshot that could not be made
        self._busy = False  # with a snapshot, or with what goes
        self._unverified = metadata.contents.passed_over
        self._heals = False  # the log is to be left behind: damage was found in what a snapshot covers

    # -- when

    def appended(self) -> None:
        """The log has grown."""
        if self._log.bytes_appended >= self._max_bytes:
            self._make(f"at least {self._max_bytes} bytes were written since the last one")
        elif self._interval_ms and self._clock.monotonic_ms() - self._last_ms >= self._interval_ms:
            self._make(f"the last one is at least {self._interval_ms} ms old")

    def check(self) -> None:
        """The job of each minute."""
        if self._unverified:
            self._verify()
        if self._log.bytes_appended:
            self.appended()
        if not self._busy and len(self.snapshots) > 1 and not self._log.contents.unknown:
            self._clean()

    # -- making one

    def _make(self, why: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if (
            self._busy
            or self._log.open_transaction
            or self._log.contents.unknown
            or now_ms < self._not_before_ms
        ):
            return
        from pykafkad.cluster.snapshots import Snapshot

        self._last_ms, self._not_before_ms = now_ms, now_ms + RETRY_MS
        try:
            snapshot = Snapshot(self._log, self._clock.now_ms())
        except Exception as error:  # whoever changed the metadata is not to blame
            log.exception("no snapshot of the metadata could be made", error)
            return
        self._busy = True
        log.info(f"making the metadata snapshot {snapshot_name(snapshot.id)}: {why}")
        self._run(encoded(snapshot), lambda result: self._encoded(snapshot, result))

    def _encoded(self, snapshot: Snapshot, result: Any) -> None:
        if isinstance(result, Exception):
            self._log.image.before = None  # nobody holds on to what changes
            self._made(snapshot.id, 0, result)
            return
        directory = self._log.directory
        self._submit(
            lambda: write_snapshot(directory, snapshot.id, result),
            lambda result: self._made(snapshot.id, snapshot.covered_bytes, result),
        )

    def _made(self, snapshot: SnapshotId, covered_bytes: int, result: Any) -> None:
        self._busy = False
        if isinstance(result, BaseException):
            log.error(f"the metadata snapshot {snapshot_name(snapshot)} could not be written: {result}")
            return
        self._not_before_ms = 0
        self._log.bytes_appended -= covered_bytes
        self.snapshots.append(snapshot)
        if self._heals:
            self._heals = False
            self._clean(max_bytes=0)

    # -- what a start passed over

    def _verify(self) -> None:
        from pykafkad.cluster.metadata_verifying import first_damage

        parts, self._unverified = self._unverified, []
        directory = self._log.directory
        self._submit(lambda: first_damage(directory, parts), lambda result: self._verified(parts, result))

    def _verified(self, parts: list[tuple[int, int]], result: Any) -> None:
        if result is None:
            return
        if isinstance(result, BaseException):
            log.error(f"the older part of the metadata log cannot be read: {result}")
            return
        path, position = result
        log.error(
            f"{path}: the batch at byte {position} is damaged. A snapshot has what it says, but Apache Kafka would cut"
            " the log there: do not hand the directory over before it begins anew"
        )
        if not self._log.contents.unknown:
            from pykafkad.messages import NoOpRecord

            self._log.roll_next = True
            self.commit([(NoOpRecord(), 0)], lambda error: self._heal(parts))

    def _heal(self, parts: list[tuple[int, int]]) -> None:
        """The damaged segment is complete now: a snapshot that covers all of it, and it can go."""
        self._heals = not self._busy
        if self._heals:
            self._make("the log below it is damaged")
        else:
            self._unverified = parts  # in a minute again

    # -- what goes

    def _clean(self, max_bytes: int | None = None) -> None:
        from pykafkad.cluster.metadata_retention import Retention

        retention = Retention(
            self._log.directory,
            self.snapshots,
            self._log.segments,
            self._config["metadata.max.retention.bytes"] if max_bytes is None else max_bytes,
            self._config["metadata.max.retention.ms"],
        )
        now_ms = self._clock.now_ms()
        self._busy = True
        self._submit(lambda: retention.run(now_ms), self._cleaned)

    def _cleaned(self, result: Any) -> None:
        self._busy = False
        if isinstance(result, BaseException):
            log.error(f"old metadata could not be removed: {result}")
            return
        self.snapshots = [each for each in self.snapshots if each[0] >= result]
        self._log.forget_below(result)


def encoded(snapshot: Snapshot) -> Work:
    """Its batches."""
    batches: list[bytes] = []
    while (batch := snapshot.next_batch()) is not None:
        batches.append(batch)
        yield GO_ON
    return batches


def write_snapshot(directory: str, snapshot: SnapshotId, batches: list[bytes]) -> None:
    """Whole under its name, or not there; for a thread."""
    path = os.path.join(directory, snapshot_name(snapshot))
    try:
        metadata_files.write_synced(path + PART, batches, READ_ONLY)
        os.rename(path + PART, path)
    except OSError:
        metadata_files.remove(directory, [os.path.basename(path) + PART])
        raise
    metadata_files.fsync_directory(directory)
