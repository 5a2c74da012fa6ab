"""The metadata log of a single node, `__cluster_metadata-0`, in the format of Apache Kafka 4.3.1 in
KRaft mode.

    00000000000000000000.log        record batches; their leader epoch is the quorum epoch; all is committed
    <offset>-<epoch>.checkpoint     a snapshot: everything below `offset`, in records numbered from 0
    quorum-state                    one line of JSON: who led which quorum epoch last
    leader-epoch-checkpoint         "0", the number of lines, then "epoch start-offset" for each quorum epoch

Owns these files; nobody else writes them. Invariants: one append is one batch, so a crash keeps all of it or
nothing; nothing is answered before it is fsynced; one write is under way at a time (the controller sees to
it). A torn last batch is cut at start-up; anything else that cannot be read is a refusal to start, never a
cut (metadata-log rules R1, R5 and R8; KIP-500, KIP-595, KIP-630, KIP-868 for transactions of records).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pykafkad.cluster import metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_reading import NO_EPOCH, Contents, read_directory
from pykafkad.hot import records
from pykafkad.logs import logger
from pykafkad.messages import LeaderChangeMessage
from pykafkad.uuids import METADATA_TOPIC_ID, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.clock import Clock
    from pykafkad.cluster.metadata_records import Record

DIRECTORY = "__cluster_metadata-0"
QUORUM_STATE = "quorum-state"
EPOCHS = "leader-epoch-checkpoint"

log = logger("metadata")


class MetadataLog:
    """`image` is what the log says. `write` and `settle` may run on a thread, all else is the loop's."""

    def __init__(self, log_directory: str, clock: Clock) -> None:
        self.directory = os.path.join(log_directory, DIRECTORY)
        self.image = Image()
        self.end_offset = 0
        self.epoch = NO_EPOCH
        self.open_transaction = False  # the log ends within one: a take-over aborts it
        self._clock = clock
        self._fd = -1
        self._size = 0

    @property
    def is_new(self) -> bool:
        """There is no metadata yet: the directory wants formatting."""
        return self.end_offset == 0

    def open(self) -> None:
        """Replay what is there, cut a torn last batch, and be ready to append."""
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
            self._write_file("partition.metadata", f"version: 0\ntopic_id: {to_text(METADATA_TOPIC_ID)}")
        contents = read_directory(self.directory, self.image)
        self.end_offset = contents.end_offset
        self.epoch = max(contents.last_epoch, self._epoch_on_file(), self._epoch_in_quorum_state())
        self.open_transaction = contents.open_transaction
        self._open_active_segment(contents)

    def _open_active_segment(self, contents: Contents) -> None:
        path = contents.active_path or os.path.join(self.directory, f"{self.end_offset:020d}.log")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = contents.active_size
        if os.fstat(self._fd).st_size > self._size:
            log.warn(f"{path}: the last batch is torn, cut at byte {self._size} (offset {self.end_offset})")
            os.ftruncate(self._fd, self._size)
        # Index files of a segment that we append to would be out of date; Kafka builds new ones.
        for suffix in (".index", ".timeindex"):
            try:
                os.unlink(path.removesuffix(".log") + suffix)
            except FileNotFoundError:
                pass

    def begin_epoch(self, node_id: int) -> None:
        """A new quorum epoch, led by this node, noted in its two files (durable with `settle`)."""
        self.epoch = max(self.epoch, 0) + 1
        lines = [line for line in self._epoch_lines() if line[0] < self.epoch and line[1] < self.end_offset]
        lines.append((self.epoch, self.end_offset))
        text = "".join(f"{epoch} {start}\n" for epoch, start in lines)
        self._write_file(EPOCHS, f"0\n{len(lines)}\n{text}")
        self._write_file(
            QUORUM_STATE,
            f'{{"clusterId":"","leaderId":{node_id},"leaderEpoch":{self.epoch},"votedId":-1,"appliedOffset":0,'
            f'"currentVoters":[{{"voterId":{node_id}}}],"data_version":0}}',
        )

    # -- appending

    def build(self, batch: Sequence[Record]) -> bytes:
        """The bytes of one batch."""
        now_ms = self._clock.now_ms()
        data: bytes = records.build(
            [(None, value, [], now_ms) for value in metadata_records.encode_all(batch)],
            base_offset=self.end_offset,
            leader_epoch=self.epoch,
        )
        return data

    def write(self, data: bytes, *, sync: bool = True) -> None:
        """Put the bytes behind the end, and on the disk. OSError: nothing is there (but see UnsafeLog)."""
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
            fsync_data(self._fd)
        except OSError as error:
            # What a failed fsync left on the disk is unknown, and asking again would lie.
            raise UnsafeLog(f"{self.directory}: fsync failed: {error}") from error

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError as error:
            raise UnsafeLog(f"{self.directory}: a failed write could not be undone: {error}") from error

    def committed(self, size: int, batch: Sequence[Record]) -> None:
        """These bytes and records are on disk: count them, and make them true."""
        self._size += size
        for record, _ in batch:
            self.image.apply(record, self.end_offset)
            self.end_offset += 1

    def append(self, *batches: Sequence[Record]) -> None:
        """Write batches and apply them: for start-up and shutdown, which sync afterwards."""
        for batch in batches:
            data = self.build(batch)
            self.write(data, sync=False)
            self.committed(len(data), batch)

    def settle(self) -> None:
        """What was appended at start-up gets to the disk, and the small files and new entries with it."""
        self.sync()
        for name in (EPOCHS, QUORUM_STATE):
            with open(os.path.join(self.directory, name), "rb") as file:
                os.fsync(file.fileno())
        for directory in (self.directory, os.path.dirname(self.directory)):
            fsync_directory(directory)

    def append_leader_change(self, node_id: int) -> None:
        """The control record that begins an epoch. Version 0 also in a dynamic quorum: Kafka insists."""
        voters = [LeaderChangeMessage.Voter(voter_id=node_id)]
        message = LeaderChangeMessage(version=0, leader_id=node_id, voters=voters, granting_voters=voters)
        key = metadata_records.control_key(metadata_records.LEADER_CHANGE)
        data = records.build(
            [(key, bytes(message.encode(0)), [], self._clock.now_ms())],
            base_offset=self.end_offset,
            leader_epoch=self.epoch,
            control=True,
        )
        self.write(data, sync=False)
        self._size += len(data)
        self.end_offset += 1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- the small files

    def _epoch_lines(self) -> list[tuple[int, int]]:
        words = self._read_file(EPOCHS).split()
        pairs = [int(word) for word in words[2:]] if all(map(str.isdigit, words)) else []
        return list(zip(pairs[::2], pairs[1::2], strict=False))

    def _epoch_on_file(self) -> int:
        return max((epoch for epoch, _ in self._epoch_lines()), default=NO_EPOCH)

    def _epoch_in_quorum_state(self) -> int:
        text = self._read_file(QUORUM_STATE)
        _, found, rest = text.partition('"leaderEpoch":')
        number = rest.lstrip().partition(",")[0].partition("}")[0].strip()
        return int(number) if found and number.isdigit() else NO_EPOCH

    def _read_file(self, name: str) -> str:
        try:
            with open(os.path.join(self.directory, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def _write_file(self, name: str, text: str) -> None:
        """Whole or not at all after a crash of ours; `settle` makes it so after one of the machine's."""
        path = os.path.join(self.directory, name)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)


class UnsafeLog(OSError):
    """The log's end on disk is unknown: nothing more may be appended in this process."""


def fsync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_data(fd: int) -> None:
    """fdatasync, where there is one: it writes the file's new length too, and leaves out its times."""
    getattr(os, "fdatasync", os.fsync)(fd)
