# Connections: frames in, answers out in their order.

cdef enum Waits:
    NOT_WAITED_FOR
    PARKS   # the request is not done: the connection's next frame waits for its answer
    DELAYS  # it is done, and its answer is to leave later: more of Produce may be done meanwhile


cdef class Ticket:
    """The place of one answer among its connection's answers, to be filled later, from the loop's thread."""
    cdef Connection connection
    cdef bint answered
    cdef Waits waits
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
            if self.waits == PARKS:
                connection.parked -= 1
            elif self.waits == DELAYS:
                connection.delayed -= 1
            connection.mark()


cdef int64_t weight(answer) except -1:
    """The bytes that an answer keeps, or will keep, in memory."""
    cdef int64_t total = 0
    if type(answer) is bytes:
        return PyBytes_GET_SIZE(answer)
    if answer is None or type(answer) is Ticket:
        return 0
    if type(answer) is list:
        for part in <list>answer:
            if type(part) is bytes:
                total += PyBytes_GET_SIZE(part)
        return total
    return answer.weigh()


cdef enum:
    LIGHT_PRODUCE_BYTES = 1024  # what answers a Produce that is no longer weighs little, and need not be weighed
    TURN_US = 200  # how long a connection's requests are done in one pass, before others have their turn
    LIGHT_US = 300  # how long those of all light connections together are
    LATE_US = 100  # how long the rest of a pass is: then new requests of light connections are looked for
    HEAVY_US = 800  # whose requests lately took more is heavy: others go first
    NEW_US = 4 * HEAVY_US  # what a new connection counts as having taken: who is known to use little goes before it
    HEAVIEST_US = 200  # what one request counts at most: it also takes long where somebody else has the processor
    HEAVY_HALF_MS = 4  # in which half of that is forgotten


cdef class Connection:
    cdef peer io
    cdef readonly Reactor reactor
    cdef readonly Protocol protocol
    cdef readonly object listener
    cdef public object state
    cdef PyObject* kept_transport  # its capsule, while it has a session: a reference that the collector does not clear
    cdef list pending            # answers not yet handed to io.out, in request order; None: there are none
    cdef int64_t pending_bytes
    cdef Buffer held             # frames whose time has not come: held_at..held_end
    cdef Py_ssize_t held_at, held_end
    cdef int parked, delayed     # tickets without an answer, by what they wait for; muting parks, too
    cdef int64_t produced_in     # the pass of the last Produce; what it appended is there when the pass has ended
    cdef int64_t turn_in, turn_began_us  # the pass of its last turn
    cdef int64_t used_us, used_at_ms  # how long its requests took lately
    cdef bint is_heavy
    cdef int64_t counted_bytes   # of what is queued, as reactor.answer_bytes knows it
    cdef bint dirty, is_throttled, finishing, resuming, accepted
    cdef bint receives_ready     # the reactor has it among those whose transport holds bytes
    cdef bint begun, crowded     # the reactor's room has it among its unfinished, or its waiting
    cdef int64_t begun_at_ms, begun_bytes  # not the inbox's, which is empty while its bytes are in a slab
    cdef object reason
    cdef object __weakref__

    def __cinit__(self):
        self.io.fd = -1
        self.io.owner = <void*>self
        self.produced_in = -1

    def __dealloc__(self):
        self.close_session()
        if self.io.fd >= 0:
            close_fd(self.io.fd)
        self.io.inbox.memory = NULL  # may be gone already
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
    def receiving(self):
        """What it sends is read."""
        return self.io.reading

    @property
    def frame_bytes(self):
        """What has come of a frame that is not whole."""
        return self.begun_bytes if self.begun or self.crowded else 0

    @property
    def frame_began_ms(self):
        """When the first of them came; later, if the frame then had to wait for memory."""
        return self.begun_at_ms

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
        cdef int64_t frames = self.reactor.frames
        if result.received:
            self.io.active_at_ms = self.reactor.now_ms
            self.reactor.received_bytes += result.received
        if result.status == RECEIVED_CHUNK:
            self.take_frames(self.reactor.slab(result.slab), result.start, result.end)
        elif result.status == RECEIVED_FRAME:
            frame = own_bytes(NULL, self.io.inbox.have)
            frame.bytes = inbox_take(&self.io.inbox)
            frame.memory = self.reactor.room.memory
            self.take_frames(frame, 0, frame.size)
        elif result.status == RECEIVED_NO_ROOM:
            self.reactor.room.wait(self)
        elif result.status == RECEIVED_END:
            self.end(None)
        elif result.status == RECEIVED_ERROR:
            self.drop(self.reason_of(result.error))
        elif result.status == RECEIVED_NOTHING and events & (EPOLLERR | EPOLLHUP) and not self.io.reading:
            self.drop(None)  # nobody is there to take the answers
        if events & EPOLLOUT and self.io.blocked and self.io.fd >= 0:
            self.io.blocked = False
            write_queue_add(&self.reactor.writing, &self.io)
        if result.received:
            self.reactor.room.follow(self, frames == self.reactor.frames)
        if self.io.session != NULL:
            self.mark()  # it may wait for other events now
        return 0

    cdef int take_frames(self, Buffer buffer, Py_ssize_t at, Py_ssize_t end) except -1:
        """Handles the frames in buffer[at:end] whose time has come, and keeps the rest."""
        cdef Protocol protocol = self.protocol
        cdef frame_view view
        cdef frame_status status
        while True:
            status = protocol.next_frame(buffer.bytes + at, end - at, protocol.max_frame, &view)
            if status != FRAME_WHOLE:
                break
            if not self.may_take(view.appends):
                return self.hold(buffer, at, end)
            self.take_frame(protocol, buffer, at + view.start, at + view.end, view.appends)
            at += view.end
            if self.io.fd < 0 or self.finishing:
                return 0
        if status == FRAME_PARTIAL and view.end == 0 and end - at > FRAME_START_MAX_BYTES:
            status = FRAME_TOO_LARGE  # it would not fit where small frames lie
            view.end = <uint32_t>(end - at)
        if status != FRAME_PARTIAL:
            return self.end(frame_trouble(status, &view, protocol.max_frame))
        if at < end and inbox_keep(&self.io.inbox, buffer.bytes + at, <uint32_t>(end - at), view.end) < 0:
            self.drop("out of memory")
        return 0

    cdef bint may_take(self, bint is_produce) noexcept:
        """Requests of a connection are done one after the other, as in Kafka: what comes after one that waits, waits,
        and what comes after a Produce finds what that appended. One Produce after the other need not wait for that."""
        if self.parked or self.is_full():
            return False
        if not is_produce:
            return not self.delayed and self.produced_in != self.reactor.passes and self.has_turn()
        self.produced_in = self.reactor.passes
        return True

    cdef inline bint has_turn(self) noexcept:
        """Whoever sends many requests at once does not have others wait until all of them are done."""
        cdef Reactor reactor = self.reactor
        if self.turn_in != reactor.passes:
            if reactor.is_late():
                if not reactor.owes_turn:
                    return False
            reactor.owes_turn = False
            self.turn_in = reactor.passes
            self.turn_began_us = reactor.holds.mark_us
        return reactor.holds.mark_us - self.turn_began_us < TURN_US

    cdef inline bint is_light(self, int64_t now_ms) noexcept:
        """Whether its requests took little of the last milliseconds: then they go before those of others."""
        cdef int64_t halves = (now_ms - self.used_at_ms) // HEAVY_HALF_MS
        if halves > 0:
            self.used_us >>= min(halves, <int64_t>30)
            self.used_at_ms = now_ms
        self.is_heavy = self.used_us > HEAVY_US
        return not self.is_heavy

    cdef int take_frame(self, Protocol protocol, Buffer buffer, Py_ssize_t start, Py_ssize_t end,
                        bint is_produce) except -1:
        cdef Reactor reactor = self.reactor
        cdef int64_t began_us = reactor.holds.mark_us
        reactor.frames += 1
        try:
            answer = protocol.on_frame(self, buffer, start, end)
        except Exception as error:
            return self.end(trouble(error))
        reactor.holds.end_frame(self, buffer, start, end - start, is_produce)
        self.used_us += min(reactor.holds.mark_us - began_us, <int64_t>HEAVIEST_US)
        if answer is None or self.io.fd < 0:
            return 0
        if type(answer) is Ticket:
            self.await_answer(<Ticket>answer, PARKS)
        if self.pending is None:
            self.pending = [answer]  # the only one: what it weighs matters to nobody
        else:
            self.pending.append(answer)
            if end - start > LIGHT_PRODUCE_BYTES or not is_produce:
                self.weigh(answer)
        self.mark()
        return 0

    def mute(self, delay_ms):
        """Begins no more requests for so long: a client that exceeded a quota waits, whether it wants to or not (KIP-219)."""
        if self.io.fd >= 0:
            self.parked += 1
            self.reactor.call_later(delay_ms, self._unmute)

    def _unmute(self):
        self.parked -= 1
        self.mark()

    cdef int await_answer(self, Ticket ticket, Waits waits) except -1:
        if not ticket.answered and ticket.waits == NOT_WAITED_FOR:
            ticket.waits = waits
            if waits == PARKS:
                self.parked += 1
            else:
                self.delayed += 1
        return 0

    cdef int weigh(self, answer) except -1:
        """Several answers of a pass: their weight bounds how many there will be."""
        try:
            self.pending_bytes += weight(answer)
        except Exception as error:
            self.pending.pop()
            self.end(trouble(error))
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

    cdef bint held_may_go(self) noexcept:
        """The first frame held could be taken now, or in the next pass."""
        cdef frame_view view
        self.protocol.next_frame(self.held.bytes + self.held_at, self.held_end - self.held_at, self.protocol.max_frame,
                                 &view)
        return not self.parked and (not self.delayed or view.appends)

    cdef int resume(self) except -1:
        cdef Buffer held = self.held
        self.resuming = False
        self.held = None
        if held is not None and self.io.fd >= 0:
            self.take_frames(held, self.held_at, self.held_end)
            self.reactor.room.follow(self, False)
            self.mark()
        return 0

    # ---- out

    def send(self, parts):
        """Sends what answers no frame: the requests of a connection that asks. They leave in the order of the calls."""
        if self.io.fd >= 0 and not self.finishing:
            if self.pending is None:
                self.pending = []
            self.pending.append(parts)
            self.weigh(parts)
            self.mark()

    cdef void mark(self) noexcept:
        """Has the end of the pass look at this connection."""
        if not self.dirty:
            self.dirty = True
            self.reactor.dirty.append(self)

    cdef Py_ssize_t answers(self) noexcept:
        return self.io.out.answers + (0 if self.pending is None else len(self.pending))

    cdef bint is_full(self) noexcept:
        return (self.answers() >= self.protocol.answers_max
                or self.io.out.bytes + self.pending_bytes >= self.protocol.answer_bytes_max)

    cdef bint is_half_empty(self) noexcept:
        return (self.answers() <= self.protocol.answers_max // 2
                and self.io.out.bytes + self.pending_bytes <= self.protocol.answer_bytes_max // 2)

    cdef int resolve(self) except -1:
        """Hands the answers whose turn has come to io.out; those still objects are encoded, whether it has or not."""
        cdef list pending = self.pending
        cdef Py_ssize_t i, turns = 0
        cdef int64_t left_bytes = 0
        cdef bint waiting = False
        cdef Ticket ticket
        if pending is None:
            return 0
        for i in range(len(pending)):
            answer = pending[i]
            if type(answer) is Ticket:
                if not (<Ticket>answer).answered:
                    waiting = True
                    continue
                ticket = <Ticket>answer
                answer = ticket.parts
                ticket.parts = None  # which may know this ticket: they would keep each other
            if type(answer) is not bytes and type(answer) is not list and answer is not None:
                answer = self.encoded(answer)
                if self.pending is not pending:
                    return 0
                if type(answer) is Ticket:
                    pending[i] = answer
                    self.await_answer(<Ticket>answer, DELAYS)
                    if (<Ticket>answer).answered:
                        self.mark()  # it need not be waited for
                    waiting = True
                    continue
            if waiting:
                pending[i] = answer
                left_bytes += weight(answer)
            else:
                self.push(answer)
                turns = i + 1
        self.pending_bytes = left_bytes
        if turns == len(pending):
            self.pending = None
        elif turns:
            del pending[:turns]
        return 0

    cdef object encoded(self, answer):
        """The bytes of an answer, or the ticket of one that waits; where that fails, the connection ends after the
        answers before it."""
        try:
            return answer.encode()
        except Exception as error:
            self.pending = None
            self.pending_bytes = 0
            self.end(trouble(error))
            return None

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
            return self.drop(self.reason_of(self.io.error))
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
        cdef uint32_t interest
        cdef bint waits, idle = self.pending is None and self.io.out.answers == 0
        if self.io.fd < 0:
            return 0
        if self.finishing and idle and (self.io.session == NULL or self.io.transport.finish(&self.io)):
            return self.drop(self.reason)
        self.count_bytes()
        self.is_throttled = not self.is_half_empty() if self.is_throttled else self.is_full()
        # A request that waits may do so for long: at most what was received with it is kept meanwhile.
        waits = self.parked and self.io.inbox.have > 0
        if self.held is not None:
            waits = not self.held_may_go()
            if not waits and not self.is_throttled and not self.resuming:
                self.resuming = True
                if self.is_light(self.reactor.now_ms):
                    self.reactor.resuming.append(self)
                else:
                    self.reactor.resuming_heavy.append(self)
        waits = waits or self.is_throttled or self.finishing or self.crowded
        self.io.reading = self.held is None and not waits
        # while held frames are worked off, the socket stays in the set: it will be read from again in a moment
        interest = ((0 if waits else EPOLLIN)
                    | (EPOLLOUT if self.io.blocked or (self.io.queued and self.io.interest & EPOLLOUT) else 0))
        if self.io.session != NULL:
            interest = self.with_transport(interest)
        return self.wait_for(interest)

    cdef void count_bytes(self) noexcept:
        cdef int64_t now = 0 if self.io.fd < 0 else self.io.out.bytes + self.pending_bytes
        self.reactor.answer_bytes += now - self.counted_bytes
        self.counted_bytes = now

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
            self.forget_frame()
            self.mark()
        return 0

    cdef int forget_frame(self) except -1:
        """What has come of a frame that will not become whole."""
        inbox_clear(&self.io.inbox)
        return self.reactor.room.leave(self)

    cdef int drop(self, reason) except -1:
        cdef Reactor reactor = self.reactor
        if self.io.fd < 0:
            return 0
        if self.io.queued:
            write_queue_remove(&reactor.writing, &self.io)
        if reactor.patience.favourite == &self.io:
            reactor.patience.favourite = NULL
        self.close_session()
        close_fd(self.io.fd)
        self.io.fd = -1
        self.io.reading = False
        self.pending = self.held = None
        self.pending_bytes = 0
        self.count_bytes()
        self.forget_frame()
        release_all(&self.io.out)
        reactor.grave.append(self)  # events of this pass may still point here
        if self.accepted:
            reactor.connections.discard(self)
            on_close = reactor.on_close if self.protocol.on_close is None else self.protocol.on_close
            reactor.call("on_close", on_close, (self, reason))
        return 0

    # ---- the transport

    cdef int open_session(self, transport) except -1:
        """`transport`: a capsule, or None for plain bytes."""
        if transport is not None:
            self.io.transport = <const transport_table*>PyCapsule_GetPointer(transport, TRANSPORT_NAME)
            if self.io.transport.open != NULL and self.io.transport.open(self.io.transport, &self.io) < 0:
                return self.drop(self.reason_of(errno))
            Py_INCREF(transport)
            self.kept_transport = <PyObject*>transport
        return 0

    cdef void close_session(self) noexcept:
        if self.io.session != NULL:
            self.io.transport.finish(&self.io)
            self.io.transport.close(&self.io)
            self.io.session = NULL
        self.io.wants = self.io.bars = 0
        self.io.ready = False
        if self.kept_transport != NULL:
            Py_DECREF(<object>self.kept_transport)
            self.kept_transport = NULL

    cdef uint32_t with_transport(self, uint32_t interest) noexcept:
        """What the socket is asked for, where the transport needs it, too; and what the transport holds is received."""
        if self.io.bars & EPOLLIN:
            self.io.reading = False
        if self.io.ready and self.io.reading and not self.receives_ready:
            self.receives_ready = True
            self.reactor.ready.append(self)
            self.reactor.some_ready = True
        return interest & ~self.io.bars | self.io.wants

    cdef object reason_of(self, int error):
        """None for a peer that went away, which is no trouble."""
        cdef const char* text = NULL
        if self.io.session != NULL:
            text = self.io.transport.trouble(&self.io)
        if text != NULL:
            return text.decode(errors="replace")
        return None if error == ECONNRESET or error == EPIPE else strerror(error)


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


cdef str trouble(BaseException error):
    return f"{type(error).__name__}: {error}"
