# The loop itself.

cdef class Reactor:
    cdef readonly Protocol protocol  # of whoever names none
    cdef readonly object on_pass_end, on_close, on_error, clock
    cdef readonly set connections, watches
    cdef readonly Holds holds
    cdef readonly int64_t now_ms, passes, frames, received_bytes, sent_bytes, cold_reads
    cdef int64_t answer_bytes  # of all connections, not yet taken
    cdef int data_epoll, control_epoll
    cdef patience patience
    cdef epoll_event events[EVENTS_PER_PASS]
    cdef epoll_event control_events[CONTROL_EVENTS]
    cdef receipt receipts[EVENTS_PER_PASS]
    cdef bint left[EVENTS_PER_PASS]  # of these events, those whose connections use much
    cdef peer* sending[EVENTS_PER_PASS]
    cdef slabs slabs
    cdef uint32_t slabs_wanted
    cdef list slab_owners
    cdef bint slab_owned[SLABS_MAX]  # its Buffer frees it
    cdef write_queue writing
    cdef out_room* gathering
    cdef FrameRoom room
    cdef timers timers
    cdef Wake wake
    cdef bint woken, stopping
    cdef bint some_ready  # not len(ready), which each pass would ask for
    cdef object posts, cold, between
    cdef list soon, dirty, resuming, resuming_heavy, ready, grave
    cdef int64_t late_us  # when the pass has taken enough
    cdef bint owes_turn   # a connection that uses much has its turn in this pass, however late it is
    cdef bint passed_over  # what comes between two passes was left out, since the last one was late
    cdef bint goes_on     # something was done after the answers had left: the next pass begins at once
    cdef public int descriptors_max  # from here on they are kept for others than connections

    def __cinit__(self):
        self.data_epoll = self.control_epoll = -1

    def __init__(self, on_frame, on_pass_end=None, on_close=None, *, max_frame_bytes=MAX_FRAME_BYTES, clock=None,
                 on_error=None, on_hold=None, max_unfinished_bytes=UNFINISHED_BYTES_MAX):
        self.protocol = Protocol(on_frame, max_frame_bytes=max_frame_bytes)
        self.on_pass_end = on_pass_end
        self.on_close = on_close
        self.on_error = on_error
        self.clock = clock
        self.holds = Holds.__new__(Holds)
        self.holds.on_hold = on_hold
        self.room = FrameRoom(max_unfinished_bytes, max_frame_bytes)
        self.connections = set()
        self.watches = set()
        self.slab_owners = [None] * SLABS_MAX
        self.posts = deque()
        self.between = deque()
        self.soon = []
        self.dirty = []
        self.resuming = []
        self.resuming_heavy = []
        self.ready = []
        self.grave = []
        self.gathering = <out_room*>calloc(1, sizeof(out_room))
        self.slabs_wanted = 1
        self.descriptors_max = INT_MAX
        self.set_up()
        self.now_ms = self.monotonic_ms()

    cdef int set_up(self) except -1:
        cdef epoll_event event
        cdef int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.data_epoll = epoll_create1(EPOLL_CLOEXEC)
        self.control_epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.gathering == NULL or wake_fd < 0 or self.data_epoll < 0 or self.control_epoll < 0:
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
        free(self.gathering)
        for i in range(SLABS_MAX):
            if not self.slab_owned[i]:
                free(self.slabs.bytes[i])
        if self.data_epoll >= 0:
            close_fd(self.data_epoll)
        if self.control_epoll >= 0:
            close_fd(self.control_epoll)

    @property
    def unfinished(self):
        """Connections that have a frame that is not whole and may go on with it, the one least recently fed first."""
        return self.room.unfinished

    @property
    def unfinished_bytes(self):
        """The memory of frames that are not whole, and of large ones that are not yet done with."""
        return self.room.used

    @property
    def crowded(self):
        """Some frames wait for memory."""
        return bool(self.room.waiting)

    # ---- what others ask for

    def listen(self, sock, on_accept, *, Protocol protocol=None, transport=None):
        """None: the reactor's own protocol, and plain bytes."""
        cdef Listener listener = Listener.__new__(Listener)
        sock.setblocking(False)
        listener.sock = sock
        listener.protocol = self.expect(protocol, transport)
        listener.transport = transport
        listener.start(self, sock.fileno(), on_accept, EPOLLIN)
        return listener

    def adopt(self, sock, *, Protocol protocol=None, transport=None):
        """Makes a connected socket a connection, and takes its descriptor over."""
        cdef Connection connection = Connection.__new__(Connection)
        protocol = self.expect(protocol, transport)
        sock.setblocking(False)
        peer_address(sock.fileno(), &connection.io.address)
        self.open(connection, sock.detach(), protocol)
        self.admit(connection, transport)
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
        timer.entry.deadline_us = self.monotonic_us() + waited_us(delay_ms)
        if timers_add(&self.timers, &timer.entry) < 0:
            raise MemoryError
        Py_INCREF(timer)
        return timer

    def call_soon(self, callback, *arguments):
        self.soon.append((callback, arguments))

    def call_between(self, callback, *arguments):
        """After a pass, when its answers have left, and before the next one, which does not wait: one such callback each time."""
        self.between.append((callback, arguments))

    def post(self, callback, *arguments):
        """call_soon from any thread."""
        self.posts.append((callback, arguments))
        self.wake_up()

    @property
    def spins(self):
        """Whether it asks again before it sleeps, for lately that has paid."""
        return self.patience.credit > 0

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
        cdef int64_t end_us = self.monotonic_us() + waited_us(deadline_ms)
        for watch in list(self.watches):
            if isinstance(watch, Listener):
                watch.close()
        for connection in list(self.connections):
            connection.finish("the broker stops")
        self.one_pass(0)
        while self.connections and self.monotonic_us() < end_us:
            self.one_pass(<int>min((end_us - self.monotonic_us()) // 1000 + 1, <int64_t>SLEEP_MAX_MS))
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
        cdef int count
        cdef bint control = False, heavy, due
        timeout_ms = self.allowed_wait(timeout_ms)
        self.free_slabs()
        with nogil:
            count = wait_for_events(&self.patience, self.data_epoll, self.events, timeout_ms, &self.slabs, self.receipts)
            if count > 0 and not self.patience.heard:
                control = self.receive_all(count)
        PyErr_CheckSignals()
        self.passes += 1
        self.now_ms = self.monotonic_ms()
        self.holds.begin()
        heavy = self.take_light(count)
        due = self.has_due_timer()
        if self.dirty and (heavy or control or due or self.posts or self.soon or self.resuming_heavy):
            self.answer()
        self.late_us = self.holds.mark_us + LATE_US
        if control:
            self.run_control()
        if self.posts:
            self.run_posts()
        if due:
            self.run_timers()
        if self.soon:
            self.run_soon()
        self.owes_turn = True
        if self.resuming_heavy:
            held, self.resuming_heavy = self.resuming_heavy, []
            self.resuming_heavy = self.resume_held(held) + self.resuming_heavy
        if heavy:
            self.take_heavy(count)
        if self.some_ready:
            self.receive_ready()
        self.answer()
        if self.answer_bytes > all_answers_bytes_max:
            self.relieve()
        if self.writing.first != NULL:
            self.write_files()
            self.flush()
        self.grave.clear()
        if self.room.waiting:
            self.room.let_on()
        if self.between:
            self.run_between()
        return 0

    cdef int allowed_wait(self, int timeout_ms) except? -2:
        cdef int64_t left_us
        if (self.soon or self.dirty or self.resuming or self.resuming_heavy or self.posts or self.goes_on or self.some_ready
                or self.writing.first != NULL):
            self.goes_on = False
            return 0
        if self.timers.count:
            left_us = self.timers.items[0].deadline_us - self.monotonic_us()
            if left_us <= 0:
                return 0
            left_us = (left_us + 999) // 1000
            if timeout_ms < 0 or left_us < timeout_ms:
                return <int>min(left_us, <int64_t>SLEEP_MAX_MS)
        return timeout_ms

    cdef bint take_light(self, int count) except -1:
        """What has come from connections that use little, before all else; whether others have sent something, too. Whoever
        sent more than its turn was for comes behind: many of those, who share all time there is, seem to use little each."""
        cdef bint heavy = False
        cdef peer* io
        cdef int i
        cdef list held = None
        if self.resuming:
            held, self.resuming = self.resuming, []
        self.late_us = self.holds.mark_us + LIGHT_US
        self.owes_turn = False
        for i in range(count):
            self.left[i] = False
            io = <peer*>self.events[i].data.ptr
            if io != NULL and io.fd >= 0:
                if (<Connection>io.owner).is_light(self.now_ms):
                    (<Connection>io.owner).event(self.events[i].events, &self.receipts[i])
                else:
                    self.left[i] = heavy = True
        if held is not None:
            self.owes_turn = True
            self.resuming = self.resume_held(held) + self.resuming
        return heavy

    cdef int answer(self) except -1:
        """What was appended is written, and what was done is answered."""
        self.end_pass()
        self.holds.end("on_pass_end", self.on_pass_end, ())
        return self.flush()

    cdef int take_heavy(self, int count) except -1:
        """What has newly come from connections that use much: behind all others, and as far as there is time. Whether one
        does was decided at the begin of the pass: it may have changed since."""
        cdef peer* io
        cdef int i
        for i in range(count):
            io = <peer*>self.events[i].data.ptr
            if self.left[i] and io.fd >= 0:
                (<Connection>io.owner).event(self.events[i].events, &self.receipts[i])
        return 0

    cdef bint receive_all(self, int count) noexcept nogil:
        """True: the control set has something, or may have behind a full row of events."""
        cdef bint control = count == EVENTS_PER_PASS
        cdef peer* io
        cdef int i
        for i in range(count):
            io = <peer*>self.events[i].data.ptr
            if io == NULL:
                control = True
            else:
                serve_event(io, self.events[i].events, &self.slabs, &self.receipts[i])
        self.patience.favourite = NULL
        if count == 1 and self.receipts[0].status == RECEIVED_CHUNK:
            self.patience.favourite = <peer*>self.events[0].data.ptr
        return control

    cdef int receive_ready(self) except -1:
        """From transports that hold bytes, whose sockets may have no more of them."""
        cdef list ready = self.ready
        cdef Connection connection
        cdef peer* io
        self.ready = ready[READY_PER_PASS:]
        self.some_ready = len(self.ready) > 0
        for item in ready[:READY_PER_PASS]:
            connection = <Connection>item
            connection.receives_ready = False
            io = &connection.io
            if io.ready and io.reading:
                with nogil:
                    receive(&io.inbox, &self.slabs, io.transport.receive, io, &self.receipts[0])
                connection.event(0, &self.receipts[0])
        return 0

    cdef int run_control(self) except -1:
        cdef int count, i
        cdef Watch watch
        count = epoll_wait(self.control_epoll, self.control_events, CONTROL_EVENTS, 0)
        for i in range(count):
            watch = <Watch>self.control_events[i].data.ptr
            if not watch.closed:
                watch.fire()
        return 0

    cdef bint has_due_timer(self) except -1:
        return self.timers.count > 0 and self.timers.items[0].deadline_us <= self.monotonic_us()

    cdef int run_timers(self) except -1:
        """Those due; one that a callback adds waits for the next pass even if it is due at once."""
        cdef Timer timer
        cdef uint64_t limit = self.timers.next_sequence
        cdef int64_t now_us = self.monotonic_us()
        while self.timers.count and self.timers.items[0].deadline_us <= now_us and self.timers.items[0].sequence < limit:
            timer = <Timer>self.timers.items[0].owner
            timer.leave()
            self.call("timer", timer.callback, timer.arguments)
            if self.is_late():
                break
        return 0

    cdef int run_soon(self) except -1:
        """Those there are; where time is up, the others come first in the next pass."""
        cdef list soon = self.soon
        cdef Py_ssize_t done = 0
        self.soon = []
        for callback, arguments in soon:
            done += 1
            self.call("call_soon", callback, arguments)
            if self.is_late():
                break
        if done < len(soon):
            self.soon = soon[done:] + self.soon
        return 0

    cdef int run_posts(self) except -1:
        cdef Py_ssize_t i
        for i in range(len(self.posts)):
            callback, arguments = self.posts.popleft()
            self.call("post", callback, arguments)
            if self.is_late():
                break
        return 0

    cdef int run_between(self) except -1:
        """Not after a pass that was late, but after the one behind it."""
        self.goes_on = True
        self.passed_over = self.is_late() and not self.passed_over
        if not self.passed_over:
            callback, arguments = self.between.popleft()
            self.call("call_between", callback, arguments)
        return 0

    cdef inline bint is_late(self) noexcept:
        """The pass has taken enough: what can wait waits, so that new requests are looked for."""
        return self.holds.mark_us >= self.late_us

    cdef list resume_held(self, list resuming):
        """Gives those that time is left for their turn, and gives back the others."""
        cdef Py_ssize_t done = 0
        for connection in resuming:
            (<Connection>connection).resume()
            done += 1
            if self.is_late() and not self.owes_turn:
                break
        return resuming[done:]

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

    def send_answers(self):
        """Those there are, now: whoever waits for them goes on while the pass does. For on_pass_end alone, since answers
        may rest on what is done at its begin."""
        self.flush()

    cdef int flush(self) except -1:
        """One send for each connection that has something new, in groups, without the GIL."""
        cdef list dirty
        cdef Connection connection
        cdef uint32_t count
        cdef int64_t began_us
        while self.dirty:
            dirty = self.dirty
            self.dirty = []
            count = 0
            began_us = self.holds.mark_us
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
                if count == EVENTS_PER_PASS or (connection.is_heavy and c_monotonic_us() - began_us > TURN_US):
                    self.send_group(count)
                    count = 0
            if count:
                self.send_group(count)
        return 0

    cdef int relieve(self) except -1:
        """Memory for answers is used up: whoever leaves the most of it unread is closed."""
        cdef Connection most = None, each
        for item in self.connections:
            each = <Connection>item
            if most is None or each.counted_bytes > most.counted_bytes:
                most = each
        if most is not None:
            most.drop(f"{most.counted_bytes} bytes of answers are not taken, and all connections together may leave "
                      f"{all_answers_bytes_max}")
        return 0

    cdef int send_group(self, uint32_t count) except -1:
        self.holds.end("answers", self.protocol.on_frame, ())
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
            out_pump(self.sending[i], self.gathering, &budget, False)
            self.sent_bytes += GATHER_BYTES - budget

    cdef int write_files(self) except -1:
        cdef uint32_t count
        cdef int64_t budget = WRITE_QUEUE_PASS_BYTES
        with nogil:
            count = write_queue_pump(&self.writing, self.gathering, &budget, self.sending, EVENTS_PER_PASS)
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

    cdef Protocol expect(self, Protocol protocol, transport):
        """Frames as large as this protocol's may come; ValueError where that is no transport."""
        if transport is not None:
            PyCapsule_GetPointer(transport, TRANSPORT_NAME)
        if protocol is None:
            return self.protocol
        self.room.expect(protocol.max_frame)
        return protocol

    cdef int open(self, Connection connection, int fd, Protocol protocol) except -1:
        connection.reactor = self
        connection.protocol = protocol
        connection.io.transport = &plain_transport
        connection.io.fd = fd
        connection.io.inbox.memory = &self.room.memory.bytes
        connection.io.active_at_ms = self.now_ms
        return 0

    cdef int admit(self, Connection connection, transport) except -1:
        cdef epoll_event event
        connection.accepted = True
        connection.used_us = NEW_US
        connection.used_at_ms = self.now_ms
        self.connections.add(connection)
        connection.open_session(transport)
        if connection.io.fd < 0:
            return 0
        connection.io.reading = not connection.io.bars & EPOLLIN
        event.events = connection.io.interest = connection.with_transport(EPOLLIN)
        event.data.ptr = &connection.io
        if epoll_ctl(self.data_epoll, EPOLL_CTL_ADD, connection.io.fd, &event) < 0:
            return connection.drop(strerror(errno))
        return 0

    cdef bint has_descriptors(self):
        """Whether the next descriptor would be one that connections may have."""
        cdef int fd = dup_fd(self.wake.fd)
        if fd >= 0:
            close_fd(fd)
        return 0 <= fd < self.descriptors_max

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
            self.holds.end(where, callback, arguments)
        return 0

    cdef object call_for(self, str where, callback, argument):
        try:
            return callback(argument)
        except Exception as error:
            self.report(where, error)
            return None

    cdef int report(self, str where, error) except -1:
        """Where this goes wrong, too, there is nobody left to tell: the loop goes on."""
        if self.on_error is None:
            raise error
        try:
            self.on_error(where, error)
        except Exception:
            pass
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
