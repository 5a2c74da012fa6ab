#include "snappy_block.h"

#include <stdbool.h>
#include <string.h>

/* Kinds of elements. Behind the tag of a copy so many bytes say how far back it is from. */
enum { LITERAL, COPY_OF_1, COPY_OF_2, COPY_OF_4 };

enum { LENGTH_IN_1 = 60 }; /* of a literal: the byte behind the tag has its length; with 61 two have it */

static inline size_t left_of(const struct snappy_block *block) { return (size_t)(block->end - block->at); }

static inline uint32_t little_endian(const uint8_t *at, unsigned bytes) {
  uint32_t value = 0;
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint32_t)at[i] << (8 * i);
  return value;
}

void snappy_block_begin(struct snappy_block *block, const uint8_t *data, size_t length, uint8_t *out,
                        size_t size) {
  *block = (struct snappy_block){.at = data, .end = data + length, .out = out, .size = size};
}

/* As far as `until`; the rest is for the next step. */
static void copy_literal(struct snappy_block *block, size_t until) {
  size_t now = block->literal_left;
  if (now > until - block->made)
    now = until - block->made;
  memcpy(block->out + block->made, block->at, now);
  block->at += now;
  block->made += now;
  block->literal_left -= now;
}

static bool begin_literal(struct snappy_block *block, uint8_t tag) {
  size_t length = tag >> 2;
  if (length >= LENGTH_IN_1) {
    unsigned bytes = (unsigned)length - LENGTH_IN_1 + 1;
    if (left_of(block) < bytes)
      return false;
    length = little_endian(block->at, bytes);
    block->at += bytes;
  }
  length++;
  if (length > left_of(block) || length > block->size - block->made)
    return false;
  block->literal_left = length;
  return true;
}

static bool copy_back(struct snappy_block *block, uint8_t tag) {
  unsigned kind = tag & 3, bytes = kind == COPY_OF_4 ? 4 : kind;
  size_t length = (tag >> 2) + 1, offset;
  if (left_of(block) < bytes)
    return false;
  offset = little_endian(block->at, bytes);
  block->at += bytes;
  if (kind == COPY_OF_1) {
    length = (tag >> 2 & 7) + 4;
    offset |= (size_t)(tag >> 5) << 8;
  }
  if (offset == 0 || offset > block->made || length > block->size - block->made)
    return false;
  uint8_t *to = block->out + block->made;
  if (offset >= length)
    memcpy(to, to - offset, length);
  else
    for (size_t i = 0; i < length; i++) /* what is copied is copied from again */
      to[i] = to[i - offset];
  block->made += length;
  return true;
}

enum snappy_status snappy_block_go_on(struct snappy_block *block, size_t step) {
  size_t until = step < block->size - block->made ? block->made + step : block->size;
  if (block->literal_left)
    copy_literal(block, until);
  while (block->at < block->end && !block->literal_left) {
    if (block->made >= until && block->made < block->size)
      return SNAPPY_GOES_ON;
    uint8_t tag = *block->at++;
    if ((tag & 3) == LITERAL ? !begin_literal(block, tag) : !copy_back(block, tag))
      return SNAPPY_INVALID;
    if (block->literal_left)
      copy_literal(block, until);
  }
  if (block->literal_left)
    return SNAPPY_GOES_ON;
  return block->made == block->size ? SNAPPY_DONE : SNAPPY_INVALID;
}
