/* The walk over every byte of a segment file: is each batch whole, right and in its place? Knows no Python.
 *
 * A turn goes on until a table is full, so many bytes are done, the file ends or something is wrong. What a
 * turn leaves: the batches that matter to epochs and producers (`notables`), and the entries that indexes of
 * the segment would have. Indexes that exist may be given, and are compared on the way. Reads through a
 * window of fixed size: a batch that is larger is only summed, piece by piece.
 */
#ifndef PYKAFKAD_SEGMENT_CHECK_H
#define PYKAFKAD_SEGMENT_CHECK_H

#include "segment.h"

enum {
  CHECK_WINDOW = 1 << 20,
  CHECK_NOTABLES = 4096,
  CHECK_ENTRIES = 4096,
  CHECK_REMEMBERED = 5, /* so many of a producer's last batches matter */
};

/* How a turn ended. From CHECK_TORN on the batch at `position` is not good. */
enum {
  CHECK_ON = 0,  /* there is more */
  CHECK_END = 1, /* all of it is good */
  CHECK_ERRNO = 2,
  CHECK_TORN = 3,       /* the file ends inside the batch */
  CHECK_IMPOSSIBLE = 4, /* a size, magic or offset no batch can have */
  CHECK_SUM = 5,
  CHECK_ORDER = 6, /* offsets that were there before */
  CHECK_FAR = 7,   /* further from the segment's base than an index can say */
  CHECK_EPOCH = 8, /* the leader epoch falls */
};

typedef struct {
  batch_header batch;
  int64_t position;
} check_notable;

typedef struct {
  int64_t last_offset, position, max_timestamp, max_timestamp_offset;
} check_entry;

/* An index that is compared: its bytes without the zeroes at the end. */
typedef struct {
  const uint8_t *data; /* NULL: there is none */
  int64_t count, at;
  int64_t wrong;       /* entries that do not fit the log */
  int64_t first_wrong; /* the first of them */
} check_index;

typedef struct {
  int fd;
  int64_t base_offset;
  int64_t end;      /* bytes of the file that are looked at */
  int64_t interval; /* index.interval.bytes */
  /* what was seen so far */
  int64_t position;    /* where the good part ends */
  int64_t next_offset; /* after the last good batch */
  int64_t max_timestamp, max_timestamp_offset;
  int64_t batches, records;
  int64_t gaps; /* batches that do not follow the one before without one */
  int64_t unindexed;
  int32_t epoch;        /* of the batches so far; -1: none */
  batch_header current; /* the batch at `position` when it is not good, as far as it can be read */
  /* of the last turn */
  check_notable *notables;
  check_entry *entries;
  int notable_count, entry_count;
  check_index offset_index, time_index;
  uint8_t *window;
  int64_t window_start, window_size;
  uint32_t crc32_table[256]; /* filled when formats 0 and 1 are met: [1] is never 0 then */
} segment_check;

/* 0, or -1 when there is no memory. */
int segment_check_begin(segment_check *check, int fd, int64_t base_offset, int64_t end);

void segment_check_end(segment_check *check);

int segment_check_turn(segment_check *check, int64_t max_bytes);

/* Leaves those of a turn's notables that a producer's state can still depend on. */
void segment_check_thin(segment_check *check);

/* The entries of given indexes that point behind the end are wrong as well. */
void segment_check_finish_indexes(segment_check *check);

#endif
