# Timers, watched descriptors and listeners: what the loop calls besides connections.

cdef int64_t waited_us(double delay_ms) noexcept:
    """The microseconds from now until a timer fires. Whatever number a config or a client gives, no sum with it
    overflows: one below zero, or none at all, is now, and one beyond FOREVER_MS is FOREVER_MS."""
    if not delay_ms > 0:
        return 0
    return <int64_t>(min(delay_ms, forever_ms) * 1000)


cdef class Timer:
    cdef timer entry
    cdef Reactor reactor
    cdef object callback
    cdef tuple arguments

    def __cinit__(self):
        self.entry.owner = <void*>self

    @property
    def active(self):
        return self.entry.place != 0

    def cancel(self):
        """Harmless when it has fired."""
        if self.entry.place:
            self.leave()
            self.callback = self.arguments = None

    cdef void leave(self) noexcept:
        """Out of the heap; the caller has a reference of its own."""
        timers_remove(&self.reactor.timers, &self.entry)
        Py_DECREF(self)


cdef class Watch:
    """A descriptor in the control set; its callback is called while it is ready. Does not own the descriptor."""
    cdef readonly int fd
    cdef Reactor reactor
    cdef object callback
    cdef uint32_t events
    cdef bint closed

    cdef int start(self, Reactor reactor, int fd, callback, uint32_t events) except -1:
        self.reactor = reactor
        self.fd = fd
        self.callback = callback
        self.events = events
        self.control(EPOLL_CTL_ADD, events)
        reactor.watches.add(self)
        return 0

    cdef int control(self, int operation, uint32_t events) except -1:
        cdef epoll_event event
        event.events = events
        event.data.ptr = <void*>self
        if epoll_ctl(self.reactor.control_epoll, operation, self.fd, &event) < 0:
            raise OSError(errno, strerror(errno))
        return 0

    cdef int fire(self) except -1:
        return self.reactor.call("watch", self.callback, ())

    def close(self):
        if not self.closed:
            self.closed = True
            epoll_ctl(self.reactor.control_epoll, EPOLL_CTL_DEL, self.fd, NULL)  # in vain if it was closed before
            self.reactor.watches.discard(self)
            self.reactor.grave.append(self)


cdef class Wake(Watch):
    """The eventfd by which other threads wake the loop."""

    def __dealloc__(self):
        close_fd(self.fd)

    cdef int fire(self) except -1:
        cdef uint64_t count
        eventfd_read(self.fd, &count)
        self.reactor.woken = False  # the posts are run after the watches
        return 0


cdef class Listener(Watch):
    """A listening socket, which it owns."""
    cdef readonly object sock
    cdef public object owner
    cdef Protocol protocol
    cdef object transport
    cdef bint paused, resting, reported
    cdef int64_t reported_at_ms

    cdef int fire(self) except -1:
        cdef sockaddr_in6 address
        cdef socklen_t size
        cdef int fd, i
        for i in range(accepts_per_pass):
            if self.closed or self.paused or self.resting or c_monotonic_us() >= self.reactor.late_us:
                break
            size = sizeof(address)
            with nogil:
                fd = accept4(self.fd, <sockaddr*>&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)
            if fd >= 0:
                self.admit(fd, address)
                if fd >= self.reactor.descriptors_max:  # the lowest that was free
                    self.rest(EMFILE)
            elif errno == EAGAIN:
                break
            elif errno != ECONNABORTED and errno != EINTR:
                self.rest(errno)
        return 0

    cdef int admit(self, int fd, sockaddr_in6 address) except -1:
        cdef Connection connection = Connection.__new__(Connection)
        connection.io.address = address
        connection.listener = self
        self.reactor.open(connection, fd, self.protocol)
        welcome = self.reactor.call_for("on_accept", self.callback, connection)
        if welcome and connection.io.fd >= 0:
            return self.reactor.admit(connection, self.transport)
        return connection.drop(None)

    cdef int rest(self, int error) except -1:
        """No descriptor or memory is left for the connection: it waits in the backlog, and the loop must not spin."""
        cdef int64_t now_ms = self.reactor.monotonic_ms()
        self.resting = True
        self.control(EPOLL_CTL_MOD, 0)
        self.reactor.call_later(ACCEPT_REST_MS, self._work)
        if not self.reported or now_ms - self.reported_at_ms >= ACCEPT_REPORT_MS:
            self.reported = True
            self.reported_at_ms = now_ms
            self.reactor.report("accept", OSError(error, strerror(error)))
        return 0

    def _work(self):
        if not self.reactor.has_descriptors():
            self.reactor.call_later(ACCEPT_REST_MS, self._work)
            return
        self.resting = False
        self.arm()

    cdef int arm(self) except -1:
        if not self.closed:
            self.control(EPOLL_CTL_MOD, 0 if self.paused or self.resting else self.events)
        return 0

    def pause(self):
        """Leaves new connections in the backlog."""
        self.paused = True
        self.arm()

    def resume(self):
        self.paused = False
        self.arm()

    def close(self):
        if not self.closed:
            Watch.close(self)
            self.sock.close()
