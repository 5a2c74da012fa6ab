# Formats 0 and 1: read in Python, written as format 2, as Kafka's cleaner does. Part of cleaner.pyx.


cdef list old_messages(cleaner_pass *here, str path):
    """The messages of the current batch; CleanerError for what cannot be read."""
    from pykafkad import legacy_records
    from pykafkad.hot.records import RecordsError

    data = here.source.batch[:here.source.header.size]
    try:
        if not legacy_records.crc_fits(data):
            raise CleanerError(path, here.source.position, "a checksum that does not match")
        return list(legacy_records.messages(legacy_records.outer(data)))
    except RecordsError as error:
        raise CleanerError(path, here.source.position, str(error)) from None


cdef int index_legacy(index_pass *index, str path) except -1:
    """Put the keys of the current batch into the map; CLEANER_OK, CLEANER_FULL or worse."""
    cdef int status
    cdef bytes key_bytes
    for message in old_messages(&index.pass_, path):
        key = message.key
        key_bytes = key or b""
        status = index_old(index, message.offset, key_bytes, -1 if key is None else len(key))
        if status != CLEANER_OK:
            return status
    transactions_on_batch(index.pass_.transactions, -1, index.pass_.source.last_offset, 0)
    index_passed(index)
    return CLEANER_OK


cdef int filter_legacy(filter_pass *filter, str path, bint keep_deletes) except -1:
    """Write what is kept of the current batch; a status."""
    cdef int status = CLEANER_OK
    cdef bytes key_bytes
    filter_begin_old(filter)
    kept = []
    for message in old_messages(&filter.pass_, path):
        key = message.key
        key_bytes = key or b""
        if filter_keeps_old(filter, message.offset, key_bytes, -1 if key is None else len(key),
                            message.value is not None, keep_deletes):
            kept.append(message)
    if kept:
        status = build_legacy(filter, kept)
    return filter_end_old(filter) if status == CLEANER_OK else status


cdef int build_legacy(filter_pass *filter, list kept) except -1:
    """One batch of format 2 with these messages."""
    from pykafkad import legacy_records

    source = filter.pass_.source.batch[:filter.pass_.source.header.size]
    outer = legacy_records.outer(source)
    first = kept[0]
    filter.verdict.kept = len(kept)
    filter.verdict.highest_offset = kept[len(kept) - 1].offset
    filter.verdict.highest_time = outer.timestamp if outer.is_append_time else max(found.timestamp for found in kept)
    if any(message.value is None for message in kept) and filter_ends(filter):
        filter.verdict.horizon = filter.now_ms + filter.delete_retention_ms
    base_timestamp = filter.verdict.horizon if filter.verdict.horizon >= 0 else first.timestamp
    for message in kept:
        put_legacy(&filter.packed, message.key, message.value, apart(message.timestamp, base_timestamp),
                   message.offset - first.offset)
    cdef int status = filter_build_old(filter, first.offset, base_timestamp, outer.is_append_time, outer.codec)
    if status == CLEANER_PACK:
        status = pack(filter)
    return status


cdef int64_t apart(int64_t timestamp, int64_t base_timestamp) noexcept:
    """As Java's longs."""
    return <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp)


cdef int put_legacy(byte_sink *sink, key, value, int64_t timestamp_delta, int32_t offset_delta) except -1:
    cdef record_view record
    cdef bytes key_bytes = key or b"", value_bytes = value or b""
    record.key = key_bytes
    record.value = value_bytes
    record.key_size = -1 if key is None else <int32_t>len(key)
    record.value_size = -1 if value is None else <int32_t>len(value)
    record.header_count = 0
    record.headers = record.end = NULL
    put_record(sink, &record, timestamp_delta, offset_delta)
    return 0
