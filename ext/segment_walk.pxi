# The walk over all bytes of a segment: Walk, and Inspection for those who only look; Verdict and Fault, what it finds.
# Part of segment.pyx.
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
        batch_header batch
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
        batch_header current
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


class Verdict(IntEnum):
    """What is wrong with the batch where a walk ended."""

    TORN = CHECK_TORN
    IMPOSSIBLE = CHECK_IMPOSSIBLE
    CHECKSUM = CHECK_SUM
    ORDER = CHECK_ORDER
    TOO_FAR = CHECK_FAR
    EPOCH = CHECK_EPOCH


cdef class Fault:
    """The bad batch at which a walk ended: decisions go by its verdict, its text is for the log.

    `offsets`: (first, last) as the batch has them; None where it cannot be read at all.
    """

    cdef readonly object verdict
    cdef readonly int64_t position
    cdef readonly object offsets
    cdef int64_t last_good_offset, base_offset
    cdef int leader_epoch, epoch_before

    def __str__(self):
        if self.verdict == CHECK_TORN:
            return "the file ends inside a batch"
        if self.verdict == CHECK_IMPOSSIBLE:
            return "a size, magic or offset no batch can have"
        if self.verdict == CHECK_SUM:
            return "a checksum that does not match"
        if self.verdict == CHECK_ORDER:
            return f"offset {self.offsets[0]} after {self.last_good_offset}"
        if self.verdict == CHECK_FAR:
            return f"offset {self.offsets[1]} too far from {self.base_offset}"
        return f"leader epoch {self.leader_epoch} after {self.epoch_before}"


cdef bint is_readable(int verdict):
    """Whether the bad batch's size and offsets can be believed."""
    return verdict in (CHECK_SUM, CHECK_ORDER, CHECK_EPOCH, CHECK_FAR)


cdef Fault fault_of(int verdict, segment_check *check):
    """None: the walk goes on, came to its end, or could not read on."""
    cdef Fault fault
    if verdict < CHECK_TORN:
        return None
    fault = Fault.__new__(Fault)
    fault.verdict = Verdict(verdict)
    fault.position = check.position
    if is_readable(verdict):
        fault.offsets = check.current.base_offset, batch_last_offset(&check.current)
    fault.last_good_offset = check.next_offset - 1
    fault.base_offset = check.base_offset
    fault.leader_epoch = check.current.leader_epoch
    fault.epoch_before = check.epoch
    return fault


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
        if not is_readable(self.walk.verdict):
            return False
        check.position += check.current.size
        self.walk.verdict = CHECK_ON
        return True

    @property
    def is_over(self):
        """The file's end was reached, or a bad batch."""
        return self.walk.verdict != CHECK_ON

    @property
    def fault(self):
        """The bad batch at `position`; None: there is none."""
        return fault_of(self.walk.verdict, &self.walk.check)

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
