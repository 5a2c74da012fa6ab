/* See batch_records.h. Readers return NULL or a status; every bound is checked here. */
#include "batch_records.h"

#include <stdlib.h>

#define MAX_VARINT 5
#define MAX_VARLONG 10

/* ---- varints ---- */

static inline int64_t unzigzag_long(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

static inline int32_t unzigzag(uint32_t value) { return (int32_t)(value >> 1) ^ -(int32_t)(value & 1); }

/* NULL when the number does not end before `end`, or not within `limit` bytes. */
static const uint8_t *read_long_form(const uint8_t *at, const uint8_t *end, int limit, uint64_t *value) {
  uint64_t found = 0;
  for (int place = 0; place < limit && at < end; place++) {
    uint8_t byte = *at++;
    found |= (uint64_t)(byte & 0x7f) << (7 * place);
    if (byte < 0x80) {
      *value = found;
      return at;
    }
  }
  return NULL;
}

static inline const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, int32_t *value) {
  if (at < end && *at < 0x80) {
    *value = unzigzag(*at);
    return at + 1;
  }
  uint64_t found;
  at = read_long_form(at, end, MAX_VARINT, &found);
  if (at)
    *value = unzigzag((uint32_t)found);
  return at;
}

static inline const uint8_t *read_varlong(const uint8_t *at, const uint8_t *end, int64_t *value) {
  uint64_t found;
  if (at < end && *at < 0x80) {
    *value = unzigzag_long(*at);
    return at + 1;
  }
  at = read_long_form(at, end, MAX_VARLONG, &found);
  if (at)
    *value = unzigzag_long(found);
  return at;
}

static inline const uint8_t *read_sized(const uint8_t *at, const uint8_t *end, int32_t *size,
                                        const uint8_t **data) {
  at = read_varint(at, end, size);
  if (!at)
    return NULL;
  *data = at;
  if (*size <= 0)
    return at;
  return *size <= end - at ? at + *size : NULL;
}

/* ---- one record ---- */

const uint8_t *record_read_header(const uint8_t *at, const uint8_t *end, header_view *header) {
  at = read_sized(at, end, &header->key_size, &header->key);
  if (!at || header->key_size < 0)
    return NULL;
  return read_sized(at, end, &header->value_size, &header->value);
}

/* The fields after the size, up to the headers' count. */
static inline const uint8_t *read_fields(const uint8_t *at, const uint8_t *end, record_view *record) {
  if (at >= end)
    return NULL;
  at = read_varlong(at + 1, end, &record->timestamp_delta);
  if (!at || !(at = read_varint(at, end, &record->offset_delta)))
    return NULL;
  if (!(at = read_sized(at, end, &record->key_size, &record->key)))
    return NULL;
  if (!(at = read_sized(at, end, &record->value_size, &record->value)))
    return NULL;
  return read_varint(at, end, &record->header_count);
}

static inline int read_body(const uint8_t *at, const uint8_t *end, record_view *record) {
  at = read_fields(at, end, record);
  if (!at || record->header_count < 0 || record->header_count > end - at)
    return RECORDS_INVALID;
  record->headers = at;
  record->end = end;
  header_view header;
  for (int32_t left = record->header_count; left > 0; left--)
    if (!(at = record_read_header(at, end, &header)))
      return RECORDS_INVALID;
  return at == end ? RECORDS_OK : RECORDS_INVALID;
}

int record_read(const uint8_t *at, const uint8_t *end, record_view *record) {
  int32_t size;
  const uint8_t *body = read_varint(at, end, &size);
  if (!body)
    return end - at >= MAX_VARINT ? RECORDS_LONG_VARINT : RECORDS_NEED_MORE;
  if (size < 0)
    return RECORDS_INVALID;
  if (size > end - body)
    return RECORDS_NEED_MORE;
  return read_body(body, body + size, record);
}

int record_failure(int status, const uint8_t *at, const uint8_t *end, int compressed) {
  if (status == RECORDS_NEED_MORE)
    return at == end ? RECORDS_PREMATURE_END : RECORDS_INVALID;
  if (status == RECORDS_LONG_VARINT && compressed)
    return RECORDS_INVALID;
  return status;
}

/* ---- rules ---- */

void tally_begin(record_tally *tally, const batch_header *header) {
  memset(tally, 0, sizeof *tally);
  tally->base_offset = header->base_offset;
  tally->base_timestamp = header->base_timestamp;
  tally->append_time = header->max_timestamp;
  tally->batch_append_time = (header->attributes & APPEND_TIME_FLAG) != 0;
  tally->max_timestamp = NO_TIMESTAMP;
  tally->max_timestamp_index = -1;
  tally->in_order = 1;
}

void tally_free(record_tally *tally) {
  free(tally->faults);
  tally->faults = NULL;
}

static void add_fault(record_tally *tally, int kind, int64_t timestamp, const record_view *record) {
  if (tally->fault_count == MAX_FAULTS || tally->no_memory)
    return;
  if (tally->fault_count == tally->fault_capacity) {
    int32_t capacity = tally->fault_capacity ? 2 * tally->fault_capacity : 16;
    record_fault *grown = realloc(tally->faults, (size_t)capacity * sizeof *grown);
    if (!grown) {
      tally->no_memory = 1;
      return;
    }
    tally->faults = grown;
    tally->fault_capacity = capacity;
  }
  tally->faults[tally->fault_count++] = (record_fault){
      .kind = kind,
      .index = tally->seen,
      .timestamp = timestamp,
      .offset = (int64_t)((uint64_t)tally->base_offset + (uint64_t)(int64_t)record->offset_delta),
      .key_size = record->key_size,
      .value_size = record->value_size,
  };
}

static inline int out_of_range(int64_t timestamp, const record_rules *rules) {
  int64_t age = (int64_t)((uint64_t)rules->now_ms - (uint64_t)timestamp); /* wraps as in Kafka */
  return age > rules->before_max_ms || (int64_t)(0 - (uint64_t)age) > rules->after_max_ms;
}

static inline int64_t record_timestamp(const record_tally *tally, const record_view *record) {
  if (tally->batch_append_time)
    return tally->append_time;
  return (int64_t)((uint64_t)tally->base_timestamp + (uint64_t)record->timestamp_delta);
}

static inline void check_record(const record_view *record, const record_rules *rules, record_tally *tally) {
  int64_t timestamp = record_timestamp(tally, record);
  if (rules->compacted && record->key_size < 0)
    add_fault(tally, FAULT_NO_KEY, timestamp, record);
  else if (!rules->append_time && timestamp != NO_TIMESTAMP) {
    if (out_of_range(timestamp, rules))
      add_fault(tally, FAULT_TIMESTAMP_RANGE, timestamp, record);
  } else if (tally->batch_append_time)
    add_fault(tally, FAULT_TIMESTAMP_TYPE, timestamp, record);
  if (timestamp > tally->max_timestamp) {
    tally->max_timestamp = timestamp;
    tally->max_timestamp_index = tally->seen;
  }
  if ((uint64_t)tally->base_offset + (uint64_t)(int64_t)record->offset_delta != (uint64_t)tally->seen)
    tally->in_order = 0;
  tally->seen++;
}

static int tally_status(const record_tally *tally) {
  if (tally->no_memory)
    return RECORDS_NO_MEMORY;
  return tally->fault_count ? RECORDS_REJECTED : RECORDS_OK;
}

/* ---- an uncompressed batch ---- */

int records_walk(const uint8_t *data, const uint8_t *end, int32_t count, const record_rules *rules,
                 record_tally *tally) {
  if (count < 0)
    return RECORDS_NEGATIVE_COUNT;
  while (tally->seen < count) {
    record_view record;
    int status = record_read(data, end, &record);
    if (status != RECORDS_OK)
      return record_failure(status, data, end, 0);
    check_record(&record, rules, tally);
    data = record.end;
  }
  return count > 0 && data != end ? RECORDS_REMAINING : tally_status(tally);
}

/* ---- decompressed bytes as they come ---- */

enum stream_state {
  AT_SIZE,
  AT_ATTRIBUTES,
  AT_TIMESTAMP,
  AT_OFFSET,
  AT_KEY_SIZE,
  IN_KEY,
  AT_VALUE_SIZE,
  IN_VALUE,
  AT_HEADER_COUNT,
  AT_HEADER_KEY_SIZE,
  IN_HEADER_KEY,
  AT_HEADER_VALUE_SIZE,
  IN_HEADER_VALUE
};

void record_stream_begin(record_stream *stream, int32_t count) {
  memset(stream, 0, sizeof *stream);
  stream->count = count;
  stream->state = AT_SIZE;
}

/* Most records lie within one piece: read those at once. RECORDS_NEED_MORE leaves all to the step-wise
 * reader, which also finds out what is wrong where this one gives up. */
static inline int skim_record(const uint8_t *at, const uint8_t *end, record_view *record) {
  int32_t size;
  header_view header;
  if (!(at = read_varint(at, end, &size)) || !(at = read_fields(at, end, record)))
    return RECORDS_NEED_MORE;
  if (record->header_count < 0)
    return RECORDS_INVALID;
  for (int32_t left = record->header_count; left > 0; left--)
    if (!(at = record_read_header(at, end, &header)))
      return RECORDS_NEED_MORE;
  record->end = at;
  return RECORDS_OK;
}

/* Takes bytes of a number until it is whole. 1 when it is, 0 when it goes on, -1 when it is too long. */
static int take_number(record_stream *stream, const uint8_t **at, const uint8_t *end, int limit,
                       uint64_t *value) {
  while (*at < end) {
    uint8_t byte = *(*at)++;
    stream->varint |= (uint64_t)(byte & 0x7f) << (7 * stream->shift++);
    if (byte < 0x80) {
      *value = stream->varint;
      stream->varint = 0;
      stream->shift = 0;
      return 1;
    }
    if (stream->shift == limit)
      return -1;
  }
  return 0;
}

static void skip_next(record_stream *stream, int32_t size, int state) {
  stream->skip = size > 0 ? size : 0;
  stream->state = state;
}

static void next_header(record_stream *stream) {
  stream->state = stream->record.header_count-- > 0 ? AT_HEADER_KEY_SIZE : AT_SIZE;
}

/* A number has been read: what does it mean, and what comes next? */
static int accept_number(record_stream *stream, uint64_t number) {
  record_view *record = &stream->record;
  int32_t value = unzigzag((uint32_t)number);
  switch (stream->state) {
  case AT_SIZE: /* not compared with what follows, as in Kafka */
    stream->state = AT_ATTRIBUTES;
    break;
  case AT_TIMESTAMP:
    record->timestamp_delta = unzigzag_long(number);
    stream->state = AT_OFFSET;
    break;
  case AT_OFFSET:
    record->offset_delta = value;
    stream->state = AT_KEY_SIZE;
    break;
  case AT_KEY_SIZE:
    record->key_size = value;
    skip_next(stream, value, IN_KEY);
    break;
  case AT_VALUE_SIZE:
    record->value_size = value;
    skip_next(stream, value, IN_VALUE);
    break;
  case AT_HEADER_COUNT:
    if (value < 0)
      return RECORDS_INVALID;
    record->header_count = value;
    next_header(stream);
    break;
  case AT_HEADER_KEY_SIZE:
    if (value < 0)
      return RECORDS_INVALID;
    skip_next(stream, value, IN_HEADER_KEY);
    break;
  default:
    skip_next(stream, value, IN_HEADER_VALUE);
  }
  return RECORDS_OK;
}

static void skipped(record_stream *stream) {
  switch (stream->state) {
  case IN_KEY:
    stream->state = AT_VALUE_SIZE;
    break;
  case IN_VALUE:
    stream->state = AT_HEADER_COUNT;
    break;
  case IN_HEADER_KEY:
    stream->state = AT_HEADER_VALUE_SIZE;
    break;
  default:
    next_header(stream);
  }
}

static int is_skipping(int state) {
  return state == IN_KEY || state == IN_VALUE || state == IN_HEADER_KEY || state == IN_HEADER_VALUE;
}

/* One step of the step-wise reader: a field, or as much of it as there is. */
static int step(record_stream *stream, const uint8_t **at, const uint8_t *end) {
  if (stream->state == AT_ATTRIBUTES) {
    ++*at;
    stream->state = AT_TIMESTAMP;
    return RECORDS_OK;
  }
  if (is_skipping(stream->state)) {
    int64_t here = stream->skip < end - *at ? stream->skip : end - *at;
    *at += here;
    stream->skip -= here;
    if (stream->skip == 0)
      skipped(stream);
    return RECORDS_OK;
  }
  uint64_t number;
  int taken = take_number(stream, at, end, stream->state == AT_TIMESTAMP ? MAX_VARLONG : MAX_VARINT, &number);
  if (taken < 0)
    return RECORDS_INVALID;
  return taken ? accept_number(stream, number) : RECORDS_OK;
}

/* Steps to the end of the started record. 1 when it is there, 0 when it goes on, -1 when it is wrong. */
static int step_through(record_stream *stream, const uint8_t **at, const uint8_t *end) {
  do {
    if (step(stream, at, end) != RECORDS_OK)
      return -1;
    if (stream->state == AT_SIZE && stream->shift == 0)
      return 1;
  } while (*at < end || (is_skipping(stream->state) && stream->skip == 0));
  return 0;
}

int record_stream_feed(record_stream *stream, const uint8_t *data, size_t size, const record_rules *rules,
                       record_tally *tally) {
  const uint8_t *at = data, *end = data + size;
  while (at < end) {
    if (tally->seen == stream->count)
      return RECORDS_REMAINING;
    if (stream->state == AT_SIZE && stream->shift == 0) {
      record_view record;
      int status = skim_record(at, end, &record);
      if (status == RECORDS_INVALID)
        return status;
      if (status == RECORDS_OK) {
        check_record(&record, rules, tally);
        at = record.end;
        continue;
      }
    }
    int ended = step_through(stream, &at, end);
    if (ended < 0)
      return RECORDS_INVALID;
    if (ended)
      check_record(&stream->record, rules, tally);
  }
  return tally->no_memory ? RECORDS_NO_MEMORY : RECORDS_OK;
}

int record_stream_end(const record_stream *stream, const record_tally *tally) {
  if (stream->count < 0)
    return RECORDS_NEGATIVE_COUNT;
  return tally->seen < stream->count ? RECORDS_PREMATURE_END : tally_status(tally);
}

/* ---- encoding again ---- */

static void write_record(byte_sink *sink, int64_t timestamp_delta, int32_t offset_delta,
                         const record_view *record) {
  size_t start = sink->size;
  sink_record_head(sink, timestamp_delta, offset_delta);
  sink_nullable(sink, record->key, record->key_size);
  sink_nullable(sink, record->value, record->value_size);
  sink_varlong(sink, record->header_count);
  header_view header = {0};
  const uint8_t *at = record->headers;
  for (int32_t left = record->header_count; left > 0; left--) {
    at = record_read_header(at, record->end, &header);
    sink_nullable(sink, header.key, header.key_size);
    sink_nullable(sink, header.value, header.value_size);
  }
  sink_close_record(sink, start);
}

int record_rewriter_feed(record_rewriter *rewriter, const uint8_t *data, size_t size,
                         const record_rules *rules, record_tally *tally, byte_sink *sink, size_t *used) {
  const uint8_t *at = data, *end = data + size;
  *used = 0;
  while (tally->seen < rewriter->count) {
    record_view record;
    int status = record_read(at, end, &record);
    if (status == RECORDS_NEED_MORE)
      return status;
    if (status != RECORDS_OK)
      return record_failure(status, at, end, rewriter->compressed);
    int64_t timestamp = record_timestamp(tally, &record);
    if (tally->seen == 0)
      rewriter->base_timestamp = timestamp;
    if (timestamp < NO_TIMESTAMP)
      rewriter->negative_timestamp = 1;
    int32_t index = tally->seen;
    check_record(&record, rules, tally);
    if (!tally->fault_count && !rewriter->negative_timestamp)
      write_record(sink, (int64_t)((uint64_t)timestamp - (uint64_t)rewriter->base_timestamp), index, &record);
    if (sink->failed || tally->no_memory)
      return RECORDS_NO_MEMORY;
    at = record.end;
    *used = (size_t)(at - data);
  }
  return at == end ? RECORDS_OK : RECORDS_REMAINING;
}
