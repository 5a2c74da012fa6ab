"""The indexes of one segment of the metadata log: where in the file an offset is, and a time.

    .index       int32 last offset of a batch - base offset, int32 where the batch begins; one every 4 KiB or more
    .timeindex   int64 largest timestamp so far, int32 its offset - base offset; beside each of those, if it grew

They are kept in memory while the segment is written and saved when it is closed or rolled, so that a start need
not walk what a snapshot covers. Apache Kafka makes its own anew at every start. An index only saves work: what it
says is compared with the log (`start_for`) before it is believed.
"""

from __future__ import annotations

import os
from struct import Struct

from pykafkad.cluster.metadata_files import segment_name, write_synced
from pykafkad.storage.files import INDEX, TIME_INDEX

INTERVAL_BYTES = 4096
ENTRY, TIME_ENTRY = Struct(">ii"), Struct(">qi")
NO_TIME = -1


class SegmentIndex:
    __slots__ = ("_max_offset", "_max_time", "_noted_time", "_unindexed", "base_offset", "entries", "times")
    _max_offset: int  # of the batch with the largest time, once there is one

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.entries = bytearray()
        self.times = bytearray()
        self._unindexed = 0  # bytes since the last entry
        self._max_time = self._noted_time = NO_TIME

    def add(self, last_offset: int, position: int, size: int, max_timestamp: int) -> None:
        """A batch was written at that position."""
        if max_timestamp > self._max_time:
            self._max_time, self._max_offset = max_timestamp, last_offset - self.base_offset
        if self._unindexed > INTERVAL_BYTES:
            self.entries += ENTRY.pack(last_offset - self.base_offset, position)
            self._unindexed = 0
            self._note_time()
        self._unindexed += size

    def _note_time(self) -> None:
        if self._max_time > self._noted_time:
            self.times += TIME_ENTRY.pack(self._max_time, self._max_offset)
            self._noted_time = self._max_time

    # -- on the disk

    def save(self, directory: str) -> None:
        """Beside the segment, which gets no more batches."""
        self._note_time()
        for suffix, data in ((INDEX, self.entries), (TIME_INDEX, self.times)):
            write_synced(os.path.join(directory, segment_name(self.base_offset, suffix)), (bytes(data),))

    def load(self, directory: str) -> None:
        """What the files say, as far as it goes up; their zeros behind the end (Kafka's, after a crash) left out."""
        offsets = read_entries(directory, self.base_offset, INDEX, ENTRY, 1)
        self.entries = bytearray(b"".join(ENTRY.pack(*entry) for entry in offsets))
        times = read_entries(directory, self.base_offset, TIME_INDEX, TIME_ENTRY, 0)
        self.times = bytearray(b"".join(TIME_ENTRY.pack(*entry) for entry in times))

    def start_for(self, offset: int) -> tuple[int, int]:
        """The last entry below that offset: (where its batch begins, its last offset); (0, -1) for none."""
        low, high = 0, len(self.entries) // ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if self.base_offset + ENTRY.unpack_from(self.entries, middle * ENTRY.size)[0] < offset:
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0, -1
        relative, position = ENTRY.unpack_from(self.entries, (low - 1) * ENTRY.size)
        return position, self.base_offset + relative

    def cut(self, last_offset: int) -> None:
        """Forget what comes after that offset; the walk begins with the batch that ends there."""
        relative = last_offset - self.base_offset
        while self.entries and ENTRY.unpack_from(self.entries, len(self.entries) - ENTRY.size)[0] > relative:
            del self.entries[-ENTRY.size :]
        while (
            self.times and TIME_ENTRY.unpack_from(self.times, len(self.times) - TIME_ENTRY.size)[1] > relative
        ):
            del self.times[-TIME_ENTRY.size :]
        if self.times:
            self._max_time, self._max_offset = TIME_ENTRY.unpack_from(
                self.times, len(self.times) - TIME_ENTRY.size
            )
            self._noted_time = self._max_time


def read_entries(
    directory: str, base_offset: int, suffix: str, form: Struct, grows: int
) -> list[tuple[int, int]]:
    """The entries of an index file whose field `grows` goes up from one to the next."""
    try:
        with open(os.path.join(directory, segment_name(base_offset, suffix)), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    entries: list[tuple[int, int]] = []
    largest = 0
    for entry in form.iter_unpack(data[: len(data) // form.size * form.size]):
        if entry[grows] <= largest:
            break
        largest = entry[grows]
        entries.append((entry[0], entry[1]))
    return entries
