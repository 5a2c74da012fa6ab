"""Record batches: the door to ext/c/batch*.c and crc32c.c.

Owns parsing, validating, assigning, reading and building of batches (format 2; formats 0 and 1 are read, and converted
when validated, by pykafkad.legacy_records). Invariants: no Python code runs per record in `validate`, `assign` and
`scan`; bytes of a caller are changed only by `validate` (timestamps, in Kafka's cases) and `assign`, and only in place;
what a compressed batch expands to is never held as a whole (pykafkad.compression yields pieces and bounds their sum).
KIP-32 (timestamps), KIP-98 (format 2), KIP-110 (zstd), KIP-467 (record errors), KIP-937 (timestamp bounds).

    records_batch.pxi     Batch, scan, check_produce
    records_validate.pxi  Rules, Batches, validate
    records_checking.pxi  Validation: the records of a batch, checked in steps
    records_faults.pxi    Faults, refusals in Kafka's words
    records_read.pxi      Record, read, search
    records_build.pxi     build
    records_columns.pxi   Columns: many records at once, without an object for each
"""

from array import array

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pykafkad import errors
from pykafkad.errors import KafkaError


cdef extern from "crc32c.h" nogil:
    uint32_t c_crc32c "crc32c"(uint32_t seed, const uint8_t *data, size_t size)
    const char *crc32c_path_name(int path)
    bint crc32c_path_available(int path)
    uint32_t crc32c_by_path(int path, uint32_t seed, const uint8_t *data, size_t size)
    int crc32c_path_chosen()


cdef extern from "batch.h" nogil:
    enum:
        BATCH_OVERHEAD
        CODEC_MASK
        APPEND_TIME_FLAG
        TRANSACTIONAL_FLAG
        CONTROL_FLAG
        DELETE_HORIZON_FLAG
        CODEC_COUNT
        BATCH_OK
        BATCH_END
        BATCH_BAD_SIZE
        BATCH_BAD_MAGIC
        BATCH_SIZE_OVERFLOW
        BATCH_HEADER_CUT
        BATCH_BASE_OFFSET
        BATCH_TOO_LARGE
        BATCH_BAD_CRC
        BATCH_BAD_CODEC
        BATCH_OFFSET_RANGE
        BATCH_COUNT
        BATCH_COUNT_MISMATCH
        BATCH_CONTROL
        BATCH_SEQUENCE
        BATCH_PRODUCER

    ctypedef struct batch_header:
        int64_t base_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int32_t size
        int32_t leader_epoch
        uint32_t crc
        int32_t last_offset_delta
        int32_t base_sequence
        int32_t count
        int16_t attributes
        int16_t producer_epoch
        int8_t magic

    int64_t batch_last_offset(const batch_header *header)
    uint16_t load_16(const uint8_t *at)
    uint32_t load_32(const uint8_t *at)
    uint64_t load_64(const uint8_t *at)
    int batch_next(const uint8_t *data, size_t size, int32_t *batch_size, int8_t *magic)
    void batch_read_header(const uint8_t *data, int32_t size, batch_header *header)
    bint batch_crc_fits(const uint8_t *data, int32_t size)
    int batch_check_append(const uint8_t *data, const batch_header *header, int32_t max_size, int from_client,
                           int with_crc)
    int batch_check_client(const batch_header *header)
    int batch_check_producer(const batch_header *header)
    void batch_write_header(uint8_t *data, const batch_header *header)
    void batch_set_max_timestamp(uint8_t *data, batch_header *header, int append_time, int64_t max_timestamp)
    void batch_assign(uint8_t *data, int64_t base_offset, int32_t leader_epoch)
    uint32_t c_xxhash32 "xxhash32"(const uint8_t *data, size_t size)
    uint32_t c_murmur2 "murmur2"(const uint8_t *data, size_t size)


cdef extern from "snappy_block.h" nogil:
    cdef enum snappy_status:
        SNAPPY_GOES_ON
        SNAPPY_DONE
        SNAPPY_INVALID
    cdef struct snappy_block:
        pass
    void snappy_block_begin(snappy_block *block, const uint8_t *data, size_t length, uint8_t *out, size_t size)
    snappy_status snappy_block_go_on(snappy_block *block, size_t step)

cdef extern from "batch_records.h" nogil:
    enum:
        RECORDS_OK
        RECORDS_NEED_MORE
        RECORDS_PAUSED
        RECORDS_INVALID
        RECORDS_PREMATURE_END
        RECORDS_REMAINING
        RECORDS_NEGATIVE_COUNT
        RECORDS_LONG_VARINT
        RECORDS_OUT_OF_ORDER
        RECORDS_NEGATIVE_TIMESTAMP
        RECORDS_REJECTED
        RECORDS_NO_MEMORY
        FAULT_NO_KEY
        FAULT_TIMESTAMP_RANGE
        FAULT_TIMESTAMP_TYPE

    ctypedef struct record_rules:
        int64_t now_ms
        int64_t before_max_ms
        int64_t after_max_ms
        int append_time
        int compacted

    ctypedef struct record_fault:
        int64_t timestamp
        int64_t offset
        int32_t index
        int32_t key_size
        int32_t value_size
        int32_t kind

    ctypedef struct record_tally:
        int64_t max_timestamp
        int32_t max_timestamp_index
        int64_t base_offset
        int32_t seen
        int32_t fault_count
        int in_order
        record_fault *faults

    ctypedef struct record_view:
        int64_t timestamp_delta
        int32_t offset_delta
        int32_t key_size
        int32_t value_size
        int32_t header_count
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers
        const uint8_t *end

    ctypedef struct header_view:
        int32_t key_size
        int32_t value_size
        const uint8_t *key
        const uint8_t *value

    ctypedef struct record_stream:
        pass

    ctypedef struct byte_sink:
        uint8_t *data
        size_t size
        int failed

    ctypedef struct record_rewriter:
        int32_t count
        int compressed
        int negative_timestamp
        int is_passing
        int64_t base_timestamp

    void tally_begin(record_tally *tally, const batch_header *header)
    void tally_free(record_tally *tally)
    int record_read(const uint8_t *at, const uint8_t *end, record_view *record)
    int64_t record_head(const uint8_t *at, const uint8_t *end, record_view *record)
    const uint8_t *record_read_header(const uint8_t *at, const uint8_t *end, header_view *header)
    int record_failure(int status, const uint8_t *at, const uint8_t *end, int compressed)
    int records_walk(const uint8_t **at, const uint8_t *end, const uint8_t *pause, int32_t count,
                     const record_rules *rules, record_tally *tally)
    void record_stream_begin(record_stream *stream, int32_t count, int strict)
    int record_stream_next(record_stream *stream, const uint8_t **at, const uint8_t *end, record_view *record)
    int record_stream_feed(record_stream *stream, const uint8_t *data, size_t size, const record_rules *rules,
                           record_tally *tally)
    int record_stream_end(const record_stream *stream, const record_tally *tally)
    void sink_free(byte_sink *sink)
    void sink_varlong(byte_sink *sink, int64_t value)
    void sink_nullable(byte_sink *sink, const uint8_t *data, int32_t size)
    void sink_record_head(byte_sink *sink, int64_t timestamp_delta, int32_t offset_delta)
    void sink_close_record(byte_sink *sink, size_t start, size_t more)
    int record_rewriter_feed(record_rewriter *rewriter, const uint8_t *data, size_t size,
                             const record_rules *rules, record_tally *tally, byte_sink *sink, size_t *used)


# Below this, giving up the GIL and taking it again costs more than the work done without it.
cdef enum:
    NOGIL_BYTES = 65536

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class RecordsError(KafkaError):
    """Records that are refused, with Kafka's code for it.

    `message` is what an answer carries (Kafka sends few of its texts), str() says what is wrong. `record_errors`:
    a sequence of (index in the batch, text) of the records that break a rule of the topic. `position`: where in the
    buffer the bad batch starts.
    """

    def __init__(self, code, message=None, record_errors=(), *, detail="", position=-1):
        super().__init__(code, message)
        self.record_errors = record_errors
        self.detail = detail or message or errors.NAMES[code]
        self.position = position

    def __str__(self):
        return self.detail


cdef dict FAILURES = {
    BATCH_END: (errors.INVALID_RECORD, "no whole record batch"),
    BATCH_BAD_SIZE: (errors.CORRUPT_MESSAGE, "record size is less than the minimum record overhead (14)"),
    BATCH_BAD_MAGIC: (errors.CORRUPT_MESSAGE, "invalid magic found in record"),
    BATCH_SIZE_OVERFLOW: (errors.UNKNOWN_SERVER_ERROR, "batch length overflows"),
    BATCH_HEADER_CUT: (errors.UNKNOWN_SERVER_ERROR, "batch is shorter than its header"),
    BATCH_BASE_OFFSET: (errors.INVALID_RECORD, "the base offset of a client's batch is not 0"),
    BATCH_TOO_LARGE: (errors.MESSAGE_TOO_LARGE, "batch exceeds max.message.bytes"),
    BATCH_BAD_CRC: (errors.CORRUPT_MESSAGE, "batch is corrupt (stored and computed crc differ, or too short)"),
    BATCH_BAD_CODEC: (errors.UNKNOWN_SERVER_ERROR, "unknown compression codec"),
    BATCH_OFFSET_RANGE: (errors.INVALID_RECORD, "batch has an invalid offset range"),
    BATCH_COUNT: (errors.INVALID_RECORD, "invalid reported count of records"),
    BATCH_COUNT_MISMATCH: (errors.INVALID_RECORD, "offset range and count of records disagree"),
    BATCH_CONTROL: (errors.INVALID_RECORD, "clients are not allowed to write control records"),
    BATCH_SEQUENCE: (errors.INVALID_RECORD, "producer id without a valid sequence number"),
    BATCH_PRODUCER: (errors.UNKNOWN_SERVER_ERROR, "invalid producer id, epoch or sequence in a batch to be encoded again"),
    RECORDS_NEED_MORE: (errors.INVALID_RECORD, "a record goes beyond its batch"),
    RECORDS_INVALID: (errors.INVALID_RECORD, "invalid record structure"),
    RECORDS_PREMATURE_END: (errors.INVALID_RECORD, "fewer records than the batch declares"),
    RECORDS_REMAINING: (errors.INVALID_RECORD, "bytes remain after the batch's last record"),
    RECORDS_NEGATIVE_COUNT: (errors.INVALID_RECORD, "negative count of records"),
    RECORDS_LONG_VARINT: (errors.UNKNOWN_SERVER_ERROR, "the size of a record is too long a varint"),
    RECORDS_OUT_OF_ORDER: (errors.UNKNOWN_SERVER_ERROR, "offsets inside a compressed batch are not 0, 1, 2..."),
    RECORDS_NEGATIVE_TIMESTAMP: (errors.UNKNOWN_SERVER_ERROR, "invalid negative timestamp"),
}


def failure(int status, position=-1):
    """The RecordsError of a status of ext/c; a lack of memory is ours, and no verdict on the records."""
    if status == RECORDS_NO_MEMORY:
        return MemoryError("no memory for what records have to be checked with")
    code, detail = FAILURES[status]
    return RecordsError(code, detail=detail, position=position)


cdef object _compression = None


cdef object compression_module():
    """Imported when first needed: a broker whose clients do not compress never pays for it."""
    global _compression
    if _compression is None:
        from pykafkad import compression
        _compression = compression
    return _compression


cdef class Pieces:
    """The decompressed bytes of a batch's records, piece by piece, with Kafka's codes for what goes wrong."""
    cdef object iterator
    cdef object memory

    def __init__(self, int codec, payload, int magic=2):
        cdef object module = compression_module()
        self.memory = module.Kept()
        self.iterator = module.pieces(codec, payload, magic, self.memory)

    @property
    def kept(self):
        """How many bytes it keeps between two pieces, or is about to."""
        return self.memory.bytes

    def __iter__(self):
        return self

    def __next__(self):
        cdef object module = compression_module()
        try:
            return next(self.iterator)
        except module.ExpansionError as error:
            raise RecordsError(errors.INVALID_RECORD, detail=str(error)) from None
        except module.DecompressionError as error:
            raise RecordsError(errors.UNKNOWN_SERVER_ERROR, detail=str(error)) from None


def crc32c(buffer, uint32_t seed=0):
    """CRC-32C of a buffer; `seed` is the checksum of what came before it."""
    cdef Py_buffer view
    cdef uint32_t found
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    if view.len >= NOGIL_BYTES:
        with nogil:
            found = c_crc32c(seed, <const uint8_t *>view.buf, view.len)
    else:
        found = c_crc32c(seed, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return found


def crc32c_paths():
    """Names of the implementations that run on this machine, the chosen one first."""
    cdef int path = 0
    names = []
    while crc32c_path_name(path) != NULL:
        if crc32c_path_available(path):
            names.append((path != crc32c_path_chosen(), crc32c_path_name(path).decode()))
        path += 1
    return [name for _, name in sorted(names)]


def crc32c_with(str name, buffer, uint32_t seed=0):
    """crc32c by a named implementation."""
    cdef Py_buffer view
    cdef int path = 0
    while crc32c_path_name(path) != NULL:
        if crc32c_path_available(path) and crc32c_path_name(path).decode() == name:
            PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
            found = crc32c_by_path(path, seed, <const uint8_t *>view.buf, view.len)
            PyBuffer_Release(&view)
            return found
        path += 1
    raise ValueError(name)


def xxhash32(buffer):
    """xxHash32 with seed 0, for LZ4 frames."""
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    found = c_xxhash32(<const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return found


cdef class SnappyBlock:
    """A bare block of snappy, which may be large, decompressed in steps (ext/c/snappy_block.h)."""
    cdef const uint8_t[::1] source
    cdef uint8_t *out
    cdef size_t size
    cdef snappy_block block

    def __init__(self, source, Py_ssize_t start, size_t size):
        """From `start` on, behind the header, which says `size`."""
        free(self.out)
        self.out = <uint8_t *>malloc(size or 1)
        if self.out == NULL:
            raise MemoryError
        self.source = source
        self.size = size
        snappy_block_begin(&self.block, &self.source[0] + start, len(source) - start, self.out, size)

    def __dealloc__(self):
        free(self.out)

    def go_on(self, size_t step):
        """Make `step` more bytes. Whether there are more to come; ValueError where the block is not valid."""
        cdef snappy_status status = snappy_block_go_on(&self.block, step)
        if status == SNAPPY_INVALID:
            raise ValueError("invalid block")
        return status == SNAPPY_GOES_ON

    def piece(self, size_t start, size_t length):
        """Bytes of a block that is done, as many as there are."""
        start = min(start, self.size)
        return PyBytes_FromStringAndSize(<char *>self.out + start, min(length, self.size - start))


def murmur2(buffer):
    """The hash by which Kafka's clients choose a key's partition, as an unsigned number."""
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    found = c_murmur2(<const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return found


include "records_batch.pxi"
include "records_validate.pxi"
include "records_checking.pxi"
include "records_faults.pxi"
include "records_read.pxi"
include "records_build.pxi"
include "records_columns.pxi"
