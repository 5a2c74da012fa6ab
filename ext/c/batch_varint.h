/* What the readers of records share: numbers and sized bytes, read within bounds. NULL where they end too
 * early. */
#ifndef PYKAFKAD_BATCH_VARINT_H
#define PYKAFKAD_BATCH_VARINT_H

#include "batch_records.h"

#define MAX_VARINT 5
#define MAX_VARLONG 10

static inline int64_t unzigzag_long(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

static inline int32_t unzigzag(uint32_t value) { return (int32_t)(value >> 1) ^ -(int32_t)(value & 1); }

/* NULL when the number does not end before `end`, or not within `limit` bytes. */
static inline const uint8_t *read_long_form(const uint8_t *at, const uint8_t *end, int limit,
                                            uint64_t *value) {
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

static inline int64_t record_timestamp(const record_tally *tally, const record_view *record) {
  if (tally->batch_append_time)
    return tally->append_time;
  return (int64_t)((uint64_t)tally->base_timestamp + (uint64_t)record->timestamp_delta);
}

#endif
