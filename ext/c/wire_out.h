/* Writing the wire's primitives into one growing buffer.
 *
 * Every put makes room first and returns 0, or -1 when memory is out (what was written stays).
 */
#ifndef PYKAFKAD_WIRE_OUT_H
#define PYKAFKAD_WIRE_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "big_endian.h"

typedef struct {
  uint8_t *data;
  size_t length;
  size_t capacity;
} wire_out;

int wire_grow(wire_out *out, size_t more);
void wire_release(wire_out *out);

/* Writes the length of what was put since `start` in front of it, as an unsigned varint. */
int wire_prefix_uvarint(wire_out *out, size_t start);

static inline int wire_room(wire_out *out, size_t more) {
  return out->capacity - out->length >= more ? 0 : wire_grow(out, more);
}

static inline int wire_put_i8(wire_out *out, int64_t value) {
  if (wire_room(out, 1))
    return -1;
  out->data[out->length++] = (uint8_t)value;
  return 0;
}

static inline int wire_put_i16(wire_out *out, int64_t value) {
  if (wire_room(out, 2))
    return -1;
  store_16(out->data + out->length, (uint16_t)value);
  out->length += 2;
  return 0;
}

static inline int wire_put_i32(wire_out *out, int64_t value) {
  if (wire_room(out, 4))
    return -1;
  store_32(out->data + out->length, (uint32_t)value);
  out->length += 4;
  return 0;
}

static inline int wire_put_i64(wire_out *out, int64_t value) {
  if (wire_room(out, 8))
    return -1;
  store_64(out->data + out->length, (uint64_t)value);
  out->length += 8;
  return 0;
}

static inline int wire_put_f64(wire_out *out, double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return wire_put_i64(out, bits);
}

static inline int wire_put_uvarint(wire_out *out, uint32_t value) {
  if (wire_room(out, 5))
    return -1;
  uint8_t *at = out->data + out->length;
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  out->length = (size_t)(at - out->data);
  return 0;
}

static inline int wire_put_bytes(wire_out *out, const void *bytes, size_t length) {
  if (wire_room(out, length))
    return -1;
  if (length)
    memcpy(out->data + out->length, bytes, length);
  out->length += length;
  return 0;
}

/* A frame's size goes in when the frame is whole. */
static inline void wire_patch_i32(wire_out *out, size_t at, uint32_t value) {
  store_32(out->data + at, value);
}

#endif
