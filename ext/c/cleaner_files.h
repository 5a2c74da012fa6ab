/* The files of a cleaning: a window on the source, and what is written. Knows no Python.
 *
 * The window holds whole batches one after another and grows to the largest, but no further than a batch is
 * good: of a batch larger than the window the checksum is looked at first, piece by piece. The output gathers
 * batches, writes them in large pieces, and keeps the entries of both indexes, in memory until the end: 20
 * bytes for every index.interval.bytes.
 */
#ifndef PYKAFKAD_CLEANER_FILES_H
#define PYKAFKAD_CLEANER_FILES_H

#include "batch_records.h"
#include "cleaner_round.h"

enum cleaner_status {
  CLEANER_OK = 0,
  CLEANER_END,    /* of the source */
  CLEANER_FULL,   /* the key map has as many keys as it may */
  CLEANER_LIMIT,  /* a batch that reaches the end offset */
  CLEANER_UNPACK, /* the caller is to decompress the records of the current batch */
  CLEANER_PACK,   /* the caller is to compress what is kept of it */
  CLEANER_LEGACY, /* the current batch has format 0 or 1: the caller's work */
  CLEANER_CANCELLED,
  CLEANER_NO_MEMORY,
  CLEANER_READ_ERROR, /* errno */
  CLEANER_WRITE_ERROR,
  CLEANER_CORRUPT /* `reason` says why */
};

typedef struct {
  int fd;
  int64_t position, end; /* in the file: of the current batch; of the last */
  uint8_t *bytes;
  size_t room;
  int64_t start; /* in the file, of bytes[0] */
  size_t held;
  const uint8_t *batch; /* the current one, whole and its checksum right (format 2) */
  batch_header header;
  int64_t last_offset;
  const char *reason;
} cleaner_source;

int source_begin(cleaner_source *source, int fd, int64_t position, int64_t end, size_t room);
void source_free(cleaner_source *source);

/* Have the batch at `position` in the window. */
int source_look(cleaner_source *source, cleaner_round *round);

/* On to the next. */
void source_pass(cleaner_source *source);

typedef struct {
  int fd;
  int64_t base_offset;
  int64_t written; /* bytes in the file; those in `bytes` come on top */
  size_t flush_bytes;
  byte_sink bytes;
  byte_sink offset_index, time_index;
  int64_t index_interval_bytes, unindexed_bytes;
  int64_t max_timestamp, max_timestamp_offset, first_timestamp;
  int64_t indexed_timestamp, end_offset, batches;
  const char *reason; /* of CLEANER_CORRUPT */
} cleaner_output;

void output_begin(cleaner_output *output, int fd, int64_t base_offset, int64_t index_interval_bytes,
                  size_t flush_bytes);
void output_free(cleaner_output *output);
static inline int64_t output_size(const cleaner_output *output) {
  return output->written + (int64_t)output->bytes.size;
}

/* A batch of `size` bytes was put at the end of `bytes`. */
int output_note(cleaner_output *output, int64_t size, int64_t last_offset, int64_t max_timestamp);

/* Writes what is gathered, if it is much or `all`. */
int output_flush(cleaner_output *output, cleaner_round *round, int all);

/* The entry that a segment gets when it is closed. */
void output_index_end(cleaner_output *output);

/* Writes all of it; 0 or errno. */
int write_fully(int fd, const uint8_t *data, size_t size, int64_t position);

#endif
