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
include "wire_decode.pxi"
include "wire_encode.pxi"


def frame(Struct message not None, int version, int correlation_id, bint flexible_header):
    """An answer with its size and header. File ranges in records fields make it a list of bytes and ranges."""
    cdef Sink sink
    open_sink(&sink, True)
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


cdef enum:
    API_KEYS = 256


cdef class HeaderReader:
    """Reads request headers: v2, with tagged fields, from the version on where an API became flexible, v1 below."""
    cdef int flexible_since[API_KEYS]  # -1: not an API

    def __cinit__(self, dict flexible_since):
        cdef int key
        for key in range(API_KEYS):
            self.flexible_since[key] = -1
        for api_key, first in flexible_since.items():
            if not 0 <= api_key < API_KEYS:
                raise ValueError(f"{api_key} is no API key")
            self.flexible_since[<int>api_key] = first

    def read(self, buffer, Py_ssize_t start, Py_ssize_t end):
        """(api_key, version, correlation_id, client_id, where the body starts).

        An API key that is not in the dict: client_id None and -1. A null client id is read as "", as Kafka does.
        """
        cdef Py_buffer view
        cdef wire_cursor cursor
        PyObject_GetBuffer(<PyObject*>buffer, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or end > view.len or start > end:
                raise WireError(f"request header: bytes {start} to {end} of a buffer of {view.len}")
            cursor.at = <const uint8_t*>view.buf + start
            cursor.end = <const uint8_t*>view.buf + end
            return self.fields(&cursor, <const uint8_t*>view.buf)
        finally:
            PyBuffer_Release(&view)

    cdef tuple fields(self, wire_cursor* cursor, const uint8_t* origin):
        cdef int64_t key = 0, version = 0, correlation_id = 0, length = 0
        cdef int first
        if wire_get_i16(cursor, &key) or wire_get_i16(cursor, &version) or wire_get_i32(cursor, &correlation_id):
            raise WireError(f"a request header cut short, {wire_left(cursor)} bytes left")
        first = self.flexible_since[key] if 0 <= key < API_KEYS else -1
        if first < 0:
            return (key, version, correlation_id, None, -1)
        if wire_get_i16(cursor, &length) or length > <int64_t>wire_left(cursor):
            raise WireError(f"a request header with its client id cut short, {wire_left(cursor)} bytes left")
        if length < 0:
            length = 0
        cursor.at += length
        cdef PyObject* client_id = text_of(cursor.at - length, length)
        text = <object>client_id
        Py_DECREF(client_id)
        if version >= first:
            skip_tags(cursor)
        return (key, version, correlation_id, text, cursor.at - origin)


cdef int skip_tags(wire_cursor* cursor) except -1:
    cdef uint32_t count = 0, tag = 0, size = 0
    if wire_get_uvarint(cursor, &count):
        raise WireError("a request header without a whole count of tagged fields")
    if count > 0x7fffffff:
        return 0
    while count:
        if wire_get_uvarint(cursor, &tag) or wire_get_uvarint(cursor, &size) or size > wire_left(cursor):
            raise WireError(f"a tagged field of a request header cut short, {wire_left(cursor)} bytes left")
        cursor.at += size
        count -= 1
    return 0


include "wire_exchange.pxi"
