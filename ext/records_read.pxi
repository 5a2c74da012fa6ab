# The consumer's view: Record, read, search. Part of records.pyx.


cdef Py_ssize_t NO_LIMIT = INT32_MAX  # no record is longer


cdef class Record:
    """One record. `control_type`: of a control batch's record (0 abort, 1 commit, 2 leader change...), else None."""
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly list headers
    cdef readonly object control_type

    def __init__(self, int64_t offset, int64_t timestamp, bytes key, bytes value, list headers):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return (self.offset, self.timestamp, self.key, self.value, self.headers, self.control_type) == (
            other.offset, other.timestamp, other.key, other.value, other.headers, other.control_type)

    def __repr__(self):
        return (f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
                f"headers={self.headers!r}, control_type={self.control_type!r})")


def read(buffer, bint check_crc=True):
    """All records of all whole batches in `buffer`, decompressed. RecordsError where Kafka's consumer would fail."""
    return all_records(buffer, check_crc, False)


def read_in_slices(buffer, Py_ssize_t longest=NO_LIMIT, bint with_headers=True):
    """The same, with checksums that are known to be right. None comes before each piece of a batch: a record may take
    many of them. Of a record of more than `longest` bytes only the offset comes."""
    return all_records(buffer, False, True, longest, with_headers)


def all_records(buffer, bint check_crc, bint pauses, Py_ssize_t longest=NO_LIMIT, bint with_headers=True):
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef bytes data
    cdef const uint8_t *at
    view = memoryview(buffer)
    cdef Py_ssize_t position = 0, total = len(view)
    while True:
        head = bytes(view[position:position + 17])
        data = head
        at = data
        status = framed(at, len(head), total - position, &size, &magic)
        if status == BATCH_END:
            return
        if status != BATCH_OK:
            raise failure(status, position)
        data = bytes(view[position:position + size])
        at = data
        if check_crc and not crc_fits(at, size, magic):
            raise failure(BATCH_BAD_CRC, position)
        if magic == 2:
            yield from batch_records(data, pauses, longest, with_headers)
        else:
            yield from legacy_module().read(data)
        position += size


cdef int framed(const uint8_t *head, Py_ssize_t head_size, Py_ssize_t left, int32_t *size, int8_t *magic) noexcept:
    """batch_next, when only the first bytes are at hand: it looks no further than them."""
    return batch_next(head, left if head_size == 17 else head_size, size, magic)


def batch_records(bytes data not None, bint pauses=False, Py_ssize_t longest=NO_LIMIT,
                  bint with_headers=True):
    """The records of one batch of format 2."""
    cdef batch_header header
    cdef record_view record
    cdef int32_t seen = 0
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int status
    cdef bytes piece
    cdef int64_t skipped = 0  # bytes to come of a record that is too long
    batch_read_header(data, <int32_t>len(data), &header)
    cdef int codec = header.attributes & CODEC_MASK
    if len(data) < BATCH_OVERHEAD:
        raise failure(BATCH_HEADER_CUT, 0)
    if header.count == 0:
        return
    if codec >= CODEC_COUNT:
        raise failure(BATCH_BAD_CODEC, 0)
    if header.count < 0:
        raise failure(RECORDS_NEGATIVE_COUNT, 0)
    rest = bytearray()  # a record that has been begun: it grows in place, however many pieces it takes
    for piece in Pieces(codec, memoryview(data)[BATCH_OVERHEAD:]):
        if pauses:
            yield None
        if skipped:
            skipped -= len(piece)
            if skipped >= 0:
                continue
            piece = piece[len(piece) + skipped:]
            skipped = 0
        if rest:
            rest += piece
            if seen < header.count and begun_record_goes_on(rest):
                at = <const uint8_t *><char *>rest
                skipped = beyond(at, at + len(rest), longest, &record)
                if skipped:
                    rest.clear()
                    seen += 1
                    yield offset_alone(&header, &record)
                continue
            piece = bytes(rest)
            rest.clear()
        at = piece
        end = at + len(piece)
        while seen < header.count:
            status = record_read(at, end, &record)
            if status == RECORDS_NEED_MORE:
                skipped = beyond(at, end, longest, &record)
                if skipped:
                    at = end
                    seen += 1
                    yield offset_alone(&header, &record)
                break
            if status != RECORDS_OK:
                raise failure(record_failure(status, at, end, codec != 0), 0)
            if record.end - at > longest:
                yield offset_alone(&header, &record)
            else:
                yield make_record(&header, &record, with_headers)
            seen += 1
            at = record.end
        if seen == header.count and at != end:
            raise failure(RECORDS_REMAINING, 0)
        rest += PyBytes_FromStringAndSize(<char *>at, end - at)
    if seen < header.count or skipped:
        raise failure(RECORDS_PREMATURE_END, 0)


cdef int64_t beyond(const uint8_t *at, const uint8_t *end, Py_ssize_t longest, record_view *record) noexcept:
    """How many bytes of the record that begins there come after `end`, if it is longer than wanted; else 0. Its offset is
    read."""
    cdef int64_t size = record_head(at, end, record)
    return size - (end - at) if size > longest else 0


cdef Record offset_alone(const batch_header *header, const record_view *view):
    return Record(record_offset(header, view), 0, None, None, [])


cdef bint begun_record_goes_on(bytearray data) except -1:
    """The record that begins there does not end there."""
    cdef record_view record
    cdef const uint8_t *at = <const uint8_t *><char *>data
    return record_read(at, at + len(data), &record) == RECORDS_NEED_MORE


def search(buffer, int64_t timestamp, int64_t start_offset, bint exactly=False):
    """Work (pykafkad.slices) that finds the first record of a batch, from an offset on, with this timestamp or (unless
    `exactly`) a later one: (offset, timestamp), or None. It yields what its codec keeps (pykafkad.unfolding); nothing of
    the records is kept. RecordsError as from `read`."""
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef bytes data = bytes(buffer)
    cdef record_stream reader
    cdef record_view record
    cdef batch_header header
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int64_t offset, found
    cdef int status
    cdef int32_t seen = 0
    cdef bytes piece
    status = batch_next(data, len(data), &size, &magic)
    if status != BATCH_OK:
        raise failure(status, 0)
    if not crc_fits(data, size, magic):
        raise failure(BATCH_BAD_CRC, 0)
    if magic < 2:
        return (yield from legacy_module().search(data[:size], timestamp, start_offset, exactly))
    batch_read_header(data, size, &header)
    check(batch_readable(&header))
    record_stream_begin(&reader, header.count, True)
    pieces = Pieces(header.attributes & CODEC_MASK, memoryview(data)[BATCH_OVERHEAD:size])
    for piece in chunks(pieces):
        yield pieces.kept
        at = piece
        end = at + len(<bytes>piece)
        while at < end:
            if seen == header.count:
                raise failure(RECORDS_REMAINING, 0)
            status = record_stream_next(&reader, &at, end, &record)
            if status == RECORDS_NEED_MORE:
                break
            if status != RECORDS_OK:
                raise failure(status, 0)
            seen += 1
            offset = record_offset(&header, &record)
            found = record_time(&header, &record)
            if offset >= start_offset and (found == timestamp if exactly else found >= timestamp):
                return offset, found
    if seen < header.count:
        raise failure(RECORDS_PREMATURE_END, 0)
    return None


def chunks(pieces):
    """The same bytes, none of them more than a step's."""
    for piece in pieces:
        if len(piece) <= STEP_BYTES:
            yield piece
        else:
            for start in range(0, len(piece), STEP_BYTES):
                yield bytes(piece[start:start + STEP_BYTES])


cdef int batch_readable(const batch_header *header) noexcept:
    if header.size < BATCH_OVERHEAD:
        return BATCH_HEADER_CUT
    if header.count and header.attributes & CODEC_MASK >= CODEC_COUNT:
        return BATCH_BAD_CODEC
    return RECORDS_NEGATIVE_COUNT if header.count < 0 else BATCH_OK


cdef inline int64_t record_offset(const batch_header *header, const record_view *view) noexcept:
    return <int64_t>(<uint64_t>header.base_offset + <uint64_t><int64_t>view.offset_delta)


cdef inline int64_t record_time(const batch_header *header, const record_view *view) noexcept:
    if header.attributes & APPEND_TIME_FLAG:
        return header.max_timestamp
    return <int64_t>(<uint64_t>header.base_timestamp + <uint64_t>view.timestamp_delta)


cdef Record make_record(const batch_header *header, const record_view *view, bint with_headers):
    cdef Record record = Record.__new__(Record)
    record.offset = record_offset(header, view)
    record.timestamp = record_time(header, view)
    record.key = nullable(view.key, view.key_size)
    record.value = nullable(view.value, view.value_size)
    record.headers = make_headers(view) if with_headers else []
    if header.attributes & CONTROL_FLAG:
        record.control_type = control_type(record.key)
    return record


cdef bytes nullable(const uint8_t *data, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<char *>data, size)


cdef list make_headers(const record_view *view):
    cdef header_view header
    cdef const uint8_t *at = view.headers
    found = []
    for _ in range(view.header_count):
        at = record_read_header(at, view.end, &header)
        key = nullable(header.key, header.key_size).decode("utf-8", "replace")
        found.append((key, nullable(header.value, header.value_size)))
    return found


cdef object control_type(bytes key):
    """A control record's key: int16 version, int16 type."""
    if key is None or len(key) < 4:
        raise RecordsError(errors.INVALID_RECORD, detail="the key of a control record is too short")
    if <int16_t>load_16(key) < 0:
        raise RecordsError(errors.INVALID_RECORD, detail="invalid version of a control record")
    return <int16_t>load_16(<const uint8_t *>key + 2)
