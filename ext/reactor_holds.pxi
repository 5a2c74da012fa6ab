# How long each callback holds the loop, measured in CPU time of the loop's thread: on a busy machine the wall clock also
# counts what other processes took.
#
# To read the CPU time is a system call. So it is read when passes have taken CPU_MARK_US since the last time, and after a
# callback that took HOLD_LOOK_US by the wall clock; what is reported may be too much by some milliseconds. After small
# frames of Produce the wall clock is read only every LOOK_FRAMES-th time, since reading it takes nearly as long as one.

cdef enum:
    CPU_MARK_US = 1_000
    HOLD_LOOK_US = 5_000
    HOLD_COUNTED_US = 20_000
    HOLD_HEAD_BYTES = 512  # of a frame, for whoever wants to know which request it was
    LOOK_FRAMES = 8
    SMALL_FRAME_BYTES = 2048


cdef class Holds:
    cdef readonly int64_t count, longest_us  # of those from HOLD_COUNTED_US on
    cdef object on_hold
    cdef int64_t mark_us, began_us           # when the last callback had ended, and when the pass began
    cdef int64_t busy_us                     # of passes since the CPU clock was read
    cdef int64_t cpu_us, cpu_read_at_us      # the thread's CPU clock, and when it was read
    cdef uint32_t frames                     # small ones of Produce

    cdef inline int begin(self) except -1:
        """A pass begins."""
        self.busy_us += self.mark_us - self.began_us
        self.began_us = self.mark_us = c_monotonic_us()
        if self.busy_us >= CPU_MARK_US or self.cpu_read_at_us == 0:
            self.read_cpu(self.mark_us)
        return 0

    cdef inline int end(self, str where, callback, tuple arguments) except -1:
        """A callback has ended."""
        cdef int64_t now_us = c_monotonic_us()
        if now_us - self.mark_us >= HOLD_LOOK_US:
            self.look(now_us, where, (callback, arguments))
        elif now_us - self.began_us >= HOLD_LOOK_US and now_us - self.cpu_read_at_us >= HOLD_LOOK_US:
            self.read_cpu(now_us)
        self.mark_us = now_us
        return 0

    cdef inline int end_frame(self, Connection connection, Buffer buffer, Py_ssize_t start, Py_ssize_t length,
                              bint is_produce) except -1:
        if is_produce and length <= SMALL_FRAME_BYTES:
            self.frames += 1
            if self.frames % LOOK_FRAMES:
                return 0
        cdef int64_t now_us = c_monotonic_us()
        if now_us - self.mark_us >= HOLD_LOOK_US:
            self.look_at_frame(now_us, connection, buffer, start, length)
        elif now_us - self.began_us >= HOLD_LOOK_US and now_us - self.cpu_read_at_us >= HOLD_LOOK_US:
            self.read_cpu(now_us)
        self.mark_us = now_us
        return 0

    cdef int look_at_frame(self, int64_t now_us, Connection connection, Buffer buffer, Py_ssize_t start,
                           Py_ssize_t length) except -1:
        cdef Protocol protocol = connection.protocol
        if protocol.name != BROKERS_PROTOCOL:
            return self.look(now_us, protocol.name, (protocol.on_frame, (connection,)))
        head = <bytes>buffer.bytes[start:start + min(length, HOLD_HEAD_BYTES)]
        return self.look(now_us, protocol.name, (connection, head, length))

    cdef int64_t read_cpu(self, int64_t now_us) noexcept:
        """What was used since it was read before."""
        cdef int64_t before_us = self.cpu_us
        self.cpu_us = thread_cpu_us()
        self.cpu_read_at_us = now_us
        self.busy_us = 0
        return self.cpu_us - before_us

    cdef int look(self, int64_t now_us, str where, detail) except -1:
        cdef int64_t held_us = min(now_us - self.mark_us, self.read_cpu(now_us))
        if held_us >= HOLD_COUNTED_US:
            self.count += 1
            self.longest_us = max(self.longest_us, held_us)
            if self.on_hold is not None:
                self.on_hold(where, held_us, detail)
        return 0
