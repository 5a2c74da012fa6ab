"""Replaying a metadata directory into an image: the newest good snapshot, then the batches behind it.

Nothing on the disk is changed here. Every batch that is read is checked (length, magic, CRC, offsets, epoch); what
the snapshot covers is passed over by the segment's index, where there is a good one. What is wrong within the last
batch of the log is a torn write, and ends the replay there; what is wrong before it is a MetadataError that names
the file and the offset. A damaged snapshot is left out if the log below it is still there. Transactions of records
(KIP-868) count when they end; an open or aborted one never happened. Records of unknown types, and fields with
unknown tags, are passed over and noted in `unknown`: then the log is never cut below them, since no
snapshot would have what they say.
"""

from __future__ import annotations

import os
from struct import Struct

from pykafkad.cluster import metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_files import NO_EPOCH, Listing, segment_name, snapshot_name
from pykafkad.cluster.metadata_index import SegmentIndex
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25
UNKNOWN_SHOWN = 5

# base offset, length, leader epoch, magic, crc, attributes, last offset delta
HEADER = Struct(">qiibIhi")
OVERHEAD = 61
LENGTH_STARTS_AT = 12
CRC_STARTS_AT = 21
COMPRESSION_BITS = 7
WINDOW_BYTES = 4 << 20
PROBE_BYTES = 64 << 10


class Contents:
    """What was found: where the log ends, in which epoch, and in which file the next batch goes."""

    open_transaction: bool  # the log ends within one

    def __init__(self) -> None:
        self.end_offset = 0
        self.last_epoch = NO_EPOCH
        self.last_timestamp = -1  # of the last batch
        self.snapshots: list[tuple[int, int]] = []
        self.leftovers: list[str] = []
        self.segments: list[list[int]] = []  # [base offset, bytes], the active one last
        self.active: SegmentIndex | None = None  # of the last segment, if the log goes on in it
        self.empty: list[int] = []  # segments without a batch, behind the last one that has some
        self.snapshot: tuple[int, int] | None = None  # the one that was read
        self.damaged: list[tuple[str, str]] = []  # snapshots that were not: their names and why
        self.replayed_bytes = 0  # of batches behind the snapshot
        self.kraft_version = 0
        self.voters = b""  # the newest VotersRecord as it is
        self.unknown: list[str] = []
        self.passed_over: list[tuple[int, int]] = []  # base offset, and up to which byte: the snapshot has it

    def not_understood(self, what: str) -> None:
        if len(self.unknown) < UNKNOWN_SHOWN:
            self.unknown.append(what)


class Replay:
    """Feeds records to the image in order; holds back those of a transaction until its end."""

    def __init__(self, image: Image, contents: Contents) -> None:
        self._image = image
        self.contents = self._contents = contents
        self._held: list[tuple[Any, int]] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._held is not None

    def take(self, path: str, batch: records.Batch, data: bytes, from_offset: int) -> None:
        """A batch of the log; of a snapshot see `batch` and `control`."""
        if batch.is_control:
            self.control(data)
        elif data[OVERHEAD:] != metadata_records.NO_OP:
            guarded(path, batch.base_offset, self, data, from_offset)

    def batch(self, data: bytes, from_offset: int) -> None:
        for record in records.batch_records(data):
            if record.offset < from_offset:
                continue
            if record.value is None:
                raise MetadataError("record without a value")
            decoded = metadata_records.decode(record.value)
            if decoded is None:
                kind = metadata_records.type_of(record.value)
                self._contents.not_understood(f"record type {kind} at offset {record.offset}")
                continue
            if metadata_records.has_unknown_tags(decoded):
                name = type(decoded).__name__
                self._contents.not_understood(f"a field of a {name} at offset {record.offset}")
            self._record(decoded, record.offset)

    def control(self, data: bytes) -> None:
        """What the quorum says of itself: the kraft.version, and the voters."""
        for record in records.batch_records(data):
            kind = metadata_records.control_type(record.key)
            if kind == metadata_records.KRAFT_VERSION:
                self._contents.kraft_version = metadata_records.kraft_version_of(record.value)
                self._image.kraft_version = self._contents.kraft_version
            elif kind == metadata_records.KRAFT_VOTERS:
                self._contents.voters = bytes(record.value or b"")

    def _record(self, record: Any, offset: int) -> None:
        kind = record.api_key
        if kind == BEGIN_TRANSACTION:
            if self._held is not None:
                raise MetadataError("a transaction of records begins within another")
            self._held = []
        elif kind in (END_TRANSACTION, ABORT_TRANSACTION):
            if self._held is None:
                raise MetadataError("a transaction of records ends that did not begin")
            held, self._held = self._held, None
            for earlier, at in held if kind == END_TRANSACTION else []:
                self._image.apply(earlier, at)
        elif self._held is not None:
            self._held.append((record, offset))
        else:
            self._image.apply(record, offset)


def read_directory(directory: str, image: Image, replay: Replay | None = None) -> Contents:
    replay = replay or Replay(image, Contents())
    contents = replay.contents
    listing = Listing(directory)
    contents.snapshots, contents.leftovers = listing.snapshots, listing.leftovers
    for snapshot in reversed(listing.snapshots):
        if snapshot[0] == 0:
            read_snapshot(directory, snapshot, contents, replay)  # the voters alone (KIP-853)
        elif read_snapshot(directory, snapshot, contents, replay):
            contents.end_offset, contents.last_epoch = contents.snapshot = snapshot
            image.offset = contents.end_offset - 1
            break
    for number, base_offset in enumerate(listing.segments):
        contents.segments.append([base_offset, size_of(directory, base_offset)])
        following = listing.segments[number + 1 :]
        if following and following[0] <= contents.end_offset:
            contents.passed_over.append((base_offset, contents.segments[-1][1]))
            continue  # all of it is in the snapshot
        last = not any(size_of(directory, base) for base in following)
        read_segment(directory, base_offset, contents, replay, last=last)
        if last:
            contents.empty = following  # a crash came between a roll and its first batch
            break
    contents.open_transaction = replay.in_transaction
    return contents


def size_of(directory: str, base_offset: int) -> int:
    return os.path.getsize(os.path.join(directory, segment_name(base_offset)))


# -- snapshots


def read_snapshot(directory: str, snapshot: tuple[int, int], contents: Contents, replay: Replay) -> bool:
    """Whether it was good; it is looked at as a whole before any of it counts."""
    path = os.path.join(directory, snapshot_name(snapshot))
    data = read_file(path)
    try:
        batches = checked_snapshot(path, data)
    except MetadataError as problem:
        contents.damaged.append((path, str(problem)))
        return False
    for batch in batches:
        whole = data[batch.position : batch.position + batch.size]
        if batch.is_control:
            replay.control(whole)
        else:
            guarded(path, batch.base_offset, replay, whole, 0)
    contents.last_timestamp = snapshot_timestamp(data)
    return True


def checked_snapshot(path: str, data: bytes) -> list[records.Batch]:
    """Its batches, from the header to the footer; MetadataError for one that is not whole."""
    try:
        batches = records.scan(data)
    except records.RecordsError as error:
        why = what_is_wrong(memoryview(data), error.position) or str(error)
        raise MetadataError(f"{path}: {why} at byte {error.position}") from None
    end = batches[-1].position + batches[-1].size if batches else 0
    if end < len(data):
        raise MetadataError(f"{path}: {what_is_wrong(memoryview(data), end)} at byte {end}")
    if control_types(data, batches[:1])[:1] != [metadata_records.SNAPSHOT_HEADER]:
        raise MetadataError(f"{path}: the snapshot has no header")
    if control_types(data, batches[-1:])[-1:] != [metadata_records.SNAPSHOT_FOOTER]:
        raise MetadataError(f"{path}: the snapshot has no footer")
    return batches


def control_types(data: bytes, batches: list[records.Batch]) -> list[int]:
    return [
        metadata_records.control_type(record.key)
        for batch in batches
        if batch.is_control
        for record in records.batch_records(data[batch.position : batch.position + batch.size])
    ]


def snapshot_timestamp(data: bytes) -> int:
    """When the last record was written that a snapshot covers, as the header says that it begins with."""
    header = next(records.batch_records(data)).value or b""
    return int.from_bytes(header[2:10], "big", signed=True)


# -- segments


class Window:
    """Bytes of a segment from some position on, read a piece at a time."""

    data: bytes  # once it is filled

    def __init__(self, path: str, position: int, want: int = WINDOW_BYTES) -> None:
        self._fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._fd).st_size
        self.position = position
        self._want = self._piece = want

    def fill(self) -> None:
        self.data = self._read(self._want)

    def rest(self) -> memoryview:
        return memoryview(self._read(self.size))

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        at = self.position
        while size > 0 and (part := os.pread(self._fd, size, at)):
            parts.append(part)
            at += len(part)
            size -= len(part)
        return b"".join(parts)

    def move(self, size: int) -> None:
        """So much was used; where nothing could be, more of it is wanted at once."""
        self.position += size
        self._want = self._piece if size else self._want * 2

    @property
    def is_last(self) -> bool:
        return self.position + len(self.data) >= self.size

    def close(self) -> None:
        os.close(self._fd)


def read_segment(directory: str, base_offset: int, contents: Contents, replay: Replay, *, last: bool) -> None:
    path = os.path.join(directory, segment_name(base_offset))
    index = SegmentIndex(base_offset)
    window = Window(path, first_position(directory, path, index, contents))
    try:
        next_offset = read_batches(path, window, index, contents, replay, last=last)
    finally:
        window.close()
    contents.segments[-1][1] = window.position
    if next_offset is None:
        next_offset = base_offset
        check_order(path, base_offset, contents.last_epoch, contents)
    # Where it ends before the snapshot does the log goes on in a new segment.
    contents.active = index if last and next_offset >= contents.end_offset else None


def first_position(directory: str, path: str, index: SegmentIndex, contents: Contents) -> int:
    """Where to begin: behind most of what the snapshot covers, if index and log agree on where that is."""
    index.load(directory)
    position, last_offset = index.start_for(contents.end_offset)
    good = 0 < position < contents.segments[-1][1] and has_batch(path, position, last_offset)
    index.cut(last_offset if good else -1)
    if not good:
        return 0
    contents.passed_over.append((index.base_offset, position))
    return position


def has_batch(path: str, position: int, last_offset: int) -> bool:
    """Whether a good batch begins there that ends at that offset."""
    window = Window(path, position, PROBE_BYTES)
    try:
        window.fill()
    finally:
        window.close()
    found = memoryview(window.data)
    if what_is_wrong(found, 0) is not None:
        return False
    base_offset, *_, last_delta = HEADER.unpack_from(found)
    return bool(base_offset + last_delta == last_offset)


def read_batches(
    path: str, window: Window, index: SegmentIndex, contents: Contents, replay: Replay, *, last: bool
) -> int | None:
    """Every batch up to the end, or to a torn one; the offset after the last one, None where there is none."""
    next_offset = None
    while window.position < window.size:
        window.fill()
        batches, used, torn = good_batches(window.data)
        for batch in batches:
            next_offset = batch.last_offset + 1
            read_batch(path, window, batch, index, contents, replay)
        torn = torn or (window.is_last and used < len(window.data))
        window.move(used)
        if torn:
            expected = index.base_offset if next_offset is None else next_offset
            if not pass_damage(path, window, expected, contents, last):
                break
    return next_offset


def good_batches(data: bytes) -> tuple[list[records.Batch], int, bool]:
    """The good batches that the data begins with, how many bytes they are, and whether a bad one follows."""
    try:
        batches, torn = records.scan(data), False
    except records.RecordsError as error:
        batches, torn = records.scan(memoryview(data)[: error.position]), True
    for number, batch in enumerate(batches):
        if batch.magic != 2 or batch.attributes & COMPRESSION_BITS or batch.last_offset < batch.base_offset:
            return batches[:number], batch.position, True
    return batches, batches[-1].position + batches[-1].size if batches else 0, torn


def read_batch(
    path: str, window: Window, batch: records.Batch, index: SegmentIndex, contents: Contents, replay: Replay
) -> None:
    start, size, next_offset = batch.position, batch.size, batch.last_offset + 1
    if batch.base_offset < index.base_offset:
        raise MetadataError(f"{path}: offset {batch.base_offset} is not of this segment")
    if next_offset > contents.end_offset:
        check_order(path, batch.base_offset, batch.leader_epoch, contents)
        replay.take(path, batch, window.data[start : start + size], contents.end_offset)
        contents.end_offset, contents.last_epoch = next_offset, batch.leader_epoch
        contents.last_timestamp = batch.max_timestamp
        contents.replayed_bytes += size
    index.add(next_offset - 1, window.position + start, size, batch.max_timestamp)


def pass_damage(path: str, window: Window, expected: int, contents: Contents, last: bool) -> bool:
    """A bad batch is here, where that offset is expected: whether the log goes on behind it.

    It does where a snapshot has all that is lost; it ends here if this is its last segment and nothing good follows;
    else it is damaged.
    """
    rest = window.rest()
    found = next_good(rest, expected)
    if found is None and last:
        return False
    if found is None or found[1] > contents.end_offset:
        raise MetadataError(
            f"{path}: {what_is_wrong(rest, 0)} at byte {window.position} (offset {expected}); "
            "the metadata behind it would be lost, so this is not repaired here"
        )
    window.move(found[0])
    contents.passed_over.append((contents.segments[-1][0], window.position))
    return True


def check_order(path: str, base_offset: int, epoch: int, contents: Contents) -> None:
    if base_offset > contents.end_offset:
        why = "".join(f"; {problem}" for _, problem in contents.damaged)
        raise MetadataError(
            f"{path}: offset {base_offset} follows {contents.end_offset - 1}, records are missing{why}"
        )
    if epoch < contents.last_epoch:
        raise MetadataError(
            f"{path}: quorum epoch {epoch} follows {contents.last_epoch} at offset {base_offset}"
        )


def guarded(path: str, base_offset: int, replay: Replay, batch: bytes, from_offset: int) -> None:
    try:
        replay.batch(batch, from_offset)
    except (MetadataError, records.RecordsError) as error:
        raise MetadataError(f"{path}: {error} (batch at offset {base_offset})") from None


def what_is_wrong(data: memoryview, position: int) -> str | None:
    """Why no good batch starts here, or None. A good one: whole, magic 2, not compressed, CRC right."""
    left = len(data) - position
    if left < OVERHEAD:
        return f"{left} bytes, too few for a batch"
    _, length, _, magic, crc, attributes, last_delta = HEADER.unpack_from(data, position)
    if length < OVERHEAD - LENGTH_STARTS_AT:
        return f"batch length {length}"
    if length > left - LENGTH_STARTS_AT:
        return f"batch of {length} bytes where {left - LENGTH_STARTS_AT} are left"
    if magic != 2:
        return f"magic {magic}"
    if records.crc32c(data[position + CRC_STARTS_AT : position + LENGTH_STARTS_AT + length]) != crc:
        return "wrong checksum"
    if attributes & COMPRESSION_BITS or last_delta < 0:
        return f"attributes {attributes}, last offset delta {last_delta}"
    return None


def next_good(data: memoryview, expected: int) -> tuple[int, int] | None:
    """Where a good batch of that offset or a later one follows the bad one here, and its offset.

    The bad one's own length may be what is wrong with it, so a good batch may begin at any byte.
    """
    for at in range(1, len(data) - OVERHEAD + 1):
        if data[at + 16] == 2 and what_is_wrong(data, at) is None:
            base_offset = HEADER.unpack_from(data, at)[0]
            if base_offset >= expected:
                return at, base_offset
    return None


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
