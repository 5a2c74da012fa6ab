# One request under way and the promise of its answer. In C because there is one for every request: it costs a
# seventh of the same class in Python.


cdef class Route


cdef class Exchange:
    """What the answer to a request must carry, and the way to give it.

    A handler returns its response, and the dispatcher puts it here; the loop calls encode() after what the pass
    appended is on disk, so until then a response may still be changed. Or a handler keeps the answer's place with
    defer(), returns that, and calls answer() later, once.
    """

    cdef readonly object connection
    cdef readonly Route route  # None: nothing serves this API key
    cdef readonly int api_key
    cdef readonly int version
    cdef readonly int correlation_id
    cdef readonly object client_id
    cdef public object response
    cdef readonly object ticket
    cdef object held  # a ticket of its own: the answer is given, and waits all the same
    cdef bint flexible_header

    def defer(self):
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

    def encode(self):
        if self.held is not None:
            return self.held
        return frame(self.response, self.version, self.correlation_id, self.flexible_header)
