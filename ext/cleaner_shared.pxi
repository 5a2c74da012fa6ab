# What the passes of a cleaning share: KeyMap, Throttle, Round, AbortedTransactions. Part of cleaner.pyx.


cdef class KeyMap:
    """Key -> latest offset, in fixed memory."""

    cdef key_map map

    def __cinit__(self, int64_t memory_bytes):
        cdef int error = key_map_begin(&self.map, memory_bytes)
        if error:
            raise OSError(error, os.strerror(error))

    def __dealloc__(self):
        key_map_close(&self.map)

    @property
    def slots(self):
        return self.map.slots

    @property
    def size(self):
        return self.map.size

    @property
    def utilization(self):
        return <double>self.map.size / <double>self.map.slots if self.map.slots else 0.0

    @property
    def latest_offset(self):
        return self.map.latest_offset

    @latest_offset.setter
    def latest_offset(self, int64_t offset):
        self.map.latest_offset = offset

    def get(self, bytes key not None):
        return key_map_get(&self.map, key_map_hash(&self.map, key, len(key)))

    def put(self, bytes key not None, int64_t offset):
        cdef int status = key_map_put(&self.map, key_map_hash(&self.map, key, len(key)), offset)
        if status == KEY_MAP_FULL:
            raise ValueError(f"the map is full: {self.map.size} of {self.map.slots}")
        if status != KEY_MAP_OK:
            raise MemoryError

    def clear(self):
        key_map_clear(&self.map)

    def close(self):
        key_map_close(&self.map)


cdef class Throttle:
    """Bytes a second over all threads that share it."""

    cdef cleaner_throttle throttle

    def __cinit__(self, double bytes_per_second=float("inf")):
        throttle_begin(&self.throttle, bytes_per_second)

    @property
    def bytes_per_second(self):
        return self.throttle.bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, double value):
        throttle_set(&self.throttle, value)

    def take(self, int64_t size, int64_t now_ns):
        """How many ns from now_ns on the caller has to wait; the bytes count as taken."""
        return throttle_take(&self.throttle, size, now_ns)


cdef class Round:
    """One cleaning: its throttle, its buffers' size, its counts, and whether it was called off."""

    cdef cleaner_round round
    cdef readonly Throttle throttle
    cdef readonly int64_t buffer_bytes

    def __cinit__(self, Throttle throttle=None, int64_t buffer_bytes=262144):
        self.throttle = throttle if throttle is not None else Throttle()
        self.buffer_bytes = buffer_bytes
        self.round.throttle = &self.throttle.throttle

    @property
    def cancelled(self):
        return bool(round_cancelled(&self.round))

    def cancel(self):
        """From any thread: a pass under way raises Cancelled soon."""
        round_cancel(&self.round)

    @property
    def bytes_read(self):
        return self.round.bytes_read

    @property
    def messages_read(self):
        return self.round.messages_read

    @property
    def bytes_written(self):
        return self.round.bytes_written

    @property
    def messages_written(self):
        return self.round.messages_written

    @property
    def invalid_messages(self):
        return self.round.invalid_messages

    @property
    def batches_emptied(self):
        return self.round.batches_emptied

    @property
    def index_bytes_read(self):
        return self.round.index_bytes_read

    @property
    def index_messages_read(self):
        return self.round.index_messages_read

    @property
    def largest_buffer_bytes(self):
        return self.round.largest_buffer_bytes


cdef class AbortedTransactions:
    """Which batches belong to aborted transactions, while batches are walked in order."""

    cdef transactions state

    def __dealloc__(self):
        transactions_free(&self.state)

    def add(self, entries):
        cdef aborted_entry entry
        for producer_id, first_offset, last_offset, last_stable_offset in entries:
            entry.producer_id = producer_id
            entry.first_offset = first_offset
            entry.last_offset = last_offset
            entry.last_stable_offset = last_stable_offset
            transactions_add(&self.state, &entry)
        if self.state.no_memory:
            raise MemoryError
