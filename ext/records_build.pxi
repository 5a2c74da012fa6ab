# Building batches of format 2. Part of records.pyx.


def build(records, *, int64_t base_offset=0, int32_t leader_epoch=-1, str codec="none", level=None,
          int64_t producer_id=-1, int16_t producer_epoch=-1, int32_t base_sequence=-1, bint transactional=False,
          bint control=False, int timestamp_type=0, int64_t log_append_time=-1):
    """One batch of (key, value, headers, timestamp) tuples. timestamp_type 1: log_append_time is everyone's time."""
    cdef batch_header header
    new_header(&header, codec, producer_id, producer_epoch, base_sequence, transactional)
    header.base_offset = base_offset
    header.leader_epoch = leader_epoch
    if control:
        header.attributes |= CONTROL_FLAG
    payload = encode_records(records, &header)
    if timestamp_type:
        header.attributes |= APPEND_TIME_FLAG
        header.max_timestamp = log_append_time
    return with_header(payload, &header, codec, level)


cdef int new_header(batch_header *header, str codec, int64_t producer_id, int16_t producer_epoch,
                    int32_t base_sequence, bint transactional) except -1:
    memset(header, 0, sizeof(header[0]))
    header.magic = 2
    header.leader_epoch = -1
    header.producer_id = producer_id
    header.producer_epoch = producer_epoch
    header.base_sequence = base_sequence
    header.attributes = CODECS.index(codec)
    if transactional:
        header.attributes |= TRANSACTIONAL_FLAG
    return 0


cdef bytes with_header(bytes payload, batch_header *header, str codec, level):
    """The batch of these records; the header knows their count and times."""
    if header.count == 0:
        raise ValueError("a batch needs a record")
    if codec != "none":
        compressor = compression_module().compressor(CODECS.index(codec), level)
        payload = compressor.compress(payload) + compressor.flush()
    return with_head(payload, header)


cdef bytes with_head(payload, batch_header *header):
    """The batch of these records, which are compressed if they are to be."""
    cdef const uint8_t[::1] source = payload
    header.size = BATCH_OVERHEAD + len(payload)
    header.last_offset_delta = header.count - 1
    data = PyBytes_FromStringAndSize(NULL, header.size)
    cdef uint8_t *at = <uint8_t *><char *>data
    if len(payload):
        memcpy(at + BATCH_OVERHEAD, &source[0], len(payload))
    batch_write_header(at, header)
    return data


cdef class Builder:
    """A batch of format 2, record by record. Between the last of them and `finish`, `settle` does what is left in steps;
    it may be called before, too, so that less is left."""
    cdef Sink sink
    cdef batch_header header
    cdef object compressor
    cdef bytearray payload
    cdef readonly int32_t max_timestamp_index

    def __init__(self, str codec="none", level=None):
        new_header(&self.header, codec, -1, -1, -1, False)
        self.header.base_timestamp = self.header.max_timestamp = -1
        self.sink = Sink()
        self.payload = bytearray()
        if codec != "none":
            self.compressor = compression_module().compressor(CODECS.index(codec), level)

    def add(self, key, value, headers, int64_t timestamp):
        cdef batch_header *header = &self.header
        if header.count == 0:
            header.base_timestamp = timestamp
        encode_record(&self.sink.bytes, header.count,
                      <int64_t>(<uint64_t>timestamp - <uint64_t>header.base_timestamp), key, value, headers)
        if self.sink.bytes.failed:
            raise MemoryError
        if timestamp > header.max_timestamp:
            header.max_timestamp = timestamp
            self.max_timestamp_index = header.count
        header.count += 1

    @property
    def waiting(self):
        """Bytes that are not settled."""
        return self.sink.bytes.size

    def settle(self):
        """Work that compresses what was added."""
        data = PyBytes_FromStringAndSize(<char *>self.sink.bytes.data, self.sink.bytes.size)
        self.sink.bytes.size = 0
        if self.compressor is None:
            self.payload += data
            return
        for start in range(0, len(data), STEP_BYTES):
            self.payload += self.compressor.compress(data[start:start + STEP_BYTES])
            yield

    def finish(self, bint append_time, int64_t log_append_time):
        """The batch, once all is settled."""
        if self.compressor is not None:
            self.payload += self.compressor.flush()
        if append_time:
            self.header.attributes |= APPEND_TIME_FLAG
            self.header.max_timestamp = log_append_time
        return with_head(self.payload, &self.header)


cdef class Sink:
    """A byte_sink that is freed with its owner."""
    cdef byte_sink bytes

    def __dealloc__(self):
        sink_free(&self.bytes)


cdef bytes encode_records(records, batch_header *header):
    """The records' bytes; sets count, base and maximum timestamp."""
    cdef Sink sink = Sink()
    cdef int64_t timestamp
    header.max_timestamp = -1
    header.base_timestamp = -1
    for key, value, headers, timestamp in records:
        if header.count == 0:
            header.base_timestamp = timestamp
        encode_record(&sink.bytes, header.count, <int64_t>(<uint64_t>timestamp - <uint64_t>header.base_timestamp), key, value, headers)
        header.max_timestamp = max(header.max_timestamp, timestamp)
        header.count += 1
    if sink.bytes.failed:
        raise MemoryError
    return PyBytes_FromStringAndSize(<char *>sink.bytes.data, sink.bytes.size)


cdef int encode_record(byte_sink *sink, int32_t index, int64_t timestamp_delta, key, value, headers) except -1:
    cdef size_t start = sink.size
    sink_record_head(sink, timestamp_delta, index)
    put_nullable(sink, key)
    put_nullable(sink, value)
    sink_varlong(sink, len(headers))
    for header_key, header_value in headers:
        put_nullable(sink, header_key.encode())
        put_nullable(sink, header_value)
    sink_close_record(sink, start, 0)
    return 0


cdef int put_nullable(byte_sink *sink, data) except -1:
    cdef Py_buffer view
    if data is None:
        sink_nullable(sink, NULL, -1)
        return 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    sink_nullable(sink, <const uint8_t *>view.buf, <int32_t>view.len)
    PyBuffer_Release(&view)
    return 0
