# The C functions behind the cleaner. Part of cleaner.pyx.


cdef extern from "batch_records.h" nogil:
    enum:
        BATCH_OVERHEAD
        APPEND_TIME_FLAG
        CODEC_MASK
    ctypedef struct batch_header:
        int64_t base_offset, base_timestamp, max_timestamp, producer_id
        int32_t size, leader_epoch, last_offset_delta, base_sequence, count
        int16_t attributes, producer_epoch
        int8_t magic
    ctypedef struct record_view:
        int64_t timestamp_delta
        int32_t offset_delta, key_size, value_size, header_count
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers
        const uint8_t *end
    ctypedef struct byte_sink:
        uint8_t *data
        size_t size, capacity
        int failed
    void sink_free(byte_sink *sink)
    void sink_bytes(byte_sink *sink, const uint8_t *data, size_t size)


cdef extern from "cleaner_map.h" nogil:
    enum:
        KEY_MAP_OK
        KEY_MAP_FULL
    ctypedef struct key_hash:
        pass
    ctypedef struct key_map:
        int64_t slots, size, latest_offset
    int key_map_begin(key_map *map, int64_t memory_bytes)
    void key_map_clear(key_map *map)
    void key_map_close(key_map *map)
    key_hash key_map_hash(const key_map *map, const uint8_t *key, size_t size)
    int64_t key_map_get(const key_map *map, key_hash hash)
    int key_map_put(key_map *map, key_hash hash, int64_t offset)


cdef extern from "cleaner_round.h" nogil:
    ctypedef struct cleaner_throttle:
        double bytes_per_second
    void throttle_begin(cleaner_throttle *throttle, double bytes_per_second)
    void throttle_set(cleaner_throttle *throttle, double bytes_per_second)
    int64_t throttle_take(cleaner_throttle *throttle, int64_t size, int64_t now_ns)
    ctypedef struct cleaner_round:
        cleaner_throttle *throttle
        int64_t bytes_read, messages_read, bytes_written, messages_written
        int64_t invalid_messages, batches_emptied, index_bytes_read, index_messages_read
        int64_t largest_buffer_bytes
    void round_cancel(cleaner_round *round)
    int round_cancelled(cleaner_round *round)
    void round_note_buffers(cleaner_round *round, size_t size)


cdef extern from "cleaner_producers.h" nogil:
    ctypedef struct producer_entry:
        int64_t first, second
    ctypedef struct producer_table:
        pass
    producer_entry *producer_add(producer_table *table, int64_t producer_id)
    void producer_free(producer_table *table)
    ctypedef struct aborted_entry:
        int64_t producer_id, first_offset, last_offset, last_stable_offset
    ctypedef struct transactions:
        int no_memory
    void transactions_add(transactions *state, const aborted_entry *entry)
    void transactions_free(transactions *state)
    int transactions_on_batch(transactions *state, int64_t producer_id, int64_t last_offset, int transactional)


cdef extern from "cleaner_files.h" nogil:
    enum:
        CLEANER_OK
        CLEANER_END
        CLEANER_FULL
        CLEANER_LIMIT
        CLEANER_UNPACK
        CLEANER_PACK
        CLEANER_LEGACY
        CLEANER_CANCELLED
        CLEANER_NO_MEMORY
        CLEANER_READ_ERROR
        CLEANER_WRITE_ERROR
        CLEANER_CORRUPT
    ctypedef struct cleaner_source:
        int64_t position
        size_t room
        const uint8_t *batch
        batch_header header
        int64_t last_offset
    int source_begin(cleaner_source *source, int fd, int64_t position, int64_t end, size_t room)
    void source_free(cleaner_source *source)
    ctypedef struct cleaner_output:
        int fd
        byte_sink bytes, offset_index, time_index
        int64_t written, max_timestamp, max_timestamp_offset, first_timestamp, end_offset, batches
    void output_begin(cleaner_output *output, int fd, int64_t base_offset, int64_t index_interval_bytes,
                      size_t flush_bytes)
    void output_free(cleaner_output *output)
    int64_t output_size(const cleaner_output *output)
    int output_flush(cleaner_output *output, cleaner_round *round, int all)
    void output_index_end(cleaner_output *output)
    int write_fully(int fd, const uint8_t *data, size_t size, int64_t position)


cdef extern from "cleaner_pass.h" nogil:
    ctypedef struct cleaner_pass:
        cleaner_source source
        cleaner_round *round
        key_map *keys
        transactions *transactions
        byte_sink unpacked
        int is_unpacked
        const char *reason
    ctypedef struct index_pass:
        cleaner_pass pass_ "pass"
        int64_t start_offset, end_offset, max_keys
    int index_run(index_pass *index)
    void index_passed(index_pass *index)
    int index_old(index_pass *index, int64_t offset, const uint8_t *key, int32_t key_size)
    ctypedef struct batch_verdict:
        int64_t horizon, kept, highest_time, highest_offset
    ctypedef struct filter_pass:
        cleaner_pass pass_ "pass"
        cleaner_output output
        producer_table last_records
        byte_sink aborted, packed
        int64_t now_ms, delete_retention_ms, end_of_round
        batch_verdict verdict
        batch_header built
    int filter_run(filter_pass *filter)
    void filter_free(filter_pass *filter)
    int filter_packed(filter_pass *filter, const uint8_t *data, size_t size)
    void filter_begin_old(filter_pass *filter)
    int filter_keeps_old(filter_pass *filter, int64_t offset, const uint8_t *key, int32_t key_size, int has_value,
                         int keep_deletes)
    int filter_ends(const filter_pass *filter)
    int filter_build_old(filter_pass *filter, int64_t base_offset, int64_t base_timestamp, int append_time, int codec)
    int filter_end_old(filter_pass *filter)
    void put_record(byte_sink *sink, const record_view *record, int64_t timestamp_delta, int32_t offset_delta)


cdef int refuse(int status, str path, int64_t position, const char *reason) except -1:
    """Raise what a status of a pass means."""
    if status == CLEANER_CANCELLED:
        raise Cancelled
    if status == CLEANER_NO_MEMORY:
        raise MemoryError
    if status == CLEANER_READ_ERROR or status == CLEANER_WRITE_ERROR:
        raise OSError(errno, os.strerror(errno), path)
    raise CleanerError(path, position, reason.decode() if reason != NULL else "unknown")
