# Validation: the records of a batch, checked in steps. Part of records.pyx.

cdef enum:
    STEP_BYTES = 65536  # of records looked at in a step; a codec's empty piece counts as PIECE_BYTES
    PIECE_BYTES = 1024


@cython.no_gc
@cython.freelist(8)
cdef class Validation:
    """An append whose batch is good as a whole, on its way through its records. `advance` does a piece of it (some 0.1
    ms, or what a codec takes for 64 KiB) and says whether that was the last one; then `finish` gives the Batches, to be
    appended before anything else is. RecordsError from either."""
    cdef Batches batches
    cdef Rules rules
    cdef str partition
    cdef record_rules record
    cdef record_tally tally
    cdef record_stream reader
    cdef const uint8_t *place  # of the next record, where nothing is unfolded
    cdef object pieces         # iterator of what the records are in
    cdef readonly object kept  # how many bytes the codec keeps, or is about to, if that is much
    cdef object piece          # the one under way, of which `used` bytes have been looked at
    cdef Py_ssize_t used
    cdef Rewriting rewriting   # None: they stay as they are
    cdef int source, target

    def __dealloc__(self):
        tally_free(&self.tally)

    def __cinit__(self):
        self.kept = 0

    cdef int begin(self, Batches batches, Rules rules, int64_t now_ms, str partition) except -1:
        cdef batch_header *header = &batches.header
        self.batches = batches
        self.rules = rules
        self.partition = partition
        set_rules(&self.record, rules, now_ms)
        self.source = header.attributes & CODEC_MASK
        self.target = self.source if rules.target < 0 else rules.target
        if header.count < 0:
            raise failure(RECORDS_NEGATIVE_COUNT, 0)
        if header.count == 0 or (self.source == 0 and header.attributes & CONTROL_FLAG):
            self.target = self.source  # control records are never compressed
        tally_begin(&self.tally, header)
        self.place = batches.bytes + BATCH_OVERHEAD
        if self.source != self.target:
            self.rewriting = Rewriting.__new__(Rewriting)
            self.rewriting.begin(header, self.source, self.target, rules)
        if self.source or self.rewriting is not None:
            self.open()
        return 0

    cdef int open(self) except -1:
        payload = memoryview(self.batches.owner)[BATCH_OVERHEAD:self.batches.header.size]
        record_stream_begin(&self.reader, self.batches.header.count, False)
        self.piece = b""
        if self.source:
            self.pieces = Pieces(self.source, payload)
        else:
            self.pieces = iter((payload,))
        return 0

    cpdef bint advance(self) except -1:
        if self.pieces is None:
            return self.walk()
        if self.rewriting is None and self.batches.header.count == 0:
            return True
        cdef Py_ssize_t left = STEP_BYTES
        while left > 0:
            if self.rewriting is not None and self.rewriting.pending:
                left -= self.rewriting.drain()
            elif self.used == len(self.piece):
                self.piece = next(self.pieces, None)
                self.used = 0
                if self.piece is None:
                    return self.end()
                left -= PIECE_BYTES
                if self.source and self.pieces.kept != self.kept:
                    self.kept = self.pieces.kept
                    return False
            else:
                left -= self.look()
        return False

    cdef bint walk(self) except -1:
        cdef const uint8_t *end = self.batches.bytes + self.batches.header.size
        cdef int32_t count = self.batches.header.count
        cdef int status
        if end - self.place < NOGIL_BYTES:
            status = records_walk(&self.place, end, end, count, &self.record, &self.tally)
        else:
            with nogil:
                status = records_walk(&self.place, end, self.place + STEP_BYTES, count, &self.record, &self.tally)
        if status == RECORDS_PAUSED:
            return False
        if status != RECORDS_OK:
            raise self.refusal(status)
        return True

    cdef Py_ssize_t look(self) except -1:
        """At the next bytes of the piece; how many."""
        cdef Py_buffer view
        cdef Py_ssize_t size
        cdef int status
        PyObject_GetBuffer(self.piece, &view, PyBUF_SIMPLE)
        try:
            size = min(view.len - self.used, STEP_BYTES)
            if self.rewriting is not None:
                status = self.rewriting.feed(<const uint8_t *>view.buf + self.used, size, &self.record, &self.tally)
            else:
                with nogil:
                    status = record_stream_feed(&self.reader, <const uint8_t *>view.buf + self.used, size, &self.record,
                                                &self.tally)
        finally:
            PyBuffer_Release(&view)
        if status != RECORDS_OK:
            raise self.refusal(status)
        self.used += size
        return size

    cdef bint end(self) except -1:
        """The records have come to their end: were they what the batch says?"""
        cdef int status = RECORDS_OK
        if self.rewriting is None:
            status = record_stream_end(&self.reader, &self.tally)
        elif self.tally.seen < self.batches.header.count:
            status = RECORDS_PREMATURE_END
        elif self.tally.fault_count:
            status = RECORDS_REJECTED
        if status != RECORDS_OK:
            raise self.refusal(status)
        if self.rewriting is not None:
            self.rewriting.end(&self.batches.header)
        elif not self.tally.in_order:
            raise failure(RECORDS_OUT_OF_ORDER, 0)
        return True

    cdef object refusal(self, int status):
        if status != RECORDS_REJECTED:
            return failure(status, 0)
        return rejection(&self.tally, &self.record, self.partition, self.source != 0 and self.rewriting is None)

    cpdef Batches finish(self, int64_t now_ms):
        """With the append's time; it is later than the one that the records were compared with, if that took long."""
        stamp(self.batches, self.rules, now_ms, &self.tally, self.rewriting)
        return self.batches


@cython.no_gc
cdef class Rewriting:
    """Records on their way into a batch of another codec. Output beyond max.message.bytes is not kept: reading goes
    on to find what else is wrong, as Kafka would, and then the batch is too large. In memory are the records of one
    step, a started record up to ext/c's LONG_RECORD, and the output."""
    cdef byte_sink sink
    cdef record_rewriter rewriter
    cdef size_t drained  # of the sink
    cdef object compressor
    cdef bytearray out
    cdef bytearray rest  # a record that has been begun
    cdef int32_t max_size
    cdef int target
    cdef readonly bint pending  # the sink is not empty

    def __dealloc__(self):
        sink_free(&self.sink)

    cdef int begin(self, batch_header *header, int source, int target, Rules rules) except -1:
        self.rewriter.count = header.count
        self.rewriter.compressed = source != 0
        self.target = target
        self.out = bytearray(BATCH_OVERHEAD)
        self.rest = bytearray()
        self.max_size = rules.max_message_bytes
        if target != 0:
            self.compressor = compression_module().compressor(target, rules.compression_level)
        return 0

    cdef int feed(self, const uint8_t *data, size_t size, record_rules *rules, record_tally *tally) except -1:
        cdef size_t used = 0
        cdef int status
        cdef bint begun = len(self.rest) > 0
        if begun:
            self.rest += PyBytes_FromStringAndSize(<char *>data, size)
            data = <const uint8_t *><char *>self.rest
            size = len(self.rest)
        with nogil:
            status = record_rewriter_feed(&self.rewriter, data, size, rules, tally, &self.sink, &used)
        if begun:
            del self.rest[:used]
        elif status == RECORDS_NEED_MORE:
            self.rest += PyBytes_FromStringAndSize(<char *>data + used, size - used)
        self.pending = self.sink.size > 0
        return RECORDS_OK if status == RECORDS_NEED_MORE else status

    cdef Py_ssize_t drain(self) except -1:
        """Some of the records' bytes into the batch; how many."""
        cdef size_t size = min(self.sink.size - self.drained, <size_t>STEP_BYTES)
        if len(self.out) <= self.max_size:
            written = PyBytes_FromStringAndSize(<char *>self.sink.data + self.drained, size)
            self.out += written if self.compressor is None else self.compressor.compress(written)
        else:
            size = self.sink.size - self.drained
        self.drained += size
        if self.drained == self.sink.size:
            self.sink.size = self.drained = 0
            self.pending = False
        return size

    cdef int end(self, batch_header *header) except -1:
        if self.rewriter.negative_timestamp:
            raise failure(RECORDS_NEGATIVE_TIMESTAMP, 0)
        check(batch_check_producer(header))
        if self.compressor is not None and len(self.out) <= self.max_size:
            self.out += self.compressor.flush()
        if len(self.out) > self.max_size:
            raise failure(BATCH_TOO_LARGE, 0)
        return 0

    cdef int write_header(self, Batches batches, bint append_time, int64_t max_timestamp) except -1:
        cdef batch_header *header = &batches.header
        header.base_offset = 0
        header.leader_epoch = -1
        header.size = len(self.out)
        header.attributes = self.target | (header.attributes & TRANSACTIONAL_FLAG)
        if append_time:
            header.attributes |= APPEND_TIME_FLAG
        header.base_timestamp = self.rewriter.base_timestamp
        header.max_timestamp = max_timestamp
        header.last_offset_delta = header.count - 1
        batches.take(self.out)
        batch_write_header(batches.bytes, header)
        batches.converted = True
        return 0
