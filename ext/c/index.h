/* A mapped index file: fixed-size big-endian entries, sorted, searched by halves. Knows no Python.
 *
 *   offset index, 8 bytes    int32 offset - base    int32 file position
 *   time index, 12 bytes     int64 timestamp        int32 offset - base
 *
 * From its first entry on the file is preallocated (sparse, zero filled) up to its maximum and `count` says
 * how much of it is real; trimmed to count * width when it is done growing. Functions return 0 or an errno
 * value.
 */
#ifndef PYKAFKAD_INDEX_H
#define PYKAFKAD_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint8_t *map;      /* NULL: not mapped */
  size_t mapped;     /* bytes mapped */
  size_t backed;     /* bytes that the file system has room for: beyond them the file is a hole */
  uint32_t count;    /* entries that are real */
  uint32_t capacity; /* entries that fit the mapping */
  uint32_t width;    /* bytes of an entry */
} index_map;

/* Maps `path`. max_bytes > 0: for growing, the file is stretched to max_bytes rounded down to whole entries
 * (never cut), and a symbolic link is ELOOP; 0: for reading, as long as the file is. `count` < 0: every whole
 * entry the file has now is real. */
int index_open(index_map *index, const char *path, uint32_t width, size_t max_bytes, int64_t count);

/* Has the file system set the page of the next entry aside: on a full disk that is an errno value, where a
 * store into a hole of the mapping would be the end of the process. Needed when (count + 1) * width > backed.
 */
int index_back(index_map *index, const char *path);

/* Unmaps; with `trim` also cuts the file at `path` to its real entries. */
int index_close(index_map *index, const char *path, int trim);

/* Creates the empty file of a new index. A symbolic link gives way to it; what that points to is not touched.
 */
int index_create(const char *path);

void index_put_offset(index_map *index, uint32_t relative_offset, uint32_t position);
void index_put_time(index_map *index, int64_t timestamp, uint32_t relative_offset);
void index_get_offset(const index_map *index, uint32_t slot, uint32_t *relative_offset, uint32_t *position);
void index_get_time(const index_map *index, uint32_t slot, int64_t *timestamp, uint32_t *relative_offset);

/* The last slot whose key is <= wanted; -1 when all are greater. */
int64_t index_floor_offset(const index_map *index, int64_t relative_offset);
int64_t index_floor_time(const index_map *index, int64_t timestamp);

#endif
