# The loop itself.

cdef class Reactor:
    cdef readonly object on_frame, on_pass_end, on_close, on_error, clock
    cdef readonly set connections, watches
    cdef readonly int64_t now_ms, passes, frames, received_bytes, sent_bytes, cold_reads
    cdef uint32_t max_frame
    cdef int data_epoll, control_epoll
    cdef patience patience
    cdef epoll_event events[EVENTS_PER_PASS]
    cdef epoll_event control_events[CONTROL_EVENTS]
    cdef receipt receipts[EVENTS_PER_PASS]
    cdef peer* sending[EVENTS_PER_PASS]
    cdef slabs slabs
    cdef uint32_t slabs_wanted
    cdef list slab_owners
    cdef bint slab_owned[SLABS_MAX]  # its Buffer frees it
    cdef write_queue writing
    cdef out_room* room
    cdef timers timers
    cdef Wake wake
    cdef bint woken, stopping
    cdef object posts, cold
    cdef list soon, dirty, resuming, grave

    def __cinit__(self):
        self.data_epoll = self.control_epoll = -1

    def __init__(self, on_frame, on_pass_end=None, on_close=None, *, max_frame_bytes=MAX_FRAME_BYTES, clock=None,
                 on_error=None):
        self.on_frame = on_frame
        self.on_pass_end = on_pass_end
        self.on_close = on_close
        self.on_error = on_error
        self.clock = clock
        self.max_frame = max_frame_bytes
        self.connections = set()
        self.watches = set()
        self.slab_owners = [None] * SLABS_MAX
        self.posts = deque()
        self.soon = []
        self.dirty = []
        self.resuming = []
        self.grave = []
        self.room = <out_room*>calloc(1, sizeof(out_room))
        self.slabs_wanted = 1
        self.set_up()
        self.now_ms = self.monotonic_ms()

    cdef int set_up(self) except -1:
        cdef epoll_event event
        cdef int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.data_epoll = epoll_create1(EPOLL_CLOEXEC)
        self.control_epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.room == NULL or wake_fd < 0 or self.data_epoll < 0 or self.control_epoll < 0:
            raise OSError(errno, strerror(errno))
        event.events = EPOLLIN
        event.data.ptr = NULL  # the control set as one member of the data set, so that one wait serves both
        if epoll_ctl(self.data_epoll, EPOLL_CTL_ADD, self.control_epoll, &event) < 0:
            raise OSError(errno, strerror(errno))
        self.wake = Wake.__new__(Wake)
        self.wake.start(self, wake_fd, None, EPOLLIN)
        return 0

    def __dealloc__(self):
        cdef int i
        free(self.timers.items)  # empty: a timer holds a reference to the reactor
        free(self.room)
        for i in range(SLABS_MAX):
            if not self.slab_owned[i]:
                free(self.slabs.bytes[i])
        if self.data_epoll >= 0:
            close_fd(self.data_epoll)
        if self.control_epoll >= 0:
            close_fd(self.control_epoll)

    # ---- what others ask for

    def listen(self, sock, on_accept):
        cdef Listener listener = Listener.__new__(Listener)
        sock.setblocking(False)
        listener.sock = sock
        listener.start(self, sock.fileno(), on_accept, EPOLLIN)
        return listener

    def adopt(self, sock):
        """Makes a connected socket a connection, and takes its descriptor over."""
        cdef Connection connection = Connection.__new__(Connection)
        sock.setblocking(False)
        peer_address(sock.fileno(), &connection.io.address)
        self.open(connection, sock.detach())
        self.admit(connection)
        return connection

    def watch(self, int fd, callback, *, write=False):
        cdef Watch watch = Watch.__new__(Watch)
        watch.start(self, fd, callback, EPOLLOUT if write else EPOLLIN)
        return watch

    def call_later(self, double delay_ms, callback, *arguments):
        cdef Timer timer = Timer.__new__(Timer)
        timer.reactor = self
        timer.callback = callback
        timer.arguments = arguments
        timer.entry.deadline_us = self.monotonic_us() + <int64_t>(delay_ms * 1000)
        if timers_add(&self.timers, &timer.entry) < 0:
            raise MemoryError
        Py_INCREF(timer)
        return timer

    def call_soon(self, callback, *arguments):
        self.soon.append((callback, arguments))

    def post(self, callback, *arguments):
        """call_soon from any thread."""
        self.posts.append((callback, arguments))
        self.wake_up()

    def stop(self):
        """From any thread: run() returns after the pass under way."""
        self.stopping = True
        self.wake_up()

    def run(self):
        self.stopping = False
        while not self.stopping:
            self.one_pass(-1)

    def run_pass(self, int timeout_ms=0):
        """One pass, waiting at most that long (-1: as long as it takes) for something to do."""
        self.one_pass(timeout_ms)

    def drain(self, deadline_ms):
        """After run(): accepts and reads no more, finishes what is under way, then closes every connection."""
        cdef int64_t end_us = self.monotonic_us() + <int64_t>deadline_ms * 1000
        for watch in list(self.watches):
            if isinstance(watch, Listener):
                watch.close()
        for connection in list(self.connections):
            connection.finish("the broker stops")
        self.one_pass(0)
        while self.connections and self.monotonic_us() < end_us:
            self.one_pass(<int>((end_us - self.monotonic_us()) // 1000) + 1)
        for connection in list(self.connections):
            connection.close("the broker stops")
        self.grave.clear()

    def close(self):
        """Closes what is left: connections, listeners, watches, timers. The loop may not run again."""
        for connection in list(self.connections):
            (<Connection>connection).drop(None)
        for watch in list(self.watches):
            watch.close()
        if self.cold is not None:
            self.cold.put(None)
            self.cold = None
        while self.timers.count:
            (<Timer>self.timers.items[0].owner).cancel()
        self.grave.clear()

    # ---- one pass

    cdef int one_pass(self, int timeout_ms) except -1:
        cdef int count, i
        cdef bint control = False
        cdef peer* io
        timeout_ms = self.allowed_wait(timeout_ms)
        self.free_slabs()
        with nogil:
            count = wait_for_events(&self.patience, self.data_epoll, self.events, timeout_ms, &self.slabs, self.receipts)
            if count > 0 and not self.patience.heard:
                control = self.receive_all(count)
        PyErr_CheckSignals()
        self.passes += 1
        self.now_ms = self.monotonic_ms()
        if control:
            self.run_control()
        self.run_timers()
        self.run_soon()
        self.resume_held()
        for i in range(count):
            io = <peer*>self.events[i].data.ptr
            if io != NULL and io.fd >= 0:
                (<Connection>io.owner).event(self.events[i].events, &self.receipts[i])
        self.end_pass()
        self.flush()
        if self.writing.first != NULL:
            self.write_files()
            self.flush()
        self.grave.clear()
        return 0

    cdef int allowed_wait(self, int timeout_ms) except? -2:
        cdef int64_t left_us
        if self.soon or self.dirty or self.resuming or self.writing.first != NULL:
            return 0
        if self.timers.count:
            left_us = self.timers.items[0].deadline_us - self.monotonic_us()
            if left_us <= 0:
                return 0
            left_us = (left_us + 999) // 1000
            if timeout_ms < 0 or left_us < timeout_ms:
                return <int>min(left_us, 1 << 30)
        return timeout_ms

    cdef bint receive_all(self, int count) noexcept nogil:
        """True: the control set has something, or may have behind a full row of events."""
        cdef bint control = count == EVENTS_PER_PASS
        cdef peer* io
        cdef int i
        for i in range(count):
            io = <peer*>self.events[i].data.ptr
            if io == NULL:
                control = True
            elif io.reading and self.events[i].events & ~EPOLLOUT:
                receive(&io.inbox, &self.slabs, read_socket, io.fd, &self.receipts[i])
            else:
                self.receipts[i].status = RECEIVED_NOTHING
                self.receipts[i].received = 0
        self.patience.favourite = NULL
        if count == 1 and self.receipts[0].status == RECEIVED_CHUNK:
            self.patience.favourite = <peer*>self.events[0].data.ptr
        return control

    cdef int run_control(self) except -1:
        cdef int count, i
        cdef Watch watch
        count = epoll_wait(self.control_epoll, self.control_events, CONTROL_EVENTS, 0)
        for i in range(count):
            watch = <Watch>self.control_events[i].data.ptr
            if not watch.closed:
                watch.fire()
        return 0

    cdef int run_timers(self) except -1:
        """Those due; one that a callback adds waits for the next pass even if it is due at once."""
        cdef Timer timer
        cdef uint64_t limit = self.timers.next_sequence
        cdef int64_t now_us
        if self.timers.count == 0:
            return 0
        now_us = self.monotonic_us()
        while self.timers.count and self.timers.items[0].deadline_us <= now_us and self.timers.items[0].sequence < limit:
            timer = <Timer>self.timers.items[0].owner
            timer.leave()
            self.call("timer", timer.callback, timer.arguments)
        return 0

    cdef int run_soon(self) except -1:
        cdef list soon = self.soon
        if soon:
            self.soon = []
            for callback, arguments in soon:
                self.call("call_soon", callback, arguments)
        return 0

    cdef int run_posts(self) except -1:
        cdef Py_ssize_t i
        for i in range(len(self.posts)):
            callback, arguments = self.posts.popleft()
            self.call("post", callback, arguments)
        return 0

    cdef int resume_held(self) except -1:
        cdef list resuming = self.resuming
        if resuming:
            self.resuming = []
            for connection in resuming:
                (<Connection>connection).resume()
        return 0

    cdef int end_pass(self) except -1:
        if self.on_pass_end is None:
            return 0
        try:
            self.on_pass_end()
        except Exception as error:
            # what this pass was to write may not be written: none of its answers may say so
            for connection in self.dirty:
                (<Connection>connection).drop("the pass failed: " + trouble(error))
            self.report("on_pass_end", error)
        return 0

    # ---- sending

    cdef int flush(self) except -1:
        """One send for each connection that has something new, in groups, without the GIL."""
        cdef list dirty
        cdef Connection connection
        cdef uint32_t count
        while self.dirty:
            dirty = self.dirty
            self.dirty = []
            count = 0
            for item in dirty:
                connection = <Connection>item
                connection.dirty = False
                try:
                    connection.resolve()
                except Exception as error:
                    connection.drop(trouble(error))
                if connection.io.fd < 0:
                    continue
                if connection.io.out.end == connection.io.out.head or connection.waits():
                    connection.settle()
                    continue
                self.sending[count] = &connection.io
                count += 1
                if count == EVENTS_PER_PASS:
                    self.send_group(count)
                    count = 0
            if count:
                self.send_group(count)
        return 0

    cdef int send_group(self, uint32_t count) except -1:
        if count == 1 and self.sending[0].out.bytes <= KEEP_GIL_BYTES:
            self.pump(1)  # letting others have the interpreter, and taking it again, costs as much
        else:
            with nogil:
                self.pump(count)
        return self.sent(count)

    cdef void pump(self, uint32_t count) noexcept nogil:
        cdef uint32_t i
        cdef int64_t budget
        for i in range(count):
            budget = GATHER_BYTES
            out_pump(self.sending[i], self.room, &budget, False)
            self.sent_bytes += GATHER_BYTES - budget

    cdef int write_files(self) except -1:
        cdef uint32_t count
        cdef int64_t budget = WRITE_QUEUE_PASS_BYTES
        with nogil:
            count = write_queue_pump(&self.writing, self.room, &budget, self.sending, EVENTS_PER_PASS)
        self.sent_bytes += WRITE_QUEUE_PASS_BYTES - budget
        return self.sent(count)

    cdef int sent(self, uint32_t count) except -1:
        cdef uint32_t i
        for i in range(count):
            (<Connection>self.sending[i].owner).sent()
        return 0

    cdef int warm(self, Connection connection, out_part* part) except -1:
        self.cold_reads += 1
        if self.cold is None:
            self.cold = SimpleQueue()
            start_new_thread(warm_files, (self.cold, self.post))
        # the owner goes along: it keeps the file open
        self.cold.put((connection, <object>part.owner, part.fd, part.offset, connection.io.warm_to - part.offset))
        return 0

    # ---- slabs

    cdef Buffer slab(self, uint32_t number):
        cdef Buffer owner = self.slab_owners[number]
        if owner is None:
            owner = own_bytes(self.slabs.bytes[number], SLAB_BYTES)
            owner.is_slab = True
            self.slab_owners[number] = owner
            self.slab_owned[number] = True
        return owner

    cdef int free_slabs(self) except -1:
        """Makes the slabs ready for another pass: one that is still referred to (each exported buffer holds a
        reference, as does whoever kept the object) goes to those holders, and a fresh one takes its place."""
        cdef uint32_t i, used = self.slabs.current + 1 if self.slabs.used[0] else 0
        for i in range(used):
            self.slabs.used[i] = 0
            owner = self.slab_owners[i]
            if owner is not None and Py_REFCNT(owner) > 2:  # besides this one and the list's
                self.let_go_slab(i)
        self.slabs.current = 0
        if used > self.slabs_wanted:
            self.slabs_wanted = used
        elif self.slabs_wanted > 1 and (used == 0 or self.passes % SLAB_KEEP_PASSES == 0):
            self.slabs_wanted -= 1
            self.let_go_slab(self.slabs_wanted)
        return 0

    cdef int let_go_slab(self, uint32_t number) except -1:
        if not self.slab_owned[number]:
            free(self.slabs.bytes[number])
        self.slab_owned[number] = False
        self.slabs.bytes[number] = NULL
        self.slab_owners[number] = None
        return 0

    # ---- small things

    cdef int open(self, Connection connection, int fd) except -1:
        connection.reactor = self
        connection.io.fd = fd
        connection.io.active_at_ms = self.now_ms
        return 0

    cdef int admit(self, Connection connection) except -1:
        cdef epoll_event event
        event.events = connection.io.interest = EPOLLIN
        event.data.ptr = &connection.io
        if epoll_ctl(self.data_epoll, EPOLL_CTL_ADD, connection.io.fd, &event) < 0:
            return connection.drop(strerror(errno))
        connection.io.reading = True
        connection.accepted = True
        self.connections.add(connection)
        return 0

    cdef void wake_up(self) noexcept:
        if not self.woken:
            self.woken = True
            eventfd_write(self.wake.fd, 1)

    cdef int64_t monotonic_us(self) except? -1:
        return c_monotonic_us() if self.clock is None else <int64_t>self.clock.monotonic_ms() * 1000

    cdef int64_t monotonic_ms(self) except? -1:
        return c_monotonic_us() // 1000 if self.clock is None else <int64_t>self.clock.monotonic_ms()

    cdef int call(self, str where, callback, tuple arguments) except -1:
        """Calls what belongs to others: its mistakes are reported and do not stop the loop."""
        if callback is not None:
            try:
                callback(*arguments)
            except Exception as error:
                self.report(where, error)
        return 0

    cdef object call_for(self, str where, callback, argument):
        try:
            return callback(argument)
        except Exception as error:
            self.report(where, error)
            return None

    cdef int report(self, str where, error) except -1:
        if self.on_error is None:
            raise error
        self.on_error(where, error)
        return 0


def warm_files(cold, post):
    """The thread that waits for disks in the loop's stead; ends with None."""
    cdef int64_t offset, size
    cdef int fd
    while (job := cold.get()) is not None:
        connection, owner, fd, offset, size = job
        with nogil:
            warm_range(fd, offset, size)
        post(connection._warmed)
        job = connection = owner = None
