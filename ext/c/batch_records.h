/* The records inside a batch of format 2: reading, checking as they pass, writing.
 *
 *   record  varint size of the rest, int8 attributes (unused), varlong timestamp delta, varint offset delta,
 *           varint key size (< 0: null), key, varint value size (< 0: null), value, varint header count,
 *           headers: varint key size, key (UTF-8), varint value size (< 0: null), value
 *
 * Varints are zigzag, seven bits a byte, low ones first. Three readers, because Kafka has three and they are
 * not equally strict: records_walk over an uncompressed batch, record_stream over decompressed bytes as they
 * come (its memory does not depend on them; like Kafka it does not compare a record's size with its fields),
 * record_rewriter for batches that are encoded again.
 */
#ifndef PYKAFKAD_BATCH_RECORDS_H
#define PYKAFKAD_BATCH_RECORDS_H

#include "batch.h"

enum records_status {
  RECORDS_OK = 0,
  RECORDS_NEED_MORE = BATCH_STATUS_LAST, /* a record goes on beyond these bytes */
  RECORDS_PAUSED,                        /* more of these bytes are to be looked at */
  RECORDS_INVALID,                       /* structure */
  RECORDS_PREMATURE_END,                 /* fewer records than the count says */
  RECORDS_REMAINING,                     /* bytes after the last record */
  RECORDS_NEGATIVE_COUNT,
  RECORDS_LONG_VARINT,        /* the size of a record in an uncompressed batch */
  RECORDS_OUT_OF_ORDER,       /* offsets in a compressed batch that are not 0, 1, 2... */
  RECORDS_NEGATIVE_TIMESTAMP, /* below -1, in a batch that has to be encoded again */
  RECORDS_REJECTED,           /* see faults */
  RECORDS_NO_MEMORY
};

/* A topic's rules for records. */
typedef struct {
  int64_t now_ms;
  int64_t before_max_ms;
  int64_t after_max_ms;
  int append_time;
  int compacted;
} record_rules;

enum record_fault_kind { FAULT_NO_KEY, FAULT_TIMESTAMP_RANGE, FAULT_TIMESTAMP_TYPE };

/* A record that breaks a rule of the topic. */
typedef struct {
  int64_t timestamp;
  int64_t offset;
  int32_t index;
  int32_t key_size;
  int32_t value_size;
  int32_t kind;
} record_fault;

#define MAX_FAULTS 20000 /* kept for the answer; Kafka has no bound */

/* What was seen of a batch's records so far. */
typedef struct {
  int64_t base_offset;
  int64_t base_timestamp;
  int64_t append_time; /* every record's timestamp when the batch says so */
  int64_t max_timestamp;
  int32_t max_timestamp_index; /* the first record with it */
  int32_t seen;
  int32_t fault_count;
  int32_t fault_capacity;
  int batch_append_time;
  int in_order;
  int no_memory;
  record_fault *faults;
} record_tally;

void tally_begin(record_tally *tally, const batch_header *header);
int tally_status(const record_tally *tally);
void tally_free(record_tally *tally);

/* One record, as pointers into the bytes it was read from. */
typedef struct {
  int64_t timestamp_delta;
  int32_t offset_delta;
  int32_t key_size;
  int32_t value_size;
  int32_t header_count;
  const uint8_t *key;
  const uint8_t *value;
  const uint8_t *headers;
  const uint8_t *end;
} record_view;

/* One header of a record, of which record_read has checked the bounds. */
typedef struct {
  int32_t key_size;
  int32_t value_size;
  const uint8_t *key;
  const uint8_t *value;
} header_view;

/* Reads the record at `at`; all of it, sizes compared. RECORDS_NEED_MORE when it goes beyond `end`. */
int record_read(const uint8_t *at, const uint8_t *end, record_view *record);
/* The size of the record at `at`, its own size's bytes included, and its offset delta; 0 where they are not
 * all there. */
int64_t record_head(const uint8_t *at, const uint8_t *end, record_view *record);
const uint8_t *record_read_header(const uint8_t *at, const uint8_t *end, header_view *header);

/* What record_read's failure at these bytes means in an uncompressed batch and at the end of a decompressed
 * one. */
int record_failure(int status, const uint8_t *at, const uint8_t *end, int compressed);

/* Notes the record as the next one, and what rules it breaks. */
void record_check(const record_view *record, const record_rules *rules, record_tally *tally);

/* Checks `count` records that fill *at..end, from *at on until one ends at `pause` or behind it:
 * RECORDS_PAUSED, and *at is where the next one starts. */
int records_walk(const uint8_t **at, const uint8_t *end, const uint8_t *pause, int32_t count,
                 const record_rules *rules, record_tally *tally);

/* `strict`: a record's size has to be what its fields take. As Kafka reads such a record whole before it
 * looks at it, one that is wrong is told when its last byte has come. */
typedef struct {
  int32_t count;
  int state;
  int shift;
  int strict;
  int odd; /* a number or a null of a key, value or header was not written in the shortest way */
  uint64_t varint;
  int64_t skip;
  int64_t left; /* strict: bytes of this record still to come */
  record_view record;
} record_stream;

void record_stream_begin(record_stream *stream, int32_t count, int strict);
/* The next record, of which only times, offset and sizes are to be had; *at is moved. RECORDS_NEED_MORE: it
 * goes on. */
int record_stream_next(record_stream *stream, const uint8_t **at, const uint8_t *end, record_view *record);
int record_stream_feed(record_stream *stream, const uint8_t *data, size_t size, const record_rules *rules,
                       record_tally *tally);
int record_stream_end(const record_stream *stream, const record_tally *tally);
/* One field further. 1: a record has come to its end, 0: it has not, -1: it is wrong. */
int record_stream_step(record_stream *stream, const uint8_t **at, const uint8_t *end);
/* A record's key is what comes next. */
int record_stream_at_key(const record_stream *stream);

/* Bytes that grow. A failed growth is remembered and everything after it ignored. */
typedef struct {
  uint8_t *data;
  size_t size;
  size_t capacity;
  int failed;
} byte_sink;

void sink_free(byte_sink *sink);
uint8_t *sink_reserve(byte_sink *sink, size_t size);
void sink_bytes(byte_sink *sink, const uint8_t *data, size_t size);
void sink_varlong(byte_sink *sink, int64_t value);
void sink_nullable(byte_sink *sink, const uint8_t *data, int32_t size);

/* A record's bytes are its size and then its body: write the body from `start`, then close it; `more` bytes
 * of the body are still to come. */
void sink_record_head(byte_sink *sink, int64_t timestamp_delta, int32_t offset_delta);
void sink_close_record(byte_sink *sink, size_t start, size_t more);

/* Reads whole records from data..end, checks them, and writes them to `sink` with offsets 0, 1, 2... and
 * timestamps from the first one's. `used` says how far it came: RECORDS_NEED_MORE leaves the started record
 * to the caller, unless it is long, so nobody has to keep more than that. */
typedef struct {
  int32_t count;
  int compressed;
  int negative_timestamp;
  int is_passing; /* a long record's bytes are passed on as they come */
  int in_tail;    /* and what comes next of it is its key, or lies behind that */
  int64_t base_timestamp;
  record_stream stream;
} record_rewriter;

int record_rewriter_feed(record_rewriter *rewriter, const uint8_t *data, size_t size,
                         const record_rules *rules, record_tally *tally, byte_sink *sink, size_t *used);

#endif
