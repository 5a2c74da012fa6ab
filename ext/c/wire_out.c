/* The slow half of wire_out.h: growing, and lengths that are known only afterwards. */
#include "wire_out.h"

#include <stdlib.h>

enum { WIRE_FIRST_CAPACITY = 1024 };

int wire_grow(wire_out *out, size_t more) {
  size_t capacity = out->capacity ? out->capacity : WIRE_FIRST_CAPACITY;
  if (more > SIZE_MAX / 2 - out->length)
    return -1;
  while (capacity - out->length < more)
    capacity *= 2;
  uint8_t *data = realloc(out->data, capacity);
  if (!data)
    return -1;
  out->data = data;
  out->capacity = capacity;
  return 0;
}

void wire_release(wire_out *out) {
  free(out->data);
  out->data = NULL;
  out->length = out->capacity = 0;
}

int wire_prefix_uvarint(wire_out *out, size_t start) {
  size_t length = out->length - start, width = 1;
  if (length > INT32_MAX)
    return -1;
  for (size_t rest = length >> 7; rest; rest >>= 7)
    width++;
  if (wire_room(out, width))
    return -1;
  memmove(out->data + start + width, out->data + start, length);
  out->length = start;
  wire_put_uvarint(out, (uint32_t)length);
  out->length = start + width + length;
  return 0;
}
