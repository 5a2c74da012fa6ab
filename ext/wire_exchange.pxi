# One request under way and the promise of its answer. In C because there is one for every request: it costs a
# seventh of the same class in Python.


cdef extern from "Python.h":
    bint PyGen_CheckExact(object)


class WorkInSlices(TypeError):
    """What should be a response is a generator, that is, work which comes to one."""


cdef class Route


cdef class Exchange:
    """What the answer to a request must carry, and the way to give it.

    A handler returns its response, and the dispatcher puts it here; the loop calls encode() after what the pass
    appended is on disk, so until then a response may still be changed (and is, by giving another one, or with
    changed()). A response with a text that is too long for a message (the ids of clients may be made longer) is answered
    with UNKNOWN_SERVER_ERROR, where `refuse` was set. Or a handler keeps the answer's place with defer(), returns that, and
    calls answer() later, once.
    """

    cdef readonly object connection
    cdef readonly Route route  # None: nothing serves this API key
    cdef readonly int api_key
    cdef readonly int version
    cdef readonly int correlation_id
    cdef readonly object client_id
    cdef public object watcher  # told of the exchange just before its answer is encoded; None: nobody
    cdef public object refuse  # makes the API's answer of a KafkaError, should the response not fit into a message
    cdef public object amend  # completes each response, by what the handler does not know; None: there is nothing
    cdef readonly object ticket
    cdef readonly bint is_large  # the request was not read, since it has too many elements for the loop
    cdef object given  # the response
    cdef object parts  # its bytes, once somebody asked what it weighs
    cdef object held   # a ticket of its own: the answer is given, and waits all the same
    cdef bint flexible_header
    cdef readonly int throttle_ms  # for which the client is asked to wait, and made to

    @property
    def response(self):
        return self.given

    @response.setter
    def response(self, response):
        if PyGen_CheckExact(response):
            raise WorkInSlices
        self.given = response if self.amend is None else self.amend(response)
        self.parts = None

    def changed(self):
        """The response is the same object, and says something else."""
        self.parts = None

    @property
    def principal(self):
        """Who asks; everybody is anonymous until connections are authenticated."""
        state = self.connection.state
        if state is not None:
            return state.principal
        from pykafkad.pure.authorization import ANONYMOUS

        return ANONYMOUS

    @property
    def listener_name(self):
        """Of the listener that the connection came in by."""
        return self.connection.listener.owner.name

    def throttle(self, int delay_ms):
        """The client has exceeded a quota: its answer says for how long it should wait, and its connection begins no
        request until then. Of several quotas the one that takes longest counts."""
        if delay_ms > self.throttle_ms:
            self.throttle_ms = delay_ms
            self.parts = None
            self.connection.mute(delay_ms)

    def defer(self):
        if self.ticket is None:
            self.ticket = self.connection.defer()
        return self

    def answer(self, response):
        self.response = response
        self.ticket.answer(self)

    def hold(self):
        """At the end of the pass in which the answer was given: it may be changed, and is encoded, with release()."""
        self.held = self.connection.defer()

    def release(self):
        held, self.held = self.held, None
        held.answer(self)

    def weigh(self):
        """The bytes that the answer takes in memory, as far as that is known without holding the loop for long."""
        try:
            if self.parts is None:
                self.parts = self.written(WRITTEN_IN_A_TURN)
        except LargeMessage:
            return TURN_BYTES
        return weight_of(self.parts)

    def encode(self):
        if self.held is not None:
            return self.held
        if self.watcher is not None:
            watcher, self.watcher = self.watcher, None
            watcher(self)
        parts, self.parts = self.parts, None
        if parts is not None:
            return parts
        try:
            return self.written(WRITTEN_IN_A_TURN)
        except LargeMessage:
            return self.route.write_large(self)

    def encode_large(self):
        """The same for another thread: the loop goes on beside it."""
        return self.written(WRITTEN_APART)

    cdef object written(self, Budget budget):
        if self.throttle_ms and hasattr(self.given, "throttle_time_ms"):
            self.given.throttle_time_ms = self.throttle_ms
        refuse, self.refuse = self.refuse, None  # it may know this exchange: each would keep the other
        try:
            return frame_within(budget, self.given, self.version, self.correlation_id, self.flexible_header)
        except LargeMessage:
            self.refuse = refuse  # it is written again, by a thread
            raise
        except WireError:
            if refuse is None:
                raise
            from pykafkad.errors import UNKNOWN_SERVER_ERROR, KafkaError

            refused = refuse(KafkaError(UNKNOWN_SERVER_ERROR))
            return frame_within(budget, refused, self.version, self.correlation_id, self.flexible_header)


cdef Py_ssize_t weight_of(parts) except -1:
    cdef Py_ssize_t total = 0
    if type(parts) is bytes:
        return len(<bytes>parts)
    for part in <list>parts:
        if type(part) is bytes:
            total += len(<bytes>part)
    return total
