# Records that break a topic's rules, and what Kafka says of them. Part of records.pyx.


@cython.no_gc
cdef class Faults:
    """A sequence of (index in the batch, text). There may be many, so a text is made when it is asked for."""
    cdef record_fault *faults
    cdef int32_t count
    cdef record_rules rules
    cdef str partition
    cdef bint skimmed  # by Kafka's other reader, which has other words

    def __dealloc__(self):
        free(self.faults)

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        if isinstance(place, slice):
            return [self.at(each) for each in range(*place.indices(self.count))]
        if not 0 <= place < self.count:
            raise IndexError(place)
        return self.at(place)

    cdef tuple at(self, int32_t place):
        return self.faults[place].index, fault_text(&self.faults[place], &self.rules, self.partition, self.skimmed)


cdef object rejection(record_tally *tally, const record_rules *rules, str partition, bint skimmed):
    """The RecordsError for what the tally has collected, which it gives away."""
    cdef Faults faults = Faults.__new__(Faults)
    cdef int32_t place
    cdef bint by_time = False
    for place in range(tally.fault_count):
        by_time = by_time or tally.faults[place].kind != FAULT_NO_KEY
    faults.faults, tally.faults = tally.faults, NULL
    faults.count, tally.fault_count = tally.fault_count, 0
    faults.rules = rules[0]
    faults.partition = partition
    faults.skimmed = skimmed
    return rejected(faults, by_time)


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
