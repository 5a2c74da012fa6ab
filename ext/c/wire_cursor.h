/* Reading the wire's primitives from a bounded run of bytes.
 *
 * Every function checks what is left before it reads, moves the cursor and returns 0, or returns -1 and
 * leaves the output alone. Kafka's integers are big-endian; its unsigned varints hold at most five bytes,
 * and the bits of the fifth that fit no 32-bit number are dropped, as Kafka drops them.
 */
#ifndef PYKAFKAD_WIRE_CURSOR_H
#define PYKAFKAD_WIRE_CURSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "big_endian.h"

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} wire_cursor;

static inline size_t wire_left(const wire_cursor *cursor) { return (size_t)(cursor->end - cursor->at); }

static inline int wire_get_i8(wire_cursor *cursor, int64_t *out) {
  if (wire_left(cursor) < 1)
    return -1;
  *out = (int8_t)*cursor->at++;
  return 0;
}

static inline int wire_get_u16(wire_cursor *cursor, int64_t *out) {
  if (wire_left(cursor) < 2)
    return -1;
  *out = load_16(cursor->at);
  cursor->at += 2;
  return 0;
}

static inline int wire_get_i16(wire_cursor *cursor, int64_t *out) {
  if (wire_get_u16(cursor, out))
    return -1;
  *out = (int16_t)*out;
  return 0;
}

static inline int wire_get_u32(wire_cursor *cursor, int64_t *out) {
  if (wire_left(cursor) < 4)
    return -1;
  *out = load_32(cursor->at);
  cursor->at += 4;
  return 0;
}

static inline int wire_get_i32(wire_cursor *cursor, int64_t *out) {
  if (wire_get_u32(cursor, out))
    return -1;
  *out = (int32_t)*out;
  return 0;
}

static inline int wire_get_i64(wire_cursor *cursor, int64_t *out) {
  if (wire_left(cursor) < 8)
    return -1;
  *out = (int64_t)load_64(cursor->at);
  cursor->at += 8;
  return 0;
}

static inline int wire_get_f64(wire_cursor *cursor, double *out) {
  int64_t bits;
  if (wire_get_i64(cursor, &bits))
    return -1;
  memcpy(out, &bits, sizeof bits);
  return 0;
}

static inline int wire_get_uvarint_long(wire_cursor *cursor, uint32_t *out) {
  uint32_t value = 0;
  for (unsigned shift = 0; shift <= 28; shift += 7) {
    if (cursor->at == cursor->end)
      return -1;
    uint8_t byte = *cursor->at++;
    value |= (uint32_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return 0;
    }
  }
  return -1;
}

static inline int wire_get_uvarint(wire_cursor *cursor, uint32_t *out) {
  if (cursor->at < cursor->end && *cursor->at < 0x80) {
    *out = *cursor->at++;
    return 0;
  }
  return wire_get_uvarint_long(cursor, out);
}

/* The length of a compact string, bytes or array: one less than what is written; a null is negative. */
static inline int wire_get_compact_length(wire_cursor *cursor, int64_t *out) {
  uint32_t raw;
  if (wire_get_uvarint(cursor, &raw))
    return -1;
  *out = (int32_t)(raw - 1);
  return 0;
}

/* A place in a table of recently seen short texts: cheap, and good enough for names. */
static inline size_t wire_text_slot(const uint8_t *text, size_t length, size_t slots) {
  uint64_t head = 0, tail = 0;
  if (length >= 8) {
    memcpy(&head, text, 8);
    memcpy(&tail, text + length - 8, 8);
  } else {
    memcpy(&head, text, length);
  }
  uint64_t mixed = (head * 0x9e3779b97f4a7c15u) ^ ((tail + length) * 0xc2b2ae3d27d4eb4fu);
  return (size_t)((mixed ^ (mixed >> 29)) * 0x9e3779b97f4a7c15u >> 40) & (slots - 1);
}

#endif
