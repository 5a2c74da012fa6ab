"""Replaying a metadata directory into an image: the newest snapshot, then the batches behind it.

Every batch is checked (length, magic, CRC, offsets, epoch). What is wrong within the last batch of the last
segment is a torn write, and ends the replay there; what is wrong before it is a MetadataError that names the
file and the offset. Transactions of records (KIP-868) count when they end; an open or aborted one never
happened.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import Any

from pykafkad.cluster import metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot import records

NO_EPOCH = -1
BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25

# base offset, length, leader epoch, magic, crc, attributes, last offset delta
HEADER = Struct(">qiibIhi")
OVERHEAD = 61
LENGTH_STARTS_AT = 12
CRC_STARTS_AT = 21
COMPRESSION_BITS, CONTROL_BIT = 7, 0x20


class Contents:
    """What was found: where the log ends, in which epoch, and in which file the next batch goes."""

    __slots__ = ("active_path", "active_size", "end_offset", "last_epoch", "open_transaction")

    def __init__(self) -> None:
        self.end_offset = 0
        self.last_epoch = NO_EPOCH
        self.open_transaction = False
        self.active_path: str | None = None
        self.active_size = 0


class Replay:
    """Feeds records to the image in order; holds back those of a transaction until its end."""

    def __init__(self, image: Image, contents: Contents) -> None:
        self._image = image
        self._contents = contents
        self._held: list[tuple[Any, int]] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._held is not None

    def batch(self, data: memoryview, base_offset: int, snapshot: bool) -> None:
        from_offset = 0 if snapshot else self._contents.end_offset
        for record in records.read(data):
            if record.offset < from_offset:
                continue
            if record.value is None:
                raise MetadataError("record without a value")
            self._record(metadata_records.decode(record.value), record.offset)

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


def read_directory(directory: str, image: Image) -> Contents:
    contents = Contents()
    replay = Replay(image, contents)
    names = sorted(os.listdir(directory))
    snapshots = [name for name in names if is_snapshot(name)]
    if snapshots:
        read_snapshot(os.path.join(directory, snapshots[-1]), contents, replay)
        image.offset = contents.end_offset - 1
    segments = [name for name in names if name.endswith(".log") and name[:-4].isdigit()]
    for number, name in enumerate(segments):
        if number + 1 < len(segments) and int(segments[number + 1][:-4]) <= contents.end_offset:
            continue  # all of it is in the snapshot
        read_segment(os.path.join(directory, name), contents, replay, last=number + 1 == len(segments))
    contents.open_transaction = replay.in_transaction
    return contents


def is_snapshot(name: str) -> bool:
    """`<offset %020d>-<epoch %010d>.checkpoint`; the one at offset 0 holds only the voters (KIP-853)."""
    stem = name.removesuffix(".checkpoint")
    offset, _, epoch = stem.partition("-")
    return stem != name and len(offset) == 20 and offset.isdigit() and epoch.isdigit() and int(offset) > 0


def read_snapshot(path: str, contents: Contents, replay: Replay) -> None:
    offset, epoch = map(int, os.path.basename(path).removesuffix(".checkpoint").split("-"))
    data = memoryview(read_file(path))
    position = 0
    control = b""
    while position < len(data):
        problem = what_is_wrong(data, position)
        if problem is not None:
            raise MetadataError(f"{path}: {problem} at byte {position}")
        base_offset, length, _, _, _, attributes, _ = HEADER.unpack_from(data, position)
        end = position + LENGTH_STARTS_AT + length
        if attributes & CONTROL_BIT:
            control = last_control_key(data[position:end])
        else:
            guarded(path, base_offset, replay, data[position:end], snapshot=True)
        position = end
    if control != metadata_records.control_key(metadata_records.SNAPSHOT_FOOTER):
        raise MetadataError(f"{path}: the snapshot has no footer")
    contents.end_offset, contents.last_epoch = offset, epoch


def last_control_key(batch: memoryview) -> bytes:
    key = b""
    for record in records.read(batch):
        key = bytes(record.key or b"")
    return key


def read_segment(path: str, contents: Contents, replay: Replay, *, last: bool) -> None:
    data = memoryview(read_file(path))
    contents.active_path, contents.active_size = path, len(data)
    position = next_offset = 0
    while position < len(data):
        problem = what_is_wrong(data, position)
        if problem is not None:
            if not (last and nothing_follows(data, position, contents.end_offset)):
                raise MetadataError(
                    f"{path}: {problem} at byte {position} (offset {contents.end_offset}); "
                    "the metadata behind it would be lost, so this is not repaired here"
                )
            contents.active_size = position
            break
        base_offset, length, epoch, _, _, attributes, last_delta = HEADER.unpack_from(data, position)
        end = position + LENGTH_STARTS_AT + length
        next_offset = base_offset + last_delta + 1
        if next_offset > contents.end_offset:
            check_order(path, base_offset, epoch, contents)
            is_no_op = (
                next_offset == base_offset + 1 and data[position + OVERHEAD : end] == metadata_records.NO_OP
            )
            if not (attributes & CONTROL_BIT or is_no_op):
                guarded(path, base_offset, replay, data[position:end], snapshot=False)
            contents.end_offset, contents.last_epoch = next_offset, epoch
        position = end
    if next_offset < contents.end_offset:
        contents.active_path, contents.active_size = None, 0  # it ends before the snapshot does


def check_order(path: str, base_offset: int, epoch: int, contents: Contents) -> None:
    if base_offset > contents.end_offset:
        raise MetadataError(
            f"{path}: offset {base_offset} follows {contents.end_offset - 1}, records are missing"
        )
    if epoch < contents.last_epoch:
        raise MetadataError(
            f"{path}: quorum epoch {epoch} follows {contents.last_epoch} at offset {base_offset}"
        )


def guarded(path: str, base_offset: int, replay: Replay, batch: memoryview, *, snapshot: bool) -> None:
    try:
        replay.batch(batch, base_offset, snapshot)
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


def nothing_follows(data: memoryview, position: int, end_offset: int) -> bool:
    """Whether no good batch follows the bad one that begins here: only then is it a torn write.

    The bad one's own length may be what is wrong with it, so a good batch may begin at any byte.
    """
    for at in range(position + 1, len(data) - OVERHEAD + 1):
        if data[at + 16] == 2 and what_is_wrong(data, at) is None:
            return bool(HEADER.unpack_from(data, at)[0] < end_offset)
    return True


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
