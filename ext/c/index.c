#include "index.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "big_endian.h"

#define PAGE_BYTES 4096u

static int fail_with(int fd) {
  int error = errno;
  close(fd);
  return error;
}

int index_create(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0 && errno == ELOOP && unlink(path) == 0)
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0)
    return errno;
  close(fd);
  return 0;
}

int index_open(index_map *index, const char *path, uint32_t width, size_t max_bytes, int64_t count) {
  struct stat status;
  int fd = open(path, max_bytes ? O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW : O_RDONLY | O_CLOEXEC, 0644);
  if (fd < 0)
    return errno;
  if (fstat(fd, &status) != 0)
    return fail_with(fd);
  size_t size = (size_t)status.st_size, whole = size / width, wanted = max_bytes - max_bytes % width;
  if (wanted > size) {
    if (ftruncate(fd, (off_t)wanted) != 0)
      return fail_with(fd);
    size = wanted;
  }
  index->width = width;
  index->backed = 0;
  index->map = NULL;
  index->mapped = 0;
  index->capacity = (uint32_t)(size / width);
  index->count = count < 0 ? (uint32_t)whole : (uint32_t)count;
  if (index->count > index->capacity)
    index->count = index->capacity;
  if (size > 0) {
    void *map = mmap(NULL, size, max_bytes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
      return fail_with(fd);
    index->map = map;
    index->mapped = size;
  }
  close(fd);
  return 0;
}

int index_back(index_map *index, const char *path) {
  static const uint8_t zeroes[PAGE_BYTES];
  size_t used = (size_t)index->count * index->width, start = index->backed;
  if (start < used)
    start = used + (PAGE_BYTES - used % PAGE_BYTES) % PAGE_BYTES; /* the page of the last entry is there */
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return errno;
  for (; start < used + index->width && start < index->mapped; start += PAGE_BYTES) {
    size_t size = index->mapped - start < PAGE_BYTES ? index->mapped - start : PAGE_BYTES;
    ssize_t written = pwrite(fd, zeroes, size, (off_t)start);
    if (written < 0)
      return fail_with(fd);
    if ((size_t)written < size) {
      close(fd);
      return ENOSPC;
    }
  }
  index->backed = start < index->mapped ? start : index->mapped;
  close(fd);
  return 0;
}

int index_close(index_map *index, const char *path, int trim) {
  int error = 0;
  if (index->map != NULL && munmap(index->map, index->mapped) != 0)
    error = errno;
  index->map = NULL;
  index->mapped = 0;
  if (trim && truncate(path, (off_t)index->count * index->width) != 0)
    error = errno;
  return error;
}

void index_put_offset(index_map *index, uint32_t relative_offset, uint32_t position) {
  uint8_t *entry = index->map + (size_t)index->count * 8;
  store_32(entry, relative_offset);
  store_32(entry + 4, position);
  index->count++;
}

void index_put_time(index_map *index, int64_t timestamp, uint32_t relative_offset) {
  uint8_t *entry = index->map + (size_t)index->count * 12;
  store_64(entry, (uint64_t)timestamp);
  store_32(entry + 8, relative_offset);
  index->count++;
}

void index_get_offset(const index_map *index, uint32_t slot, uint32_t *relative_offset, uint32_t *position) {
  const uint8_t *entry = index->map + (size_t)slot * 8;
  *relative_offset = load_32(entry);
  *position = load_32(entry + 4);
}

void index_get_time(const index_map *index, uint32_t slot, int64_t *timestamp, uint32_t *relative_offset) {
  const uint8_t *entry = index->map + (size_t)slot * 12;
  *timestamp = (int64_t)load_64(entry);
  *relative_offset = load_32(entry + 8);
}

int64_t index_floor_offset(const index_map *index, int64_t relative_offset) {
  int64_t low = 0, high = index->count;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if ((int64_t)load_32(index->map + (size_t)middle * 8) <= relative_offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

int64_t index_floor_time(const index_map *index, int64_t timestamp) {
  int64_t low = 0, high = index->count;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if ((int64_t)load_64(index->map + (size_t)middle * 12) <= timestamp)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}
