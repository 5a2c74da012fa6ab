/* Growing bytes, and records written to them. See batch_records.h. */
#include "batch_records.h"

#include <stdlib.h>

#define LONGEST 10 /* bytes of a varint of 64 bits */

void sink_free(byte_sink *sink) {
  free(sink->data);
  memset(sink, 0, sizeof *sink);
}

uint8_t *sink_reserve(byte_sink *sink, size_t size) {
  if (sink->failed)
    return NULL;
  if (sink->capacity - sink->size < size) {
    size_t capacity = sink->capacity ? sink->capacity : 256;
    while (capacity - sink->size < size)
      capacity *= 2;
    uint8_t *grown = realloc(sink->data, capacity);
    if (!grown) {
      sink->failed = 1;
      return NULL;
    }
    sink->data = grown;
    sink->capacity = capacity;
  }
  uint8_t *at = sink->data + sink->size;
  sink->size += size;
  return at;
}

void sink_bytes(byte_sink *sink, const uint8_t *data, size_t size) {
  uint8_t *at = sink_reserve(sink, size);
  if (at && size)
    memcpy(at, data, size);
}

static size_t put_varlong(uint8_t *at, int64_t value) {
  uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  size_t size = 0;
  for (; left >= 0x80; left >>= 7)
    at[size++] = (uint8_t)(left | 0x80);
  at[size++] = (uint8_t)left;
  return size;
}

void sink_varlong(byte_sink *sink, int64_t value) {
  uint8_t bytes[LONGEST];
  sink_bytes(sink, bytes, put_varlong(bytes, value));
}

void sink_nullable(byte_sink *sink, const uint8_t *data, int32_t size) {
  sink_varlong(sink, size < 0 ? -1 : size);
  if (size > 0)
    sink_bytes(sink, data, (size_t)size);
}

void sink_record_head(byte_sink *sink, int64_t timestamp_delta, int32_t offset_delta) {
  uint8_t attributes = 0;
  sink_bytes(sink, &attributes, 1);
  sink_varlong(sink, timestamp_delta);
  sink_varlong(sink, offset_delta);
}

void sink_close_record(byte_sink *sink, size_t start, size_t more) {
  uint8_t prefix[LONGEST];
  size_t body = sink->size - start;
  size_t prefix_size = put_varlong(prefix, (int64_t)(body + more));
  if (!sink_reserve(sink, prefix_size))
    return;
  memmove(sink->data + start + prefix_size, sink->data + start, body);
  memcpy(sink->data + start, prefix, prefix_size);
}
