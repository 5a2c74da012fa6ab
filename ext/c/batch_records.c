/* See batch_records.h. Readers return NULL or a status; every bound is checked here. */
#include "batch_varint.h"

#include <stdlib.h>

/* ---- one record ---- */

const uint8_t *record_read_header(const uint8_t *at, const uint8_t *end, header_view *header) {
  at = read_sized(at, end, &header->key_size, &header->key);
  if (!at || header->key_size < 0)
    return NULL;
  return read_sized(at, end, &header->value_size, &header->value);
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

int64_t record_head(const uint8_t *at, const uint8_t *end, record_view *record) {
  int32_t size;
  const uint8_t *body = read_varint(at, end, &size), *next;
  if (!body || size < 0 || body == end || !(next = read_varlong(body + 1, end, &record->timestamp_delta)) ||
      !read_varint(next, end, &record->offset_delta))
    return 0;
  return body - at + (int64_t)size;
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

void record_check(const record_view *record, const record_rules *rules, record_tally *tally) {
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

int tally_status(const record_tally *tally) {
  if (tally->no_memory)
    return RECORDS_NO_MEMORY;
  return tally->fault_count ? RECORDS_REJECTED : RECORDS_OK;
}

/* ---- an uncompressed batch ---- */

int records_walk(const uint8_t **at, const uint8_t *end, const uint8_t *pause, int32_t count,
                 const record_rules *rules, record_tally *tally) {
  const uint8_t *data = *at;
  while (tally->seen < count) {
    if (data >= pause && data < end) {
      *at = data;
      return RECORDS_PAUSED;
    }
    record_view record;
    int status = record_read(data, end, &record);
    if (status != RECORDS_OK)
      return record_failure(status, data, end, 0);
    record_check(&record, rules, tally);
    data = record.end;
  }
  return count > 0 && data != end ? RECORDS_REMAINING : tally_status(tally);
}
