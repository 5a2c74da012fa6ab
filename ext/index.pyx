"""Offset and time indexes of a segment: the door to ext/c/index.c.

Owns one memory-mapped index file each. A file is mapped when it is first needed and not before, so that an idle
partition costs no mapping; mapped for reading as long as it is, and stretched to its maximum and mapped for writing
when the first entry is put. Invariants: offsets strictly rise in an offset index; timestamps strictly rise and
offsets do not fall in a time index; what is not real is zero.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stddef cimport size_t

import os

cdef extern from "index.h" nogil:
    ctypedef struct index_map:
        uint8_t *map
        size_t mapped
        size_t backed
        uint32_t count
        uint32_t capacity
        uint32_t width
    int index_open(index_map *index, const char *path, uint32_t width, size_t max_bytes, int64_t count)
    int index_back(index_map *index, const char *path)
    int index_close(index_map *index, const char *path, int trim)
    int index_create(const char *path)
    void index_put_offset(index_map *index, uint32_t relative_offset, uint32_t position)
    void index_put_time(index_map *index, int64_t timestamp, uint32_t relative_offset)
    void index_get_offset(const index_map *index, uint32_t slot, uint32_t *relative_offset, uint32_t *position)
    void index_get_time(const index_map *index, uint32_t slot, int64_t *timestamp, uint32_t *relative_offset)
    int64_t index_floor_offset(const index_map *index, int64_t relative_offset)
    int64_t index_floor_time(const index_map *index, int64_t timestamp)


cdef class Index:
    """What both kinds share: the file, its mapping, how full it is."""

    cdef index_map index
    cdef bint opened                    # index.count is known
    cdef bint writable                  # the mapping may be written to
    cdef readonly bint stretched        # the file is longer than its entries
    cdef readonly object directory      # str, shared with the partition: 10,000 of them hold no path each
    cdef readonly object suffix
    cdef readonly int64_t base_offset
    cdef readonly int64_t max_bytes

    def __cinit__(self, directory, int64_t base_offset, int64_t max_bytes=0, bint fresh=False, bint made=False):
        """max_bytes > 0: of the active segment, may grow so far; 0: only read. fresh: create it empty; made: somebody
        just has."""
        self.directory = directory
        self.base_offset = base_offset
        self.max_bytes = max_bytes
        self.index.map = NULL
        self.index.count = 0

    cdef int begin(self, suffix, uint32_t width, bint fresh, bint made) except -1:
        self.suffix = suffix
        self.index.width = width
        self.opened = made
        if fresh:
            self.create()

    @property
    def path(self):
        return f"{self.directory}/{self.base_offset:020d}.{self.suffix}"

    def move(self, directory):
        """The partition's directory has another name now."""
        self.directory = directory

    def grow_to(self, int64_t max_bytes):
        """The segment is active (again)."""
        self.max_bytes = max_bytes

    cdef int fail(self, int error) except -1:
        raise OSError(error, os.strerror(error), self.path)

    cdef int create(self) except -1:
        encoded = os.fsencode(self.path)
        cdef int error = index_create(encoded)
        if error:
            self.fail(error)
        self.index.count = 0
        self.opened = True  # known to be empty; stretched and mapped when the first entry is put
        self.stretched = False

    cdef int ensure_open(self) except -1:
        if self.opened and (self.index.map != NULL or self.index.count == 0):
            return 0
        return self.map_file(False)

    cdef int map_file(self, bint writable) except -1:
        encoded = os.fsencode(self.path)
        cdef int64_t count = <int64_t>self.index.count if self.opened else -1
        cdef int error
        if self.index.map != NULL:
            index_close(&self.index, NULL, 0)
        error = index_open(&self.index, encoded, self.index.width, <size_t>self.max_bytes if writable else 0, count)
        if error:
            self.fail(error)
        self.opened = True
        self.writable = writable
        self.stretched = self.stretched or writable

    cdef int ensure_room(self) except -1:
        self.ensure_open()
        if not self.writable or self.index.map == NULL:
            if self.max_bytes == 0:
                raise IndexError(f"{self.path} is only read")
            self.map_file(True)
        if self.index.count >= self.index.capacity:
            raise IndexError(f"no room in {self.path}: {self.index.count} of {self.index.capacity} entries")
        if (<size_t>self.index.count + 1) * self.index.width > self.index.backed:
            self.back()

    cdef int back(self) except -1:
        encoded = os.fsencode(self.path)
        cdef int error = index_back(&self.index, encoded)
        if error:
            self.fail(error)

    @property
    def entries(self):
        self.ensure_open()
        return self.index.count

    @property
    def capacity(self):
        """How many entries fit: what the file was preallocated for, or has."""
        self.ensure_open()
        return max(<int64_t>self.index.count, self.max_bytes // self.index.width)

    @property
    def mapped(self):
        """Whether memory is mapped now."""
        return self.index.map != NULL

    def reset(self):
        """Forget every entry; the file is zeroes again."""
        self.close()
        self.create()

    def trim(self):
        """Cut the file to its real entries."""
        self.ensure_open()
        encoded = os.fsencode(self.path)
        cdef int error = index_close(&self.index, encoded, 1)
        self.writable = False
        self.stretched = False
        if error:
            self.fail(error)

    def unmap(self):
        """Give the mapping back; the next use maps again."""
        if self.index.map != NULL:
            index_close(&self.index, NULL, 0)
        self.writable = False

    def close(self):
        self.unmap()
        self.opened = False

    def __dealloc__(self):
        if self.index.map != NULL:
            index_close(&self.index, NULL, 0)


cdef class OffsetIndex(Index):
    """Offset to file position: (offset of the last record of a batch, position of that batch)."""

    def __cinit__(self, directory, int64_t base_offset, int64_t max_bytes=0, bint fresh=False, bint made=False):
        self.begin("index", 8, fresh, made)

    @property
    def is_full(self):
        return self.entries >= self.capacity

    @property
    def last_offset(self):
        """Offset of the last entry; the base offset when there is none."""
        return self.entry(self.index.count - 1)[0] if self.entries else self.base_offset

    def entry(self, int64_t slot):
        cdef uint32_t offset = 0, position = 0
        self.ensure_open()
        if not 0 <= slot < self.index.count:
            raise IndexError(f"entry {slot} of {self.index.count}")
        index_get_offset(&self.index, <uint32_t>slot, &offset, &position)
        return self.base_offset + offset, position

    def append(self, int64_t offset, int64_t position):
        cdef uint32_t last = 0, unused = 0
        self.ensure_room()
        if self.index.count:
            index_get_offset(&self.index, self.index.count - 1, &last, &unused)
            if offset - self.base_offset <= last:
                raise ValueError(f"offset {offset} is not above the last entry's {self.base_offset + last}")
        if not 0 <= offset - self.base_offset <= 0x7FFFFFFF:
            raise ValueError(f"offset {offset} is too far from {self.base_offset}")
        index_put_offset(&self.index, <uint32_t>(offset - self.base_offset), <uint32_t>position)

    def lookup(self, int64_t offset):
        """The entry with the largest offset <= the wanted one; (base offset, 0) when there is none."""
        cdef int64_t slot
        self.ensure_open()
        slot = index_floor_offset(&self.index, offset - self.base_offset)
        return self.entry(slot) if slot >= 0 else (self.base_offset, 0)

    cpdef int64_t position_of(self, int64_t offset) except -1:
        """The position half of lookup()."""
        cdef uint32_t found = 0, position = 0
        cdef int64_t slot
        self.ensure_open()
        slot = index_floor_offset(&self.index, offset - self.base_offset)
        if slot < 0:
            return 0
        index_get_offset(&self.index, <uint32_t>slot, &found, &position)
        return position


cdef class TimeIndex(Index):
    """Timestamp to offset: (largest timestamp so far, offset of the batch that has it)."""

    def __cinit__(self, directory, int64_t base_offset, int64_t max_bytes=0, bint fresh=False, bint made=False):
        self.begin("timeindex", 12, fresh, made)

    @property
    def is_full(self):
        """One slot is kept for the entry that is forced when the segment is rolled."""
        return self.entries + 1 >= self.capacity

    @property
    def last_entry(self):
        return self.entry(self.index.count - 1) if self.entries else (-1, self.base_offset)

    def entry(self, int64_t slot):
        cdef int64_t timestamp = 0
        cdef uint32_t offset = 0
        self.ensure_open()
        if not 0 <= slot < self.index.count:
            raise IndexError(f"entry {slot} of {self.index.count}")
        index_get_time(&self.index, <uint32_t>slot, &timestamp, &offset)
        return timestamp, self.base_offset + offset

    def maybe_append(self, int64_t timestamp, int64_t offset):
        """Only a timestamp above the last entry's is worth an entry."""
        cdef int64_t last_timestamp = -1
        cdef uint32_t last_offset = 0
        self.ensure_open()
        if self.index.count:
            index_get_time(&self.index, self.index.count - 1, &last_timestamp, &last_offset)
        if timestamp <= last_timestamp:
            return False
        if not last_offset <= offset - self.base_offset <= 0x7FFFFFFF:
            raise ValueError(f"offset {offset} is below the last entry's, or too far from {self.base_offset}")
        self.ensure_room()
        index_put_time(&self.index, timestamp, <uint32_t>(offset - self.base_offset))
        return True

    def lookup(self, int64_t timestamp):
        """The entry with the largest timestamp <= the wanted one; (-1, base offset) when there is none."""
        cdef int64_t slot
        self.ensure_open()
        slot = index_floor_time(&self.index, timestamp)
        return self.entry(slot) if slot >= 0 else (-1, self.base_offset)
