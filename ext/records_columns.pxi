# Records in columns, as Arrow holds them: spread over partitions, and built into batches. Part of records.pyx.

cdef class Column:
    """Bytes: where each begins in `data`, and a bit for each that is there. What is before `first` is not the column's."""
    cdef Py_buffer valid, offsets, data
    cdef Py_ssize_t first

    def __cinit__(self, Py_ssize_t count, Py_ssize_t first, valid, offsets, data):
        cdef Py_ssize_t index
        cdef int32_t at, begin
        if valid is not None:
            PyObject_GetBuffer(valid, &self.valid, PyBUF_SIMPLE)
        PyObject_GetBuffer(offsets, &self.offsets, PyBUF_SIMPLE)
        PyObject_GetBuffer(b"" if data is None else data, &self.data, PyBUF_SIMPLE)
        self.first = first
        if first < 0 or self.offsets.len // 4 - 1 - first < count:
            raise ValueError("a column has fewer offsets than rows")
        if self.valid.buf != NULL and self.valid.len * 8 - first < count:
            raise ValueError("a column has fewer bits than rows")
        begin = (<const int32_t *>self.offsets.buf)[first]
        for index in range(first, first + count + 1):
            at = (<const int32_t *>self.offsets.buf)[index]
            if at < begin or at > self.data.len:
                raise ValueError("a column's offsets are not in order, or beyond its data")
            begin = at
        if count and (<const int32_t *>self.offsets.buf)[first] < 0:
            raise ValueError("a column begins before its data")

    def __dealloc__(self):
        PyBuffer_Release(&self.valid)
        PyBuffer_Release(&self.offsets)
        PyBuffer_Release(&self.data)

    cdef inline int32_t size(self, Py_ssize_t index) noexcept nogil:
        """-1 of null."""
        index += self.first
        if self.valid.buf != NULL and not (<const uint8_t *>self.valid.buf)[index >> 3] >> (index & 7) & 1:
            return -1
        return (<const int32_t *>self.offsets.buf)[index + 1] - (<const int32_t *>self.offsets.buf)[index]

    cdef inline const uint8_t *at(self, Py_ssize_t index) noexcept nogil:
        return <const uint8_t *>self.data.buf + (<const int32_t *>self.offsets.buf)[self.first + index]

    cdef bytes value(self, Py_ssize_t index):
        cdef int32_t size = self.size(index)
        return None if size < 0 else PyBytes_FromStringAndSize(<const char *>self.at(index), size)


cdef class Columns:
    """Records without headers. A column of bytes is (first, valid, offsets, data), that of the times (first, data)."""
    cdef Column keys, values
    cdef Py_buffer times
    cdef const int64_t *time_of
    cdef readonly Py_ssize_t count

    def __cinit__(self, Py_ssize_t count, tuple keys, tuple values, tuple times):
        cdef Py_ssize_t first = times[0]
        if count < 0 or count > 2**31 - 1:
            raise ValueError("too many rows, or too few")
        self.count = count
        self.keys, self.values = Column(count, *keys), Column(count, *values)
        PyObject_GetBuffer(times[1], &self.times, PyBUF_SIMPLE)
        if first < 0 or self.times.len // 8 - first < count:
            raise ValueError("there are fewer times than rows")
        self.time_of = <const int64_t *>self.times.buf + first

    def __dealloc__(self):
        PyBuffer_Release(&self.times)

    cdef inline int64_t size(self, Py_ssize_t index) noexcept nogil:
        return <int64_t>max(0, self.keys.size(index)) + max(0, self.values.size(index))

    def row(self, Py_ssize_t index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.keys.value(index), self.values.value(index), (), self.time_of[index]

    @property
    def largest(self):
        """The bytes of the largest key and value of a row."""
        cdef int64_t largest = 0
        cdef Py_ssize_t index
        for index in range(self.count):
            largest = max(largest, self.size(index))
        return largest

    def bytes_of(self, indexes):
        """The bytes of these rows' keys and values."""
        cdef const int32_t[::1] rows = indexes
        cdef int64_t whole = 0
        cdef int32_t index
        for index in rows:
            if not 0 <= index < self.count:
                raise IndexError(index)
            whole += self.size(index)
        return whole

    def spread(self, int32_t partitions):
        """(partition, its rows' indexes in their order) by the keys; of partition -1 those that have no key, or all where
        there are 0 partitions to choose by."""
        cdef list found = []
        cdef int32_t index, partition
        cdef int32_t size
        chosen = array("i", bytes(4 * self.count))
        ends = array("i", bytes(4 * (partitions + 2)))
        order = array("i", bytes(4 * self.count))
        cdef int32_t[::1] chosen_of = chosen, end_of = ends, order_of = order
        with nogil:
            for index in range(<int32_t>self.count):
                size = self.keys.size(index)
                partition = -1
                if size >= 0 and partitions > 0:
                    partition = <int32_t>((c_murmur2(self.keys.at(index), size) & 0x7FFFFFFF) % <uint32_t>partitions)
                chosen_of[index] = partition
                end_of[partition + 2] += 1
            for partition in range(partitions):  # where each begins: behind those of the partitions before
                end_of[partition + 1] += end_of[partition]
            for index in range(<int32_t>self.count):
                partition = chosen_of[index]
                order_of[end_of[partition + 1]] = index
                end_of[partition + 1] += 1
        begin = 0
        for partition in range(-1, partitions):
            end = ends[partition + 1]
            if end > begin:
                found.append((partition, memoryview(order)[begin:end]))
            begin = end
        return found

    def build(self, indexes, *, str codec="none", level=None, int64_t producer_id=-1, int16_t producer_epoch=-1,
              int32_t base_sequence=-1, bint transactional=False):
        """One batch of these rows."""
        cdef batch_header header
        cdef Sink sink = Sink()
        cdef const int32_t[::1] rows = indexes
        new_header(&header, codec, producer_id, producer_epoch, base_sequence, transactional)
        self.bytes_of(indexes)  # every index is one of a row
        with nogil:
            self.encode(&sink.bytes, rows, &header)
        if sink.bytes.failed:
            raise MemoryError
        return with_header(PyBytes_FromStringAndSize(<char *>sink.bytes.data, sink.bytes.size), &header, codec, level)

    cdef void encode(self, byte_sink *sink, const int32_t[::1] rows, batch_header *header) noexcept nogil:
        cdef Py_ssize_t place
        cdef int32_t index
        cdef size_t start
        cdef int64_t timestamp
        header.base_timestamp = header.max_timestamp = -1
        for place in range(rows.shape[0]):
            index = rows[place]
            timestamp = self.time_of[index]
            if place == 0:
                header.base_timestamp = timestamp
            header.max_timestamp = max(header.max_timestamp, timestamp)
            start = sink.size
            sink_record_head(sink, <int64_t>(<uint64_t>timestamp - <uint64_t>header.base_timestamp), <int32_t>place)
            sink_nullable(sink, self.keys.at(index), self.keys.size(index))
            sink_nullable(sink, self.values.at(index), self.values.size(index))
            sink_varlong(sink, 0)
            sink_close_record(sink, start, 0)
        header.count = <int32_t>rows.shape[0]
