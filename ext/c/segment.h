/* The bytes of one segment file: writing what is queued, finding a batch by offset, checking batches. Knows
 * no Python.
 */
#ifndef PYKAFKAD_SEGMENT_H
#define PYKAFKAD_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "batch.h"

/* No batch of a log has a larger offset: so what is added to one (an index entry, a record's distance, one)
 * still fits, and nobody has to ask. storage/files.py has it too.
 */
#define OFFSET_MAX (INT64_MAX - ((int64_t)1 << 32))

enum { SEGMENT_SCAN_WINDOW = 4096 };

/* What a look at a batch can say. */
enum {
  SEGMENT_OK = 0,
  SEGMENT_END = 1,     /* nothing (more) there */
  SEGMENT_TORN = 2,    /* the file ends inside the batch */
  SEGMENT_CORRUPT = 3, /* sizes or magic that cannot be */
  SEGMENT_ERRNO = 4,   /* a system call failed; errno says why */
};

/* The least size of a batch, by its magic. */
static const int32_t segment_least_sizes[] = {
    26, /* overhead, crc, magic, attributes, key length, value length */
    34, /* and a timestamp */
    BATCH_OVERHEAD,
};

/* Frames a batch and reads its header out of `available` bytes at p; it has `left` bytes of file from its
 * start.
 */
static inline int segment_parse(const uint8_t *p, size_t available, int64_t left, batch_header *batch) {
  if (left == 0)
    return SEGMENT_END;
  if (available < UP_TO_MAGIC)
    return SEGMENT_TORN;
  int64_t base_offset = (int64_t)load_64(p);
  int32_t length = (int32_t)load_32(p + 8);
  int8_t magic = (int8_t)p[MAGIC_AT];
  if (magic < 0 || magic > 2 || base_offset < 0 || base_offset > OFFSET_MAX)
    return SEGMENT_CORRUPT;
  int64_t size = (int64_t)length + LOG_OVERHEAD;
  if (size < segment_least_sizes[magic])
    return SEGMENT_CORRUPT;
  if (size > left || size > INT32_MAX)
    return SEGMENT_TORN;
  if (available >= BATCH_OVERHEAD)
    batch_read_whole_header(p, (int32_t)size, batch);
  else if (available >= (size_t)size)
    batch_read_header(p, (int32_t)size, batch);
  else
    return SEGMENT_TORN;
  if (batch->last_offset_delta < 0 || base_offset > OFFSET_MAX - batch->last_offset_delta)
    return SEGMENT_CORRUPT;
  return SEGMENT_OK;
}

/* pread that goes on after a short count or a signal; the bytes read, less only at the end of the file, or
 * -1. */
int64_t segment_pread(int fd, uint8_t *buffer, size_t size, int64_t position);

/* Sets file system room aside behind what is written, without changing the size; where that cannot be,
 * nothing. */
void segment_reserve(int fd, int64_t size);

/* pwritev of everything; 0 or errno. Changes `parts`. */
int segment_write(int fd, struct iovec *parts, int count, int64_t position);

/* The first batch at or after `position` whose last offset is >= offset; `end` is the file's size. */
int segment_find_offset(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found,
                        batch_header *batch);

/* The first batch at or after `position` with max timestamp >= timestamp and last offset >= offset. */
int segment_find_time(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset,
                      int64_t *found, batch_header *batch);

#endif
