# The walk over all bytes of a segment: Walk, and Inspection for those who only look. Part of segment.pyx.
#
# The bytes are read, summed and compared by ext/c/segment_check.c with the GIL released, a turn at a time; what a turn
# leaves (headers that matter, index entries) is small and handled here.


cdef extern from "segment_check.h" nogil:
    enum:
        CHECK_ON
        CHECK_END
        CHECK_ERRNO
        CHECK_TORN
        CHECK_IMPOSSIBLE
        CHECK_SUM
        CHECK_ORDER
        CHECK_FAR
        CHECK_EPOCH
    ctypedef struct check_notable:
        segment_batch batch
        int64_t position
    ctypedef struct check_entry:
        int64_t last_offset, position, max_timestamp, max_timestamp_offset
    ctypedef struct check_index:
        const uint8_t *data
        int64_t count, at, wrong, first_wrong
    ctypedef struct segment_check:
        int64_t base_offset, end, interval, position, next_offset, max_timestamp, max_timestamp_offset
        int64_t batches, records, gaps, unindexed
        int32_t epoch
        segment_batch current
        check_notable *notables
        check_entry *entries
        int notable_count, entry_count
        check_index offset_index, time_index
    int segment_check_begin(segment_check *check, int fd, int64_t base_offset, int64_t end)
    void segment_check_end(segment_check *check)
    int segment_check_turn(segment_check *check, int64_t max_bytes)
    void segment_check_thin(segment_check *check)
    void segment_check_finish_indexes(segment_check *check)


cdef enum:
    TURN_BYTES = 64 << 20  # then somebody else may have a say: it is a fraction of a second


cdef str said_of(int verdict, segment_check *check):
    """What is wrong with the batch at the walk's end."""
    if verdict == CHECK_TORN:
        return "the file ends inside a batch"
    if verdict == CHECK_IMPOSSIBLE:
        return "a size, magic or offset no batch can have"
    if verdict == CHECK_SUM:
        return "a checksum that does not match"
    if verdict == CHECK_ORDER:
        return f"offset {check.current.base_offset} after {check.next_offset - 1}"
    if verdict == CHECK_FAR:
        return f"offset {check.current.last_offset} too far from {check.base_offset}"
    if verdict == CHECK_EPOCH:
        return f"leader epoch {check.current.leader_epoch} after {check.epoch}"
    return None


cdef class Walk:
    """A walk over an open file."""

    cdef segment_check check
    cdef int verdict
    cdef object path

    def __cinit__(self, path, int fd, int64_t base_offset, int64_t end):
        self.path = path
        self.verdict = CHECK_ON
        if segment_check_begin(&self.check, fd, base_offset, end):
            raise MemoryError

    def __dealloc__(self):
        segment_check_end(&self.check)

    cdef list go(self, int64_t max_bytes):
        """The headers of this turn that epochs and producers depend on."""
        cdef int slot, error
        cdef segment_check *check = &self.check
        with nogil:
            self.verdict = segment_check_turn(check, max_bytes)
            error = errno
            segment_check_thin(check)
        if self.verdict == CHECK_ERRNO:
            raise read_error(error, self.path)
        return [make_header(&check.notables[slot].batch, check.notables[slot].position)
                for slot in range(check.notable_count)]


cdef int64_t real_entries(bytes data, int width) except -1:
    """How many entries an index has that was not cut to size: zeroes follow them."""
    cdef int64_t count = len(data) // width
    cdef const uint8_t *bytes_ = data
    cdef int slot
    while count > 0:
        for slot in range(width):
            if bytes_[(count - 1) * width + slot]:
                return count
        count -= 1
    return 0


cdef class Inspection:
    """A look at every byte of a segment's file, of which nothing is changed.

    It begins at `position`. `offset_index` and `time_index`: the bytes of the segment's indexes, to be compared with it;
    `epoch`: no leader epoch below it may come.
    """

    cdef Walk walk
    cdef readonly int fd
    cdef readonly object path
    cdef bytes offsets, times

    def __cinit__(self, path, int64_t base_offset, int64_t end=-1, bytes offset_index=None, bytes time_index=None,
                  int epoch=-1, int64_t position=0):
        self.fd = -1
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.walk = Walk.__new__(Walk, path, self.fd, base_offset, os.fstat(self.fd).st_size if end < 0 else end)
        self.walk.check.epoch = epoch
        self.walk.check.position = position
        self.offsets = offset_index
        self.times = time_index
        if offset_index is not None:
            self.walk.check.offset_index.data = offset_index
            self.walk.check.offset_index.count = real_entries(offset_index, 8)
        if time_index is not None:
            self.walk.check.time_index.data = time_index
            self.walk.check.time_index.count = real_entries(time_index, 12)

    def __dealloc__(self):
        if self.fd >= 0:
            os.close(self.fd)

    def turn(self, int64_t max_bytes=TURN_BYTES):
        """Go on for about so many bytes; the headers that epochs and producers depend on."""
        if self.is_over:
            return []
        found = self.walk.go(max_bytes)
        if self.walk.verdict == CHECK_END:
            segment_check_finish_indexes(&self.walk.check)
        return found

    def skip(self):
        """Step over the bad batch, if its size can be believed; whether it can."""
        cdef segment_check *check = &self.walk.check
        if self.walk.verdict not in (CHECK_SUM, CHECK_ORDER, CHECK_EPOCH, CHECK_FAR):
            return False
        check.position += check.current.size
        self.walk.verdict = CHECK_ON
        return True

    @property
    def is_over(self):
        """The file's end was reached, or a bad batch."""
        return self.walk.verdict != CHECK_ON

    @property
    def why(self):
        """What is wrong with the batch at `position`; None: nothing is."""
        return said_of(self.walk.verdict, &self.walk.check)

    @property
    def is_torn(self):
        return self.walk.verdict == CHECK_TORN

    @property
    def bad_offsets(self):
        """(first, last) as the bad batch has them; None where it cannot be read at all."""
        if self.walk.verdict in (CHECK_SUM, CHECK_ORDER, CHECK_EPOCH, CHECK_FAR):
            return self.walk.check.current.base_offset, self.walk.check.current.last_offset
        return None

    @property
    def position(self):
        """Where the good part ends so far."""
        return self.walk.check.position

    @property
    def size(self):
        return self.walk.check.end

    @property
    def end_offset(self):
        """After the last good batch."""
        return self.walk.check.next_offset

    @property
    def epoch(self):
        """The highest leader epoch so far."""
        return self.walk.check.epoch

    @property
    def batches(self):
        return self.walk.check.batches

    @property
    def records(self):
        """Of the batches of format 2, which say how many they have."""
        return self.walk.check.records

    @property
    def gaps(self):
        """Batches that do not begin where the one before ended: a cleaning was here."""
        return self.walk.check.gaps

    @property
    def index_faults(self):
        """(entries that do not fit the log, the first of them) of both indexes, offsets first."""
        cdef check_index *one = &self.walk.check.offset_index
        cdef check_index *other = &self.walk.check.time_index
        return (one.wrong, one.first_wrong), (other.wrong, other.first_wrong)

    @property
    def index_entries(self):
        return self.walk.check.offset_index.count, self.walk.check.time_index.count

    def bytes_at(self, int64_t position, int64_t size):
        return os.pread(self.fd, size, position)
