# Bytes to objects: a walk along the plan with a bounded cursor.
#
# Verdicts are Kafka's: a length below zero is a null, a bool is any byte but 0, malformed UTF-8 becomes U+FFFD, the
# size before a known tagged field is not compared with what the field takes, a negative count of tags is none, of
# several equal tags the last one counts, and bytes after the message are not looked at.
# Memory: an array is made only when the bytes left could hold its elements, and a message has a budget of elements
# (`left`): one of many holds the interpreter for long, so the loop reads it with a small budget (LargeMessage beyond), and
# a thread with that of MESSAGE_ELEMENTS_MAX, letting others have the interpreter again and again.

cdef enum:
    TEXT_SLOTS = 1024
    LONGEST_KEPT_TEXT = 64

cdef PyObject* recent_texts[TEXT_SLOTS]  # ASCII only; names come again and again, and equal objects compare fast

cdef struct Source:
    wire_cursor cursor
    Py_buffer view
    PyObject* buffer  # borrowed
    PyObject* whole   # a memoryview of it, once a records field wanted one
    Budget budget


cdef object decode_message(StructType info, PyObject* buffer, int version, Py_ssize_t start, end, Py_ssize_t* stop,
                           Budget budget):
    cdef Plan* plan = plan_of(info, version)
    cdef Source source
    cdef Py_ssize_t last
    cdef PyObject* made = NULL
    source.buffer = buffer
    source.whole = NULL
    source.budget = budget
    PyObject_GetBuffer(buffer, &source.view, PyBUF_SIMPLE)
    try:
        last = source.view.len if end is None else end
        if start < 0 or last > source.view.len or start > last:
            raise WireError(f"{info.name}: bytes {start} to {last} of a buffer of {source.view.len}")
        source.cursor.at = <const uint8_t*>source.view.buf + start
        source.cursor.end = <const uint8_t*>source.view.buf + last
        made = decode_struct(plan, &source)
        if stop != NULL:
            stop[0] = source.cursor.at - <const uint8_t*>source.view.buf
    finally:
        Py_XDECREF(source.whole)
        PyBuffer_Release(&source.view)
    result = <object>made
    Py_DECREF(made)
    return result


cdef PyObject* decode_struct(Plan* plan, Source* source) except NULL:
    cdef PyObject* made = new_struct(plan.type)
    cdef PyObject** slots = slots_of(made)
    cdef Py_ssize_t index
    try:
        for index in range(plan.count):
            slots[plan.ops[index].slot] = decode_value(&plan.ops[index], source)
        if plan.flexible:
            decode_tags(plan, slots, source)
        if plan.count < plan.slot_count:
            fill_empty_slots(type_of(made), made)
    except BaseException:
        Py_DECREF(made)
        raise
    return made


cdef inline PyObject* decode_value(Op* op, Source* source) except NULL:
    cdef wire_cursor* cursor = &source.cursor
    cdef int64_t number = 0
    cdef double real = 0
    cdef int kind = op.kind
    if kind == K_INT32:
        if wire_get_i32(cursor, &number):
            short(op, 4, cursor)
        return PyLong_FromLong(number)
    elif kind == K_INT64:
        if wire_get_i64(cursor, &number):
            short(op, 8, cursor)
        return PyLong_FromLongLong(number)
    elif kind == K_STRING:
        return decode_string(op, cursor)
    elif kind == K_ARRAY:
        return decode_array(op, source)
    elif kind == K_STRUCT:
        return decode_nested(op, source)
    elif kind == K_INT16:
        if wire_get_i16(cursor, &number):
            short(op, 2, cursor)
        return PyLong_FromLong(number)
    elif kind == K_RECORDS:
        return decode_records(op, source)
    elif kind == K_INT8:
        if wire_get_i8(cursor, &number):
            short(op, 1, cursor)
        return PyLong_FromLong(number)
    elif kind == K_BOOL:
        if wire_get_i8(cursor, &number):
            short(op, 1, cursor)
        return shared(Py_True if number else Py_False)
    elif kind == K_UUID:
        return decode_fixed_bytes(op, 16, cursor)
    elif kind == K_BYTES:
        return decode_bytes(op, source)
    elif kind == K_UINT16:
        if wire_get_u16(cursor, &number):
            short(op, 2, cursor)
        return PyLong_FromLong(number)
    elif kind == K_UINT32:
        if wire_get_u32(cursor, &number):
            short(op, 4, cursor)
        return PyLong_FromLongLong(number)
    elif kind == K_CONSTANT:
        return decode_constant(op, cursor)
    else:
        if wire_get_f64(cursor, &real):
            short(op, 8, cursor)
        return PyFloat_FromDouble(real)


cdef inline PyObject* shared(PyObject* value) noexcept:
    Py_INCREF(value)
    return value


cdef int short(Op* op, Py_ssize_t wanted, wire_cursor* cursor) except -1:
    raise WireError(f"{<object>op.label}: {wanted} bytes wanted, {wire_left(cursor)} left")


cdef PyObject* null(Op* op) except NULL:
    if not op.nullable:
        raise WireError(f"{<object>op.label}: a null where none is allowed")
    return shared(Py_None)


cdef int read_length(Op* op, wire_cursor* cursor, int64_t* length) except -1:
    """The length of bytes, records or an array."""
    if wire_get_compact_length(cursor, length) if op.compact else wire_get_i32(cursor, length):
        raise WireError(f"{<object>op.label}: no whole length in the {wire_left(cursor)} bytes left")
    return 0


cdef PyObject* decode_string(Op* op, wire_cursor* cursor) except NULL:
    cdef int64_t length = 0
    if wire_get_compact_length(cursor, &length) if op.compact else wire_get_i16(cursor, &length):
        raise WireError(f"{<object>op.label}: no whole length in the {wire_left(cursor)} bytes left")
    if length < 0:
        return null(op)
    if length > 0x7fff:
        raise WireError(f"{<object>op.label}: a string of {length} bytes; 32767 is the most")
    if <size_t>length > wire_left(cursor):
        short(op, length, cursor)
    cursor.at += length
    return text_of(cursor.at - length, length)


cdef PyObject* text_of(const uint8_t* start, Py_ssize_t length) except NULL:
    cdef size_t slot
    cdef PyObject* known
    if length > LONGEST_KEPT_TEXT:
        return new_text(start, length)
    slot = wire_text_slot(start, length, TEXT_SLOTS)
    known = recent_texts[slot]
    if (known != NULL and PyUnicode_GET_LENGTH(known) == length
            and memcmp(PyUnicode_1BYTE_DATA(known), start, length) == 0):
        return shared(known)
    cdef PyObject* made = new_text(start, length)
    if PyUnicode_IS_ASCII(made):
        recent_texts[slot] = shared(made)
        Py_XDECREF(known)
    return made


cdef PyObject* new_text(const uint8_t* start, Py_ssize_t length) except NULL:
    cdef PyObject* made = PyUnicode_DecodeUTF8(<const char*>start, length, NULL)
    if made == NULL:
        PyErr_Clear()
        made = lenient_text(start, length)
    return made


cdef PyObject* lenient_text(const uint8_t* start, Py_ssize_t length) except NULL:
    """Malformed UTF-8 as Java reads it (wire_text.h)."""
    cdef char* mended = <char*>PyObject_Malloc(WIRE_MENDED_MOST * length)
    if mended == NULL:
        return PyErr_NoMemory()
    try:
        return PyUnicode_DecodeUTF8(mended, wire_mend_text(start, length, <uint8_t*>mended), NULL)
    finally:
        PyObject_Free(mended)


cdef PyObject* decode_fixed_bytes(Op* op, Py_ssize_t length, wire_cursor* cursor) except NULL:
    if <size_t>length > wire_left(cursor):
        short(op, length, cursor)
    cursor.at += length
    return PyBytes_FromStringAndSize(<const char*>cursor.at - length, length)


cdef PyObject* decode_constant(Op* op, wire_cursor* cursor) except NULL:
    if not skip_constant(op, cursor):
        raise WireError(f"{<object>op.label}: not {<object>op.fallback.value}")
    return shared(op.fallback.value)


cdef inline bint skip_constant(Op* op, wire_cursor* cursor) noexcept:
    if <size_t>op.min_size > wire_left(cursor):
        return False
    cursor.at += op.min_size
    return memcmp(cursor.at - op.min_size, PyBytes_AS_STRING(op.fallback.value), op.min_size) == 0


cdef bint fits(Plan* plan, wire_cursor cursor) noexcept:
    """The struct that begins here has no tagged fields, and can be decoded: for plans of plain fields, at the price of
    a look at each length. (Of other plans it says that they do not fit.)"""
    cdef Py_ssize_t index
    for index in range(plan.count):
        if not skip_plain(&plan.ops[index], &cursor):
            return False
    return not plan.flexible or (wire_left(&cursor) > 0 and cursor.at[0] == 0)


cdef bint skip_plain(Op* op, wire_cursor* cursor) noexcept:
    cdef int64_t length = 0
    cdef int kind = op.kind
    if kind == K_CONSTANT:
        return skip_constant(op, cursor)
    if kind == K_STRING or kind == K_RECORDS:
        if op.compact:
            if wire_get_compact_length(cursor, &length):
                return False
        elif wire_get_i16(cursor, &length) if kind == K_STRING else wire_get_i32(cursor, &length):
            return False
        if length < 0:
            return op.nullable
        if kind == K_STRING and length > 0x7fff:
            return False
    elif kind == K_STRUCT or kind == K_ARRAY or kind == K_BYTES:
        return False
    else:
        length = op.min_size
    if <size_t>length > wire_left(cursor):
        return False
    cursor.at += length
    return True


cdef PyObject* decode_bytes(Op* op, Source* source) except NULL:
    cdef int64_t length = 0
    read_length(op, &source.cursor, &length)
    if length < 0:
        return null(op)
    spend(&source.budget, length // BYTES_AN_ELEMENT)
    return decode_fixed_bytes(op, length, &source.cursor)


cdef PyObject* decode_records(Op* op, Source* source) except NULL:
    cdef int64_t length = 0
    read_length(op, &source.cursor, &length)
    if length < 0:
        return null(op)
    if <size_t>length > wire_left(&source.cursor):
        short(op, length, &source.cursor)
    source.cursor.at += length
    return slice_of(source, source.cursor.at - length - <const uint8_t*>source.view.buf, length)


cdef PyObject* slice_of(Source* source, Py_ssize_t offset, Py_ssize_t length) except NULL:
    """buffer[offset:offset + length] as a memoryview that keeps the buffer, without building slice objects."""
    cdef PyObject* part
    cdef Py_buffer* view
    if source.whole == NULL:
        whole = memoryview(<object>source.buffer)
        if whole.format != "B" or whole.ndim != 1:
            whole = whole.cast("B")
        source.whole = shared(<PyObject*>whole)
    part = PyMemoryView_FromObject(source.whole)
    view = PyMemoryView_GET_BUFFER(part)
    view.buf = <char*>view.buf + offset
    view.len = length
    view.shape[0] = length
    return part


cdef PyObject* decode_nested(Op* op, Source* source) except NULL:
    """A struct; where it may be null, a byte below zero says so, in a tagged field a varint of zero."""
    cdef int64_t mark = 0
    cdef uint32_t raw = 0
    if op.nullable and op.tag < 0:
        if wire_get_i8(&source.cursor, &mark):
            short(op, 1, &source.cursor)
        if mark < 0:
            return null(op)
    elif op.nullable:
        if wire_get_uvarint(&source.cursor, &raw):
            short(op, 1, &source.cursor)
        if <int32_t>raw <= 0:
            return null(op)
    return decode_struct(op.plan, source)


cdef PyObject* decode_array(Op* op, Source* source) except NULL:
    cdef int64_t count = 0
    cdef Py_ssize_t index, least = op.element.min_size
    cdef PyObject* made
    read_length(op, &source.cursor, &count)
    if count < 0:
        return null(op)
    if <size_t>count > wire_left(&source.cursor) // <size_t>(least if least else 1):
        raise WireError(
            f"{<object>op.label}: {count} elements in {wire_left(&source.cursor)} bytes")
    spend(&source.budget, count)
    made = PyList_New(count)
    try:
        for index in range(count):
            PyList_SET_ITEM(made, index, decode_value(op.element, source))
            if source.budget.breath:
                breathe(&source.budget)
    except BaseException:
        Py_DECREF(made)
        raise
    return made


cdef int decode_tags(Plan* plan, PyObject** slots, Source* source) except -1:
    cdef uint32_t count = 0, tag = 0, size = 0, index
    cdef Py_ssize_t known
    if wire_get_uvarint(&source.cursor, &count):
        raise WireError(f"{<object>plan.name}: no whole count of tagged fields")
    if count == 0 or count > 0x7fffffff:
        return 0
    for index in range(count):
        spend(&source.budget, 1)
        if wire_get_uvarint(&source.cursor, &tag) or wire_get_uvarint(&source.cursor, &size):
            raise WireError(f"{<object>plan.name}: a tagged field cut short")
        for known in range(plan.tagged_count):
            if plan.tagged[known].tag == <int64_t>tag:
                put_value(slots, &plan.tagged[known], source)
                break
        else:
            refuse_misplaced(plan, tag)
            put_unknown(plan, slots, tag, size, &source.cursor)
    return 0


cdef int refuse_misplaced(Plan* plan, uint32_t tag) except -1:
    """A tag that means something in other versions is not unknown."""
    cdef Py_ssize_t index
    for index in range(plan.misplaced_count):
        if plan.misplaced[index] == <int64_t>tag:
            raise WireError(f"{<object>plan.name}: tag {tag} is of other versions")
    return 0


cdef int put_value(PyObject** slots, Op* op, Source* source) except -1:
    cdef PyObject* before = slots[op.slot]
    slots[op.slot] = decode_value(op, source)
    Py_XDECREF(before)
    return 0


cdef int put_unknown(Plan* plan, PyObject** slots, uint32_t tag, uint32_t size, wire_cursor* cursor) except -1:
    cdef Py_ssize_t slot = plan.slot_count - 1
    if size > wire_left(cursor):
        raise WireError(f"{<object>plan.name}: tag {tag} of {size} bytes, {wire_left(cursor)} left")
    if slots[slot] == NULL:
        tags = {}
        slots[slot] = shared(<PyObject*>tags)
    (<dict>slots[slot])[tag] = cursor.at[:size]
    cursor.at += size
    return 0
