# Objects to bytes: a walk along the plan into one growing buffer.
#
# A field that the version has not must hold its default unless it is ignorable; tagged fields at their default are
# left out; unknown tags are written among the known ones in the order of tags. What a thread writes (a budget that
# breathes) may be no more than ANSWER_BYTES, and whoever gave it to the thread changes it no more.

cdef enum:
    LARGEST_KEPT_BUFFER = 1 << 20
    TURN_BYTES = 4 << 20       # written in one go
    ANSWER_BYTES = 100 << 20   # of an answer, file ranges aside

cdef struct Sink:
    wire_out out
    bint takes_ranges  # a records value may be a file range
    PyObject* ranges   # owned list of where, range, where, range ...; NULL: none so far
    int64_t range_bytes
    Budget budget

cdef wire_out spare  # the buffer of the last encoding; taken out while in use


cdef inline void open_sink(Sink* sink, bint takes_ranges) noexcept:
    global spare
    sink.out = spare
    sink.out.length = 0
    sink.takes_ranges = takes_ranges
    sink.ranges = NULL
    sink.range_bytes = 0
    sink.budget = UNLIMITED
    spare.data = NULL
    spare.capacity = 0


cdef inline void close_sink(Sink* sink) noexcept:
    global spare
    Py_XDECREF(sink.ranges)
    if spare.data == NULL and sink.out.capacity <= LARGEST_KEPT_BUFFER:
        spare = sink.out
    else:
        wire_release(&sink.out)


cdef bytes encode_message(PyObject* message, int version):
    cdef Sink sink
    open_sink(&sink, False)
    try:
        encode_struct(plan_of(type_of(message), version), message, &sink)
        return sink.out.data[:sink.out.length]
    finally:
        close_sink(&sink)


cdef int encode_struct(Plan* plan, PyObject* value, Sink* sink) except -1:
    cdef Py_ssize_t index
    cdef Op* op
    cdef PyObject** slots
    if Py_TYPE(value) != plan.type:
        raise WireError(f"{<object>plan.name} wanted, not {type(<object>value).__name__}")
    slots = slots_of(value)
    for index in range(plan.absent_count):
        op = &plan.absent[index]
        if not is_default(&op.fallback, slots[op.slot]):
            raise WireError(f"{<object>op.label}: set, but this version has no such field")
    for index in range(plan.count):
        op = &plan.ops[index]
        encode_value(op, slots[op.slot], sink)
    if plan.flexible:
        return encode_tags(plan, slots, sink)
    if not no_tags(slots[plan.slot_count - 1]):
        raise WireError(f"{<object>plan.name}: tagged fields are set, but this version has none")
    return 0


cdef bint is_default(Default* fallback, PyObject* value) except -1:
    if value == NULL:
        return True
    if fallback.kind == D_SHARED:
        if value == fallback.value:
            return True
        if value == Py_None or fallback.value == Py_None:
            return False
        return <object>value == <object>fallback.value
    if value == Py_None:
        return False
    if fallback.kind == D_LIST:
        return not <object>value
    return all_defaults(<StructType>fallback.value, value)


cdef bint all_defaults(StructType info, PyObject* value) except -1:
    cdef Py_ssize_t index
    if Py_TYPE(value) != info.type:
        return False
    for index in range(info.slot_count - 1):
        if not is_default(&info.defaults[index], slots_of(value)[index]):
            return False
    return no_tags(slots_of(value)[info.slot_count - 1])


cdef inline bint no_tags(PyObject* unknown) except -1:
    return unknown == NULL or unknown == Py_None or not <object>unknown


cdef inline int check(int status) except -1:
    if status:
        raise MemoryError
    return 0


cdef inline int encode_value(Op* op, PyObject* value, Sink* sink) except -1:
    cdef wire_out* out = &sink.out
    cdef int kind = op.kind
    if value == NULL:
        raise WireError(f"{<object>op.label}: deleted")
    if kind == K_INT32:
        return check(wire_put_i32(out, number_of(op, value, -0x80000000, 0x7fffffff)))
    elif kind == K_INT64:
        return check(wire_put_i64(out, number_of(op, value, INT64_LEAST, INT64_MOST)))
    elif kind == K_STRING:
        return encode_string(op, value, out)
    elif kind == K_ARRAY:
        return encode_array(op, value, sink)
    elif kind == K_STRUCT:
        return encode_nested(op, value, sink)
    elif kind == K_INT16:
        return check(wire_put_i16(out, number_of(op, value, -0x8000, 0x7fff)))
    elif kind == K_RECORDS:
        return encode_records(op, value, sink)
    elif kind == K_INT8:
        return check(wire_put_i8(out, number_of(op, value, -0x80, 0x7f)))
    elif kind == K_BOOL:
        return check(wire_put_i8(out, truth_of(op, value)))
    elif kind == K_UUID:
        return encode_uuid(op, value, out)
    elif kind == K_BYTES:
        return encode_bytes(op, value, out)
    elif kind == K_CONSTANT:
        return check(wire_put_bytes(out, PyBytes_AS_STRING(op.fallback.value), op.min_size))
    elif kind == K_UINT16:
        return check(wire_put_i16(out, number_of(op, value, 0, 0xffff)))
    elif kind == K_UINT32:
        return check(wire_put_i32(out, number_of(op, value, 0, 0xffffffff)))
    else:
        return check(wire_put_f64(out, real_of(op, value)))


cdef inline int64_t number_of(Op* op, PyObject* value, int64_t least, int64_t most) except? -1:
    cdef int overflow = 0
    cdef int64_t number
    if not PyLong_Check(value):
        unfit(op, value, "an integer")
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < least or number > most:
        raise WireError(f"{<object>op.label}: {<object>value} is not between {least} and {most}")
    return number


cdef int unfit(Op* op, PyObject* value, str wanted) except -1:
    raise WireError(f"{<object>op.label}: {wanted} wanted, not {type(<object>value).__name__}")


cdef int truth_of(Op* op, PyObject* value) except -1:
    if value == Py_True:
        return 1
    if value == Py_False:
        return 0
    return unfit(op, value, "a bool")


cdef double real_of(Op* op, PyObject* value) except? -1:
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    return <double>number_of(op, value, -(1 << 53), 1 << 53)


cdef int put_length(Op* op, Py_ssize_t length, wire_out* out) except -1:
    """The length of bytes, records or an array; -1 for a null."""
    if length > 0x7ffffffe:
        raise WireError(f"{<object>op.label}: {length} is too long")
    if op.compact:
        return check(wire_put_uvarint(out, <uint32_t>(length + 1)))
    return check(wire_put_i32(out, length))


cdef int put_null(Op* op, wire_out* out) except -1:
    if not op.nullable:
        raise WireError(f"{<object>op.label}: a null where none is allowed")
    return put_length(op, -1, out)


cdef int encode_string(Op* op, PyObject* value, wire_out* out) except -1:
    cdef Py_ssize_t length = 0
    cdef const char* text
    if value == Py_None:
        if op.compact or not op.nullable:
            return put_null(op, out)
        return check(wire_put_i16(out, -1))
    if not PyUnicode_Check(value):
        unfit(op, value, "a string")
    text = PyUnicode_AsUTF8AndSize(value, &length)
    if text == NULL:
        PyErr_Clear()
        raise WireError(f"{<object>op.label}: not UTF-8: {<object>value!r}")
    if length > 0x7fff:
        length = cut_message(op, text, length)
    check(wire_put_uvarint(out, <uint32_t>(length + 1)) if op.compact else wire_put_i16(out, length))
    return check(wire_put_bytes(out, text, length))


cdef Py_ssize_t cut_message(Op* op, const char* text, Py_ssize_t length) except -1:
    """How much of a string that is too long is written: of an error message what there is room for, since it repeats what
    a client sent, and the error itself matters more; of others nothing."""
    if not (<object>op.label).endswith("error_message"):
        raise WireError(f"{<object>op.label}: a string of {length} bytes; 32767 is the most")
    length = 0x7fff
    while <uint8_t>text[length] & 0xC0 == 0x80:  # in the middle of a character
        length -= 1
    return length


cdef int encode_uuid(Op* op, PyObject* value, wire_out* out) except -1:
    if not PyBytes_CheckExact(value) or PyBytes_GET_SIZE(value) != 16:
        unfit(op, value, "a uuid of 16 bytes")
    return check(wire_put_bytes(out, PyBytes_AS_STRING(value), 16))


cdef int encode_bytes(Op* op, PyObject* value, wire_out* out) except -1:
    cdef Py_buffer view
    if value == Py_None:
        return put_null(op, out)
    if PyBytes_CheckExact(value):
        put_length(op, PyBytes_GET_SIZE(value), out)
        return check(wire_put_bytes(out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)))
    if not PyObject_CheckBuffer(value):
        unfit(op, value, "bytes")
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        put_length(op, view.len, out)
        return check(wire_put_bytes(out, view.buf, view.len))
    finally:
        PyBuffer_Release(&view)


cdef int encode_records(Op* op, PyObject* value, Sink* sink) except -1:
    """Bytes, or a range of a file: then its length is written, and its place remembered."""
    if value == Py_None or PyObject_CheckBuffer(value) or not sink.takes_ranges:
        return encode_bytes(op, value, &sink.out)
    wanted = getattr(<object>value, "size", None)
    cdef int64_t size = number_of(op, <PyObject*>wanted, 0, 0x7ffffffe)
    put_length(op, size, &sink.out)
    if size == 0:
        return 0
    if sink.ranges == NULL:
        ranges = []
        sink.ranges = shared(<PyObject*>ranges)
    (<list>sink.ranges).append(sink.out.length)
    (<list>sink.ranges).append(<object>value)
    sink.range_bytes += size
    return 0


cdef int encode_nested(Op* op, PyObject* value, Sink* sink) except -1:
    if op.nullable:
        if value == Py_None:
            return check(wire_put_i8(&sink.out, -1 if op.tag < 0 else 0))
        check(wire_put_i8(&sink.out, 1))
    elif value == Py_None:
        raise WireError(f"{<object>op.label}: a null where none is allowed")
    return encode_struct(op.plan, value, sink)


cdef int encode_array(Op* op, PyObject* value, Sink* sink) except -1:
    cdef Py_ssize_t index, size
    cdef bint is_list = PyList_Check(value)
    if value == Py_None:
        return put_null(op, &sink.out)
    if not is_list and not PyTuple_Check(value):
        unfit(op, value, "a list")
    size = PyList_GET_SIZE(value) if is_list else PyTuple_GET_SIZE(value)
    put_length(op, size, &sink.out)
    spend(&sink.budget, size)
    if sink.budget.has_end:
        check_bytes(sink)
    for index in range(size):
        if sink.budget.breath:
            encode_element_apart(op, <object>value, index, sink)
        else:
            encode_value(op.element, PyList_GET_ITEM(value, index) if is_list else PyTuple_GET_ITEM(value, index), sink)
    return 0


cdef int encode_element_apart(Op* op, object elements, Py_ssize_t index, Sink* sink) except -1:
    """While others may run in between: the element is kept, and may be gone."""
    if index >= len(elements):
        raise WireError(f"{<object>op.label}: it got shorter while it was written")
    element = elements[index]
    encode_value(op.element, <PyObject*>element, sink)
    check_bytes(sink)
    breathe(&sink.budget)
    return 0


cdef inline int check_bytes(Sink* sink) except -1:
    if sink.out.length > <size_t>(ANSWER_BYTES if sink.budget.breath else TURN_BYTES):
        too_many_bytes(sink)
    return 0


cdef int too_many_bytes(Sink* sink) except -1:
    if sink.budget.breath:
        raise WireError(f"an answer of more than {ANSWER_BYTES} bytes")
    raise LargeMessage


cdef int encode_tags(Plan* plan, PyObject** slots, Sink* sink) except -1:
    cdef PyObject* unknown = slots[plan.slot_count - 1]
    cdef Py_ssize_t index
    cdef uint32_t count = 0
    cdef Op* op
    for index in range(plan.tagged_count):
        op = &plan.tagged[index]
        if not is_default(&op.fallback, slots[op.slot]):
            count += 1
    if unknown != NULL and unknown != Py_None:
        return encode_mixed_tags(plan, slots, <dict?><object>unknown, count, sink)
    check(wire_put_uvarint(&sink.out, count))
    if count:
        for index in range(plan.tagged_count):
            encode_tag(&plan.tagged[index], slots, sink)
    return 0


cdef int encode_tag(Op* op, PyObject** slots, Sink* sink) except -1:
    cdef size_t start
    if is_default(&op.fallback, slots[op.slot]):
        return 0
    check(wire_put_uvarint(&sink.out, op.tag))
    start = sink.out.length
    encode_value(op, slots[op.slot], sink)
    return check(wire_prefix_uvarint(&sink.out, start))


cdef int encode_mixed_tags(Plan* plan, PyObject** slots, dict unknown, uint32_t count, Sink* sink) except -1:
    cdef Py_ssize_t index = 0
    check(wire_put_uvarint(&sink.out, count + <uint32_t>len(unknown)))
    for tag in sorted(unknown):
        if not isinstance(tag, int) or not 0 <= tag <= 0x7fffffff:
            raise WireError(f"{<object>plan.name}: {tag!r} is no tag")
        while index < plan.tagged_count and plan.tagged[index].tag < tag:
            encode_tag(&plan.tagged[index], slots, sink)
            index += 1
        if index < plan.tagged_count and plan.tagged[index].tag == tag:
            raise WireError(f"{<object>plan.name}: tag {tag} is not unknown")
        value = bytes(unknown[tag])
        check(wire_put_uvarint(&sink.out, tag))
        check(wire_put_uvarint(&sink.out, <uint32_t>len(value)))
        check(wire_put_bytes(&sink.out, <const char*>value, len(value)))
    while index < plan.tagged_count:
        encode_tag(&plan.tagged[index], slots, sink)
        index += 1
    return 0
