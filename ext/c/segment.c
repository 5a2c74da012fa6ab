#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

static uint32_t load32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static int64_t load64(const uint8_t *p) { return (int64_t)((uint64_t)load32(p) << 32 | load32(p + 4)); }

static int16_t load16(const uint8_t *p) { return (int16_t)((uint16_t)p[0] << 8 | p[1]); }

static int parse_v2(const uint8_t *p, segment_batch *batch) {
  batch->leader_epoch = (int32_t)load32(p + 12);
  batch->crc = load32(p + 17);
  batch->attributes = load16(p + 21);
  batch->last_offset_delta = (int32_t)load32(p + 23);
  batch->max_timestamp = load64(p + 35);
  batch->producer_id = load64(p + 43);
  batch->producer_epoch = load16(p + 51);
  batch->base_sequence = (int32_t)load32(p + 53);
  batch->count = (int32_t)load32(p + 57);
  if (batch->last_offset_delta < 0 || batch->base_offset > INT64_MAX - batch->last_offset_delta)
    return SEGMENT_CORRUPT;
  batch->last_offset = batch->base_offset + batch->last_offset_delta;
  return SEGMENT_OK;
}

static int parse_old(const uint8_t *p, segment_batch *batch) {
  batch->leader_epoch = -1;
  batch->crc = load32(p + 12);
  batch->attributes = p[17];
  batch->last_offset_delta = 0;
  batch->max_timestamp = batch->magic == 1 ? load64(p + 18) : -1;
  batch->producer_id = -1;
  batch->producer_epoch = -1;
  batch->base_sequence = -1;
  batch->count = -1;
  batch->last_offset = batch->base_offset;
  return SEGMENT_OK;
}

int segment_parse(const uint8_t *p, size_t available, int64_t left, segment_batch *batch) {
  if (left == 0)
    return SEGMENT_END;
  if (available < SEGMENT_LOG_OVERHEAD + 5)
    return SEGMENT_TORN;
  int32_t length = (int32_t)load32(p + 8);
  batch->base_offset = load64(p);
  batch->size = (int64_t)length + SEGMENT_LOG_OVERHEAD;
  batch->magic = (int8_t)p[16];
  if (batch->magic < 0 || batch->magic > 2 || batch->base_offset < 0)
    return SEGMENT_CORRUPT;
  int64_t least = batch->magic == 2   ? SEGMENT_HEADER_V2
                  : batch->magic == 1 ? SEGMENT_HEADER_V1
                                      : SEGMENT_HEADER_V0;
  if (batch->size < least)
    return SEGMENT_CORRUPT;
  if (batch->size > left || available < (size_t)least)
    return SEGMENT_TORN;
  return batch->magic == 2 ? parse_v2(p, batch) : parse_old(p, batch);
}

int64_t segment_pread(int fd, uint8_t *buffer, size_t size, int64_t position) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, buffer + done, size - done, (off_t)(position + (int64_t)done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    done += (size_t)got;
  }
  return (int64_t)done;
}

void segment_reserve(int fd, int64_t size) {
#ifdef FALLOC_FL_KEEP_SIZE
  (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
#else
  (void)fd;
  (void)size;
#endif
}

int segment_write(int fd, struct iovec *parts, int count, int64_t position) {
  while (count > 0) {
    ssize_t put = pwritev(fd, parts, count < IOV_MAX ? count : IOV_MAX, (off_t)position);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return errno;
    position += put;
    while (count > 0 && (size_t)put >= parts->iov_len) {
      put -= (ssize_t)parts->iov_len;
      parts++;
      count--;
    }
    if (count > 0) {
      parts->iov_base = (uint8_t *)parts->iov_base + put;
      parts->iov_len -= (size_t)put;
    }
  }
  return 0;
}

/* A small window on the file that follows a walk from header to header. */
typedef struct {
  int fd;
  int64_t start, size, end;
  uint8_t bytes[SEGMENT_SCAN_WINDOW];
} window;

static int window_parse(window *view, int64_t position, segment_batch *batch) {
  int64_t left = view->end - position;
  int64_t needed = left < SEGMENT_HEADER_V2 ? left : SEGMENT_HEADER_V2;
  if (left <= 0)
    return SEGMENT_END;
  if (position < view->start || position + needed > view->start + view->size) {
    int64_t wanted = left < SEGMENT_SCAN_WINDOW ? left : SEGMENT_SCAN_WINDOW;
    int64_t got = segment_pread(view->fd, view->bytes, (size_t)wanted, position);
    if (got < 0)
      return SEGMENT_ERRNO;
    view->start = position;
    view->size = got;
  }
  const uint8_t *p = view->bytes + (position - view->start);
  return segment_parse(p, (size_t)(view->start + view->size - position), left, batch);
}

int segment_find_offset(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found,
                        segment_batch *batch) {
  window view;
  view.fd = fd;
  view.start = view.size = 0;
  view.end = end;
  for (;;) {
    int verdict = window_parse(&view, position, batch);
    if (verdict != SEGMENT_OK)
      return verdict;
    if (batch->last_offset >= offset)
      break;
    position += batch->size;
  }
  *found = position;
  return SEGMENT_OK;
}

int segment_find_time(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset,
                      int64_t *found, segment_batch *batch) {
  window view;
  view.fd = fd;
  view.start = view.size = 0;
  view.end = end;
  for (;;) {
    int verdict = window_parse(&view, position, batch);
    if (verdict != SEGMENT_OK)
      return verdict;
    if (batch->max_timestamp >= timestamp && batch->last_offset >= offset)
      break;
    position += batch->size;
  }
  *found = position;
  return SEGMENT_OK;
}
