# The passes: index_keys, Rewriter. Part of cleaner.pyx.


cdef int unpack(cleaner_pass *here, str path) except -1:
    """Decompress the records of the current batch."""
    from pykafkad import compression

    cdef bytes piece
    cdef int codec = here.source.header.attributes & CODEC_MASK
    payload = memoryview(here.source.batch[BATCH_OVERHEAD:here.source.header.size])
    try:
        for piece in compression.pieces(codec, payload):
            sink_bytes(&here.unpacked, piece, len(piece))
    except (compression.DecompressionError, compression.ExpansionError) as error:
        raise CleanerError(path, here.source.position, str(error)) from None
    if here.unpacked.failed:
        raise MemoryError
    if here.unpacked.size > 0xFFFFFFFF:
        raise CleanerError(path, here.source.position, "records that unfold to more than 4 GiB")
    here.is_unpacked = 1
    return 0


cdef int pack(filter_pass *filter) except -1:
    """Compress what is kept of the current batch, and write it; a status."""
    from pykafkad import compression

    if filter.packed.failed:
        raise MemoryError
    compressor = compression.compressor(filter.built.attributes & CODEC_MASK)
    cdef bytes data = compressor.compress(filter.packed.data[:filter.packed.size]) + compressor.flush()
    return filter_packed(filter, data, len(data))


cdef int open_source(cleaner_source *source, str path, int64_t position, int64_t end, int64_t room) except -1:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if source_begin(source, fd, position, end, room) != CLEANER_OK:
        os.close(fd)
        raise MemoryError
    return fd


def index_keys(str path not None, int64_t position, int64_t end, int64_t start_offset, int64_t end_offset,
               KeyMap keys not None, int64_t max_keys, AbortedTransactions aborted not None, Round round not None):
    """Put the keys of the batches in bytes position..end of a `.log` file into the map; see cleaner.pyi."""
    cdef index_pass index
    cdef int status
    memset(&index, 0, sizeof(index))
    index.pass_.round = &round.round
    index.pass_.keys = &keys.map
    index.pass_.transactions = &aborted.state
    index.start_offset = start_offset
    index.end_offset = end_offset
    index.max_keys = max_keys
    fd = open_source(&index.pass_.source, path, position, end, round.buffer_bytes)
    try:
        while True:
            with nogil:
                status = index_run(&index)
            if status == CLEANER_UNPACK:
                unpack(&index.pass_, path)
                continue
            if status == CLEANER_LEGACY:
                status = index_legacy(&index, path)
                if status == CLEANER_OK:
                    continue
            break
        round_note_buffers(&round.round, index.pass_.source.room + index.pass_.unpacked.capacity)
        if status == CLEANER_END:
            keys.map.latest_offset = end_offset - 1
        elif status == CLEANER_LIMIT:
            stop_at_limit(&index)
        elif status != CLEANER_FULL:
            refuse(status, path, index.pass_.source.position, index.pass_.reason)
        return keys.map.latest_offset + 1, status == CLEANER_FULL
    finally:
        os.close(fd)
        source_free(&index.pass_.source)
        sink_free(&index.pass_.unpacked)


cdef int stop_at_limit(index_pass *index) except -1:
    """A batch reaches the end offset: everything below it is in the map, as far as it is below the end."""
    cdef batch_header *header = &index.pass_.source.header
    cdef int64_t below = header.base_offset
    if header.magic < 2:  # its first offset is only inside; the last one in the map was that of a whole batch
        below = index.pass_.keys.latest_offset + 1
    index.pass_.keys.latest_offset = max(index.pass_.keys.latest_offset, min(index.end_offset, below) - 1)


cdef class Rewriter:
    """One cleaned segment, being written."""

    cdef filter_pass filter
    cdef readonly int64_t base_offset
    cdef str stem
    cdef str suffix
    cdef int fd
    cdef bint finished
    cdef KeyMap keys
    cdef AbortedTransactions aborted
    cdef Round round

    def __cinit__(self, str directory not None, int64_t base_offset, KeyMap keys not None,
                  AbortedTransactions aborted not None, Round round not None, *, last_records_of_producers,
                  int64_t now_ms, int64_t delete_retention_ms, int64_t end_of_round,
                  int64_t index_interval_bytes=4096, str suffix=".cleaned"):
        self.fd = -1
        self.base_offset = base_offset
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = suffix
        self.keys = keys
        self.aborted = aborted
        self.round = round
        self.filter.pass_.round = &round.round
        self.filter.pass_.keys = &keys.map
        self.filter.pass_.transactions = &aborted.state
        self.filter.now_ms = now_ms
        self.filter.delete_retention_ms = delete_retention_ms
        self.filter.end_of_round = end_of_round
        self.learn_producers(last_records_of_producers)
        self.fd = self.create(".log")
        output_begin(&self.filter.output, self.fd, base_offset, index_interval_bytes, round.buffer_bytes)

    def __dealloc__(self):
        if self.fd >= 0:
            os.close(self.fd)
        filter_free(&self.filter)

    cdef int learn_producers(self, last_records) except -1:
        cdef producer_entry *entry
        for producer_id, (last_data_offset, epoch) in last_records.items():
            entry = producer_add(&self.filter.last_records, producer_id)
            if entry == NULL:
                raise MemoryError
            entry.first = -1 if last_data_offset is None else last_data_offset
            entry.second = epoch

    cdef str path_of(self, kind):
        return f"{self.stem}{kind}{self.suffix}"

    cdef int create(self, kind) except -1:
        return os.open(self.path_of(kind), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    @property
    def size(self):
        return output_size(&self.filter.output)

    @property
    def batches(self):
        return self.filter.output.batches

    @property
    def end_offset(self):
        return self.filter.output.end_offset

    @property
    def max_timestamp(self):
        return self.filter.output.max_timestamp

    @property
    def max_timestamp_offset(self):
        return self.filter.output.max_timestamp_offset

    @property
    def first_timestamp(self):
        return self.filter.output.first_timestamp

    @property
    def aborted_transactions(self):
        from struct import iter_unpack

        return [entry[1:] for entry in iter_unpack(">hqqqq", self.filter.aborted.data[:self.filter.aborted.size])]

    @property
    def paths(self):
        kinds = (".log", ".index", ".timeindex", ".txnindex")
        return [path for path in map(self.path_of, kinds) if os.path.exists(path)]

    def add(self, str path not None, int64_t size, bint keep_legacy_deletes):
        """Clean the first `size` bytes of a `.log` file into the segment."""
        cdef int status
        if self.fd < 0:
            raise ValueError("this segment is closed")
        fd = open_source(&self.filter.pass_.source, path, 0, size, self.round.buffer_bytes)
        try:
            while True:
                with nogil:
                    status = filter_run(&self.filter)
                if status == CLEANER_UNPACK:
                    unpack(&self.filter.pass_, path)
                    continue
                if status == CLEANER_PACK:
                    status = pack(&self.filter)
                elif status == CLEANER_LEGACY:
                    status = filter_legacy(&self.filter, path, keep_legacy_deletes)
                if status != CLEANER_OK:
                    break
            self.note_buffers()
            if status != CLEANER_END:
                refuse(status, self.path_of(".log") if status == CLEANER_WRITE_ERROR else path,
                       self.filter.pass_.source.position, self.filter.pass_.reason)
        finally:
            os.close(fd)

    cdef int note_buffers(self) except -1:
        round_note_buffers(&self.round.round, self.filter.pass_.source.room + self.filter.output.bytes.capacity
                           + self.filter.pass_.unpacked.capacity + self.filter.packed.capacity)

    def finish(self, int64_t modified_ms):
        """Write what is left, make the indexes, fsync all of it, give it the time of what it replaces."""
        cdef int status
        with nogil:
            status = output_flush(&self.filter.output, self.filter.pass_.round, 1)
        if status != CLEANER_OK:
            refuse(status, self.path_of(".log"), self.size, NULL)
        output_index_end(&self.filter.output)
        self.write_side(".index", &self.filter.output.offset_index, modified_ms)
        self.write_side(".timeindex", &self.filter.output.time_index, modified_ms)
        if self.filter.aborted.size:
            self.write_side(".txnindex", &self.filter.aborted, modified_ms)
        os.fsync(self.fd)
        os.utime(self.fd, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        self.close()

    cdef int write_side(self, kind, byte_sink *bytes_, int64_t modified_ms) except -1:
        cdef int error, fd = self.create(kind)
        try:
            with nogil:
                error = write_fully(fd, bytes_.data, bytes_.size, 0)
            if error:
                raise OSError(error, os.strerror(error), self.path_of(kind))
            os.fsync(fd)
            os.utime(fd, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        finally:
            os.close(fd)
        return 0

    cdef int close(self) except -1:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)
        return 0

    def discard(self):
        """Close and remove the files; also after finish()."""
        self.close()
        for path in self.paths:
            os.unlink(path)
