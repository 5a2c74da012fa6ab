#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

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

static int window_parse(window *view, int64_t position, batch_header *batch) {
  int64_t left = view->end - position;
  int64_t needed = left < BATCH_OVERHEAD ? left : BATCH_OVERHEAD;
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
                        batch_header *batch) {
  window view;
  view.fd = fd;
  view.start = view.size = 0;
  view.end = end;
  for (;;) {
    int verdict = window_parse(&view, position, batch);
    if (verdict != SEGMENT_OK)
      return verdict;
    if (batch_last_offset(batch) >= offset)
      break;
    position += batch->size;
  }
  *found = position;
  return SEGMENT_OK;
}

int segment_find_time(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset,
                      int64_t *found, batch_header *batch) {
  window view;
  view.fd = fd;
  view.start = view.size = 0;
  view.end = end;
  for (;;) {
    int verdict = window_parse(&view, position, batch);
    if (verdict != SEGMENT_OK)
      return verdict;
    if (batch->max_timestamp >= timestamp && batch_last_offset(batch) >= offset)
      break;
    position += batch->size;
  }
  *found = position;
  return SEGMENT_OK;
}
