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
    return at_once(validation(buffer, rules, now_ms, partition, True), now_ms)


def validate_records(buffer, Rules rules not None, int64_t now_ms, str partition=""):
    """The second half of `validate`, Kafka's log validator, for batches whose size and CRC are known to be good."""
    return at_once(validation(buffer, rules, now_ms, partition, False), now_ms)


def begin_validation(buffer, Rules rules not None, int64_t now_ms, str partition=""):
    """`validate`, as far as it goes in one step: Batches when that is all, else a Validation."""
    return validation(buffer, rules, now_ms, partition, True)


cdef object at_once(begun, int64_t now_ms):
    if type(begun) is not Validation:
        return begun
    while not (<Validation>begun).advance():
        pass
    return (<Validation>begun).finish(now_ms)


def built(bytes data not None, Rules rules not None, int64_t now_ms, int32_t max_timestamp_index):
    """Batches of a batch that legacy_records has just built: nothing is left to check."""
    cdef Batches batches = Batches.__new__(Batches)
    batches.take(data)
    batch_read_header(batches.bytes, <int32_t>len(data), &batches.header)
    batches.log_append_time = now_ms if rules.log_append_time else -1
    batches.max_timestamp = batches.header.max_timestamp
    batches.offset_of_max_timestamp_delta = 0 if rules.log_append_time else max_timestamp_index
    batches.converted = True
    batches.close()
    return batches


cdef object validation(buffer, Rules rules, int64_t now_ms, str partition, bint as_append):
    cdef Batches batches = Batches.__new__(Batches)
    cdef Validation work
    cdef int32_t size = 0
    cdef int8_t magic = 0
    batches.take(buffer)
    check(batch_next(batches.bytes, batches.view.len, &size, &magic))
    if magic < 2:
        return legacy_module().validated(buffer, rules, now_ms, partition, as_append)
    batch_read_header(batches.bytes, size, &batches.header)
    check_batch(batches, rules, as_append)
    if size < NOGIL_BYTES and rules.target <= 0 and not batches.header.attributes & CODEC_MASK and batches.header.count >= 0:
        return plain(batches, rules, now_ms, partition)
    work = Validation.__new__(Validation)
    work.begin(batches, rules, now_ms, partition)
    return work.finish(now_ms) if work.advance() else work


cdef Batches plain(Batches batches, Rules rules, int64_t now_ms, str partition):
    """The commonest case, without the object that longer work takes: few bytes, and they stay as they are."""
    cdef record_rules record
    cdef record_tally tally
    cdef const uint8_t *end = batches.bytes + batches.header.size
    cdef const uint8_t *at = batches.bytes + BATCH_OVERHEAD
    set_rules(&record, rules, now_ms)
    tally_begin(&tally, &batches.header)
    try:
        status = records_walk(&at, end, end, batches.header.count, &record, &tally)
        if status == RECORDS_REJECTED:
            raise rejection(&tally, &record, partition, False)
        if status != RECORDS_OK:
            raise failure(status, 0)
    finally:
        tally_free(&tally)
    stamp(batches, rules, now_ms, &tally)
    return batches


cdef void set_rules(record_rules *record, Rules rules, int64_t now_ms) noexcept:
    record.now_ms = now_ms
    record.before_max_ms = rules.timestamp_before_max_ms
    record.after_max_ms = rules.timestamp_after_max_ms
    record.append_time = rules.log_append_time
    record.compacted = rules.compacted


cdef int stamp(Batches batches, Rules rules, int64_t now_ms, const record_tally *tally, Rewriting rewriting=None) except -1:
    """The records are good: the batch gets its time."""
    cdef bint append_time = rules.log_append_time
    cdef int64_t max_timestamp = now_ms if append_time else tally.max_timestamp
    batches.log_append_time = now_ms if append_time else -1
    if rewriting is not None:
        rewriting.write_header(batches, append_time, max_timestamp)
    else:
        batch_set_max_timestamp(batches.bytes, &batches.header, append_time, max_timestamp)
    batches.max_timestamp = max_timestamp
    batches.offset_of_max_timestamp_delta = 0 if append_time else tally.max_timestamp_index
    return batches.close()


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
