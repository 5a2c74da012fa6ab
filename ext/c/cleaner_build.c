/* The second pass: what is written of a batch. See cleaner_build.h. */
#include "cleaner_build.h"

#include "cleaner_records.h"

#define KNOWN_FLAGS (CODEC_MASK | APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG)

/* ---- a record ---- */

static inline size_t varlong_size(int64_t value) {
  uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  return zigzag ? (size_t)(63 - __builtin_clzll(zigzag)) / 7 + 1 : 1;
}

static inline uint8_t *put_varlong(uint8_t *at, int64_t value) {
  uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  for (; left >= 0x80; left >>= 7)
    *at++ = (uint8_t)(left | 0x80);
  *at++ = (uint8_t)left;
  return at;
}

static inline size_t nullable_size(int32_t size) { return size < 0 ? 1 : varlong_size(size) + (size_t)size; }

static inline uint8_t *put_nullable(uint8_t *at, const uint8_t *data, int32_t size) {
  at = put_varlong(at, size < 0 ? -1 : size);
  if (size <= 0)
    return at;
  memcpy(at, data, (size_t)size);
  return at + size;
}

static size_t headers_size(const record_view *record) {
  size_t size = varlong_size(record->header_count);
  const uint8_t *at = record->headers;
  header_view header;
  for (int32_t left = record->header_count; left > 0; left--) {
    at = record_read_header(at, record->end, &header);
    size += nullable_size(header.key_size) + nullable_size(header.value_size);
  }
  return size;
}

void put_record(byte_sink *sink, const record_view *record, int64_t timestamp_delta, int32_t offset_delta) {
  size_t body = 1 + varlong_size(timestamp_delta) + varlong_size(offset_delta) +
                nullable_size(record->key_size) + nullable_size(record->value_size) + headers_size(record);
  uint8_t *at = sink_reserve(sink, varlong_size((int64_t)body) + body);
  if (!at)
    return;
  at = put_varlong(at, (int64_t)body);
  *at++ = 0;
  at = put_varlong(at, timestamp_delta);
  at = put_varlong(at, offset_delta);
  at = put_nullable(at, record->key, record->key_size);
  at = put_nullable(at, record->value, record->value_size);
  at = put_varlong(at, record->header_count);
  const uint8_t *from = record->headers;
  header_view header;
  for (int32_t left = record->header_count; left > 0; left--) {
    from = record_read_header(from, record->end, &header);
    at = put_nullable(at, header.key, header.key_size);
    at = put_nullable(at, header.value, header.value_size);
  }
}

/* ---- a batch ---- */

static int written(filter_pass *filter, int64_t size, int64_t records, int64_t last_offset,
                   int64_t max_timestamp) {
  cleaner_round *round = filter->pass.round;
  round->messages_written += records;
  round->bytes_written += size;
  int status = output_note(&filter->output, size, last_offset, max_timestamp);
  if (status == CLEANER_CORRUPT)
    filter->pass.reason = filter->output.reason;
  return status;
}

/* The header of what is built: the batch's, as Kafka's builder makes it. */
static void head(filter_pass *filter) {
  const batch_verdict *verdict = &filter->verdict;
  batch_header *built = &filter->built;
  *built = filter->pass.source.header;
  built->attributes &= KNOWN_FLAGS;
  built->count = (int32_t)verdict->kept;
  if (!(built->attributes & APPEND_TIME_FLAG))
    built->max_timestamp = verdict->highest_time;
  if (verdict->horizon >= 0) {
    built->attributes |= DELETE_HORIZON_FLAG;
    built->base_timestamp = verdict->horizon;
  }
}

/* The batch of which `built` is the header and whose records were put behind `start` of the output. */
static int close_batch(filter_pass *filter, size_t start) {
  byte_sink *bytes = &filter->output.bytes;
  batch_header *built = &filter->built;
  if (bytes->failed || filter->packed.failed)
    return CLEANER_NO_MEMORY;
  size_t size = bytes->size - start;
  if (size > INT32_MAX) {
    filter->pass.reason = "a batch that would be too large";
    return CLEANER_CORRUPT;
  }
  built->size = (int32_t)size;
  batch_write_header(bytes->data + start, built);
  return written(filter, built->size, built->count, built->base_offset + built->last_offset_delta,
                 built->max_timestamp);
}

int build_anew(filter_pass *filter) {
  cleaner_pass *pass = &filter->pass;
  const batch_header *source = &pass->source.header;
  record_reader reader;
  record_view record;
  head(filter);
  int packs = (source->attributes & CODEC_MASK) != 0;
  byte_sink *sink = packs ? &filter->packed : &filter->output.bytes;
  size_t start = sink->size;
  if (!packs)
    sink_reserve(sink, BATCH_OVERHEAD);
  reader_begin(&reader, pass);
  for (int64_t number = 0; number < filter->verdict.kept; number++) {
    record_read(reader.start + filter->places[number], reader.end, &record);
    int64_t timestamp = source->attributes & APPEND_TIME_FLAG
                            ? source->max_timestamp
                            : (int64_t)((uint64_t)source->base_timestamp + (uint64_t)record.timestamp_delta);
    if (number == 0 && filter->verdict.horizon < 0)
      filter->built.base_timestamp = timestamp;
    put_record(sink, &record, (int64_t)((uint64_t)timestamp - (uint64_t)filter->built.base_timestamp),
               record.offset_delta);
  }
  return packs ? CLEANER_PACK : close_batch(filter, start);
}

int filter_packed(filter_pass *filter, const uint8_t *data, size_t size) {
  byte_sink *bytes = &filter->output.bytes;
  size_t start = bytes->size;
  sink_reserve(bytes, BATCH_OVERHEAD);
  sink_bytes(bytes, data, size);
  filter->packed.size = 0;
  return close_batch(filter, start);
}

int build_copy(filter_pass *filter) {
  const cleaner_source *source = &filter->pass.source;
  sink_bytes(&filter->output.bytes, source->batch, (size_t)source->header.size);
  return written(filter, source->header.size, filter->verdict.kept, source->last_offset,
                 source->header.max_timestamp);
}

/* A batch of format 2 without records. An old one leaves its last offset. */
int build_empty(filter_pass *filter) {
  const cleaner_source *source = &filter->pass.source;
  batch_header *built = &filter->built;
  *built = source->header;
  built->attributes &= APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG;
  if (built->magic < 2)
    *built = (batch_header){.base_offset = source->last_offset,
                            .max_timestamp = NO_TIMESTAMP,
                            .leader_epoch = -1,
                            .producer_id = -1,
                            .producer_epoch = -1,
                            .base_sequence = -1};
  built->magic = 2;
  built->base_timestamp = NO_TIMESTAMP;
  built->count = 0;
  filter->pass.round->batches_emptied++;
  size_t start = filter->output.bytes.size;
  sink_reserve(&filter->output.bytes, BATCH_OVERHEAD);
  return close_batch(filter, start);
}

int filter_build_old(filter_pass *filter, int64_t base_offset, int64_t base_timestamp, int append_time,
                     int codec) {
  const batch_verdict *verdict = &filter->verdict;
  filter->built = (batch_header){
      .base_offset = base_offset,
      .base_timestamp = base_timestamp,
      .max_timestamp = verdict->highest_time,
      .last_offset_delta = (int32_t)(verdict->highest_offset - base_offset),
      .count = (int32_t)verdict->kept,
      .attributes = (int16_t)(codec | (append_time ? APPEND_TIME_FLAG : 0) |
                              (verdict->horizon >= 0 ? DELETE_HORIZON_FLAG : 0)),
      .magic = 2,
      .leader_epoch = -1,
      .producer_id = -1,
      .producer_epoch = -1,
      .base_sequence = -1,
  };
  return codec ? CLEANER_PACK : filter_packed(filter, filter->packed.data, filter->packed.size);
}
