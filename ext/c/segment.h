/* The bytes of one segment file: writing what is queued, finding a batch by offset, checking batches. Knows
 * no Python.
 *
 * A batch as all formats share it (magic 2 below; 0 and 1 are single messages or wrappers of compressed
 * ones):
 *
 *    0 int64 base offset        (0, 1: offset of the last message inside)
 *    8 int32 length             bytes that follow
 *   12 int32 leader epoch       (0, 1: crc32 of everything from byte 16)
 *   16 int8  magic
 *   17 uint32 crc32c of everything from byte 21      (0, 1: 17 int8 attributes; 1: 18 int64 timestamp)
 *   21 int16 attributes
 *   23 int32 last offset delta
 *   27 int64 base timestamp
 *   35 int64 max timestamp
 *   43 int64 producer id
 *   51 int16 producer epoch
 *   53 int32 base sequence
 *   57 int32 record count
 */
#ifndef PYKAFKAD_SEGMENT_H
#define PYKAFKAD_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
  SEGMENT_LOG_OVERHEAD = 12,
  SEGMENT_HEADER_V0 = 26, /* overhead, crc, magic, attributes, key length, value length */
  SEGMENT_HEADER_V1 = 34,
  SEGMENT_HEADER_V2 = 61,
  SEGMENT_SCAN_WINDOW = 4096,
};

typedef struct {
  int64_t base_offset, last_offset, max_timestamp, producer_id;
  int64_t size; /* of the whole batch in the file */
  int32_t leader_epoch, base_sequence, last_offset_delta, count;
  uint32_t crc;
  int16_t attributes, producer_epoch;
  int8_t magic;
} segment_batch;

/* What a look at a batch can say. */
enum {
  SEGMENT_OK = 0,
  SEGMENT_END = 1,     /* nothing (more) there */
  SEGMENT_TORN = 2,    /* the file ends inside the batch */
  SEGMENT_CORRUPT = 3, /* sizes or magic that cannot be */
  SEGMENT_ERRNO = 4,   /* a system call failed; errno says why */
};

/* Reads a header out of `available` bytes at p, of a batch that has `left` bytes of file from its start. */
int segment_parse(const uint8_t *p, size_t available, int64_t left, segment_batch *batch);

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
                        segment_batch *batch);

/* The first batch at or after `position` with max timestamp >= timestamp and last offset >= offset. */
int segment_find_time(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset,
                      int64_t *found, segment_batch *batch);

#endif
