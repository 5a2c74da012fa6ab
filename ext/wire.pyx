"""The wire: every version of every message, decoded into slotted objects and encoded back.

A message class is made out of its schema (define); for each version in use, a plan is compiled once and walked in C.
The parts: wire_schema (schema, fields), wire_types (classes and objects), wire_plan, wire_decode, wire_encode; here
the doors to frames: whole answers and requests, and request headers; wire_exchange, a request under way.

Invariants: no byte outside the given buffer is read; a malformed input ends in WireError; records fields are slices of
the input, valid as long as its bytes are. KIP-482 (tagged fields), KIP-511 (client id in every header).
"""
from sys import intern as intern_text

include "wire_api.pxi"


class WireError(ValueError):
    """Bytes that are not the message they should be, or a message that this version cannot hold."""


include "wire_schema.pxi"
include "wire_types.pxi"
include "wire_plan.pxi"
include "wire_text.pxi"
include "wire_budget.pxi"
include "wire_decode.pxi"
include "wire_encode.pxi"


# In version 0 its header is of before Kafka 0.9, without a client id.
cdef enum:
    CONTROLLED_SHUTDOWN = 7


def frame(Struct message not None, int version, int correlation_id, bint flexible_header):
    """An answer with its size and header. File ranges in records fields make it a list of bytes and ranges."""
    return frame_within(UNLIMITED, message, version, correlation_id, flexible_header)


cdef object frame_within(Budget budget, Struct message, int version, int correlation_id, bint flexible_header):
    cdef Sink sink
    open_sink(&sink, True)
    sink.budget = budget
    try:
        check(wire_put_i32(&sink.out, 0))
        check(wire_put_i32(&sink.out, correlation_id))
        if flexible_header:
            check(wire_put_i8(&sink.out, 0))
        encode_struct(plan_of(type_of(<PyObject*>message), version), <PyObject*>message, &sink)
        return finish_frame(&sink)
    finally:
        close_sink(&sink)


def request(Struct message not None, int version, int correlation_id, client_id):
    """A request with its size and header."""
    cdef Sink sink
    cdef StructType info = type_of(<PyObject*>message)
    cdef Plan* plan = plan_of(info, version)
    cdef Op client
    client.kind, client.compact, client.nullable, client.label = K_STRING, False, True, <PyObject*>"client_id"
    open_sink(&sink, True)
    try:
        check(wire_put_i32(&sink.out, 0))
        check(wire_put_i16(&sink.out, info.api_key))
        check(wire_put_i16(&sink.out, version))
        check(wire_put_i32(&sink.out, correlation_id))
        if not (info.api_key == CONTROLLED_SHUTDOWN and version == 0):
            encode_string(&client, <PyObject*>client_id, &sink.out)
        if plan.flexible:
            check(wire_put_i8(&sink.out, 0))
        encode_struct(plan, <PyObject*>message, &sink)
        return finish_frame(&sink)
    finally:
        close_sink(&sink)


cdef object finish_frame(Sink* sink):
    cdef int64_t total = <int64_t>sink.out.length - 4 + sink.range_bytes
    if total > 0x7fffffff:
        raise WireError(f"a frame of {total} bytes")
    wire_patch_i32(&sink.out, 0, <uint32_t>total)
    if sink.ranges == NULL:
        return sink.out.data[:sink.out.length]
    return split_at_ranges(sink, <list>sink.ranges)


cdef list split_at_ranges(Sink* sink, list ranges):
    cdef list parts = []
    cdef size_t start = 0, where
    cdef Py_ssize_t index
    for index in range(0, len(ranges), 2):
        where = ranges[index]
        if where > start:
            parts.append(sink.out.data[start:where])
        parts.append(ranges[index + 1])
        start = where
    if sink.out.length > start:
        parts.append(sink.out.data[start:sink.out.length])
    return parts


include "wire_exchange.pxi"


cdef enum:
    API_KEYS = 256
    HEADER_TAGS = 1_000  # clients send none



cdef struct Header:
    int64_t key, version, correlation_id
    PyObject* client_id  # a new reference; NULL for an unknown API key, whose layout nobody knows


cdef class Route:
    """What a request for one API becomes: which versions are read, as what, and who is called with it."""
    cdef readonly str name
    cdef readonly object handle
    cdef object write_large
    cdef readonly int min_version, max_version
    cdef int flexible_since, flexible_answers_since
    cdef StructType info
    cdef StructType short  # None: there is no short form

    def __init__(self, request, tuple versions, handle, bint old_answer_header=False, short_form=None,
                 write_large=None):
        """`request`: a message class; `old_answer_header`: answers have header v0 in all versions; `short_form`: the
        class of what is read instead where it fits the bytes (pykafkad/short_forms.py); `write_large`: called with an
        Exchange whose answer would hold the loop, gives the ticket to which its bytes will come."""
        self.info = TYPES[request]
        self.short = TYPES[short_form] if short_form is not None else None
        self.name = self.info.name.removesuffix("Request")
        self.handle = handle
        self.write_large = write_large
        self.min_version = max(<int>versions[0], self.info.min_version)
        self.max_version = versions[1]
        self.flexible_since = self.info.flexible_since
        self.flexible_answers_since = 32767 if old_answer_header else self.flexible_since


cdef class RequestReader:
    """Reads whole requests, header and body. `route_of(api_key)` gives the Route of an API, or None for what is not
    one; each is asked for when its first request comes."""
    cdef PyObject* routes[API_KEYS]  # borrowed from `kept`; NULL: not asked for
    cdef list kept
    cdef object route_of

    def __cinit__(self, route_of):
        self.route_of = route_of
        self.kept = []

    cdef PyObject* find_route(self, int64_t key) except? NULL:
        if not 0 <= key < API_KEYS:
            return NULL
        cdef Route route = self.route_of(key)
        if route is None:
            return NULL
        self.kept.append(route)
        self.routes[key] = <PyObject*>route
        return <PyObject*>route

    def read(self, connection, buffer, Py_ssize_t start, Py_ssize_t end):
        """(the Exchange, the decoded request) of buffer[start:end].

        The request is None where no route serves the API key or the version: the Exchange says what was asked; and
        where reading it would hold the loop for long, and a thread is to do it with `read_large`: `is_large`. A null client
        id is read as "", as Kafka does.
        """
        return self.read_within(READ_IN_A_TURN, connection, buffer, start, end)

    def read_large(self, connection, buffer, Py_ssize_t start, Py_ssize_t end):
        """The same for another thread: the loop goes on beside it."""
        return self.read_within(READ_APART, connection, buffer, start, end)

    cdef tuple read_within(self, Budget budget, connection, buffer, Py_ssize_t start, Py_ssize_t end):
        cdef Source source
        source.buffer = <PyObject*>buffer
        source.whole = NULL
        source.budget = budget
        PyObject_GetBuffer(<PyObject*>buffer, &source.view, PyBUF_SIMPLE)
        try:
            if start < 0 or end > source.view.len or start > end:
                raise WireError(f"a request in bytes {start} to {end} of a buffer of {source.view.len}")
            source.cursor.at = <const uint8_t*>source.view.buf + start
            source.cursor.end = <const uint8_t*>source.view.buf + end
            return self.read_request(connection, &source)
        finally:
            Py_XDECREF(source.whole)
            PyBuffer_Release(&source.view)

    cdef tuple read_request(self, connection, Source* source):
        cdef Header header
        cdef Exchange exchange = Exchange.__new__(Exchange)
        cdef PyObject* found = self.read_header(&source.cursor, &header)
        cdef PyObject* made
        cdef Route route
        exchange.connection = connection
        exchange.api_key = <int>header.key
        exchange.version = <int>header.version
        exchange.correlation_id = <int>header.correlation_id
        if found == NULL:
            return exchange, None
        exchange.client_id = <object>header.client_id
        Py_DECREF(header.client_id)
        exchange.route = route = <Route>found
        if not route.min_version <= header.version <= route.max_version:
            return exchange, None
        exchange.flexible_header = header.version >= route.flexible_answers_since
        try:
            made = decode_struct(route_plan(route, exchange.version, source.cursor), source)
        except LargeMessage:
            exchange.is_large = True
            return exchange, None
        request = <object>made
        Py_DECREF(made)
        return exchange, request

    cdef PyObject* read_header(self, wire_cursor* cursor, Header* header) except? NULL:
        """The route, or NULL for a key without one: its header is not read to the end."""
        cdef int64_t length = 0
        cdef PyObject* found
        if wire_get_i16(cursor, &header.key) or wire_get_i16(cursor, &header.version) \
                or wire_get_i32(cursor, &header.correlation_id):
            raise WireError(f"a request header cut short, {wire_left(cursor)} bytes left")
        found = self.routes[header.key] if 0 <= header.key < API_KEYS else NULL
        if found == NULL:
            found = self.find_route(header.key)
            if found == NULL:
                return NULL
        if header.key == CONTROLLED_SHUTDOWN and header.version == 0:
            header.client_id = text_of(cursor.at, 0)
            return found
        if wire_get_i16(cursor, &length) or length > <int64_t>wire_left(cursor):
            raise WireError(f"a request header with its client id cut short, {wire_left(cursor)} bytes left")
        if length < 0:
            length = 0
        cursor.at += length
        header.client_id = text_of(cursor.at - length, length)
        if header.version >= (<Route>found).flexible_since:
            try:
                skip_tags(cursor)
            except BaseException:
                Py_DECREF(header.client_id)
                raise
        return found


cdef Plan* route_plan(Route route, int version, wire_cursor body) except NULL:
    cdef Plan* plan
    if route.short is not None and route.short.min_version <= version <= route.short.max_version:
        plan = plan_of(route.short, version)
        if fits(plan, body):
            return plan
    return plan_of(route.info, version)


cdef int skip_tags(wire_cursor* cursor) except -1:
    cdef uint32_t count = 0, tag = 0, size = 0
    if wire_get_uvarint(cursor, &count):
        raise WireError("a request header without a whole count of tagged fields")
    if count > 0x7fffffff:
        return 0
    if count > HEADER_TAGS:
        raise WireError(f"a request header with {count} tagged fields")
    while count:
        if wire_get_uvarint(cursor, &tag) or wire_get_uvarint(cursor, &size) or size > wire_left(cursor):
            raise WireError(f"a tagged field of a request header cut short, {wire_left(cursor)} bytes left")
        cursor.at += size
        count -= 1
    return 0

