# The memory of frames that are not whole yet: the connections that have one, and those that wait for memory to go on.

cdef class FrameMemory:
    """The count of those bytes, which outlives the loop where somebody still holds a frame."""
    cdef frame_memory bytes


cdef class FrameRoom:
    """Unfinished frames of all connections. A large one grows to half of the memory that the others leave. Then its
    connection is not read from until there is more; only the one that has waited longest always goes on, so that every
    frame has its turn. Of small frames only the number counts: where all of them together take more than the bound, the
    connection that was read from least recently is closed."""
    cdef FrameMemory memory
    cdef int64_t most, max_frame
    cdef int64_t limit              # where the unfinished frames give way
    cdef readonly dict unfinished   # connections that are read from, the one least recently fed first
    cdef dict waiting               # connections that are not, in the order in which they came to wait
    cdef Connection favoured

    def __cinit__(self, int64_t most, int64_t max_frame):
        self.memory = FrameMemory()
        self.memory.bytes.most = most
        self.most = min(most, <int64_t>1 << 62)
        self.expect(max_frame)
        self.unfinished = {}
        self.waiting = {}

    cdef int expect(self, int64_t max_frame) except -1:
        """Frames may be as large as that, and one more may be under way in a handler."""
        self.max_frame = max(self.max_frame, max_frame)
        self.limit = self.most + self.max_frame
        return 0

    @property
    def used(self):
        return frame_memory_used(&self.memory.bytes) + (0 if self.favoured is None else self.favoured.io.inbox.capacity)

    cdef int follow(self, Connection connection, bint same_frame) except -1:
        """After bytes have come: has it an unfinished frame now, and is that the one it had before?"""
        if connection.io.inbox.have == 0:
            return self.leave(connection)
        connection.begun_bytes = connection.io.inbox.have
        if connection.crowded:
            return 0
        if not same_frame or not connection.begun:
            connection.begun_at_ms = connection.reactor.now_ms
        if connection.begun:
            del self.unfinished[connection]
        connection.begun = True
        self.unfinished[connection] = None
        while frame_memory_used(&self.memory.bytes) > self.limit and self.unfinished:
            (<Connection>next(iter(self.unfinished))).drop("the memory for unfinished frames is used up")
        return 0

    cdef int leave(self, Connection connection) except -1:
        """It has no unfinished frame any more."""
        if connection.begun:
            connection.begun = False
            del self.unfinished[connection]
        if connection.crowded:
            connection.crowded = False
            del self.waiting[connection]
        if self.favoured is connection:
            self.favoured = None
        return 0

    cdef int wait(self, Connection connection) except -1:
        """There is no room for more of its frame."""
        if connection.begun:
            connection.begun = False
            del self.unfinished[connection]
        connection.crowded = True
        connection.io.reading = False
        self.waiting[connection] = None
        connection.mark()
        return 0

    cdef int let_on(self) except -1:
        """The one that has waited longest, and those behind it as far as there is room for them."""
        cdef Connection first
        while self.waiting:
            first = <Connection>next(iter(self.waiting))
            if self.favoured is None:
                self.favoured = first
                inbox_favour(&first.io.inbox)
            elif not inbox_has_room(&first.io.inbox):
                return 0
            del self.waiting[first]
            first.crowded = False
            first.begun = True
            first.begun_at_ms = first.reactor.now_ms  # what it had to wait is not its fault
            self.unfinished[first] = None
            first.settle()
        return 0
