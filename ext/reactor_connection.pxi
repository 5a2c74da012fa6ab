# Connections: frames in, answers out in their order.

cdef class Ticket:
    """The place of one answer among its connection's answers, to be filled later, from the loop's thread."""
    cdef Connection connection
    cdef bint answered
    cdef object parts

    def answer(self, parts):
        """Fills the place: bytes, a list of bytes and file ranges, something with .encode(), or None for no answer.
        Harmless when the connection has closed; only the first answer counts."""
        cdef Connection connection = self.connection
        if self.answered:
            return
        self.answered = True
        self.connection = None
        if connection is not None and connection.io.fd >= 0:
            self.parts = parts
            connection.pending_bytes += weight(parts)
            connection.mark()


cdef int64_t weight(answer) except -1:
    """The bytes that an answer keeps in memory, as far as they are known."""
    cdef int64_t total = 0
    if type(answer) is bytes:
        return PyBytes_GET_SIZE(answer)
    if type(answer) is list:
        for part in <list>answer:
            if type(part) is bytes:
                total += PyBytes_GET_SIZE(part)
    return total


cdef class Connection:
    cdef peer io
    cdef readonly Reactor reactor
    cdef readonly object listener
    cdef public object state
    cdef list pending            # answers not yet handed to io.out, in request order; None: there are none
    cdef int64_t pending_bytes
    cdef Buffer held             # frames received beyond the bound on answers: held_at..held_end
    cdef Py_ssize_t held_at, held_end
    cdef bint dirty, is_throttled, finishing, resuming, accepted
    cdef object reason
    cdef object __weakref__

    def __cinit__(self):
        self.io.fd = -1
        self.io.owner = <void*>self

    def __dealloc__(self):
        if self.io.fd >= 0:
            close_fd(self.io.fd)
        inbox_clear(&self.io.inbox)
        release_all(&self.io.out)

    def __repr__(self):
        return f"<Connection {self.peer} fd={self.io.fd}>"

    @property
    def fd(self):
        return self.io.fd

    @property
    def closed(self):
        return self.io.fd < 0

    @property
    def peer(self):
        """(host, port); ("", 0) for sockets without an internet address."""
        return address_of(&self.io.address)

    @property
    def received_at_ms(self):
        """When bytes last came or left, on the monotonic clock."""
        return self.io.active_at_ms

    @property
    def queued_bytes(self):
        """Bytes of answers in memory that have not left."""
        return self.io.out.bytes + self.pending_bytes

    @property
    def queued_answers(self):
        return self.answers()

    @property
    def throttled(self):
        """Not read from until answers have left."""
        return self.is_throttled

    def defer(self):
        """Inside on_frame, which must return it: this frame's answer comes later."""
        cdef Ticket ticket = Ticket.__new__(Ticket)
        ticket.connection = self
        return ticket

    def close(self, reason=None):
        """At once: what is queued is dropped."""
        self.drop(reason)

    def finish(self, reason=None):
        """Reads no more, and closes when the answers to what was read have left."""
        self.end(reason)

    # ---- in

    cdef int event(self, uint32_t events, receipt* result) except -1:
        cdef Buffer frame
        if result.received:
            self.io.active_at_ms = self.reactor.now_ms
            self.reactor.received_bytes += result.received
        if result.status == RECEIVED_CHUNK:
            self.take_frames(self.reactor.slab(result.slab), result.start, result.end)
        elif result.status == RECEIVED_FRAME:
            frame = own_bytes(self.io.inbox.bytes, self.io.inbox.have)
            self.io.inbox.bytes = NULL
            inbox_clear(&self.io.inbox)
            self.take_frames(frame, 0, frame.size)
        elif result.status == RECEIVED_END:
            self.end(None)
        elif result.status == RECEIVED_ERROR:
            self.drop(reason_of(result.error))
        elif events & (EPOLLERR | EPOLLHUP) and not self.io.reading:
            self.drop(None)  # nobody is there to take the answers
        if events & EPOLLOUT and self.io.blocked and self.io.fd >= 0:
            self.io.blocked = False
            write_queue_add(&self.reactor.writing, &self.io)
        return 0

    cdef int take_frames(self, Buffer buffer, Py_ssize_t at, Py_ssize_t end) except -1:
        """Handles the frames in buffer[at:end], up to the bound on answers, and keeps the rest."""
        cdef uint32_t length = 0
        cdef frame_status status
        while True:
            status = frame_next(buffer.bytes + at, end - at, self.reactor.max_frame, &length)
            if status != FRAME_WHOLE:
                break
            if self.is_full():
                return self.hold(buffer, at, end)
            at += FRAME_HEAD_BYTES
            self.take_frame(buffer, at, at + length)
            at += length
            if self.io.fd < 0 or self.finishing:
                return 0
        if status != FRAME_PARTIAL:
            return self.end(frame_trouble(status, length, self.reactor.max_frame))
        if at < end and inbox_keep(&self.io.inbox, buffer.bytes + at, <uint32_t>(end - at)) < 0:
            self.drop("out of memory")
        return 0

    cdef int take_frame(self, Buffer buffer, Py_ssize_t start, Py_ssize_t end) except -1:
        cdef Reactor reactor = self.reactor
        reactor.frames += 1
        try:
            answer = reactor.on_frame(self, buffer, start, end)
        except Exception as error:
            return self.end(trouble(error))
        if answer is None or self.io.fd < 0:
            return 0
        if self.pending is None:
            self.pending = [answer]
        else:
            self.pending.append(answer)
        self.pending_bytes += weight(answer)
        self.mark()
        return 0

    cdef int hold(self, Buffer buffer, Py_ssize_t at, Py_ssize_t end) except -1:
        """Keeps whole frames for a later pass; a slab is for one pass only, so they move to memory of their own."""
        if buffer.is_slab:
            self.held = own_bytes(<uint8_t*>malloc(end - at), end - at)
            if self.held.bytes == NULL:
                raise MemoryError
            memcpy(self.held.bytes, buffer.bytes + at, end - at)
            end -= at
            at = 0
        else:
            self.held = buffer
        self.held_at = at
        self.held_end = end
        self.io.reading = False
        self.mark()
        return 0

    cdef int resume(self) except -1:
        cdef Buffer held = self.held
        self.resuming = False
        self.held = None
        if held is not None and self.io.fd >= 0:
            self.take_frames(held, self.held_at, self.held_end)
            self.mark()
        return 0

    # ---- out

    cdef void mark(self) noexcept:
        """Has the end of the pass look at this connection."""
        if not self.dirty:
            self.dirty = True
            self.reactor.dirty.append(self)

    cdef Py_ssize_t answers(self) noexcept:
        return self.io.out.answers + (0 if self.pending is None else len(self.pending))

    cdef bint is_full(self) noexcept:
        return self.answers() >= answers_max or self.io.out.bytes + self.pending_bytes >= answer_bytes_max

    cdef bint is_half_empty(self) noexcept:
        return self.answers() <= answers_max // 2 and self.io.out.bytes + self.pending_bytes <= answer_bytes_max // 2

    cdef int resolve(self) except -1:
        """Hands the answers whose turn has come to io.out; those still objects are encoded, whether it has or not."""
        cdef list pending = self.pending
        cdef Py_ssize_t i, turns = 0
        cdef bint waiting = False
        if pending is None:
            return 0
        for i in range(len(pending)):
            answer = pending[i]
            if type(answer) is Ticket:
                if not (<Ticket>answer).answered:
                    waiting = True
                    continue
                answer = (<Ticket>answer).parts
            if type(answer) is not bytes and type(answer) is not list and answer is not None:
                answer = self.encoded(answer)
                if self.pending is not pending:
                    return 0
                if type(answer) is Ticket:
                    pending[i] = answer
                    waiting = True
                    continue
            if waiting:
                pending[i] = answer
            else:
                self.pending_bytes -= weight(answer)
                self.push(answer)
                turns = i + 1
        if turns == len(pending):
            self.pending = None
        elif turns:
            del pending[:turns]
        return 0

    cdef object encoded(self, answer):
        """The bytes of an answer, or the ticket of one that waits; where that fails, the connection ends after the
        answers before it."""
        try:
            parts = answer.encode()
        except Exception as error:
            self.pending = None
            self.pending_bytes = 0
            self.end(trouble(error))
            return None
        self.pending_bytes += weight(parts)
        return parts

    cdef int push(self, answer) except -1:
        cdef bint some = False
        if answer is None:
            return 0
        if type(answer) is bytes:
            some = self.push_part(answer)
        else:
            for part in <list>answer:
                if self.push_part(part):
                    some = True
        if some:
            out_answer_ends(&self.io.out)
        return 0

    cdef bint push_part(self, part) except -1:
        cdef out_part row
        if type(part) is bytes:
            row.bytes = <const uint8_t*>PyBytes_AS_STRING(part)
            row.left = PyBytes_GET_SIZE(part)
            row.fd = -1
            row.offset = 0
        else:
            row.bytes = NULL
            row.left = part.size
            row.fd = part.fd
            row.offset = part.offset
        if row.left == 0:
            return False
        row.owner = <void*>part
        if out_push(&self.io.out, row) < 0:
            raise MemoryError
        Py_INCREF(part)
        return True

    cdef bint waits(self) noexcept:
        """Sends nothing now: its turn, its socket or its file comes later."""
        return self.io.queued or self.io.blocked or self.io.warming

    cdef int sent(self) except -1:
        """After the socket was given what it takes."""
        cdef out_status status = self.io.status
        self.io.active_at_ms = self.reactor.now_ms
        release_gone(&self.io.out)
        if status == OUT_COLD:
            self.warm()
        elif status == OUT_MORE:
            if not self.io.queued:
                write_queue_add(&self.reactor.writing, &self.io)
        elif status == OUT_BLOCKED:
            self.io.blocked = True
        elif status == OUT_FAILED:
            return self.drop(reason_of(self.io.error))
        elif status == OUT_FILE_SHORT:
            return self.drop("a file got shorter while it was being sent")
        return self.settle()

    cdef int warm(self) except -1:
        """Has a thread read what comes next; until it has, this connection sends nothing."""
        cdef out_part* part = &self.io.out.parts[self.io.out.head]
        self.io.warming = True
        self.io.warm_to = part.offset + min(part.left, <int64_t>WARM_BYTES)
        self.reactor.warm(self, part)
        return 0

    def _warmed(self):
        self.io.warming = False
        if self.io.fd >= 0 and not self.io.queued:
            write_queue_add(&self.reactor.writing, &self.io)

    cdef int settle(self) except -1:
        """Decides, at the end of a pass, what this connection waits for."""
        cdef bint idle = self.pending is None and self.io.out.answers == 0
        if self.io.fd < 0:
            return 0
        if self.finishing and idle:
            return self.drop(self.reason)
        self.is_throttled = not self.is_half_empty() if self.is_throttled else self.is_full()
        if self.held is not None and not self.is_throttled and not self.resuming:
            self.resuming = True
            self.reactor.resuming.append(self)
        self.io.reading = self.held is None and not self.is_throttled and not self.finishing
        # while held frames are worked off, the socket stays in the set: it will be read from again in a moment
        return self.wait_for((EPOLLIN if not self.is_throttled and not self.finishing else 0)
                             | (EPOLLOUT if self.io.blocked or (self.io.queued and self.io.interest & EPOLLOUT) else 0))

    cdef int wait_for(self, uint32_t interest) except -1:
        cdef epoll_event event
        if interest != self.io.interest:
            event.events = interest
            event.data.ptr = &self.io
            if epoll_ctl(self.reactor.data_epoll, EPOLL_CTL_MOD, self.io.fd, &event) < 0:
                return self.drop(strerror(errno))
            self.io.interest = interest
        return 0

    # ---- end

    cdef int end(self, reason) except -1:
        if self.io.fd >= 0 and not self.finishing:
            self.finishing = True
            self.reason = reason
            self.io.reading = False
            self.held = None
            inbox_clear(&self.io.inbox)
            self.mark()
        return 0

    cdef int drop(self, reason) except -1:
        cdef Reactor reactor = self.reactor
        if self.io.fd < 0:
            return 0
        if self.io.queued:
            write_queue_remove(&reactor.writing, &self.io)
        if reactor.patience.favourite == &self.io:
            reactor.patience.favourite = NULL
        close_fd(self.io.fd)
        self.io.fd = -1
        self.io.reading = False
        self.pending = self.held = None
        self.pending_bytes = 0
        inbox_clear(&self.io.inbox)
        release_all(&self.io.out)
        reactor.grave.append(self)  # events of this pass may still point here
        if self.accepted:
            reactor.connections.discard(self)
            reactor.call("on_close", reactor.on_close, (self, reason))
        return 0


cdef void release_gone(out_queue* queue) noexcept:
    cdef uint32_t i
    for i in range(queue.done, queue.head):
        Py_DECREF(<object>queue.parts[i].owner)
    out_forget(queue)


cdef void release_all(out_queue* queue) noexcept:
    cdef uint32_t i
    for i in range(queue.done, queue.end):
        Py_DECREF(<object>queue.parts[i].owner)
    out_free(queue)


cdef object reason_of(int error):
    """None for a peer that went away, which is no trouble."""
    return None if error == ECONNRESET or error == EPIPE else strerror(error)


cdef str trouble(BaseException error):
    return f"{type(error).__name__}: {error}"
