# Batch headers: Batch, scan, check_produce. Part of records.pyx.


cdef class Batch:
    """The header of a batch, as it lies at `position` of a scanned buffer.

    Format 0 and 1: a message, or a compressed set of messages, is one batch. Fields that those do not have are as
    Kafka shows them: -1, or None. The first offset and the count of a compressed set are only inside; they are looked
    up when asked for.
    """
    cdef batch_header header
    cdef readonly Py_ssize_t position
    cdef bytes legacy_bytes  # of a compressed set of messages
    cdef int64_t legacy_timestamp

    @property
    def base_offset(self):
        if self.legacy_bytes is not None:
            return legacy_module().first_offset(self.legacy_bytes)
        return self.header.base_offset

    @property
    def last_offset(self):
        return batch_last_offset(&self.header)

    @property
    def size(self):
        return self.header.size

    @property
    def magic(self):
        return self.header.magic

    @property
    def attributes(self):
        return self.header.attributes

    @property
    def codec(self):
        cdef int codec = self.header.attributes & CODEC_MASK
        return CODECS[codec] if codec < CODEC_COUNT else "unknown"

    @property
    def leader_epoch(self):
        return self.header.leader_epoch

    @property
    def crc(self):
        return self.header.crc

    @property
    def base_timestamp(self):
        return self.header.base_timestamp

    @property
    def max_timestamp(self):
        return self.header.max_timestamp

    @property
    def producer_id(self):
        return self.header.producer_id

    @property
    def producer_epoch(self):
        return self.header.producer_epoch

    @property
    def base_sequence(self):
        return self.header.base_sequence

    @property
    def last_sequence(self):
        return last_sequence(&self.header)

    @property
    def last_offset_delta(self):
        return self.header.last_offset_delta

    @property
    def count(self):
        if self.legacy_bytes is not None:
            return legacy_module().count(self.legacy_bytes)
        return self.header.count

    @property
    def is_transactional(self):
        return (self.header.attributes & TRANSACTIONAL_FLAG) != 0

    @property
    def is_control(self):
        return (self.header.attributes & CONTROL_FLAG) != 0

    @property
    def is_log_append_time(self):
        return (self.header.attributes & APPEND_TIME_FLAG) != 0

    @property
    def delete_horizon_ms(self):
        return self.header.base_timestamp if self.header.attributes & DELETE_HORIZON_FLAG else None

    def __repr__(self):
        return (f"Batch(offsets {self.header.base_offset}..{self.last_offset}, magic {self.magic}, {self.codec}, "
                f"{self.header.count} records, {self.size} bytes at {self.position})")


cdef int32_t last_sequence(const batch_header *header):
    """Sequences go from 2**31 - 1 on to 0."""
    if header.base_sequence == -1:
        return -1
    return <int32_t>((<int64_t>header.base_sequence + header.last_offset_delta) & 0x7fffffff)


cdef object legacy_module():
    from pykafkad import legacy_records
    return legacy_records


cdef Batch read_batch(const uint8_t *data, int32_t size, int8_t magic, Py_ssize_t position):
    cdef Batch batch = Batch.__new__(Batch)
    batch.position = position
    batch_read_header(data, size, &batch.header)
    if magic < 2:
        batch.header.count = 1
        if batch.header.attributes & CODEC_MASK:
            batch.legacy_bytes = PyBytes_FromStringAndSize(<char *>data, size)
    return batch


cdef bint crc_fits(const uint8_t *data, int32_t size, int8_t magic):
    if magic == 2:
        return batch_crc_fits(data, size)
    return legacy_module().crc_fits(PyBytes_FromStringAndSize(<char *>data, size))


def scan(buffer, bint check_crc=True):
    """Headers of the whole batches in `buffer`; stops at a torn one. RecordsError, with its position, for a bad one."""
    cdef Py_buffer view
    cdef Py_ssize_t position = 0
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef int status
    cdef const uint8_t *data
    found = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        while True:
            data = <const uint8_t *>view.buf + position
            status = batch_next(data, view.len - position, &size, &magic)
            if status == BATCH_END:
                return found
            if status != BATCH_OK:
                raise failure(status, position)
            if check_crc and not crc_fits(data, size, magic):
                raise failure(BATCH_BAD_CRC, position)
            found.append(read_batch(data, size, magic, position))
            position += size
    finally:
        PyBuffer_Release(&view)


def check_framing(buffer, bint has_transactional_id):
    """What Kafka looks at before it looks at partitions: RecordsError fails a whole Produce request."""
    cdef Py_buffer view
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef int status
    cdef const uint8_t *data
    if buffer is None:
        return
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        status = batch_next(data, view.len, &size, &magic)
        if status != BATCH_OK and status != BATCH_END:
            raise produce_framing(status, data, True)
        if status == BATCH_OK and magic == 2 and size > 22 and data[22] & TRANSACTIONAL_FLAG and not has_transactional_id:
            raise RecordsError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, detail="a transactional batch and no id")
    finally:
        PyBuffer_Release(&view)


def check_produce(buffer, int version):
    """What Kafka checks of a partition's records when it reads a Produce request: one batch, of format 2."""
    cdef Py_buffer view
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef int status
    cdef const uint8_t *data
    if buffer is None:
        raise RecordsError(errors.INVALID_RECORD, detail="records are null")
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        status = batch_next(data, view.len, &size, &magic)
        if status != BATCH_OK:
            raise produce_framing(status, data, status != BATCH_END)
        if magic != 2:
            raise RecordsError(errors.INVALID_RECORD, detail="only batches of format 2 are allowed")
        if version < 7 and size > 22 and (data[22] & CODEC_MASK) == 4:
            raise RecordsError(errors.UNSUPPORTED_COMPRESSION_TYPE, detail=f"zstd in Produce version {version}")
        if view.len > size:
            status = batch_next(data + size, view.len - size, &size, &magic)
            if status == BATCH_OK:
                raise RecordsError(errors.INVALID_RECORD, detail="more than one batch for a partition")
            if status != BATCH_END:
                raise produce_framing(status, data, False)
    finally:
        PyBuffer_Release(&view)


cdef object produce_framing(int status, const uint8_t *data, bint first):
    """Only of the first batch Kafka says what is wrong with it."""
    error = failure(status, 0)
    if first and status == BATCH_BAD_SIZE:
        size = <int32_t>load_32(data + 8)
        error.message = f"Record size {size} is less than the minimum record overhead (14)"
    elif first and status == BATCH_BAD_MAGIC:
        error.message = f"Invalid magic found in record: {<int8_t>data[16]}"
    return error
