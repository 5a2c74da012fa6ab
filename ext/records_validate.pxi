# Validation and assignment: Rules, Batches, validate. Part of records.pyx.


cdef class Rules:
    """A topic's configs as far as validation needs them; built once per change of them.

    `compression` as in compression.type: "producer", "uncompressed" or a codec. `client`: batches come from clients,
    which may not send control batches and must count from 0; False for our own coordinators.
    """
    cdef readonly int32_t max_message_bytes
    cdef readonly str compression
    cdef readonly object compression_level
    cdef readonly bint log_append_time
    cdef readonly int64_t timestamp_before_max_ms
    cdef readonly int64_t timestamp_after_max_ms
    cdef readonly bint compacted
    cdef readonly bint client
    cdef int target  # codec, or -1: the producer's

    def __init__(self, *, int32_t max_message_bytes=1048588, str compression="producer", compression_level=None,
                 bint log_append_time=False, int64_t timestamp_before_max_ms=INT64_MAX,
                 int64_t timestamp_after_max_ms=3600000, bint compacted=False, bint client=True):
        self.max_message_bytes = max_message_bytes
        self.compression = compression
        self.compression_level = compression_level
        self.log_append_time = log_append_time
        self.timestamp_before_max_ms = timestamp_before_max_ms
        self.timestamp_after_max_ms = timestamp_after_max_ms
        self.compacted = compacted
        self.client = client
        if compression == "producer":
            self.target = -1
        else:
            self.target = 0 if compression == "uncompressed" else CODECS.index(compression)


# No garbage collection: nothing that `owner` is can point back here, and the collector would drop the buffer's owner
# without releasing the buffer.
@cython.no_gc
cdef class Placeable:
    """A batch that is good and not yet at its place (records.pxd)."""

    cdef void put(self, int64_t base_offset, int32_t leader_epoch) noexcept:
        pass


@cython.no_gc
cdef class Batches(Placeable):
    """Validated records, ready to be given their offsets. Kafka lets an append have one batch of format 2, so this is
    one; `converted` says that it was encoded again."""
    cdef Py_buffer view
    cdef bint held
    cdef object owner  # what `view` is of
    cdef uint8_t *bytes
    cdef batch_header header
    cdef readonly int32_t offset_of_max_timestamp_delta  # of the first record with it
    cdef readonly bint converted

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int take(self, object buffer) except -1:
        """Hold on to a buffer's bytes; to a copy if they must not be written."""
        if self.held:
            PyBuffer_Release(&self.view)
            self.held = False
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        if self.view.readonly:
            PyBuffer_Release(&self.view)
            buffer = bytearray(buffer)
            PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.held = True
        self.owner = buffer
        self.bytes = <uint8_t *>self.view.buf
        return 0

    cdef int close(self) except -1:
        """Nothing changes any more but the place."""
        self.size = self.header.size
        self.last_offset_delta = self.header.last_offset_delta
        self.data = self.owner if self.view.len == self.size else memoryview(self.owner)[:self.size]
        return 0

    @property
    def count(self):
        return self.header.count

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
    def is_transactional(self):
        return (self.header.attributes & TRANSACTIONAL_FLAG) != 0

    @property
    def is_control(self):
        return (self.header.attributes & CONTROL_FLAG) != 0

    @property
    def first(self):
        cdef Batch batch = Batch.__new__(Batch)
        batch.header = self.header
        return batch

    @property
    def headers(self):
        return [self.first]

    def assign(self, int64_t base_offset, int32_t leader_epoch):
        """Write offset and epoch (the CRC does not cover them); the offset of the last record."""
        self.put(base_offset, leader_epoch)
        return base_offset + self.last_offset_delta

    cdef void put(self, int64_t base_offset, int32_t leader_epoch) noexcept:
        self.header.base_offset = base_offset
        self.header.leader_epoch = leader_epoch
        batch_assign(self.bytes, base_offset, leader_epoch)


def validate(buffer, Rules rules not None, int64_t now_ms, str partition=""):
    """All that Kafka checks of an append to a log: the batch (offset, size, CRC) and then its records.

    `partition` is its name in error messages. What comes after the first whole batch and is no whole batch is
    dropped, as in Kafka.
    """
    return validated(buffer, rules, now_ms, partition, True)


def validate_records(buffer, Rules rules not None, int64_t now_ms, str partition=""):
    """The second half of `validate`, Kafka's log validator, for batches whose size and CRC are known to be good."""
    return validated(buffer, rules, now_ms, partition, False)


def built(bytes data not None, Rules rules not None, int64_t now_ms):
    """Batches of a batch that legacy_records has just built: nothing is left to check."""
    cdef Batches batches = Batches.__new__(Batches)
    batches.take(data)
    batch_read_header(batches.bytes, <int32_t>len(data), &batches.header)
    batches.log_append_time = now_ms if rules.log_append_time else -1
    batches.max_timestamp = batches.header.max_timestamp
    batches.offset_of_max_timestamp_delta = 0
    if not rules.log_append_time:
        timestamps = [record.timestamp for record in read(data, False)]
        batches.offset_of_max_timestamp_delta = timestamps.index(max(timestamps))
    batches.converted = True
    batches.close()
    return batches


cdef Batches validated(buffer, Rules rules, int64_t now_ms, str partition, bint as_append):
    cdef Batches batches = Batches.__new__(Batches)
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef record_rules record
    batches.take(buffer)
    check(batch_next(batches.bytes, batches.view.len, &size, &magic))
    if magic < 2:
        return legacy_module().validated(buffer, rules, now_ms, partition, as_append)
    batch_read_header(batches.bytes, size, &batches.header)
    check_batch(batches, rules, as_append)
    batches.log_append_time = now_ms if rules.log_append_time else -1
    record.now_ms = now_ms
    record.before_max_ms = rules.timestamp_before_max_ms
    record.after_max_ms = rules.timestamp_after_max_ms
    record.append_time = rules.log_append_time
    record.compacted = rules.compacted
    check_records(batches, rules, &record, partition)
    batches.close()
    return batches


cdef inline int check(int status) except -1:
    if status != BATCH_OK:
        raise failure(status, 0)
    return 0


cdef int check_batch(Batches batches, Rules rules, bint as_append) except -1:
    cdef batch_header *header = &batches.header
    cdef int status
    if not as_append:
        check_alone(batches)
    cdef int32_t max_size = rules.max_message_bytes if as_append else header.size
    cdef bint from_client = rules.client and as_append
    if header.size < NOGIL_BYTES:
        status = batch_check_append(batches.bytes, header, max_size, from_client, as_append)
    else:
        with nogil:
            status = batch_check_append(batches.bytes, header, max_size, from_client, as_append)
    check(status)
    if as_append:
        check_alone(batches)
    if rules.client:
        check(batch_check_client(header))
    return 0


cdef int check_alone(Batches batches) except -1:
    """No other batch may follow."""
    cdef int32_t size = 0
    cdef int8_t magic = 0
    cdef int status
    if batches.view.len > batches.header.size:
        status = batch_next(batches.bytes + batches.header.size, batches.view.len - batches.header.size, &size, &magic)
        if status == BATCH_OK:
            raise RecordsError(errors.INVALID_RECORD, detail="more than one batch")
        if status != BATCH_END:
            raise failure(status, batches.header.size)
    return 0


cdef int check_records(Batches batches, Rules rules, record_rules *record, str partition) except -1:
    """Look at the records, in place or while they are encoded again, and set the batch's timestamp."""
    cdef batch_header *header = &batches.header
    cdef int source = header.attributes & CODEC_MASK
    cdef int target = source if rules.target < 0 else rules.target
    cdef record_tally tally
    if header.count < 0:
        raise failure(RECORDS_NEGATIVE_COUNT, 0)
    if header.count == 0 or (source == 0 and header.attributes & CONTROL_FLAG):
        target = source  # control records are never compressed
    tally_begin(&tally, header)
    try:
        if source != target:
            rewrite(batches, rules, record, &tally, source, target, partition)
        else:
            if source == 0:
                walk(batches, record, &tally, partition)
            elif header.count != 0:
                stream(batches, record, &tally, source, partition)
            if record.append_time:
                tally.max_timestamp = record.now_ms
            batch_set_max_timestamp(batches.bytes, header, record.append_time, tally.max_timestamp)
        batches.max_timestamp = tally.max_timestamp
        batches.offset_of_max_timestamp_delta = 0 if record.append_time else tally.max_timestamp_index
    finally:
        tally_free(&tally)
    return 0


cdef int walk(Batches batches, record_rules *record, record_tally *tally, str partition) except -1:
    cdef const uint8_t *data = batches.bytes + BATCH_OVERHEAD
    cdef const uint8_t *end = batches.bytes + batches.header.size
    cdef int32_t count = batches.header.count
    cdef int status
    if batches.header.size < NOGIL_BYTES:
        status = records_walk(data, end, count, record, tally)
    else:
        with nogil:
            status = records_walk(data, end, count, record, tally)
    if status != RECORDS_OK:
        raise refusal(status, record, tally, partition)
    return 0


cdef object payload(Batches batches):
    return memoryview(batches.owner)[BATCH_OVERHEAD:batches.header.size]


cdef int stream(Batches batches, record_rules *record, record_tally *tally, int codec, str partition) except -1:
    cdef record_stream reader
    cdef bytes piece
    cdef const uint8_t *data
    cdef size_t size
    cdef int status
    record_stream_begin(&reader, batches.header.count)
    for piece in Pieces(codec, payload(batches)):
        data = piece
        size = len(piece)
        if size < NOGIL_BYTES:
            status = record_stream_feed(&reader, data, size, record, tally)
        else:
            with nogil:
                status = record_stream_feed(&reader, data, size, record, tally)
        if status != RECORDS_OK:
            raise refusal(status, record, tally, partition, True)
    status = record_stream_end(&reader, tally)
    if status != RECORDS_OK:
        raise refusal(status, record, tally, partition, True)
    if not tally.in_order:
        raise failure(RECORDS_OUT_OF_ORDER, 0)
    return 0


cdef class Rewriting:
    """Records on their way into a batch of another codec. Output beyond max.message.bytes is not kept: reading goes
    on to find what else is wrong, as Kafka would, and then the batch is too large."""
    cdef byte_sink sink
    cdef record_rewriter rewriter
    cdef object compressor
    cdef bytearray out
    cdef int32_t max_size
    cdef bytes rest

    def __dealloc__(self):
        sink_free(&self.sink)

    cdef int feed(self, object piece, record_rules *rules, record_tally *tally, str partition) except -1:
        cdef Py_buffer view
        cdef size_t used = 0
        cdef int status
        if self.rest:
            piece = self.rest + bytes(piece)
        PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                status = record_rewriter_feed(&self.rewriter, <const uint8_t *>view.buf, view.len, rules, tally,
                                              &self.sink, &used)
        finally:
            PyBuffer_Release(&view)
        if status != RECORDS_OK and status != RECORDS_NEED_MORE:
            raise refusal(status, rules, tally, partition)
        self.rest = bytes(piece[used:]) if status == RECORDS_NEED_MORE else b""
        self.drain()
        return 0

    cdef int drain(self) except -1:
        if len(self.out) <= self.max_size:
            written = PyBytes_FromStringAndSize(<char *>self.sink.data, self.sink.size)
            self.out += written if self.compressor is None else self.compressor.compress(written)
        self.sink.size = 0
        return 0


cdef int rewrite(Batches batches, Rules rules, record_rules *record, record_tally *tally, int source, int target,
                 str partition) except -1:
    cdef Rewriting rewriting = Rewriting.__new__(Rewriting)
    cdef batch_header *header = &batches.header
    cdef int status
    rewriting.rewriter.count = header.count
    rewriting.rewriter.compressed = source != 0
    rewriting.out = bytearray(BATCH_OVERHEAD)
    rewriting.max_size = rules.max_message_bytes
    rewriting.rest = b""
    if target != 0:
        rewriting.compressor = compression_module().compressor(target, rules.compression_level)
    for piece in Pieces(source, payload(batches)):
        rewriting.feed(piece, record, tally, partition)
    if tally.seen < header.count:
        raise failure(RECORDS_PREMATURE_END, 0)
    if tally.fault_count:
        raise refusal(RECORDS_REJECTED, record, tally, partition)
    if rewriting.rewriter.negative_timestamp:
        raise failure(RECORDS_NEGATIVE_TIMESTAMP, 0)
    check(batch_check_producer(header))
    if rewriting.compressor is not None:
        rewriting.out += rewriting.compressor.flush()
    if len(rewriting.out) > rules.max_message_bytes:
        raise failure(BATCH_TOO_LARGE, 0)
    if record.append_time:
        tally.max_timestamp = record.now_ms
    header.base_offset = 0
    header.leader_epoch = -1
    header.size = len(rewriting.out)
    header.attributes = target | (header.attributes & TRANSACTIONAL_FLAG)
    if record.append_time:
        header.attributes |= APPEND_TIME_FLAG
    header.base_timestamp = rewriting.rewriter.base_timestamp
    header.max_timestamp = tally.max_timestamp
    header.last_offset_delta = header.count - 1
    batches.take(rewriting.out)
    batch_write_header(batches.bytes, header)
    batches.converted = True
    return 0


# ---- refusals, in Kafka's words ----

cdef object refusal(int status, const record_rules *rules, const record_tally *tally, str partition,
                    bint skimmed=False):
    if status != RECORDS_REJECTED:
        return failure(status, 0)
    record_errors = []
    cdef int32_t place
    cdef bint by_time = False
    for place in range(tally.fault_count):
        by_time = by_time or tally.faults[place].kind != FAULT_NO_KEY
        record_errors.append((tally.faults[place].index, fault_text(&tally.faults[place], rules, partition, skimmed)))
    return rejected(record_errors, by_time)


def rejected(record_errors, by_time):
    """The RecordsError for records that break a topic's rules."""
    if by_time:
        message = "One or more records have been rejected due to invalid timestamp"
        return RecordsError(errors.INVALID_TIMESTAMP, message, record_errors)
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in record_errors[:3])
    message = (f"One or more records have been rejected due to {len(record_errors)} record errors in total, and only "
               f"showing the first three errors at most: [{shown}]")
    return RecordsError(errors.INVALID_RECORD, message, record_errors)


cdef str fault_text(const record_fault *fault, const record_rules *rules, str partition, bint skimmed):
    if fault.kind == FAULT_NO_KEY:
        return f"Compacted topic cannot accept message without key in topic partition {partition}"
    if fault.kind == FAULT_TIMESTAMP_RANGE:
        return (f"Timestamp {fault.timestamp} of message with offset {fault.offset} is out of range. The timestamp "
                f"should be within [{wrapped(rules.now_ms, -<object>rules.before_max_ms)}, "
                f"{wrapped(rules.now_ms, rules.after_max_ms)}]")
    if skimmed:  # Kafka's other reader has other words
        shown = f"PartialDefaultRecord({fault_place(fault)}, key={fault.key_size} bytes, value={fault.value_size} bytes)"
    else:
        shown = (f"DefaultRecord({fault_place(fault)}, key={max(fault.key_size, 0)} bytes, "
                 f"value={max(fault.value_size, 0)} bytes)")
    return f"Invalid timestamp type in message {shown}. Producer should not set timestamp type to LogAppendTime."


cdef str fault_place(const record_fault *fault):
    return f"offset={fault.offset}, timestamp={fault.timestamp}"


cdef object wrapped(int64_t now_ms, object distance):
    """now + distance in Java's long."""
    return (now_ms + distance + 2**63) % 2**64 - 2**63
