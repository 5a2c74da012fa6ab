"""One segment of a log: the door to ext/c/segment.c.

Owns the `.log` file, the queue of batches that are accepted and not yet written, and the rule of when an index
entry is due. Invariants: queued batches lie back to back after what is written and reach the file in one pwritev;
index entries are made after the write they point to; a range handed out keeps its file open. A file is opened for
writing when it is written to and not before, and never through a symbolic link: a `.log` that is one belongs to
somebody else (`pykafkad open`), and is cut in memory only.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.errno cimport EMFILE, ENFILE, errno
from libc.limits cimport INT_MAX

import os
from enum import IntEnum

from pykafkad.hot.records cimport Placeable
from pykafkad.hot.index import OffsetIndex, TimeIndex

cdef extern from "sys/uio.h":
    cdef struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from "crc32c.h" nogil:
    uint32_t crc32c(uint32_t seed, const uint8_t *data, size_t size)

cdef extern from "batch.h" nogil:
    enum:
        TRANSACTIONAL_FLAG
        CONTROL_FLAG
    ctypedef struct batch_header:
        int64_t base_offset, max_timestamp, producer_id
        int32_t size, leader_epoch, last_offset_delta, base_sequence, count
        int16_t attributes, producer_epoch
        int8_t magic
    int64_t batch_last_offset(const batch_header *header)

cdef extern from "segment.h" nogil:
    const int64_t OFFSET_MAX
    enum:
        SEGMENT_OK
        SEGMENT_END
        SEGMENT_TORN
        SEGMENT_CORRUPT
        SEGMENT_ERRNO
    int64_t segment_pread(int fd, uint8_t *buffer, size_t size, int64_t position)
    void segment_reserve(int fd, int64_t size)
    int segment_write(int fd, iovec *parts, int count, int64_t position)
    int segment_find_offset(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found,
                            batch_header *batch)
    int segment_find_time(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset, int64_t *found,
                          batch_header *batch)

cdef enum:
    RELEASE_GIL_BYTES = 65536   # a smaller write is over before another thread could use the lock
    BOUNDARIES = 16             # ends of recent writes that are remembered: where tailing readers ask next
    FIRST_QUEUE = 4
    MAX_POSITION = 0x7FFFFFFF   # positions are int32 in the index


class CorruptSegment(Exception):
    """The bytes where a batch should be are not one."""


cdef int64_t most_files = 0x7FFFFFFFFFFFFFFF
cdef int64_t let_go_at = 0x7FFFFFFFFFFFFFFF
cdef object let_go_of_files = None
cdef int read_below = INT_MAX


def limit_open_files(int64_t most, let_go, int descriptors=INT_MAX):
    """From `most` open files of segments on, `let_go` is called before another one is opened (None: no limit). Files
    are opened for reading with descriptors below `descriptors` only: the others are for what must be written."""
    global most_files, let_go_at, let_go_of_files, read_below
    most_files = let_go_at = most if let_go is not None else 0x7FFFFFFFFFFFFFFF
    let_go_of_files = let_go
    read_below = descriptors


cdef int keep_files_few() except -1:
    """Before another one is opened. Where many are in use, letting go is of no use and would be asked for each time:
    then it is asked for again when there are some more."""
    global let_go_at
    if open_files < most_files:
        let_go_at = most_files
    elif open_files >= let_go_at:
        let_go_of_files()
        let_go_at = max(most_files, open_files + most_files // 4)
    return 0


cdef object read_error(int fd_errno, str path):
    return OSError(fd_errno, os.strerror(fd_errno), path)


include "segment_types.pxi"
include "segment_new.pxi"
include "segment_walk.pxi"


cdef struct queued:
    Py_buffer view
    int64_t base_offset, last_offset, max_timestamp


cdef struct boundary:
    int64_t offset, position


cdef class Segment:
    """The `.log` file of one base offset with its two indexes."""

    cdef readonly object directory
    cdef readonly object suffix
    cdef readonly int64_t base_offset
    cdef readonly int64_t size                      # bytes in the file
    cdef readonly int64_t queued_bytes
    cdef public int64_t end_offset                  # after the last batch in the file
    cdef public int64_t max_timestamp               # of all batches in the file; -1: none known
    cdef public int64_t max_timestamp_offset        # last offset of the batch that has it
    cdef public int64_t first_timestamp             # max timestamp of the first batch; -2: not yet looked at
    cdef public int64_t created_ms
    cdef readonly object offset_index
    cdef readonly object time_index
    cdef public int64_t index_interval_bytes
    cdef public int64_t max_bytes                   # roll before the file would be larger
    cdef public int64_t roll_ms                     # roll when the first batch is older (jitter is off already)
    cdef public int64_t unindexed_bytes             # since the last index entry
    cdef readonly bint changed                      # written to since it was opened
    cdef SegmentFile file
    cdef queued *queue_items
    cdef iovec *parts
    cdef int queue_count, queue_room
    cdef boundary *boundaries                       # NULL until something is written: many partitions are never written to
    cdef int boundary_next
    cdef boundary limit                             # the last translation of a read's limit
    cdef int64_t entries_left                       # at least so many index entries still fit
    cdef int64_t queued_entries                     # at most so many will the queue make
    cdef int64_t queued_unindexed                   # unindexed_bytes as it will be after the queue

    def __cinit__(self, directory, int64_t base_offset, offset_index, time_index, int64_t size=0,
                  bint fresh=False, suffix=".log"):
        """fresh: create it empty."""
        self.directory = directory
        self.suffix = suffix
        self.base_offset = base_offset
        self.size = size
        self.end_offset = base_offset
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.first_timestamp = -2
        self.index_interval_bytes = 4096
        self.max_bytes = MAX_POSITION
        self.roll_ms = 0x7FFFFFFFFFFFFFFF
        self.offset_index = offset_index
        self.time_index = time_index
        self.limit.offset = -1
        if fresh:
            SegmentFile(self.path, create=True)  # there, and opened again when something is written

    def __dealloc__(self):
        self.drop_queue()
        free(self.queue_items)
        free(self.parts)
        free(self.boundaries)

    @property
    def path(self):
        return f"{self.directory}/{self.base_offset:020d}{self.suffix}"

    @property
    def queued_batches(self):
        return self.queue_count

    cpdef SegmentFile open_file(self):
        """The file, opened when first needed: idle partitions hold no descriptor."""
        if self.file is None:
            keep_files_few()
            self.file = SegmentFile(self.path)
        return self.file

    cdef SegmentFile writable_file(self):
        if self.file is None or not self.file.writable:
            keep_files_few()
            self.file = SegmentFile(self.path, writable=True)
        return self.file

    def reserve(self):
        """Have the file system set the whole segment's room aside (topic config preallocate)."""
        segment_reserve(self.writable_file().fd, self.max_bytes)

    def release(self):
        """Let go of the descriptor and the mappings; the next use takes them again."""
        self.file = None
        self.offset_index.unmap()
        self.time_index.unmap()

    def seal(self):
        """No more appends: the last timestamp is indexed whatever the interval, the indexes are cut to size."""
        if self.changed:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.changed = False
        if self.offset_index.stretched:
            self.offset_index.trim()
        if self.time_index.stretched:
            self.time_index.trim()

    def give_back(self):
        """What reserve() took and the segment did not need."""
        os.ftruncate(self.writable_file().fd, self.size)

    def move(self, directory):
        """The partition's directory has another name now."""
        self.directory = directory
        self.offset_index.move(directory)
        self.time_index.move(directory)

    # -- appending -----------------------------------------------------------------------------------------------

    cpdef bint must_roll(self, int64_t bytes_more, int64_t last_offset, int64_t max_timestamp, int64_t now_ms) except -1:
        """Whether a batch has to go to a new segment: size, age, a full index, an offset too far."""
        cdef int64_t end = self.size + self.queued_bytes
        if end > self.max_bytes - bytes_more or last_offset - self.base_offset > 0x7FFFFFFF:
            return True
        if end == 0:
            return False
        if self.entries_left <= self.queued_entries and self.indexes_full():
            return True
        if self.first_timestamp == -2:
            self.writable_file()  # as the append that asks this needs it
            self.load_first_timestamp()
        if self.first_timestamp >= 0:
            return max_timestamp > self.first_timestamp and max_timestamp - self.first_timestamp > self.roll_ms
        return now_ms - self.created_ms > self.roll_ms

    cdef bint indexes_full(self) except -1:
        # What is queued makes at most queued_entries; only the write itself can say exactly how many.
        self.count_entries_left()
        if self.entries_left <= self.queued_entries and self.queue_count:
            self.write()
            self.count_entries_left()
        return self.entries_left <= self.queued_entries

    cdef int count_entries_left(self) except -1:
        self.entries_left = min(self.offset_index.capacity - self.offset_index.entries,
                                self.time_index.capacity - 1 - self.time_index.entries)

    cpdef int load_first_timestamp(self) except -1:
        """The first batch's largest timestamp; -1 when there is no batch, or a damaged one: who reads it is told, and who
        appends behind it is not held up."""
        cdef batch_header batch
        cdef int64_t found = 0
        if self.size == 0:
            self.first_timestamp = self.queue_items[0].max_timestamp if self.queue_count else -1
            return 0
        self.first_timestamp = -1
        try:
            if self.look(0, self.base_offset, &found, &batch):
                self.first_timestamp = batch.max_timestamp
        except CorruptSegment:
            pass

    def append(self, Placeable batch not None, int64_t base_offset, int leader_epoch, int64_t now_ms,
               int64_t log_start_offset):
        """Give a batch its offsets and queue it: Appended; or None when it has to go to a new segment."""
        cdef int64_t last_offset
        if base_offset > OFFSET_MAX - batch.last_offset_delta:
            raise OverflowError(f"{self.path}: no offsets are left after {base_offset}")
        last_offset = base_offset + batch.last_offset_delta
        if self.must_roll(batch.size, last_offset, batch.max_timestamp, now_ms):
            return None
        batch.put(base_offset, leader_epoch)
        self.queue(batch.data, base_offset, last_offset, batch.max_timestamp)
        cdef Appended appended = Appended.__new__(Appended)
        appended.base_offset = base_offset
        appended.last_offset = last_offset
        appended.log_append_time_ms = batch.log_append_time
        appended.log_start_offset = log_start_offset
        return appended

    cpdef int queue(self, data, int64_t base_offset, int64_t last_offset, int64_t max_timestamp) except -1:
        """Take a batch whose bytes are final; they must stay as they are until write()."""
        cdef queued *item
        if self.queue_count == self.queue_room:
            self.grow_queue()
        item = &self.queue_items[self.queue_count]
        PyObject_GetBuffer(data, &item.view, PyBUF_SIMPLE)
        item.base_offset = base_offset
        item.last_offset = last_offset
        item.max_timestamp = max_timestamp
        self.queue_count += 1
        self.queued_bytes += item.view.len
        if self.queued_unindexed > self.index_interval_bytes:
            self.queued_entries += 1
            self.queued_unindexed = 0
        self.queued_unindexed += item.view.len
        return 0

    cdef int grow_queue(self) except -1:
        cdef int room = self.queue_room * 2 if self.queue_room else FIRST_QUEUE
        cdef void *items = realloc(self.queue_items, room * sizeof(queued))
        if items == NULL:
            raise MemoryError
        self.queue_items = <queued *>items
        cdef void *parts = realloc(self.parts, room * sizeof(iovec))
        if parts == NULL:
            raise MemoryError
        self.parts = <iovec *>parts
        self.queue_room = room

    cdef void drop_queue(self) noexcept:
        cdef int slot
        for slot in range(self.queue_count):
            PyBuffer_Release(&self.queue_items[slot].view)
        self.queue_count = 0
        self.queued_bytes = 0
        self.queued_entries = 0
        self.queued_unindexed = self.unindexed_bytes

    def discard(self):
        """Forget what is queued: its partition is offline."""
        self.drop_queue()

    cpdef int write(self) except -1:
        """Everything queued goes to the file; OSError when it does not, and then nothing counts as written."""
        cdef int slot, error, count = self.queue_count
        cdef int64_t total = self.queued_bytes
        cdef int64_t position = self.size
        if count == 0:
            return 0
        cdef int fd = self.writable_file().fd
        for slot in range(count):
            self.parts[slot].iov_base = self.queue_items[slot].view.buf
            self.parts[slot].iov_len = <size_t>self.queue_items[slot].view.len
        if total >= RELEASE_GIL_BYTES:
            with nogil:
                error = segment_write(fd, self.parts, count, position)
        else:
            error = segment_write(fd, self.parts, count, position)
        if error:
            self.drop_queue()
            raise read_error(error, self.path)
        self.note_written(position)
        self.drop_queue()
        return 0

    cdef int note_written(self, int64_t position) except -1:
        cdef int slot
        cdef queued *item
        self.remember(self.queue_items[0].base_offset, position)
        for slot in range(self.queue_count):
            item = &self.queue_items[slot]
            self.index_batch(position, item.view.len, item.last_offset, item.max_timestamp)
            position += item.view.len
        self.end_offset = self.queue_items[self.queue_count - 1].last_offset + 1
        self.size = position
        self.changed = True
        self.remember(self.end_offset, position)
        return 0

    cdef int index_batch(self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp) except -1:
        """What every batch in the file leaves behind, in order: maxima, and now and then index entries."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.unindexed_bytes > self.index_interval_bytes and self.index_entry(last_offset, position):
            self.unindexed_bytes = 0
            self.entries_left -= 1
        self.unindexed_bytes += size
        return 0

    cdef bint index_entry(self, int64_t last_offset, int64_t position) except -1:
        """False where there is no descriptor to open the indexes with: then the next batch has the entry."""
        try:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        except OSError as error:
            if error.errno != EMFILE and error.errno != ENFILE:
                raise
            return False
        return True

    cdef void remember(self, int64_t offset, int64_t position) noexcept:
        cdef int last = (self.boundary_next + BOUNDARIES - 1) % BOUNDARIES
        if self.boundaries == NULL:
            self.boundaries = <boundary *>malloc(BOUNDARIES * sizeof(boundary))
            if self.boundaries == NULL:
                return  # then readers search
            self.forget()
        if self.boundaries[last].offset == offset:
            return
        self.boundaries[self.boundary_next].offset = offset
        self.boundaries[self.boundary_next].position = position
        self.boundary_next = (self.boundary_next + 1) % BOUNDARIES

    cdef void forget(self) noexcept:
        cdef int slot
        if self.boundaries != NULL:
            for slot in range(BOUNDARIES):
                self.boundaries[slot].offset = -1

    # -- reading -------------------------------------------------------------------------------------------------

    cdef bint look(self, int64_t position, int64_t offset, int64_t *found, batch_header *batch) except -1:
        """Find the first batch from position on that reaches offset; false when there is none."""
        cdef int verdict
        cdef int64_t end = self.size
        cdef int fd = self.open_file().fd
        verdict = segment_find_offset(fd, position, end, offset, found, batch)
        if verdict == SEGMENT_OK:
            return True
        if verdict == SEGMENT_END:
            return False
        if verdict == SEGMENT_ERRNO:
            raise read_error(errno, self.path)
        raise CorruptSegment(f"{self.path}: no whole batch where offset {offset} should be")

    cdef int64_t locate(self, int64_t offset, int64_t *size) except -2:
        """Position of the first batch that reaches offset, -1 when there is none; size 0 when not looked at."""
        cdef int slot
        cdef int64_t found = 0
        cdef batch_header batch
        size[0] = 0
        if self.boundaries != NULL:
            for slot in range(BOUNDARIES):
                if self.boundaries[slot].offset == offset and self.boundaries[slot].position < self.size:
                    return self.boundaries[slot].position
        if not self.look(self.offset_index.position_of(offset), offset, &found, &batch):
            return -1
        size[0] = batch.size
        return found

    cdef int64_t first_size(self, int64_t position) except -1:
        cdef int64_t found = 0
        cdef batch_header batch
        return batch.size if self.look(position, 0, &found, &batch) else 0

    cdef int64_t limit_position(self, int64_t limit_offset) except -1:
        cdef int64_t unused = 0, position
        if limit_offset >= self.end_offset:
            return self.size
        if self.limit.offset != limit_offset:
            position = self.locate(limit_offset, &unused)
            self.limit.position = self.size if position < 0 else position
            self.limit.offset = limit_offset
        return self.limit.position

    def read(self, int64_t offset, int64_t max_bytes, int64_t limit_offset, bint at_least_one):
        """The range that starts with the first batch reaching offset and ends before limit_offset; None: none does.

        Not longer than max_bytes (a batch may be cut at the end) unless the first batch alone is, and then it is
        that batch or, without at_least_one, of size 0.
        """
        cdef int64_t size = 0, end, length
        cdef int64_t position = self.locate(offset, &size)
        if position < 0:
            return None
        end = self.limit_position(limit_offset)
        length = end - position
        if length <= 0:
            return None
        if max_bytes < length:
            if size == 0:
                size = self.first_size(position)
            if max_bytes >= size:
                length = max_bytes
            elif at_least_one:
                length = size
            else:
                length = 0
        return FileRange.__new__(FileRange, self.open_file(), position, length)

    def batch_reaching(self, int64_t offset):
        """The BatchHeader of the first batch whose last offset is >= offset, or None."""
        cdef int64_t found = 0
        cdef batch_header batch
        if not self.look(self.offset_index.position_of(offset), offset, &found, &batch):
            return None
        return make_header(&batch, found)

    def batch_since(self, int64_t timestamp, int64_t start_offset):
        """The BatchHeader of the first batch with max timestamp >= timestamp that reaches start_offset, or None."""
        cdef int64_t found = 0, position, end = self.size
        cdef batch_header batch
        cdef int verdict, fd = self.open_file().fd
        offset = self.time_index.lookup(timestamp)[1]
        position = self.offset_index.position_of(max(offset, start_offset))
        verdict = segment_find_time(fd, position, end, timestamp, start_offset, &found, &batch)
        if verdict == SEGMENT_OK:
            return make_header(&batch, found)
        if verdict == SEGMENT_END:
            return None
        if verdict == SEGMENT_ERRNO:
            raise read_error(errno, self.path)
        raise CorruptSegment(f"{self.path}: torn or damaged while looking for timestamp {timestamp}")

    def headers(self, int64_t position=0):
        """The BatchHeaders from a batch's position to the end of the file."""
        cdef int64_t found = 0
        cdef batch_header batch
        while self.look(position, 0, &found, &batch):
            yield make_header(&batch, found)
            position = found + batch.size

    def bytes_at(self, int64_t position, int64_t size):
        return os.pread(self.open_file().fd, size, position)

    # -- start-up ------------------------------------------------------------------------------------------------

    def load_end(self):
        """After a clean stop: the end offset and newest maxima from the last index entry on.

        Returns where the last whole batch ends: less than size when the file is torn behind it. CorruptSegment when
        the index does not point to a batch of that offset, and says nothing about the end.
        """
        cdef int64_t found = 0, position, end = self.size, indexed = -1
        cdef batch_header batch
        cdef int verdict, fd
        self.unindexed_bytes = 0
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry
        position = self.offset_index.position_of(0x7FFFFFFFFFFFFFFF)
        self.end_offset = self.base_offset
        if self.offset_index.entries:
            indexed = self.offset_index.last_offset
            self.end_offset = indexed + 1
        if end == 0:
            return 0
        fd = self.open_file().fd
        while True:
            verdict = segment_find_offset(fd, position, end, 0, &found, &batch)
            if verdict == SEGMENT_ERRNO:
                raise read_error(errno, self.path)
            if indexed >= 0 and (verdict != SEGMENT_OK or batch_last_offset(&batch) > indexed):
                raise CorruptSegment(f"{self.path}: no batch of offset {indexed} at byte {position}")
            indexed = -1
            if verdict != SEGMENT_OK:
                return position
            self.end_offset = batch_last_offset(&batch) + 1
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.max_timestamp
                self.max_timestamp_offset = batch_last_offset(&batch)
            position = found + batch.size

    def truncate(self, int64_t position):
        """Cut the file; the indexes are the caller's care."""
        if not os.path.islink(self.path):
            os.ftruncate(self.writable_file().fd, position)
        self.size = position
        self.limit.offset = -1
        self.forget()

    def check(self, each, int64_t limit=-1, int epoch=-1, walked=None):
        """After a crash: walk the batches from the start, check each whole, make the indexes anew.

        `each(header)` is called in order for the good batches that leader epochs and producers depend on, `walked(size)`
        now and then with the bytes since its last call; `epoch`: none below it may come. Returns the Fault where the good part ends,
        or None when all of it is good. The file is not cut here.
        """
        cdef int64_t end = self.size if limit < 0 else min(limit, self.size)
        cdef Walk walk = Walk.__new__(Walk, self.path, self.open_file().fd, self.base_offset, end)
        cdef segment_check *check = &walk.check
        cdef int slot
        cdef int64_t told = 0
        check.interval = self.index_interval_bytes
        check.epoch = epoch
        self.offset_index.reset()
        self.time_index.reset()
        while walk.verdict == CHECK_ON:
            found = walk.go(TURN_BYTES)
            for slot in range(check.entry_count):
                self.offset_index.append(check.entries[slot].last_offset, check.entries[slot].position)
                self.time_index.maybe_append(check.entries[slot].max_timestamp,
                                             check.entries[slot].max_timestamp_offset)
            for header in found:
                each(header)
            if walked is not None:
                walked(check.position - told)
                told = check.position
        self.max_timestamp = check.max_timestamp
        self.max_timestamp_offset = check.max_timestamp_offset
        self.end_offset = check.next_offset
        self.entries_left = 0
        self.unindexed_bytes = 0
        self.changed = True
        return fault_of(walk.verdict, check)
