# The reading of a whole segment after a crash: Walk. Part of segment.pyx.


cdef enum:
    WALK_WINDOW = 1 << 20


cdef class Walk:
    """A large window that follows a check through a file, batch by batch."""

    cdef int fd
    cdef object path
    cdef uint8_t *bytes_
    cdef int64_t room, start_, held
    cdef int64_t at, length

    cdef int start(self, int fd, path) except -1:
        self.fd = fd
        self.path = path
        self.room = WALK_WINDOW
        self.bytes_ = <uint8_t *>malloc(self.room)
        if self.bytes_ == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.bytes_)

    cdef int need(self, int64_t position, int64_t size) except -1:
        """Have `size` bytes from position in the window, as far as the file goes."""
        cdef void *larger
        cdef int64_t got
        if position >= self.start_ and position + size <= self.start_ + self.held:
            return 0
        if size > self.room:
            larger = realloc(self.bytes_, size)
            if larger == NULL:
                raise MemoryError
            self.bytes_ = <uint8_t *>larger
            self.room = size
        cdef int fd = self.fd
        cdef int64_t room = self.room
        cdef uint8_t *target = self.bytes_
        with nogil:
            got = segment_pread(fd, target, room, position)
        if got < 0:
            raise read_error(errno, self.path)
        self.start_ = position
        self.held = got

    cdef object batch_at(self, int64_t position, int64_t end, int64_t base_offset, int64_t least_offset,
                         segment_batch *batch):
        """None for a good batch, else what is wrong with it."""
        cdef int verdict
        cdef const uint8_t *p
        cdef uint32_t sum_
        self.need(position, min(<int64_t>61, end - position))
        p = self.bytes_ + (position - self.start_)
        verdict = segment_parse(p, self.start_ + self.held - position, end - position, batch)
        if verdict == SEGMENT_TORN:
            return "the file ends inside a batch"
        if verdict != SEGMENT_OK:
            return "a size, magic or offset no batch can have"
        self.need(position, batch.size)
        p = self.bytes_ + (position - self.start_)
        if batch.magic == 2:
            sum_ = crc32c(0, p + 21, batch.size - 21)
        else:
            sum_ = zlib.crc32(p[16:batch.size])
        if sum_ != batch.crc:
            return "a checksum that does not match"
        if batch.base_offset < least_offset and (batch.magic == 2 or batch.last_offset < least_offset):
            return f"offset {batch.base_offset} after {least_offset - 1}"
        if batch.last_offset - base_offset > 0x7FFFFFFF:
            return f"offset {batch.last_offset} too far from {base_offset}"
        self.at = position
        self.length = batch.size
        return None

    def current(self):
        """The bytes of the batch last looked at."""
        return self.bytes_[self.at - self.start_:self.at - self.start_ + self.length]
