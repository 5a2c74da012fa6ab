# What a segment hands out: SegmentFile, FileRange, Appended, BatchHeader. Part of segment.pyx.


cdef int64_t open_files = 0


cdef class SegmentFile:
    """An open file, closed when the last one who holds it lets go. Never written through a link: see Segment."""

    cdef readonly int fd
    cdef readonly bint writable
    cdef readonly object path

    def __cinit__(self, path, bint create=False, bint writable=False):
        global open_files
        self.fd = -1
        self.path = path
        self.writable = create or writable
        flags = (os.O_RDWR | os.O_NOFOLLOW) if self.writable else os.O_RDONLY
        self.fd = os.open(path, flags | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        open_files += 1
        if self.fd >= read_below and not self.writable:
            raise read_error(EMFILE, path)

    def __dealloc__(self):
        global open_files
        if self.fd >= 0:
            open_files -= 1
            os.close(self.fd)


cdef class FileRange:
    """Bytes of a file that a Fetch answer is made of."""

    cdef readonly SegmentFile file
    cdef readonly int64_t offset
    cdef readonly int64_t size

    def __cinit__(self, SegmentFile file, int64_t offset, int64_t size):
        self.file = file
        self.offset = offset
        self.size = size

    @property
    def fd(self):
        return self.file.fd

    def read(self):
        """The bytes themselves, for those who do not send them."""
        return os.pread(self.file.fd, self.size, self.offset)

    def __repr__(self):
        return f"FileRange({self.file.path}, {self.offset}, {self.size})"


cdef class Appended:
    """Where an append went."""

    cdef readonly int64_t base_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t log_append_time_ms
    cdef readonly int64_t log_start_offset
    cdef readonly bint duplicate

    def __init__(self, int64_t base_offset, int64_t last_offset, int64_t log_append_time_ms,
                  int64_t log_start_offset, bint duplicate=False):
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate

    def __repr__(self):
        return (f"Appended({self.base_offset}, {self.last_offset}, {self.log_append_time_ms}, "
                f"{self.log_start_offset}, duplicate={self.duplicate})")


cdef class BatchHeader:
    """A batch as it lies in the file."""

    cdef readonly int64_t position, size, base_offset, last_offset, max_timestamp, producer_id
    cdef readonly int leader_epoch, base_sequence, producer_epoch, attributes, magic, count

    @property
    def last_sequence(self):
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + (self.last_offset - self.base_offset)) & 0x7FFFFFFF

    @property
    def is_transactional(self):
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self):
        return bool(self.attributes & CONTROL_FLAG)


cdef BatchHeader make_header(batch_header *batch, int64_t position):
    cdef BatchHeader header = BatchHeader.__new__(BatchHeader)
    header.position = position
    header.size = batch.size
    header.base_offset = batch.base_offset
    header.last_offset = batch_last_offset(batch)
    header.max_timestamp = batch.max_timestamp
    header.producer_id = batch.producer_id
    header.leader_epoch = batch.leader_epoch
    header.base_sequence = batch.base_sequence
    header.producer_epoch = batch.producer_epoch
    header.attributes = batch.attributes
    header.magic = batch.magic
    header.count = batch.count
    return header
