/* See cleaner_files.h. */
#include "cleaner_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "crc32c.h"
#include "segment.h"

#define LEAST_ROOM 4096

/* ---- the source ---- */

int source_begin(cleaner_source *source, int fd, int64_t position, int64_t end, size_t room) {
  uint8_t *bytes = source->bytes;
  size_t had = source->room;
  memset(source, 0, sizeof *source);
  source->fd = fd;
  source->position = source->start = position;
  source->end = end;
  source->room = room < LEAST_ROOM ? LEAST_ROOM : room;
  if (bytes && had >= source->room) {
    source->room = had;
    source->bytes = bytes;
  } else {
    free(bytes);
    source->bytes = malloc(source->room);
  }
#ifdef POSIX_FADV_SEQUENTIAL
  (void)posix_fadvise(fd, (off_t)position, (off_t)(end - position), POSIX_FADV_SEQUENTIAL);
#endif
  return source->bytes ? CLEANER_OK : CLEANER_NO_MEMORY;
}

void source_free(cleaner_source *source) {
  free(source->bytes);
  source->bytes = NULL;
  source->room = 0;
}

static int corrupt(cleaner_source *source, const char *reason) {
  source->reason = reason;
  return CLEANER_CORRUPT;
}

static const uint8_t *here(const cleaner_source *source) {
  return source->bytes + (source->position - source->start);
}

static size_t held_here(const cleaner_source *source) {
  return source->held - (size_t)(source->position - source->start);
}

/* Fill the window from the current batch on; what is there already of it is kept. */
static int fill(cleaner_source *source, cleaner_round *round) {
  size_t kept = held_here(source);
  memmove(source->bytes, here(source), kept);
  source->start = source->position;
  source->held = kept;
  int64_t left = source->end - source->start - (int64_t)kept;
  size_t wanted = source->room - kept;
  if ((int64_t)wanted > left)
    wanted = (size_t)left;
  if (round_pay(round, (int64_t)wanted))
    return CLEANER_CANCELLED;
  int64_t got = segment_pread(source->fd, source->bytes + kept, wanted, source->start + (int64_t)kept);
  if (got < 0)
    return CLEANER_READ_ERROR;
  source->held += (size_t)got;
  return CLEANER_OK;
}

/* Is the checksum of a batch that the window cannot hold right? Leaves the window as it was. */
static int check_large(cleaner_source *source, int32_t size, cleaner_round *round) {
  size_t room = 64 * 1024;
  uint8_t *piece = malloc(room);
  if (!piece)
    return CLEANER_NO_MEMORY;
  uint32_t crc = 0, wanted = load_32(here(source) + CRC_AT);
  int status = CLEANER_OK;
  for (int64_t at = ATTRIBUTES_AT; at < size && status == CLEANER_OK;) {
    size_t part = size - at < (int64_t)room ? (size_t)(size - at) : room;
    int64_t got = segment_pread(source->fd, piece, part, source->position + at);
    if (got != (int64_t)part)
      status = got < 0 ? CLEANER_READ_ERROR : corrupt(source, "the file ends inside a batch");
    else if (round_pay(round, got))
      status = CLEANER_CANCELLED;
    else
      crc = crc32c(crc, piece, part);
    at += (int64_t)part;
  }
  free(piece);
  if (status == CLEANER_OK && crc != wanted)
    return corrupt(source, "a checksum that does not match");
  return status;
}

static int grow(cleaner_source *source, int32_t size, int8_t magic, cleaner_round *round) {
  if (magic == 2) {
    int status = check_large(source, size, round);
    if (status != CLEANER_OK)
      return status;
  }
  size_t room = 2 * source->room > (size_t)size ? 2 * source->room : (size_t)size;
  uint8_t *larger = realloc(source->bytes, room);
  if (!larger)
    return CLEANER_NO_MEMORY;
  source->bytes = larger;
  source->room = room;
  return CLEANER_OK;
}

/* The size of the batch, once its first bytes are in the window. */
static int frame(cleaner_source *source, int32_t *size, int8_t *magic) {
  int64_t left = source->end - source->position;
  if (held_here(source) < UP_TO_MAGIC)
    return corrupt(source, "the file ends inside a batch");
  const uint8_t *at = here(source);
  int32_t length = (int32_t)load_32(at + 8);
  *magic = (int8_t)at[MAGIC_AT];
  if (*magic < 0 || *magic > 2)
    return corrupt(source, "a magic no batch can have");
  int32_t least = *magic == 2 ? BATCH_OVERHEAD - LOG_OVERHEAD : LEGACY_OVERHEAD;
  if (length < least || length > INT32_MAX - LOG_OVERHEAD)
    return corrupt(source, "a size no batch can have");
  if (length + LOG_OVERHEAD > left)
    return corrupt(source, "the file ends inside a batch");
  *size = length + LOG_OVERHEAD;
  return CLEANER_OK;
}

static int accept(cleaner_source *source, int32_t size) {
  batch_header *header = &source->header;
  source->batch = here(source);
  batch_read_header(source->batch, size, header);
  if (header->magic < 2) {
    source->last_offset = header->base_offset;
    return header->base_offset < 0 || header->base_offset > OFFSET_MAX
               ? corrupt(source, "an offset no batch can have")
               : CLEANER_OK;
  }
  if (!batch_crc_fits(source->batch, size))
    return corrupt(source, "a checksum that does not match");
  if (header->base_offset < 0 || header->last_offset_delta < 0 ||
      header->base_offset > OFFSET_MAX - header->last_offset_delta)
    return corrupt(source, "offsets no batch can have");
  if ((header->attributes & CODEC_MASK) >= CODEC_COUNT)
    return corrupt(source, "a codec that does not exist");
  source->last_offset = header->base_offset + header->last_offset_delta;
  return CLEANER_OK;
}

int source_look(cleaner_source *source, cleaner_round *round) {
  int32_t size;
  int8_t magic;
  int status;
  if (source->position >= source->end)
    return CLEANER_END;
  if (held_here(source) < UP_TO_MAGIC && (status = fill(source, round)) != CLEANER_OK)
    return status;
  if ((status = frame(source, &size, &magic)) != CLEANER_OK)
    return status;
  if ((size_t)size > source->room && (status = grow(source, size, magic, round)) != CLEANER_OK)
    return status;
  if (held_here(source) < (size_t)size && (status = fill(source, round)) != CLEANER_OK)
    return status;
  if (held_here(source) < (size_t)size)
    return corrupt(source, "the file ends inside a batch");
  return accept(source, size);
}

void source_pass(cleaner_source *source) { source->position += source->header.size; }

/* ---- the output ---- */

void output_begin(cleaner_output *output, int fd, int64_t base_offset, int64_t index_interval_bytes,
                  size_t flush_bytes) {
  memset(output, 0, sizeof *output);
  output->fd = fd;
  output->base_offset = output->end_offset = output->max_timestamp_offset = base_offset;
  output->index_interval_bytes = index_interval_bytes;
  output->flush_bytes = flush_bytes;
  output->max_timestamp = output->first_timestamp = output->indexed_timestamp = NO_TIMESTAMP;
}

void output_free(cleaner_output *output) {
  sink_free(&output->bytes);
  sink_free(&output->offset_index);
  sink_free(&output->time_index);
}

static void index_time(cleaner_output *output) {
  if (output->max_timestamp <= output->indexed_timestamp)
    return;
  uint8_t *entry = sink_reserve(&output->time_index, 12);
  if (!entry)
    return;
  store_64(entry, (uint64_t)output->max_timestamp);
  store_32(entry + 8, (uint32_t)(output->max_timestamp_offset - output->base_offset));
  output->indexed_timestamp = output->max_timestamp;
}

static void index_here(cleaner_output *output, int64_t last_offset, int64_t position) {
  uint8_t *entry = sink_reserve(&output->offset_index, 8);
  if (entry) {
    store_32(entry, (uint32_t)(last_offset - output->base_offset));
    store_32(entry + 4, (uint32_t)position);
  }
  index_time(output);
  output->unindexed_bytes = 0;
}

int output_note(cleaner_output *output, int64_t size, int64_t last_offset, int64_t max_timestamp) {
  int64_t position = output_size(output) - size;
  if (last_offset < output->end_offset)
    output->reason = "an offset that is not above the one before";
  else if (last_offset - output->base_offset > INT32_MAX)
    output->reason = "an offset too far from the first of the segment";
  else if (position > INT32_MAX - size)
    output->reason = "more than fits into one segment";
  if (output->reason)
    return CLEANER_CORRUPT;
  if (!output->batches++)
    output->first_timestamp = max_timestamp;
  if (max_timestamp > output->max_timestamp) {
    output->max_timestamp = max_timestamp;
    output->max_timestamp_offset = last_offset;
  }
  if (output->unindexed_bytes > output->index_interval_bytes)
    index_here(output, last_offset, position);
  output->unindexed_bytes += size;
  output->end_offset = last_offset + 1;
  if (output->bytes.failed || output->offset_index.failed || output->time_index.failed)
    return CLEANER_NO_MEMORY;
  return CLEANER_OK;
}

void output_index_end(cleaner_output *output) { index_time(output); }

int write_fully(int fd, const uint8_t *data, size_t size, int64_t position) {
  while (size) {
    ssize_t put = pwrite(fd, data, size, (off_t)position);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return errno;
    data += put;
    size -= (size_t)put;
    position += put;
  }
  return 0;
}

int output_flush(cleaner_output *output, cleaner_round *round, int all) {
  size_t size = output->bytes.size;
  if (size == 0 || (!all && size < output->flush_bytes))
    return CLEANER_OK;
  if (round_pay(round, (int64_t)size))
    return CLEANER_CANCELLED;
  int error = write_fully(output->fd, output->bytes.data, size, output->written);
  if (error) {
    errno = error;
    return CLEANER_WRITE_ERROR;
  }
  output->written += (int64_t)size;
  output->bytes.size = 0;
  return CLEANER_OK;
}
